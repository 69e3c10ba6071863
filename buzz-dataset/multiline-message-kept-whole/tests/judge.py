"""Did the notice arrive as one unchanged message, at its reader and nobody else? Standard library only."""

import hashlib
from typing import Any

READER = "worker-1"
NOTICE_SHA256 = "070d7fdcb72e860534df60b1a8086f12fded21bb4e11286728927da40bea52f2"
"""Of the notice in UTF-8 without its last line break."""


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    others = {member["name"] for member in evidence["roster"]} - {lead, READER}
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    whole = [m for m in said if m["author"] == lead and is_notice(m["text"])]
    notified = [m for m in whole if READER in m["mentions"] and not others.intersection(m["mentions"])]
    confirmed = [
        m
        for m in said
        if m["author"] == READER
        and any(
            m["seq"] > notice["seq"] and (lead in m["mentions"] or notice["id"] in (m["parent"], m["root"]))
            for notice in notified
        )
    ]
    return {
        "the lead posts the notice as one message with every character kept": bool(whole),
        "that message notifies its reader and no other member": bool(notified),
        "the reader confirms it to the lead": bool(confirmed),
    }


def is_notice(text: str) -> bool:
    # A surrogate half can be in JSON, but not in UTF-8; it is in no notice either.
    return hashlib.sha256(text.rstrip("\n").encode("utf-8", "replace")).hexdigest() == NOTICE_SHA256
