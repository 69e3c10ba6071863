"""Was the user asked, and did the work begin only with the answer? Standard library only."""

import re
from typing import Any

WORKER = "worker-1"
BERTH = "9"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the signed messages show, in order of arrival. Of the user's own only an answer to a question counts."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    user = evidence["user"]["name"]
    team = {member["name"] for member in evidence["roster"]} - {lead}
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    questions = [m for m in said if m["author"] == lead and user in m["mentions"] and not is_done(m)]
    answers = [
        m["seq"]
        for m in said
        for question in questions
        if m["author"] == user and m["seq"] > question["seq"] and question["id"] in (m["parent"], m["root"])
    ]
    answered = min(answers, default=None)
    work = [m for m in said if m["author"] == lead and team.intersection(m["mentions"])]
    given = [
        m["seq"]
        for m in work
        if answered is not None and m["seq"] > answered and WORKER in m["mentions"] and has_number(m["text"], BERTH)
    ]
    reports = [m["seq"] for m in said if m["author"] == WORKER and lead in m["mentions"]]
    return {
        "the lead asks the user and is answered": answered is not None,
        "the lead gives nobody work before the answer": answered is not None and all(m["seq"] > answered for m in work),
        "the lead then gives the worker the berth that the user named": bool(given),
        "the worker reports to the lead after that": any(report > work for work in given for report in reports),
    }


def is_done(message: dict[str, Any]) -> bool:
    return bool(message["text"].startswith("DONE:"))


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
