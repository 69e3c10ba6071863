"""What each exception and each notice means for a trial: the team's own doing, or nobody's."""

from __future__ import annotations

import pytest

from bench.channel import RelayGone, RelayRefused
from bench.errors import InvalidInput
from bench.gateway.client import GatewayError
from bench.gateway.protocol import Notice
from bench.harness.bounds import TeamEnded
from bench.harness.models import GatewayUnreachable, ModelFailed
from bench.scoring.outcome import Fault
from bench.trial.ends import End, of_error, of_notice
from bench.trial.provision import ProvisioningFailed


def refused(kind: str, status: int, message: str = "m") -> ModelFailed:
    return ModelFailed(status, "x", message, refusal=kind)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RelayGone("away"), "relay_gone"),
        (RelayRefused("an event", "restricted: no"), "provisioning"),
        (ProvisioningFailed("x"), "provisioning"),
        (GatewayUnreachable("x"), "gateway_lost"),
        (GatewayError("x"), "gateway_lost"),
        (InvalidInput.of("a", "b"), "setup"),
        (KeyError("x"), "internal"),
        (refused("script_mismatch", 422), "script_mismatch"),
        (refused("script_exhausted", 422), "script_exhausted"),
        (refused("upstream", 504), "upstream_failed"),
        (refused("revoked", 401), "gateway_refused"),
        (refused("receipts", 500), "gateway_refused"),
        (refused("job_budget", 402, "Buzzbench budget: the job j has a cap of $1"), "job_budget"),
        (refused("", 403), "upstream_refused"),
        (refused("", 429), "upstream_failed"),
        (refused("", 529), "upstream_failed"),
        (refused("", 200), "upstream_failed"),
        (refused("", 404), "upstream_rejected"),
    ],
)
def test_what_is_nobodys_doing_is_a_fault(error: Exception, kind: str) -> None:
    end = of_error(error)
    assert (end.ended, end.labels) == ("fault", ())
    assert end.fault is not None
    assert (end.fault.kind, bool(end.fault.reason)) == (kind, True)


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (TeamEnded("loop", "why"), "loop"),
        (refused("trial_budget", 402, "Buzzbench budget: the trial t has a cap of 3 calls"), "budget"),
    ],
)
def test_what_a_team_did_itself_is_a_label(error: Exception, label: str) -> None:
    end = of_error(error)
    assert (end.ended, end.labels, end.fault) == (label, (label,), None)


@pytest.mark.parametrize("kind", ["script_mismatch", "script_exhausted", "upstream_refused", "gateway_lost"])
def test_a_fatal_notice_names_the_agent(kind: str) -> None:
    end = of_notice(Notice(kind, "why", "t", "orch"))  # type: ignore[arg-type]
    assert end is not None
    assert end.fault is not None
    assert end.reason == "orch: why"


def test_a_cap_ends_the_trial_where_it_is_the_trials_and_leaves_it_unjudged_where_it_is_the_jobs() -> None:
    own, jobs = (of_notice(Notice(kind, "why", "t", "orch")) for kind in ("trial_budget", "job_budget"))
    assert own == End("budget", "Buzzbench budget: why")
    assert jobs is not None
    assert jobs.fault == Fault("job_budget", "Buzzbench budget: why")


@pytest.mark.parametrize("kind", ["upstream_failed", "agent_budget"])
def test_a_notice_that_an_agent_may_survive_ends_nothing(kind: str) -> None:
    assert of_notice(Notice(kind, "why", "t", "orch")) is None  # type: ignore[arg-type]
