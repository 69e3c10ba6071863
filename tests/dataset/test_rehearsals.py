"""Each script of each task, played by a whole rehearsal: the good ones in tests/test_pipeline.py, the others here."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench import records

from ..pipeline import Installation, new_installation, remove
from .kit import TASKS, failing, host_checks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NOTHING = 'orch:\n  - name: do nothing\n    do:\n      - done: "nothing"\n'

INTENDED = {
    "wrong-name-without-mention": "the lead mentions the pilot on duty",
    "wrong-both-mentioned": "nobody mentions the other pilot",
    "wrong-root": "the lead asks again in that thread",
    "wrong-answers-beside-the-thread": "the worker answers in the thread of the question",
    "wrong-split-in-two": "the lead posts the notice as one message with every character kept",
    "wrong-tidied": "the lead posts the notice as one message with every character kept",
    "wrong-one-worker-does-both": "worker-2 itself reports the sum of its part to the lead after it was asked",
    "wrong-lead-does-it-alone": "the lead asks worker-1",
    "wrong-everybody-let-in": "nobody else was added to it at any time",
    "wrong-called-in-the-old-channel": "the lead calls the one on watch in that channel",
    "wrong-first-of-that-name": "the lead gives the order to the one it describes",
    "wrong-both-of-that-name": "nobody gives the order to the other one of that name",
    "wrong-file-of-the-same-name": "the worker reports the highest tide of that file to the lead after that",
    "wrong-path-without-its-root": "the lead names the file to the worker by its full path",
    "wrong-posted-anew": "the lead edits that very message after that",
    "wrong-old-time-kept-beside": "the message now has the right time and not the wrong one",
    "wrong-notices-mixed-up": "worker-1 puts the reaction on the notice about its own berth",
    "wrong-sign-said-in-a-message": "worker-1 puts the reaction on the notice about its own berth",
    "wrong-code-told-before": "the code is said nowhere else, and not before",
    "wrong-code-told-in-the-old-channel": "the code is said nowhere else, and not before",
    "wrong-lead-goes-on-itself": "the lead hands the work over to the second worker with the code, after that",
    "wrong-failure-kept-quiet": "the first worker reports the failure to the lead with its code",
    "wrong-one-after-the-other": "the lead asks both before either reports",
    "wrong-numbers-go-through-the-lead": "worker-1 tells its number to worker-2",
    "wrong-thanks-without-end": "worker-1 reports the sum to the lead after it has heard worker-2's number",
    "wrong-guesses-the-berth": "the lead asks the user and is answered",
    "wrong-asks-afterwards": "the lead gives nobody work before the answer",
    "wrong-checks-in-one-thread": "the lead then asks worker-1 for a check in the thread on the tide",
    "wrong-check-answered-in-the-other-thread": "worker-2 answers the check in the thread on the cranes",
    "wrong-review-skipped": "the reviewer sends it back to the author with the rule that is not met",
    "wrong-author-accepts-itself": "the reviewer tells the lead of the acceptance after that",
    "wrong-another-changes-it": "the lead gives the change to the worker who wrote the rota",
    "wrong-lead-changes-it-itself": "the lead gives the change to the worker who wrote the rota",
    "wrong-user-not-mentioned": "the user is told the tonnes of both months together",
    "wrong-one-month-told": "the user is told the tonnes of both months together",
    "wrong-answer-beside-the-thread": "somebody replies in the thread of the user's message",
    "wrong-ship-of-one-quay": "a reply there names the ship that lay longest and its hours",
    "wrong-asks-both-for-the-draft": "the other worker is given nothing",
}
"""The check that each wrong script is there to fail."""

WITHOUT_END = {"wrong-thanks-without-end"}
"""Scripts in which the team never comes to an end of its own: it is stopped as a loop (public case 28)."""

SCRIPTS = [(task, path.stem) for task in TASKS for path in sorted((task / "rehearsal").glob("wrong-*.yaml"))]
each_wrong_script = pytest.mark.parametrize("script", [name for _, name in SCRIPTS])
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@dataclass(frozen=True)
class Played:
    """What one script left."""

    task: Path
    outcome: str
    reason: str
    labels: list[str]
    evidence: dict[str, Any]
    checks: dict[str, dict[str, bool]]


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-scripts-")))
    try:
        yield installation
    finally:
        remove(installation)


@pytest.fixture(scope="module")
def played(installation: Installation) -> dict[str, Played]:
    """All in one job: copies of the tasks, each with one wrong script, or one that does nothing, as its good one."""
    dataset = installation.home / "scripts"
    for task, name in [*SCRIPTS, *((task, f"nothing-{number}") for number, task in enumerate(TASKS))]:
        copy(task, name, dataset / name)
    arguments = ("--path", str(dataset), "--rehearsal", "--json", "-k", "1", "-n", "8", "--job-name", "scripts")
    done = installation.inv("bench", *arguments)
    assert done.stdout, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    return {trial["task"].removeprefix("buzz/"): left(Path(job["directory"]), trial) for trial in job["trials"]}


def copy(task: Path, name: str, directory: Path) -> None:
    shutil.copytree(task, directory, ignore=shutil.ignore_patterns("rehearsal"))
    config = directory / "task.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace(f'name = "buzz/{task.name}"', f'name = "buzz/{name}"'), encoding="utf-8")
    (directory / "rehearsal").mkdir()
    script = task / "rehearsal" / f"{name}.yaml"
    text = script.read_text(encoding="utf-8") if script.exists() else NOTHING
    (directory / "rehearsal" / "good.yaml").write_text(text, encoding="utf-8")


def left(job: Path, trial: dict[str, Any]) -> Played:
    name = trial["task"].removeprefix("buzz/")
    number = re.fullmatch(r"nothing-(\d+)", name)
    task = TASKS[int(number[1])] if number else next(task for task, script in SCRIPTS if script == name)
    directory = job / trial["trial"]
    if trial["steps"]:
        directory = directory / "steps" / trial["steps"][-1]["name"]
    evidence = json.loads((directory / records.EVIDENCE).read_text(encoding="utf-8"))
    checks = json.loads((directory / "verifier" / "checks.json").read_text(encoding="utf-8"))
    return Played(task, trial["outcome"], trial["reason"], trial["labels"], evidence, checks)


def test_every_wrong_script_has_an_intended_check() -> None:
    assert sorted(INTENDED) == sorted(name for _, name in SCRIPTS)


@each_wrong_script
def test_a_wrong_script_is_played_to_its_end_and_scored_0(script: str, played: dict[str, Played]) -> None:
    trial = played[script]
    assert trial.outcome == "failed", trial.reason
    assert ("loop" in trial.labels) == (script in WITHOUT_END), trial.reason
    assert INTENDED[script] in failing(trial.checks["evidence"])
    step = trial.evidence["step"]
    assert trial.checks["evidence"] == host_checks(trial.task, trial.evidence, step and step["name"])


@each_wrong_script
def test_a_wrong_script_looks_right_by_its_files_and_its_end(script: str, played: dict[str, Played]) -> None:
    trial = played[script]
    assert failing(trial.checks["files"]) == set()
    since = step["since"] if (step := trial.evidence["step"]) else 0
    said = [m for m in trial.evidence["messages"] if m["seq"] >= since]
    done = [m["author"] for m in said if m["text"].startswith("DONE:")]
    assert done == ([] if script in WITHOUT_END else ["orch"])


@each_task
def test_doing_nothing_is_scored_0(task: Path, played: dict[str, Played]) -> None:
    trial = played[f"nothing-{TASKS.index(task)}"]
    assert trial.outcome == "failed", trial.reason
    assert not any(trial.checks["files"].values())


def test_a_pair_plays_a_task_that_needs_one_worker(installation: Installation) -> None:
    pair = ("--manifest", "manifests/builtin-pair.yaml", "-i", "question-to-the-user", "-k", "1")
    code, job = installation.rehearse(*pair, "--job-name", "pair")
    assert code == 0
    assert [(trial["task"], trial["outcome"]) for trial in job["trials"]] == [("buzz/question-to-the-user", "passed")]


def test_one_agent_alone_and_a_pair_play_the_same_tasks_and_are_compared(installation: Installation) -> None:
    """Public case 51: a solo and a team in pairs, by what is shipped."""
    tasks = ("-i", "totals-told-to-the-user", "-i", "answer-in-the-users-thread", "-k", "1")
    for name in ("solo", "pair"):
        code, job = installation.rehearse(
            *tasks, "--manifest", f"manifests/builtin-{name}.yaml", "--job-name", f"all-{name}"
        )
        assert (code, job["counts"]) == (0, {"passed": 2, "failed": 0, "unscored": 0})
    done = installation.inv("compare", "--job", "all-pair", "--job", "all-solo", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["differing"]] == ["condition", "team"]
    assert [(one["a"]["passed"], one["b"]["passed"]) for one in found["tasks"]] == [(1, 1), (1, 1)]
    assert found["a"]["calls"] > found["b"]["calls"] > 0
    assert found["a"]["cost_usd_micros_a_pass"] > found["b"]["cost_usd_micros_a_pass"] > 0
    assert found["difference"]["of_scored"]["p"] is None
    assert len(found["not_comparable"]) == 2, "both are rehearsals"


@pytest.mark.parametrize("script", ["wrong-user-not-mentioned", "wrong-one-month-told"])
def test_a_wrong_script_of_one_agent_alone_is_scored_0(script: str, installation: Installation) -> None:
    solo = ("--manifest", "manifests/builtin-solo.yaml", "-i", "totals-told-to-the-user", "-k", "1")
    _, job = installation.rehearse(*solo, "--script", script, "--job-name", script)
    assert job["counts"] == {"passed": 0, "failed": 1, "unscored": 0}
