"""Did the reviewer send version 1 back with the reason, and accept a later one? Standard library only."""

from collections.abc import Callable
from typing import Any

AUTHOR = "worker-1"
REVIEWER = "worker-2"
FORM = "HM-417"
"""Stands only in the rule that the first version can't meet, so a message with it has told the reason."""


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show, in order of arrival; the user's own messages count for nothing.

    Other messages may stand between the steps.
    """
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]

    def after(seq: int | None, author: str, mentioned: str, also: Callable[[str], bool] = bool) -> int | None:
        """The `seq` of the first such message after another one; None where either is missing."""
        if seq is None:
            return None
        found = (
            m["seq"]
            for m in said
            if m["seq"] > seq and m["author"] == author and mentioned in m["mentions"] and also(m["text"])
        )
        return min(found, default=None)

    given = after(-1, lead, AUTHOR)
    handed_in = after(given, AUTHOR, REVIEWER)
    sent_back = after(handed_in, REVIEWER, AUTHOR, lambda text: FORM in text)
    again = after(sent_back, AUTHOR, REVIEWER)
    accepted = after(again, REVIEWER, lead)
    finished = [m["seq"] for m in said if m["author"] == lead and m["text"].startswith("DONE:")]
    return {
        "the lead gives the work to the author": given is not None,
        "the author hands the first version in to the reviewer": handed_in is not None,
        "the reviewer sends it back to the author with the rule that is not met": sent_back is not None,
        "the author hands a new version in to the reviewer after that": again is not None,
        "the reviewer tells the lead of the acceptance after that": accepted is not None,
        "the lead finishes only after the acceptance": accepted is None or all(end > accepted for end in finished),
    }
