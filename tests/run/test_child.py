"""The Harbor child: what it says of an error, and what it loads."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

from bench.run import child

JOB = Path("/jobs/lb-team")

OF_OTHERS = {
    *(
        "bench.planning.dataset",
        "bench.planning.selection",
        "bench.planning.plan",
        "bench.planning.replay",
        "bench.gateway.cassette",
        "psycopg",
        "statistics",
    ),
    *(f"bench.harness.buzz.{name}" for name in ("crew", "environ", "kit", "programs")),
}
"""What planning needs, or jobs of another kind: replays, recordings, real agents."""


def test_a_registry_out_of_reach_is_said_with_both_ways_on() -> None:
    import httpx

    said = child._message(ExceptionGroup("in a task group", [httpx.ConnectError("Name or service not known")]), JOB)
    assert said == (
        "Harbor's registry can't be reached (Name or service not known); see to the network, or give local tasks by "
        "--path"
    )
    assert child._message(ValueError("a\n  b"), JOB) == "ValueError: a b"


def test_a_full_disk_is_told_with_the_place_and_the_way_on() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    said = "No space left on device; make room and go on with `inv bench --resume /jobs/lb-team`"
    assert child._message(full, JOB) == f"/jobs/lb-team: {said}"
    full.filename = "/jobs/lb-team/a__1/trial.log"
    assert child._message(full, JOB) == f"/jobs/lb-team/a__1/trial.log: {said}"


def test_a_job_of_agents_on_the_host_loads_nothing_that_other_jobs_need() -> None:
    code = (
        "import sys, bench.run.child, bench.run.selected, bench.trial.agent, bench.sandbox.environment, bench.records;"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(ran.stdout.split()) & OF_OTHERS
