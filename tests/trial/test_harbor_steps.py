"""Tasks in steps inside real Harbor jobs: what it deletes, keeps and combines between the team's runs."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.settings import ROOT
from bench.trial.deadline import task_timeout_s
from bench.trial.play import Play
from tests.trial.harborjobs import HarborJobs

pytestmark = [
    pytest.mark.slow,
    # Harbor warns of its own use of it.
    pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated:DeprecationWarning"),
]

TASK = ROOT / "buzz-dataset" / "change-asked-later"


async def test_a_good_script_passes_every_step_and_leaves_each_steps_files(harbor: HarborJobs) -> None:
    ran = await harbor.run(TASK)
    assert [(step.name, step.outcome.outcome) for step in ran.record.steps] == [
        ("draft", "passed"),
        ("change", "passed"),
    ]
    assert (ran.record.outcome.outcome, ran.record.outcome.labels) == ("passed", ())
    assert ran.told(0)["channel"] == ran.told(1)["channel"]
    for number, name in enumerate(("draft", "change")):
        step = ran.directory / "steps" / name
        collected = step / "artifacts" / "logs" / "artifacts" / "relay_evidence.json"
        assert collected.read_bytes() == (step / "buzzbench-evidence.json").read_bytes()
        validator = TrajectoryValidator()
        assert validator.validate(step / "agent" / "trajectory.json"), validator.get_errors()
        assert json.loads((step / "verifier" / "checks.json").read_text())["files"]
        of_harbor = ran.result.step_results[number]
        assert of_harbor.agent_result.n_input_tokens > 0
        assert set(of_harbor.agent_result.model_usage) == {"scripted"}


async def test_a_step_below_its_min_reward_ends_the_trial_there(harbor: HarborJobs) -> None:
    ran = await harbor.run(TASK, "wrong-asks-both-for-the-draft")
    assert [step.step_name for step in ran.result.step_results] == ["draft"]
    assert (ran.record.outcome.outcome, ran.record.outcome.reward) == ("failed", 0.0)
    assert ran.record.outcome.reason == (
        "step draft: evidence: the other worker is given nothing; it ended with step draft, 1 before the last"
    )


async def test_a_play_is_closed_with_the_trial_that_ends_early(
    harbor: HarborJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Harbor tells the agent nothing then; but it runs each trial in a task of its own."""
    closed: list[str] = []

    async def close(play: Play) -> None:
        await really(play)
        closed.append(play.session.condition.name)

    really = Play.close
    monkeypatch.setattr(Play, "close", close)
    await harbor.run(TASK, "wrong-asks-both-for-the-draft")
    async with asyncio.timeout(10):
        while not closed:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len(closed) == 1


async def test_a_later_step_that_goes_wrong_fails_the_trial_and_says_which(harbor: HarborJobs) -> None:
    ran = await harbor.run(TASK, "wrong-another-changes-it")
    assert [step.outcome.outcome for step in ran.record.steps] == ["passed", "failed"]
    assert ran.record.outcome.reward == 0.0
    assert ran.record.outcome.reason.startswith("step change: evidence: ")


async def test_a_script_that_does_not_fit_a_later_step_leaves_the_trial_without_a_score(
    harbor: HarborJobs, tmp_path: Path
) -> None:
    script = (TASK / "rehearsal" / "good.yaml").read_text().replace('expect: ["Wednesday"]', 'expect: ["Sunday"]')
    ran = await harbor.run(task(tmp_path, script=script, like=TASK))
    assert (ran.record.outcome.outcome, ran.record.outcome.labels) == ("unscored", ("script_mismatch",))
    assert ran.record.outcome.reason.startswith("step change: script_mismatch: ")


SCRIPT = """
orch:
  - name: first
    expect: ["ask one"]
    do:
      - run: "pwd > where; cat given/one.txt > seen-one; ls -A /tests > left-one 2> /dev/null; true"
  - name: end of the first
    on: result
    do:
      - done: "one"
  - name: second
    expect: ["ask two"]
    do:
      - run: "cat given/two.txt > seen-two; ls -A /tests > left-two 2> /dev/null; true"
  - name: end of the second
    on: result
    do:
      - done: "two"
worker: []
"""

