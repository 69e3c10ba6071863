"""Did each worker report the sum of its own part to the lead who asked for it? Standard library only."""

import re
from typing import Any

SUMS = {"worker-1": "818", "worker-2": "455"}


def judge(evidence: dict[str, Any]) -> dict[str, bool]:
    """What the team's signed messages show; the user's own messages count for nothing."""
    lead = next(member["name"] for member in evidence["roster"] if member["kind"] == "orchestrator")
    said = [m for m in evidence["messages"] if m["channel"] == evidence["channel"]]
    checks = {}
    reports = []
    for worker, total in SUMS.items():
        asked = min((m["seq"] for m in said if m["author"] == lead and worker in m["mentions"]), default=None)
        reported = [
            m["seq"]
            for m in said
            if m["author"] == worker
            and lead in m["mentions"]
            and has_number(m["text"], total)
            and asked is not None
            and m["seq"] > asked
        ]
        reports.append(min(reported, default=None))
        checks[f"the lead asks {worker}"] = asked is not None
        checks[f"{worker} itself reports the sum of its part to the lead after it was asked"] = bool(reported)
    finished = [m["seq"] for m in said if m["author"] == lead and m["text"].startswith("DONE:")]
    checks["the lead finishes only when the reports are in"] = all(
        end > report for end in finished for report in reports if report is not None
    )
    return checks


def has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", text) is not None
