"""What the gateway itself answers."""

from __future__ import annotations


class Refused(Exception):
    """The gateway's own answer to a call. `kind` is in the header `x-buzzbench-error`, and OpenAI's `code`.

    Kinds and statuses: `unauthorized` 401 (no such token), `revoked` 401 (a dead one), `model` and `endpoint` 403,
    `resting` 403 (it waited to go out when its step ended), `bad_request` 400, `not_found` 404, `too_large` 413,
    `agent_budget`, `trial_budget` and `job_budget` 402, `script_mismatch`, `script_exhausted` and `replay_miss` 422,
    `upstream` 502 or 504, `upstream_refused` with the upstream's own status (it has stopped the job), `upstream_limit`
    429 (its limit resets late), `cut` 401 (the token died during the call), `gone` 499 (the client left while its call
    waited), `receipts` 500, `fault` 500 (the gateway failed in the middle of the call: its log says more).
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