REWARDS = """#!/bin/bash
set -e
grep -q '"name": *"{step}"' /logs/artifacts/relay_evidence.json
grep -q "brought for {step}" seen-{step}
# The team has seen nothing of what the step before was judged by.
[ ! -s left-{step} ]
echo '{{"reward": {reward}, "speed": {speed}}}' > /logs/verifier/reward.json
"""


def task(tmp_path: Path, *, toml: str = "", script: str = SCRIPT, like: Path | None = None) -> Path:
    """A task in steps `one` and `two`, each with a workdir, a setup script and rewards of two keys."""
    path = tmp_path / "made-in-steps"
    if like is not None:
        shutil.copytree(like, path)
    else:
        for part in ("environment", "rehearsal"):
            (path / part).mkdir(parents=True)
        (path / "environment" / "Dockerfile").write_text("FROM debian\nWORKDIR /app\n")
        (path / "task.toml").write_text(f'[task]\nname = "made/in-steps"\n[agent]\ntimeout_sec = 60\n{toml}')
        for step, reward, speed in (("one", 0.5, 3), ("two", 1.0, 5)):
            place = path / "steps" / step
            for part in ("tests", "workdir/given"):
                (place / part).mkdir(parents=True)
            (place / "instruction.md").write_text(f"ask {step}")
            (place / "workdir" / "given" / f"{step}.raw").write_text(f"brought for {step}\n")
            (place / "workdir" / "setup.sh").write_text(f"mv given/{step}.raw given/{step}.txt\n")
            (place / "tests" / "test.sh").write_text(REWARDS.format(step=step, reward=reward, speed=speed))
    (path / "rehearsal" / "good.yaml").write_text(script)
    return path


STEPS = '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'


async def test_each_step_is_set_up_and_its_rewards_are_combined_key_by_key(harbor: HarborJobs, tmp_path: Path) -> None:
    ran = await harbor.run(task(tmp_path, toml=STEPS))
    assert ran.result.verifier_result.rewards == {"reward": 0.75, "speed": 4.0}
    assert (ran.record.outcome.outcome, ran.record.outcome.reward) == ("failed", 0.75)
    assert ran.record.outcome.reason == "step one: reward 0.5"


END_OF_FIRST = "  - name: end of the first\n"
ONCE_MORE = '  - name: once more\n    on: result\n    do:\n      - run: "true"\n'
CONTENT_WITH_ANYTHING = "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"


@pytest.mark.parametrize(
    ("budget", "script", "ends", "because"),
    [
        (
            "timeout_seconds: 60\n  max_calls: 3",
            SCRIPT.replace(END_OF_FIRST, ONCE_MORE + END_OF_FIRST),
            [None, "budget"],
            "Buzzbench budget: the trial ",
        ),
        (
            "timeout_seconds: 1",
            SCRIPT.replace('expect: ["ask one"]', 'expect: ["ask one"]\n    think_s: [60, 60]'),
            ["agent_timeout", "agent_timeout"],
            "the team's time is over after 0.0 s: it had 1 s of work (trial_budget.timeout_seconds 1 s in the "
            "manifest, of which earlier steps took ",
        ),
    ],
    ids=["cap", "deadline"],
)
async def test_a_step_that_the_team_never_played_is_not_passed_whatever_its_verifier_finds(
    harbor: HarborJobs, tmp_path: Path, budget: str, script: str, ends: list[str | None], because: str
) -> None:
    """What is there then is the work of the step before."""
    made = task(tmp_path, toml='[[steps]]\nname = "one"\nmin_reward = 1.0\n[[steps]]\nname = "two"\n', script=script)
    for step in ("one", "two"):
        (made / "steps" / step / "tests" / "test.sh").write_text(CONTENT_WITH_ANYTHING)
    manifest = tmp_path / "manifests" / "rehearsal.yaml"
    shutil.copytree(ROOT / "manifests", manifest.parent)
    manifest.write_text(re.sub(r"timeout_seconds: \d+", budget, manifest.read_text()))
    ran = await harbor.run(made, manifest_path=manifest)
    assert ran.result.verifier_result.rewards == {"reward": 1.0}
    one, two = (step.outcome for step in ran.record.steps)
    assert (one.outcome, one.labels) == ("passed", tuple(filter(None, ends[:1])))
    assert (two.outcome, two.reward, two.labels) == ("failed", 0.0, (ends[1], "never_played"))
    assert two.reason.startswith(f"never played: {because}")
    whole = ran.record.outcome
    assert (whole.outcome, whole.reward, whole.reason) == ("failed", 0.5, f"step two: {two.reason}")
    told = json.loads((ran.directory / "steps/two/agent/trajectory.json").read_text())
    assert "ask one" not in json.dumps(told)
    assert TrajectoryValidator().validate(ran.directory / "steps/two/agent/trajectory.json")


