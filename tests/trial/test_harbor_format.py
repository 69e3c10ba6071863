"""What Harbor's task format allows beside the usual, each in a real job: rewards, verifiers, checks, limits, skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report import to_json
from tests.records.kit import job
from tests.trial.harborjobs import HarborJobs
from tests.trial.upstream import Upstream, serving, use

pytestmark = [
    pytest.mark.slow,
    # Harbor warns of its own use of it.
    pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated:DeprecationWarning"),
]

SCRIPT = """
orch:
  - name: work
    expect: ["make it"]
    do:
      - run: "{run}"
  - name: end
    on: result
    do:
      - done: "made"
worker: []
"""

TIMEOUT = "[agent]\ntimeout_sec = 60\n"


def task(home: Path, test: str, *, toml: str = TIMEOUT, run: str = "echo made > made", dockerfile: str = "") -> Path:
    """A task whose lead runs one command, and whose verifier is `test`."""
    path = home / "formed"
    for part in ("environment", "rehearsal", "tests"):
        (path / part).mkdir(parents=True)
    (path / "task.toml").write_text(f'[task]\nname = "made/formed"\n{toml}')
    (path / "instruction.md").write_text("make it")
    (path / "environment" / "Dockerfile").write_text(f"FROM debian\nWORKDIR /app\n{dockerfile}")
    (path / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    (path / "rehearsal" / "good.yaml").write_text(SCRIPT.format(run=run))
    return path


def reward(text: str) -> str:
    return f"echo '{text}' > /logs/verifier/reward.json"


async def test_of_several_reward_keys_the_one_called_reward_decides(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, reward('{"speed": 0.2, "reward": 1, "lines": 0}')))
    assert (ran.record.outcome.outcome, ran.record.outcome.reward) == ("passed", 1.0)
    assert ran.result.verifier_result.rewards == {"speed": 0.2, "reward": 1, "lines": 0}
    (shown,) = to_json([job(ran.record)])["jobs"][0]["trials"]
    assert (shown["reward"], shown["steps"]) == (1.0, [])


async def test_several_reward_keys_of_which_none_is_called_so_are_no_score(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, reward('{"speed": 1, "lines": 1}')))
    assert ran.record.outcome.outcome == "unscored"
    assert ran.record.outcome.reason.startswith("2 rewards, none of them named `reward`")


async def test_one_reward_of_another_name_counts(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, reward('{"accuracy": 0.25}')))
    assert (ran.record.outcome.outcome, ran.record.outcome.reward) == ("failed", 0.25)


EVIDENCE = """
found=$(grep -c 'DONE: made' /logs/artifacts/relay_evidence.json)
[ "$found" = 1 ] && {check} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""


async def test_a_shared_verifier_sees_the_evidence_and_what_the_team_made(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, EVIDENCE.format(check="[ -e /app/made ]")))
    assert ran.record.outcome.outcome == "passed"


async def test_a_separate_verifier_sees_the_evidence_and_only_what_is_an_artifact(
    harbor: HarborJobs, tmp_path: Path
) -> None:
    check = '[ -e /app/made ] && [ ! -e /app/other ] && [ -z "$(ls -A /logs/agent 2> /dev/null)" ]'
    made = task(
        tmp_path,
        EVIDENCE.format(check=check),
        run="echo made > made; touch other",
        toml=f'{TIMEOUT}[verifier]\nenvironment_mode = "separate"\n',
    )
    config = made / "task.toml"
    config.write_text('artifacts = ["/app/made"]\n' + config.read_text())
    ran = await harbor.run(made)
    assert ran.result.verifier_environment_mode.value == "separate"
    assert ran.record.outcome.outcome == "passed", ran.record.outcome.reason


CHECK = (
    '[environment.healthcheck]\ncommand = "{command}"\ninterval_sec = 0.05\nstart_interval_sec = 0.05\nretries = 3\n'
)


