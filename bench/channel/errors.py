"""What the client of a relay raises, in the tree of bench.errors."""

from __future__ import annotations

import re

from bench.errors import BuzzbenchError

UNSAID_S = 1
"""Where a relay limits the rate and doesn't say for how long."""

_RATE_LIMITED = re.compile(r"rate-limited:(?:.*retry in (\d+)s)?")


class RelayRefused(BuzzbenchError):
    """The relay said no to this key or this event. `reason` is its own text."""

    def __init__(self, what: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the relay refused {what}: {reason}", fix=_advice(reason))


class RelayGone(BuzzbenchError):
    """The relay could not be reached, did not answer or had trouble for as long as allowed; or the client is closed.

    Never the fault of the key or the event.
    """


def wants_authentication(reason: str) -> bool:
    """Whether a refusal may be met by authenticating and sending again (NIP-42)."""
    return reason.startswith("auth-required:")


def is_trouble(reason: str) -> bool:
    """Whether a refusal is the relay's own trouble (its database is away), and may be met by trying again."""
    return reason.startswith("error:")


def rate_limit_s(reason: str) -> float | None:
    """For how many seconds a relay wants to be left alone; None where it says something else (BUZZ.md section 1)."""
    if not (found := _RATE_LIMITED.match(reason)):
        return None
    return float(found[1] or UNSAID_S)


def _advice(reason: str) -> str:
    if "not a relay member" in reason or "relay_membership_required" in reason:
        return "the relay admits its owner, and keys with an attestation (NIP-OA) of the owner"
    if reason.startswith("restricted:") and "channel" in reason:
        return "an owner or admin of the channel has to add this key first (kind 9000)"
    if wants_authentication(reason):
        return "the relay did not accept this key's answer to its challenge (NIP-42)"
    return ""
