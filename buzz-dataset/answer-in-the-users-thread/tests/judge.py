"""Is the user's message answered in its own thread, with the right ship? Standard library only."""

import re
from typing import Any

SHIP, HOURS = "Meridian", "63"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show, whoever of it says it; the user's own messages count for nothing."""
    team = {member["name"] for member in evidence["roster"]}
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    asked = {m["id"] for m in said if m["author"] == evidence["user"]["name"]}
    answers = [m["text"] for m in said if m["author"] in team and thread(m) in asked]
    return {
        "somebody replies in the thread of the user's message": bool(answers),
        "a reply there names the ship that lay longest and its hours": any(
            SHIP.lower() in text.lower() and has_number(text, HOURS) for text in answers
        ),
    }


def thread(message: dict[str, Any]) -> Any:
    """The id of the message that opened the thread; a direct reply may name it as its parent only."""
    return message["root"] or message["parent"]


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
