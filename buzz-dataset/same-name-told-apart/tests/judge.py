"""Did the order reach the one of two namesakes whom it describes, and nobody else? Standard library only."""

import re
from typing import Any

MEANT = "worker-2"
NAMESAKE = "worker-1"
ORDER = "HM-52"
LINK = "27"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    team = {member["name"] for member in evidence["roster"]}
    said = [m for m in evidence["messages"] if m["author"] in team]
    orders = [m for m in said if has_number(m["text"], ORDER)]
    given = [m["seq"] for m in orders if m["author"] == lead and MEANT in m["mentions"]]
    reports = [m["seq"] for m in said if m["author"] == MEANT and lead in m["mentions"] and has_number(m["text"], LINK)]
    return {
        "the lead gives the order to the one it describes": bool(given),
        "nobody gives the order to the other one of that name": not any(NAMESAKE in m["mentions"] for m in orders),
        "the one it describes reports the result to the lead after that": any(
            report > order for order in given for report in reports
        ),
    }


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\w.,]){number}(?![\w]|[.,]\d)", text) is not None
