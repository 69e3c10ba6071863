"""Were both workers at work before either reported, and did they exchange their numbers? Standard library only."""

import re
from typing import Any

COUNTS = {"worker-1": "23", "worker-2": "38"}
SUM = "61"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show, in order of arrival; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]

    def first(author: str, mentioned: str, *numbers: str) -> int | None:
        """The `seq` of the author's first message with that mention and one of the numbers, None without one."""
        found = (
            m["seq"]
            for m in said
            if m["author"] == author
            and mentioned in m["mentions"]
            and (not numbers or any(has_number(m["text"], number) for number in numbers))
        )
        return min(found, default=None)

    one, other = COUNTS
    asked = [first(lead, worker) for worker in COUNTS]
    told = {one: first(one, other, COUNTS[one]), other: first(other, one, COUNTS[other])}
    reported = {worker: first(worker, lead, SUM) for worker in COUNTS}
    heard_of = [first(worker, lead, COUNTS[worker], SUM) for worker in COUNTS]
    checks = {
        "the lead asks both before either reports": None not in asked
        and all(seq < report for seq in asked for report in heard_of if seq is not None and report is not None),
    }
    for worker, partner in ((one, other), (other, one)):
        own, heard, report = told[worker], told[partner], reported[worker]
        checks[f"{worker} tells its number to {partner}"] = own is not None
        checks[f"{worker} reports the sum to the lead after it has heard {partner}'s number"] = (
            report is not None and heard is not None and heard < report
        )
    finished = [m["seq"] for m in said if m["author"] == lead and m["text"].startswith("DONE:")]
    checks["the lead finishes only when the reports are in"] = all(
        end > report for end in finished for report in reported.values() if report is not None
    )
    return checks


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
