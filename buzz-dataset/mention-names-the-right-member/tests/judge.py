"""Was exactly the pilot on duty mentioned, and did that pilot report? Standard library only."""

from typing import Any

ON_DUTY = "worker-2"
ASLEEP = "worker-1"


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    team = {member["name"] for member in evidence["roster"]}
    said = [m for m in evidence["messages"] if m["author"] in team]
    calls = [
        m["seq"]
        for m in said
        if m["author"] == lead and ON_DUTY in m["mentions"] and m["channel"] == evidence["channel"]
    ]
    reports = [m["seq"] for m in said if m["author"] == ON_DUTY and lead in m["mentions"]]
    return {
        "the lead mentions the pilot on duty": bool(calls),
        "nobody mentions the other pilot": not any(ASLEEP in m["mentions"] for m in said),
        "the pilot on duty reports to the lead after the call": any(
            report > call for call in calls for report in reports
        ),
    }