async def test_a_team_begins_once_the_environments_healthcheck_holds(harbor: HarborJobs, tmp_path: Path) -> None:
    late = "echo x >> /app/tries; [ $(wc -l < /app/tries) -ge 3 ]"
    toml = TIMEOUT + CHECK.format(command=late)
    made = task(tmp_path, "cp /app/seen /logs/verifier/reward.txt", toml=toml, run="[ -s tries ] && echo 1 > seen")
    ran = await harbor.run(made)
    assert ran.record.outcome.outcome == "passed"


async def test_an_environment_that_never_gets_healthy_is_nobodys_failure(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, reward('{"reward": 1}'), toml=TIMEOUT + CHECK.format(command="false")))
    assert (ran.record.outcome.outcome, ran.result.agent_result) == ("unscored", None)
    assert "ealthcheck" in ran.record.outcome.reason


async def test_without_an_agent_timeout_the_manifests_time_is_the_limit(
    harbor: HarborJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")
    upstream = Upstream(lambda asked: [use("shell", command="sleep 60")])
    made = task(tmp_path, reward('{"reward": 0}'), toml="")
    async with serving(upstream, tmp_path, workers=0) as terms:
        manifest = terms["manifest_path"]
        manifest.write_text(manifest.read_text().replace("timeout_seconds: 30", "timeout_seconds: 2"))
        ran = await harbor.run(made, None, **{name: terms[name] for name in ("manifest_path", "endpoints")})
    assert (ran.told()["ended"], ran.record.outcome.outcome) == ("deadline", "failed")
    assert "it had 2 s of work" in ran.told()["reason"]
    assert "task's agent timeout none" in ran.told()["reason"]


async def test_a_task_without_network_has_none_and_its_team_plays_all_the_same(
    harbor: HarborJobs, tmp_path: Path
) -> None:
    toml = f'{TIMEOUT}[environment]\nnetwork_mode = "no-network"\n'
    only_lo = "tail -n +3 /proc/net/dev | grep -vc '^ *lo:' > others; true"
    test = '[ "$(cat /app/others)" = 0 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt'
    ran = await harbor.run(task(tmp_path, test, toml=toml, run=only_lo))
    assert (ran.told()["ended"], ran.record.outcome.outcome) == ("done", "passed")


SKILL = (
    "---\nname: counting\ndescription: >\n  Counts things,\n  and says how many.\n---\n# Counting\nBegin with one.\n"
)


async def test_every_member_is_told_of_the_skills_that_a_task_brings(
    harbor: HarborJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")
    toml = f'{TIMEOUT}[environment]\nskills_dir = "/skills"\n'
    made = task(tmp_path, "cp /app/count /logs/verifier/reward.txt", toml=toml, dockerfile="COPY skills /skills\n")
    for name, text in (("counting", SKILL), ("bare", "no front matter\n"), ("none", None)):
        (made / "environment" / "skills" / name).mkdir(parents=True)
        if text is not None:
            (made / "environment" / "skills" / name / "SKILL.md").write_text(text)
    (made / "environment" / "skills" / "none" / "other.md").write_text("x")
    look = use("shell", command="tail -n 1 /skills/counting/SKILL.md > told; echo 1 > count")
    upstream = Upstream(lambda asked: [use("done", text="counted")] if asked.number else [look])
    async with serving(upstream, tmp_path, workers=1) as terms:
        ran = await harbor.run(made, None, **{name: terms[name] for name in ("manifest_path", "endpoints")})
    assert ran.record.outcome.outcome == "passed", ran.record.outcome.reason
    assert upstream.asked[0].system.count("[Skills]") == 1
    assert (
        "[Skills]\nThe task brings skills. Before you do what one of them is for, read its file:\n"
        "- bare (/skills/bare/SKILL.md)\n"
        "- counting (/skills/counting/SKILL.md): Counts things, and says how many.\n"
    ) in upstream.asked[0].system


async def test_skills_that_are_not_there_are_the_tasks_fault(harbor: HarborJobs, tmp_path: Path) -> None:
    toml = f'{TIMEOUT}[environment]\nskills_dir = "/nowhere"\n'
    ran = await harbor.run(task(tmp_path, reward('{"reward": 1}'), toml=toml))
    assert ran.record.outcome.outcome == "unscored"
    assert ran.record.outcome.reason.startswith("environment_unusable: [environment].skills_dir /nowhere can't be read")
