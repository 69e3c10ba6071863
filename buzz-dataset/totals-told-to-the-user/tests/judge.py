"""Was the user told the sum of both months? Standard library only."""

import re
from typing import Any

BOTH = "2210"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show, whoever of it says it; the user's own messages count for nothing."""
    team = {member["name"] for member in evidence["roster"]}
    user = evidence["user"]["name"]
    told = [m for m in evidence["messages"] if m["author"] in team and user in m["mentions"]]
    here = [m for m in told if m["channel"] == evidence["channel"]]
    return {"the user is told the tonnes of both months together": any(has_number(m["text"], BOTH) for m in here)}


def has_number(text: str, number: str) -> bool:
    """Also with a separator of thousands."""
    whole = re.sub(r"(?<=\d)[,.' ](?=\d{3}(?!\d))", "", text)
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", whole) is not None
