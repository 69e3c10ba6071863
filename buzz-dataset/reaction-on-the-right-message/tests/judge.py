"""Is the reaction on each worker's own notice, from that worker, and nowhere else? Standard library only."""

from typing import Any

EMOJI = "✅"
NOTICES = {
    "worker-1": "Notice 62: berth 4 is closed on Friday, the rail is welded.",
    "worker-2": "Notice 61: berth 3 is closed on Friday, the crane is painted.",
}


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed events show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    given = [r for r in evidence["reactions"] if r["emoji"].removesuffix("\ufe0f") == EMOJI]
    checks = {}
    right = set()
    for worker, notice in NOTICES.items():
        others = [text for text in NOTICES.values() if text != notice]
        posted = {
            m["id"]
            for m in said
            if m["author"] == lead and notice in m["text"] and not any(text in m["text"] for text in others)
        }
        own = [r for r in given if r["author"] == worker and r["target"] in posted]
        right |= {r["id"] for r in own}
        told = [m["seq"] for m in said if m["author"] == worker and lead in m["mentions"]]
        checks[f"the lead posts the notice for {worker} as a message of its own"] = bool(posted)
        checks[f"{worker} puts the reaction on the notice about its own berth"] = bool(own)
        checks[f"{worker} tells the lead after its reaction"] = any(seq > r["seq"] for r in own for seq in told)
    checks["no other message has the reaction, and nobody else gives it"] = bool(given) and all(
        r["id"] in right for r in given
    )
    return checks
