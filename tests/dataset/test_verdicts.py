"""A task's test.sh, run for real: it always leaves a reward, 1 only where evidence and files are right."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .kit import AT_ONCE, DATASET, Talk, host_checks
from .talks import FACTS, FORM, GOOD

NAMES = [task.name for task in AT_ONCE]


@dataclass(frozen=True)
class Verified:
    """The directories that a verifier sees, and a good trial in them."""

    task: Path
    logs: Path
    workspace: Path
    evidence: dict[str, Any]

    def keep(self, evidence: Any) -> None:
        (self.logs / "artifacts" / "relay_evidence.json").write_text(json.dumps(evidence), encoding="utf-8")

    def reward(self, **environment: str) -> str:
        """What reward.txt holds after a run of test.sh, which says on standard output what held."""
        subprocess.run(
            [str(self.task / "tests" / "test.sh"), str(self.logs), str(self.workspace)],
            check=True,
            capture_output=True,
            cwd=self.workspace,
            env={**os.environ, **environment},
        )
        return (self.logs / "verifier" / "reward.txt").read_text(encoding="utf-8").strip()

    def checks(self) -> dict[str, dict[str, bool]]:
        found: dict[str, dict[str, bool]] = json.loads(
            (self.logs / "verifier" / "checks.json").read_text(encoding="utf-8")
        )
        return found


def made(name: str, directory: Path) -> Verified:
    talks, files = GOOD[name]
    talk = Talk(name)
    talks(talk)
    talk.done()
    logs, workspace = directory / "logs", directory / "app"
    (logs / "artifacts").mkdir(parents=True)
    workspace.mkdir()
    for file, text in files.items():
        (workspace / file).write_text(text, encoding="utf-8")
    trial = Verified(DATASET / name, logs, workspace, talk.evidence())
    trial.keep(trial.evidence)
    return trial


@pytest.fixture
def splitting(tmp_path: Path) -> Iterator[Verified]:
    yield made("split-and-merge", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_good_trial_is_rewarded_and_the_host_agrees(name: str, tmp_path: Path) -> None:
    trial = made(name, tmp_path)
    assert trial.reward() == "1", trial.checks()
    assert trial.checks()["evidence"] == host_checks(trial.task, trial.evidence)


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_is_not_rewarded(name: str, tmp_path: Path) -> None:
    trial = made(name, tmp_path)
    for file in trial.workspace.iterdir():
        file.unlink()
    trial.keep(Talk(name).evidence())
    assert trial.reward() == "0"
    assert not any(trial.checks()["files"].values())


@pytest.mark.parametrize("name", NAMES)
def test_the_users_own_messages_earn_nothing(name: str, tmp_path: Path) -> None:
    trial = made(name, tmp_path)
    checks = host_checks(
        trial.task, {**trial.evidence, "messages": [{**m, "author": "user"} for m in trial.evidence["messages"]]}
    )
    assert checks is not None
    assert not all(checks.values())


@pytest.mark.parametrize("name", [name for name in NAMES if GOOD[name][1]])
def test_right_messages_without_the_files_are_not_enough(name: str, tmp_path: Path) -> None:
    trial = made(name, tmp_path)
    for file in trial.workspace.iterdir():
        file.write_bytes(b"\xff\xfe something else")
    assert trial.reward() == "0"
    assert all(trial.checks()["evidence"].values())


@pytest.mark.parametrize(
    ("first", "second"),
    [(FACTS + FORM, FACTS + FORM), (FACTS, FACTS), (FACTS, FORM), ("", FACTS + FORM), (FACTS, "")],
)
def test_versions_that_were_not_corrected_fail(first: str, second: str, tmp_path: Path) -> None:
    trial = made("review-rejects-once", tmp_path)
    (trial.workspace / "notice-1.txt").write_text(first, encoding="utf-8")
    (trial.workspace / "notice-2.txt").write_text(second, encoding="utf-8")
    assert trial.reward() == "0"


def test_a_third_version_may_be_the_accepted_one(tmp_path: Path) -> None:
    trial = made("review-rejects-once", tmp_path)
    (trial.workspace / "notice-2.txt").write_text(FACTS, encoding="utf-8")
    (trial.workspace / "notice-3.txt").write_text(FACTS + "\n" + FORM, encoding="utf-8")
    assert trial.reward() == "1", trial.checks()


def test_missing_or_broken_evidence_is_a_failed_check_with_its_reason(splitting: Verified) -> None:
    evidence = splitting.logs / "artifacts" / "relay_evidence.json"
    for spoil in (evidence.unlink, lambda: evidence.write_text("{"), lambda: evidence.write_text("{}")):
        spoil()
        assert splitting.reward() == "0"
        (name,) = splitting.checks()["evidence"]
        assert name.startswith("the evidence can be judged (")
        assert all(splitting.checks()["files"].values())


def test_a_pipe_or_a_huge_file_in_the_workspace_neither_hangs_nor_passes(splitting: Verified) -> None:
    north, south = splitting.workspace / "north.total", splitting.workspace / "south.total"
    north.unlink()
    os.mkfifo(north)
    south.write_text("455" + " " * (1 << 20), encoding="utf-8")
    assert splitting.reward() == "0"
    assert [held for name, held in splitting.checks()["files"].items() if "total holds" in name] == [False, False]


def test_modules_that_a_team_left_behind_do_not_reach_the_judge(splitting: Verified) -> None:
    for name in ("json.py", "sitecustomize.py", "usercustomize.py"):
        (splitting.workspace / name).write_text("raise SystemExit('taken over')", encoding="utf-8")
    assert splitting.reward(PYTHONPATH=str(splitting.workspace), PYTHONSTARTUP="json.py") == "1"


def test_without_python3_there_is_still_a_reward_and_the_reason(splitting: Verified, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("bash", "mkdir", "dirname"):
        found = next(path for folder in os.get_exec_path() if (path := Path(folder, program)).is_file())
        (programs / program).symlink_to(found)
    assert splitting.reward(PATH=str(programs)) == "0"
    assert splitting.checks() == {"evidence": {"python3 is there to judge": False}, "files": {}}


def test_an_old_reward_does_not_survive(splitting: Verified) -> None:
    (splitting.logs / "verifier").mkdir()
    (splitting.logs / "verifier" / "reward.txt").write_text("1", encoding="utf-8")
    splitting.keep({})
    assert splitting.reward() == "0"
