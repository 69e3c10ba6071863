"""All tasks of buzz-dataset played by real agents: by stand-ins, or by Buzz's own programs where these are given."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.settings import ROOT
from tests.dataset import test_rehearsals as rehearsals
from tests.pipeline import DATASET, Installation, new_installation, remove
from tests.standins.programs import ONLY_WITH_REAL_PROGRAMS

pytestmark = pytest.mark.slow

TEAM = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    made = new_installation(Path(tempfile.mkdtemp(prefix="bzb-real-")))
    try:
        yield made
    finally:
        remove(made)


def play(installation: Installation, programs: Path, tasks: Path) -> dict[str, Any]:
    """The job of one rehearsal with these programs."""
    done = installation.inv(
        *("bench", "--path", str(tasks), "--manifest", str(TEAM), "--rehearsal", "--json"),
        *("-e", "sandbox", "-k", "1", "-n", "4"),
        BUZZBENCH_AGENT_PROGRAMS=str(programs),
    )
    assert done.stdout, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    found: dict[str, Any] = job
    return found


@pytest.fixture(scope="module")
def played(installation: Installation, programs: Path) -> dict[str, Any]:
    """The job of all tasks with their good scripts."""
    return play(installation, programs, DATASET)


def test_a_team_of_real_agents_passes_every_task_with_its_good_script(played: dict[str, Any]) -> None:
    found = {trial["task"]: (trial["outcome"], trial["labels"]) for trial in played["trials"]}
    assert found == {f"buzz/{path.parent.name}": ("passed", []) for path in DATASET.glob("*/task.toml")}


def test_real_agents_say_that_they_used_what_the_gateway_counted(played: dict[str, Any]) -> None:
    results = [json.loads(path.read_text()) for path in Path(played["directory"]).glob("*/result.json")]
    parts = [(result["step_results"] or [result])[-1] for result in results]  # of steps the last has the trial's
    told = [part["agent_result"]["metadata"]["buzzbench"]["self_report"] for part in parts]
    verdicts = {(compared["verdict"], compared["unreadable"]) for check in told for compared in check.values()}
    assert verdicts <= {("agrees", 0), ("nothing_due", 0)}
    assert ("agrees", 0) in verdicts


@ONLY_WITH_REAL_PROGRAMS
@pytest.mark.parametrize("half", [0, 1])
def test_buzzs_own_programs_play_every_wrong_script_to_its_end(
    half: int, installation: Installation, programs: Path, tmp_path: Path
) -> None:
    for task, script in rehearsals.SCRIPTS[half::2]:
        rehearsals.copy(task, script, tmp_path / script)
    job = play(installation, programs, tmp_path)
    assert len(job["trials"]) == len(rehearsals.SCRIPTS[half::2])
    for trial in job["trials"]:
        script = trial["task"].removeprefix("buzz/")
        left = {script: rehearsals.left(Path(job["directory"]), trial)}
        rehearsals.test_a_wrong_script_is_played_to_its_end_and_scored_0(script, left)
        rehearsals.test_a_wrong_script_looks_right_by_its_files_and_its_end(script, left)
