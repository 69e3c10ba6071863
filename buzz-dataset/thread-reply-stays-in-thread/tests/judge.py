"""Do question, answer, follow-up and second answer stand in one thread? Standard library only."""

from typing import Any

WORKER = "worker-1"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing.

    Of several top-level messages that mention the worker, the question is the one with the fullest thread.
    """
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["author"] in (lead, WORKER) and m["channel"] == evidence["channel"]]
    questions = [m for m in said if m["author"] == lead and WORKER in m["mentions"] and not thread(m)]
    threads = [in_thread(question, said, lead) for question in questions]
    return max(threads, key=lambda checks: sum(checks.values()), default=in_thread(None, said, lead))


def in_thread(question: dict[str, Any] | None, said: list[dict[str, Any]], lead: str) -> dict[str, bool]:
    inside = []
    if question is not None:
        inside = [m for m in said if thread(m) == question["id"] and m["seq"] > question["seq"]]
        ids = {question["id"]} | {m["id"] for m in inside}
        inside = [m for m in inside if m["parent"] is None or m["parent"] in ids]
    answer = first(inside, WORKER, 0)
    follow_up = first([m for m in inside if WORKER in m["mentions"]], lead, answer)
    second = first(inside, WORKER, follow_up)
    by_worker = [m for m in said if m["author"] == WORKER]
    return {
        "the lead opens a thread with a question that mentions the worker": question is not None,
        "the worker answers in the thread of the question": answer is not None,
        "the lead asks again in that thread": follow_up is not None,
        "the worker answers again in that thread": second is not None,
        "the worker says nothing outside the thread": bool(by_worker) and all(m in inside for m in by_worker),
    }


def thread(message: dict[str, Any]) -> Any:
    """The id of the message that opened the thread; a direct reply may name it as its parent only."""
    return message["root"] or message["parent"]


def first(messages: list[dict[str, Any]], author: str, after: int | None) -> int | None:
    """The `seq` of the author's first message after another one, by arrival; None where either is missing."""
    if after is None:
        return None
    return min((m["seq"] for m in messages if m["author"] == author and m["seq"] > after), default=None)
