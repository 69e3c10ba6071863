"""Was the file named by its full path, and was that one read? Standard library only."""

import re
from typing import Any

READER = "worker-1"
FILE = "/srv/harbour office/tides.csv"
LEVEL = "431"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    named = [m["seq"] for m in said if m["author"] == lead and READER in m["mentions"] and FILE in m["text"]]
    reports = [
        m["seq"] for m in said if m["author"] == READER and lead in m["mentions"] and has_number(m["text"], LEVEL)
    ]
    return {
        "the lead names the file to the worker by its full path": bool(named),
        "the worker reports the highest tide of that file to the lead after that": any(
            report > path for path in named for report in reports
        ),
    }


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
