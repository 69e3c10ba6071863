"""All tasks of buzz-dataset played by real agents: by stand-ins, or by Buzz's own programs where these are given."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.settings import ROOT
from tests.pipeline import DATASET, new_installation, remove

pytestmark = pytest.mark.slow

TEAM = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


@pytest.fixture(scope="module")
def played(programs: Path) -> Iterator[dict[str, Any]]:
    """The job of one rehearsal."""
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-real-")))
    try:
        done = installation.inv(
            *("bench", "--path", str(DATASET), "--manifest", str(TEAM), "--rehearsal", "--json"),
            *("-e", "sandbox", "-k", "1", "-n", "4"),
            BUZZBENCH_AGENT_PROGRAMS=str(programs),
        )
        assert done.stdout, done.stderr
        (job,) = json.loads(done.stdout)["jobs"]
        yield job
    finally:
        remove(installation)


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
