"""Records of jobs and trials, made by hand."""

from __future__ import annotations

from pathlib import Path

from bench.costs import Spend
from bench.records.job import JobRecord, TrialRecord
from bench.records.planrecord import JobPlanRecord
from bench.scoring.outcome import Outcome

PASSED = Outcome("passed", 1.0, "")
FAILED = Outcome("failed", 0.0, "files: out.txt is right", ("agent_timeout",))
UNSCORED = Outcome("unscored", None, "upstream_refused: 402 from anthropic")


def trial(name: str, outcome: Outcome, *, task: str = "org/alpha", seconds: float = 2.0, **spend: int) -> TrialRecord:
    return TrialRecord(name, task, outcome, seconds, Spend(**spend))


def job(
    *trials: TrialRecord,
    name: str = "lb-team",
    rehearsal: str | None = None,
    planned: int | None = None,
    condition: str = "ab",
    jobs_dir: Path = Path("jobs"),
) -> JobRecord:
    plan = JobPlanRecord(name, rehearsal, "team", condition * 32, "embedded", "docker", 1, {})
    return JobRecord(jobs_dir / name, plan, trials, planned)
