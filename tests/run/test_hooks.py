"""Which ends of a trial stop the whole job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.run import hooks
from bench.trial.stops import EXIT_CODES, Stop


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
    found = hooks.stop_for_all(event({"kind": kind, "reason": "because"}))
    assert found == (Stop(stop, "because") if stop else None)


def test_a_trial_without_a_fault_or_without_an_agents_result_stops_nothing() -> None:
    assert hooks.stop_for_all(event(None)) is None
    nothing = SimpleNamespace(result=SimpleNamespace(agent_result=None, step_results=None))
    assert hooks.stop_for_all(cast("Any", nothing)) is None
    foreign = SimpleNamespace(agent_result=SimpleNamespace(metadata=None), step_results=None)
    assert hooks.stop_for_all(cast("Any", SimpleNamespace(result=foreign))) is None


def test_a_fault_of_any_step_counts() -> None:
    stop = hooks.stop_for_all(event(None, {"kind": "relay_gone", "reason": "away"}, steps=True))
    assert stop == Stop("stopped", "away")


def test_each_kind_of_stop_has_the_exit_code_of_its_error() -> None:
    assert EXIT_CODES == {"stopped": 1, "budget": 4, "waiting": 75}
