"""Was the posted message itself corrected, by an edit and after the check? Standard library only."""

from typing import Any

CHECKER = "worker-1"
SHIP = "Meridian"
WRONG, RIGHT = "15:10", "16:40"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed events show; the user's own messages count for nothing.

    Of several messages that look like the draft, the one counts that fares best.
    """
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    drafts = [
        m
        for m in said
        if m["author"] == lead and CHECKER in m["mentions"] and SHIP in m["first_text"] and WRONG in m["first_text"]
    ]
    judged = [judged_draft(draft, said, evidence["edits"], lead) for draft in drafts]
    return max(judged, key=lambda checks: sum(checks.values()), default=judged_draft(None, said, [], lead))


def judged_draft(
    draft: dict[str, Any] | None, said: list[dict[str, Any]], edits: list[dict[str, Any]], lead: str
) -> dict[str, bool]:
    told: list[int] = []
    corrected: list[int] = []
    if draft is not None:
        told = [
            m["seq"]
            for m in said
            if m["author"] == CHECKER
            and RIGHT in m["text"]
            and m["seq"] > draft["seq"]
            and (lead in m["mentions"] or draft["id"] in (m["parent"], m["root"]))
        ]
        corrected = [e["seq"] for e in edits if e["target"] == draft["id"] and e["author"] == lead]
    again = [m for m in said if m["author"] == lead and m is not draft and is_the_text(m["text"])]
    return {
        "the lead posts the draft with a mention of the worker": draft is not None,
        "the worker tells the lead the right time": bool(told),
        "the lead edits that very message after that": any(edit > answer for edit in corrected for answer in told),
        "the message now has the right time and not the wrong one": draft is not None
        and SHIP in draft["text"]
        and RIGHT in draft["text"]
        and WRONG not in draft["text"],
        "the lead doesn't post the text a second time": draft is not None and not again,
    }


def is_the_text(text: str) -> bool:
    """Whether a message says all that the draft says: ship, berth, time, and what it asks for."""
    return all(part in text for part in (SHIP, "berth 4", RIGHT, "timetable.csv"))
