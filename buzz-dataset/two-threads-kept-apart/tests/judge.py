"""Were two questions answered and checked, each in its own thread? Standard library only."""

import re
from itertools import product
from typing import Any

TOPICS = {
    "the cranes": {"asked": "worker-1", "checks": "worker-2", "number": "14", "foreign": "463"},
    "the tide": {"asked": "worker-2", "checks": "worker-1", "number": "463", "foreign": "14"},
}
WORKERS = ("worker-1", "worker-2")


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing.

    A topic's thread is opened by a top-level message that mentions the worker asked; where several do, the two count
    that fare best.
    """
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["author"] in (lead, *WORKERS) and m["channel"] == evidence["channel"]]
    opened = [
        [m for m in said if m["author"] == lead and not thread(m) and topic["asked"] in m["mentions"]] or [None]
        for topic in TOPICS.values()
    ]
    verdicts = [judged(dict(zip(TOPICS, roots, strict=True)), said, lead) for roots in product(*opened)]
    return max(verdicts, key=lambda checks: sum(checks.values()))


def judged(roots: dict[str, dict[str, Any] | None], said: list[dict[str, Any]], lead: str) -> dict[str, bool]:
    ids = [root["id"] for root in roots.values() if root is not None]
    checks = {"the lead opens a thread for each question": len(set(ids)) == len(TOPICS)}
    inside: list[dict[str, Any]] = []
    for name, topic in TOPICS.items():
        here = in_thread(roots[name], said)
        inside += here
        answer = first(here, topic["asked"], -1, topic["number"])
        check = first([m for m in here if topic["checks"] in m["mentions"]], lead, answer)
        second = first(here, topic["checks"], check, topic["number"])
        checks[f"{topic['asked']} answers in the thread on {name}"] = answer is not None
        checks[f"the lead then asks {topic['checks']} for a check in the thread on {name}"] = check is not None
        checks[f"{topic['checks']} answers the check in the thread on {name}"] = second is not None
        checks[f"the other number is not said in the thread on {name}"] = bool(here) and not any(
            has_number(m["text"], topic["foreign"]) for m in here
        )
    by_workers = [m for m in said if m["author"] in WORKERS]
    checks["the workers say nothing outside the two threads"] = bool(by_workers) and all(
        m in inside for m in by_workers
    )
    return checks


def in_thread(root: dict[str, Any] | None, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The replies in the thread that a message opened, whose parents are in it as well."""
    if root is None:
        return []
    replies = [m for m in said if thread(m) == root["id"] and m["seq"] > root["seq"]]
    ids = {root["id"]} | {m["id"] for m in replies}
    return [m for m in replies if m["parent"] is None or m["parent"] in ids]


def thread(message: dict[str, Any]) -> Any:
    """The id of the message that opened the thread; a direct reply may name it as its parent only."""
    return message["root"] or message["parent"]


def first(messages: list[dict[str, Any]], author: str, after: int | None, number: str | None = None) -> int | None:
    """The `seq` of the author's first message after another one, with a number in it; None where either is missing."""
    if after is None:
        return None
    found = (
        m["seq"]
        for m in messages
        if m["author"] == author and m["seq"] > after and (number is None or has_number(m["text"], number))
    )
    return min(found, default=None)


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