async def test_the_last_steps_reward_is_the_trials_where_the_task_says_so(harbor: HarborJobs, tmp_path: Path) -> None:
    made = task(tmp_path, toml=STEPS)
    config = made / "task.toml"
    config.write_text('multi_step_reward_strategy = "final"\n' + config.read_text())
    ran = await harbor.run(made)
    assert (ran.record.outcome.outcome, ran.record.outcome.reward) == ("passed", 1.0)


async def test_a_verifier_of_its_own_environment_judges_each_step(harbor: HarborJobs, tmp_path: Path) -> None:
    own = 'artifacts = ["/app/seen-one", "/app/seen-two"]\n'
    made = task(tmp_path, toml=f'[verifier]\nenvironment_mode = "separate"\n{STEPS}')
    (made / "task.toml").write_text(own + (made / "task.toml").read_text())
    ran = await harbor.run(made)
    assert [step.outcome.reward for step in ran.record.steps] == [0.5, 1.0]


@pytest.mark.parametrize(("command", "outcomes"), [("test -e where", ["failed", "passed"]), ("false", ["failed"] * 2)])
async def test_a_steps_healthcheck_comes_before_the_team_goes_on(
    harbor: HarborJobs, tmp_path: Path, command: str, outcomes: list[str]
) -> None:
    check = f'[steps.healthcheck]\ncommand = "{command}"\ninterval_sec = 0.1\nretries = 1\nstart_interval_sec = 0.1\n'
    ran = await harbor.run(task(tmp_path, toml=STEPS + check))
    assert [step.outcome.outcome for step in ran.record.steps] == outcomes
    if command == "false":
        assert ran.record.steps[1].outcome.reason.startswith("no reward: HealthcheckError: ")


@pytest.mark.parametrize("limits", [{}, {"override_timeout_sec": 100, "max_timeout_sec": 50}])
async def test_our_reading_of_a_steps_timeout_is_harbors(limits: dict[str, float], tmp_path: Path) -> None:
    from harbor.models.trial.config import TrialConfig
    from harbor.trial.trial import Trial

    made = task(tmp_path, toml='[[steps]]\nname = "one"\n[steps.agent]\ntimeout_sec = 7\n[[steps]]\nname = "two"\n')
    config = {
        "task": {"path": str(made)},
        "trials_dir": str(tmp_path),
        "agent": {"name": "nop", **limits},
        "environment": {"import_path": "bench.sandbox.environment:SandboxEnvironment"},
        "agent_timeout_multiplier": 2.0,
    }
    trial = await Trial.create(TrialConfig.model_validate(config))
    definition = tomllib.loads((made / "task.toml").read_text())
    for index, step in enumerate(trial.task.config.steps):
        ours = task_timeout_s(trial.config.model_dump(mode="json"), definition, index)
        assert trial._step_agent_timeout_sec(step) == ours
