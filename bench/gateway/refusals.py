"""What the gateway itself answers, and which calls it doesn't let out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.gateway.wire import Request, Wire

if TYPE_CHECKING:
    from bench.gateway.jobs import Principal


class Refused(Exception):
    """The gateway's own answer to a call. `kind` is in the header `x-buzzbench-error`, and OpenAI's `code`.

    Kinds and statuses: `unauthorized` 401 (no such token), `revoked` 401 (a dead one), `model` and `endpoint` 403,
    `resting` 403 (it waited to go out when its step ended), `bad_request` 400, `not_found` 404, `too_large` 413,
    `agent_budget`, `trial_budget` and `job_budget` 402, `script_mismatch`, `script_exhausted` and `replay_miss` 422,
    `upstream` 502 or 504, `upstream_refused` with the upstream's own status (it has stopped the job), `upstream_limit`
    429 (its limit resets late), `cut` 401 (the token died during the call), `gone` 499 (the client left while its call
    waited), `receipts` 500.
    """

    def __init__(self, status: int, kind: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s


class ReceiptsFailed(Refused):
    """A receipt can't be written: no answer goes out any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(500, "receipts", reason)


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
    if request.output_tokens is None:
        raise Refused(
            400, "bad_request", "a budget holds for this call, so it needs a bound: set max_tokens (or the like)"
        )
    if request.boundless:
        raise Refused(400, "bad_request", f"a budget holds for this call, so {request.boundless}")
