"""Which calls the gateway doesn't let out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.gateway.refusals import Refused

if TYPE_CHECKING:
    from bench.gateway.jobs import Principal
    from bench.gateway.wire import Request, Wire


def check_alive(principal: Principal) -> None:
    """Raise Refused for a dead token."""
    if not principal.alive:
        raise Refused(401, "revoked", "this token is dead: the agent's trial or its job has ended")


def check_awake(principal: Principal) -> None:
    """Raise Refused for a dead token, and for a call that waited when the step ended in which it came."""
    check_alive(principal)
    if principal.rests:
        raise Refused(403, "resting", "the step of the task ended in which this call came, before it could go out")


def check(principal: Principal, wire: Wire, request: Request) -> None:
    """Raise Refused unless the agent may make this call."""
    issue, endpoint = principal.issue, principal.endpoint
    if wire not in principal.wires:
        right = " or ".join(f"/v1{wire.path}" for wire in principal.wires)
        raise Refused(403, "endpoint", f"endpoint {issue.endpoint} speaks {endpoint.spoken}: call {right} instead")
    if request.model not in issue.models:
        allowed = ", ".join(issue.models) or "none"
        raise Refused(403, "model", f"{issue.agent} may not call model {request.model!r}; allowed: {allowed}")
    if request.body.get("models"):
        # OpenRouter's: another model could answer, which has another price and may not be allowed.
        raise Refused(403, "model", f"{issue.agent} may name one model only: leave out `models`")
    if not principal.job.ledger.bounded(issue.trial, issue.agent):
        return
    if request.most_output_tokens(principal.job.registration.prices[request.model]) is None:
        raise Refused(
            400,
            "bad_request",
            "a budget holds for this call, so it needs a bound: set max_tokens (or the like), or have the manifest "
            f"say prices.{request.model}.max_output_tokens",
        )
    if request.boundless:
        raise Refused(400, "bad_request", f"a budget holds for this call, so {request.boundless}")
