"""A cause that every further trial would meet stops the job; a resume goes on once it is gone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bench import costs, records
from tests.agreement import assert_whole, scored
from tests.pipeline import Installation, new_installation, remove
from tests.trial.upstream import Asked, Blocks, Upstream, serving, use

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class Credit:
    """A model that makes the file in two calls, as long as there is credit for a call."""

    def __init__(self, calls: int, error: tuple[int, str] = (402, "Your credit balance is too low")) -> None:
        self.calls, self.error = calls, error

    def answer(self, asked: Asked) -> Blocks | tuple[int, str]:
        if self.calls == 0:
            return self.error
        self.calls -= 1
        return [use("done", text="made")] if asked.results else [use("shell", command="echo it > made.txt")]


@pytest.fixture
async def installed() -> AsyncIterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-stops-")))
    try:
        yield installation
    finally:
        await asyncio.to_thread(remove, installation)


def task(home: Path) -> Path:
    directory = home / "make-it"
    for part in ("environment", "tests"):
        (directory / part).mkdir(parents=True)
    (directory / "task.toml").write_text('[task]\nname = "org/make-it"\n[agent]\ntimeout_sec = 60\n')
    (directory / "instruction.md").write_text("Make made.txt.\n")
    (directory / "tests" / "test.sh").write_text(
        "#!/bin/bash\n[ -e made.txt ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
    )
    return directory


async def test_credit_that_runs_out_stops_the_job_and_is_nobodys_failure(
    installed: Installation, tmp_path: Path
) -> None:
    """Case 10: 402 on call 5 of a job of six trials; after funding, the job goes on."""
    model = Credit(calls=4)

    async def inv(*words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(installed.inv, "bench", *words, TEST_MODEL_KEY="canary")

    async with serving(Upstream(model.answer), tmp_path, workers=0) as team:
        chosen = (
            "--manifest",
            str(team["manifest_path"]),
            "--endpoint-config",
            str(team["endpoints"]),
            "-e",
            "sandbox",
        )
        first = await inv("-p", str(task(tmp_path)), *chosen, "-k", "6", "-n", "1", "--job-name", "funded")
        assert first.returncode == 1, first.stderr
        directory = installed.jobs_dir / "funded"
        job = records.read_job(directory)
        assert (job.counts, job.missing) == ({"passed": 2, "failed": 0, "unscored": 1}, 3)
        assert job.stop is not None
        assert job.stop.kind == "stopped"
        assert "402" in job.stop.reason
        assert first.stdout.splitlines()[-1].startswith(f"stopped: {job.stop.reason}; go on with `inv bench --resume")
        before = scored(directory)
        again = await inv("--resume", "funded")
        assert again.returncode == 1
        assert scored(directory) == before
        model.calls = 100
        done = await inv("--resume", "funded", "--json")
        assert done.returncode == 0, done.stderr
    assert_whole(installed, directory, before)
    shown: dict[str, Any] = json.loads(done.stdout)["jobs"][0]
    assert shown["counts"] == {"passed": 6, "failed": 0, "unscored": 0}
    assert [attempt["reason"].split(":")[0] for attempt in shown["replaced"]] == ["upstream_refused"] * 2
    assert shown["cost_usd_micros"] == sum(
        receipt["cost_usd_micros"] or 0 for receipt in costs.calls_of(directory / records.RECEIPTS, [])
    )
    assert shown["stopped"] is None
