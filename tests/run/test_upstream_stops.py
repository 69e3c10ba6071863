"""A job's own cap and an upstream whose limit resets late stop the job in time; it goes on with more, or later."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench import costs, records
from bench.condition import Limits
from tests.pipeline import Installation, contents, new_installation, remove
from tests.run.test_stops import Credit, task
from tests.trial.upstream import Upstream, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def installed() -> AsyncIterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-limits-")))
    try:
        yield installation
    finally:
        await asyncio.to_thread(remove, installation)


async def inv(installed: Installation, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(installed.inv, "bench", *words, TEST_MODEL_KEY="canary")


async def test_a_jobs_cap_that_is_reached_leaves_the_rest_for_a_resume_with_a_higher_one(
    installed: Installation, tmp_path: Path
) -> None:
    """Case 25: a cap of five calls in a job of five trials of two calls each."""
    async with serving(Upstream(Credit(calls=100).answer), tmp_path, workers=0) as team:
        chosen = ("--manifest", str(team["manifest_path"]), "--endpoint-config", str(team["endpoints"]))
        options = ("-e", "sandbox", "-k", "5", "-n", "1", "--job-name", "capped", "--budget-calls", "5")
        first = await inv(installed, "-p", str(task(tmp_path)), *chosen, *options)
        assert first.returncode == 4, first.stderr
        job = records.read_job(installed.jobs_dir / "capped")
        assert (job.counts, job.missing) == ({"passed": 2, "failed": 0, "unscored": 1}, 2)
        reason = "the job capped has a cap of 5 calls: 5 calls spent"
        assert job.stop is not None
        assert (job.stop.kind, job.stop.reason.partition(",")[0]) == ("budget", reason)
        assert "the job capped has spent 4 calls of 5 calls, 80 %" in first.stderr
        assert first.stdout.splitlines()[-1].startswith(f"budget: {reason}")
        (unscored,) = [trial for trial in job.trials if not trial.is_scored]
        assert unscored.outcome.reason.startswith(f"job_budget: Buzzbench budget: {reason}")
        before = contents(installed.jobs_dir)
        for more in ((), ("--budget-calls", "4")):
            again = await inv(installed, "--resume", "capped", *more)
            assert again.returncode == 2
            assert (
                f"--budget-calls: 5 calls spent of a cap of {more[-1] if more else 5} calls: no call would go out"
                in again.stderr
            )
        assert contents(installed.jobs_dir) == before
        raised = await inv(installed, "--resume", "capped", "--budget-calls", "9")
        assert raised.returncode == 4, raised.stderr
        assert "its budget is another now: any cost, any number of tokens, 9 calls; it was" in raised.stderr
        done = await inv(installed, "--resume", "capped", "--budget-calls", "none")
        assert done.returncode == 0, done.stderr
        job = records.read_job(installed.jobs_dir / "capped")
        assert (job.counts["passed"], job.missing, job.plan.job_budget) == (5, 0, Limits())
        assert [one.limits.calls for one in job.plan.earlier_budgets] == [5, 9]
        (said,) = [line for line in done.stdout.splitlines() if line.startswith("budget of the job: ")]
        assert said.startswith("budget of the job: any cost, any number of tokens, any number of calls; until 2")


async def test_a_limit_that_resets_late_stops_the_job_to_wait(installed: Installation, tmp_path: Path) -> None:
    """Case 34: 429 with `retry-after: 7200` on call 3."""
    model = Credit(calls=2, error=(429, "You have used up your limit"))
    upstream = Upstream(model.answer, error_headers={"retry-after": "7200"})
    async with serving(upstream, tmp_path, workers=0) as team:
        chosen = ("--manifest", str(team["manifest_path"]), "--endpoint-config", str(team["endpoints"]))
        options = ("-e", "sandbox", "-k", "4", "-n", "1", "--job-name", "late")
        first = await inv(installed, "-p", str(task(tmp_path)), *chosen, *options)
        assert first.returncode == 75, first.stderr
        directory = installed.jobs_dir / "late"
        job = records.read_job(directory)
        assert (job.counts, job.missing) == ({"passed": 1, "failed": 0, "unscored": 1}, 2)
        assert job.stop is not None
        assert job.stop.kind == "waiting"
        reason, _, until = job.stop.reason.partition(": not before ")
        assert reason == "endpoint lead answered 429 and asks to wait longer than longest_wait_s 300"
        assert until.endswith(" UTC")
        left = datetime.fromisoformat(until.removesuffix(" UTC")).replace(tzinfo=UTC) - datetime.now(UTC)
        assert timedelta(seconds=7000) < left <= timedelta(seconds=7201)
        assert len(upstream.asked) == 3, "nobody asked again"
        assert [receipt["outcome"] for receipt in costs.calls_of(directory / records.RECEIPTS, [])][-1] == "error"
        assert first.stdout.splitlines()[-1].startswith(f"waiting: {job.stop.reason}")
        model.calls = 100
        done = await inv(installed, "--resume", "late")
        assert done.returncode == 0, done.stderr
