"""Is exactly who is on watch in the new channel, and was the watch called there? Standard library only."""

from typing import Any

NAME = "night-watch"
ON_WATCH = "worker-2"
ADDED = 9000


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed events show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    made = [c for c in evidence["channels"] if c["name"].removeprefix("#") == NAME and c["creator"] == lead]
    channel = made[0] if len(made) == 1 else {"id": None, "members": []}
    wanted = {lead, ON_WATCH}
    added = [m["target"] for m in evidence["memberships"] if m["channel"] == channel["id"] and m["kind"] == ADDED]
    said = [m for m in evidence["messages"] if m["channel"] == channel["id"]]
    calls = [m for m in said if m["author"] == lead and ON_WATCH in m["mentions"]]
    answered = any(
        m["author"] == ON_WATCH
        and m["seq"] > call["seq"]
        and (lead in m["mentions"] or call["id"] in (m["parent"], m["root"]))
        for call in calls
        for m in said
    )
    return {
        "the lead makes one channel of that name": len(made) == 1,
        "its members are the lead and the one on watch": set(channel["members"]) == wanted,
        "nobody else was added to it at any time": bool(made) and wanted.issuperset(added),
        "the lead calls the one on watch in that channel": bool(calls),
        "the one on watch answers in that channel after the call": answered,
    }
