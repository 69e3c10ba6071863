"""Which ends of a trial stop the whole job."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.run import child
from bench.trial.stops import EXIT_CODES, Stop

JOB = Path("/jobs/lb-team")

OF_OTHERS = {
    *(
        "bench.planning.dataset",
        "bench.planning.selection",
        "bench.planning.plan",
        "bench.planning.replay",
        "bench.gateway.cassette",
        "psycopg",
        "statistics",
    ),
    *(f"bench.harness.buzz.{name}" for name in ("crew", "environ", "kit", "programs")),
}
"""What planning needs, or jobs of another kind: replays, recordings, real agents."""


def event(*faults: dict[str, str] | None, steps: bool = False) -> Any:
    """The end of a trial whose agent, or each of its steps' agents, met these faults."""
    results = [
        SimpleNamespace(agent_result=SimpleNamespace(metadata={"buzzbench": {"fault": fault}})) for fault in faults
    ]
    whole = SimpleNamespace(agent_result=None, step_results=results) if steps else results[0]
    whole.step_results = results if steps else None
    return cast("Any", SimpleNamespace(result=whole))


@pytest.mark.parametrize(
    ("kind", "stop"),
    [
        ("upstream_refused", "stopped"),
        ("receipts_failed", "stopped"),
        ("relay_gone", "stopped"),
        ("gateway_lost", "stopped"),
        ("job_budget", "budget"),
        ("script_mismatch", None),
        ("upstream_failed", None),
        ("provisioning", None),
    ],
)
def test_a_fault_that_every_trial_would_meet_stops_the_job(kind: str, stop: Any) -> None:
    found = child._stop_for_all(event({"kind": kind, "reason": "because"}))
    assert found == (Stop(stop, "because") if stop else None)


def test_a_trial_without_a_fault_or_without_an_agents_result_stops_nothing() -> None:
    assert child._stop_for_all(event(None)) is None
    nothing = SimpleNamespace(result=SimpleNamespace(agent_result=None, step_results=None))
    assert child._stop_for_all(cast("Any", nothing)) is None
    foreign = SimpleNamespace(agent_result=SimpleNamespace(metadata=None), step_results=None)
    assert child._stop_for_all(cast("Any", SimpleNamespace(result=foreign))) is None


def test_a_fault_of_any_step_counts() -> None:
    stop = child._stop_for_all(event(None, {"kind": "relay_gone", "reason": "away"}, steps=True))
    assert stop == Stop("stopped", "away")


def test_each_kind_of_stop_has_the_exit_code_of_its_error() -> None:
    assert EXIT_CODES == {"stopped": 1, "budget": 4, "waiting": 75}


def test_a_registry_out_of_reach_is_said_with_both_ways_on() -> None:
    import httpx

    said = child._message(ExceptionGroup("in a task group", [httpx.ConnectError("Name or service not known")]), JOB)
    assert said == (
        "Harbor's registry can't be reached (Name or service not known); see to the network, or give local tasks by "
        "--path"
    )
    assert child._message(ValueError("a\n  b"), JOB) == "ValueError: a b"


def test_a_full_disk_is_told_with_the_place_and_the_way_on() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    said = "No space left on device; make room and go on with `inv bench --resume /jobs/lb-team`"
    assert child._message(full, JOB) == f"/jobs/lb-team: {said}"
    full.filename = "/jobs/lb-team/a__1/trial.log"
    assert child._message(full, JOB) == f"/jobs/lb-team/a__1/trial.log: {said}"


def test_a_job_of_agents_on_the_host_loads_nothing_that_other_jobs_need() -> None:
    code = (
        "import sys, bench.run.child, bench.run.selected, bench.trial.agent, bench.sandbox.environment, bench.records;"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(ran.stdout.split()) & OF_OTHERS
