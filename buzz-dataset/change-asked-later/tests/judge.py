"""Did one worker alone get the work, and the same one the later change? Standard library only."""

from typing import Any


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show of the step that is judged; the user's own count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    workers = [member["name"] for member in evidence["roster"] if member["kind"] != "orchestrator"]
    step = evidence["step"]
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]

    def asked(messages: list[dict[str, Any]]) -> list[tuple[int, str]]:
        """Whom of the workers the lead has mentioned, in order, each with the message's number."""
        return [(m["seq"], w) for m in messages if m["author"] == lead for w in workers if w in m["mentions"]]

    now = [m for m in said if m["seq"] >= step["since"]]
    # Whoever was asked first has written the rota: the first step ends with that.
    author = next((worker for _, worker in asked(said)), None)
    given = next((seq for seq, worker in asked(now) if worker == author), None)
    told = [m["seq"] for m in now if m["author"] == author and lead in m["mentions"]]
    reported = min((seq for seq in told if given is not None and seq > given), default=None)
    finished = [m["seq"] for m in now if m["author"] == lead and m["text"].startswith("DONE:")]
    what = "the rota" if step["name"] == "draft" else "the change"
    whom = "one worker" if step["name"] == "draft" else "the worker who wrote the rota"
    return {
        f"the lead gives {what} to {whom}": given is not None,
        "the other worker is given nothing": all(worker == author for _, worker in asked(now)),
        "that worker reports to the lead": reported is not None,
        "the lead finishes only after the report": reported is None or all(end > reported for end in finished),
    }
