"""A retry: only of what has no score, with nothing lost of the try before."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import records
from bench.planning.extras import RETRIED
from bench.reading import jsonl
from bench.run.retried import Retries
from bench.trial import journal
from tests.pipeline import DATASET, Installation, new_installation, remove


@pytest.mark.parametrize(
    ("exceptions", "max_retries", "kept"),
    [
        (["HealthcheckError"], 2, [1, 2, None]),
        (["HealthcheckError"], 0, [None]),
        (["AgentTimeoutError"], 2, [None]),
        (["HealthcheckError", "AgentTimeoutError"], 2, [None]),
        ([], 2, [None]),
    ],
)
def test_what_harbor_is_about_to_try_again_is_kept(
    tmp_path: Path, exceptions: list[str], max_retries: int, kept: list[int | None]
) -> None:
    from harbor.models.job.config import RetryConfig
    from harbor.models.trial.result import ExceptionInfo, TrialResult

    infos = [
        ExceptionInfo.model_construct(exception_type=name, exception_message="", exception_traceback="")
        for name in exceptions
    ]
    steps = [TrialResult.model_construct(exception_info=info, step_results=[]) for info in infos[1:]]
    result = TrialResult.model_construct(exception_info=infos[0] if infos else None, step_results=steps)
    trial = tmp_path / "job" / "a__1"
    trial.mkdir(parents=True)
    (trial / "result.json").write_text("{}")
    retries = Retries(RetryConfig(max_retries=max_retries, include_exceptions=set(RETRIED)), tmp_path / "archive")
    for number in kept:
        place = retries.keep(trial, result)
        assert place == (tmp_path / "archive/retried" / f"a__1-{number}" if number else None)
        assert place is None or (place / "result.json").exists()


@pytest.fixture
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-retried-")))
    try:
        yield installation
    finally:
        remove(installation)


@pytest.mark.slow
def test_a_trial_without_a_score_is_tried_again_and_both_tries_are_booked(
    installed: Installation, tmp_path: Path
) -> None:
    task = tmp_path / "short"
    shutil.copytree(DATASET / "split-and-merge", task)
    (task / "rehearsal/good.yaml").write_text(
        "orch:\n"
        "  - name: only step\n"
        "    do: [{send: {mention: [worker-1], text: please begin}}]\n"
        "worker:\n"
        "  - name: answer\n"
        "    do: [{send: {mention: [orch], text: what next}}]\n"
    )
    words = ("--path", str(task), "--rehearsal", "-k", "1", "--max-retries", "1", "--job-name", "again", "--json")
    done = installed.inv("bench", *words)
    assert done.returncode == 1, done.stderr
    (trial,) = json.loads(done.stdout)["jobs"][0]["trials"]
    assert trial["outcome"] == "unscored"
    assert "retried" in trial["labels"]
    job_dir = installed.jobs_dir / "again"
    begun = [e for e in journal.read(job_dir / records.JOURNAL).entries if isinstance(e, journal.AttemptStarted)]
    assert [entry.trial for entry in begun] == [trial["trial"]] * 2
    first = installed.state_dir / "archive/again/retried" / f"{trial['trial']}-1"
    assert "script_exhausted" in json.loads((first / "result.json").read_text())["exception_info"]["exception_message"]
    assert (first / records.EVIDENCE).exists()
    receipts = list(jsonl.read(job_dir / records.RECEIPTS, []))
    assert trial["calls"] == len([receipt for receipt in receipts if receipt["outcome"] != "refused"])
