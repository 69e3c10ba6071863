"""Was the failure reported with its code, handed over with it, and finished by the other one? Standard library only."""

import re
from collections.abc import Callable
from typing import Any

FIRST, SECOND = "worker-1", "worker-2"
CODE = "E-4417"
SEAL = "625422079"


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

    given = after(-1, lead, FIRST)
    failed = after(given, FIRST, lead, lambda text: CODE in text)
    handed_over = after(failed, lead, SECOND, lambda text: CODE in text)
    sealed = after(handed_over, SECOND, lead, lambda text: has_number(text, SEAL))
    finished = [m["seq"] for m in said if m["author"] == lead and m["text"].startswith("DONE:")]
    return {
        "the lead gives the work to the first worker": given is not None,
        "the first worker reports the failure to the lead with its code": failed is not None,
        "the lead hands the work over to the second worker with the code, after that": handed_over is not None,
        "the second worker reports the seal to the lead after that": sealed is not None,
        "the lead finishes only after that": sealed is None or all(end > sealed for end in finished),
    }


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
