"""The agent inside a real Harbor job: real sandbox, real verifier, and what Harbor keeps of it."""

from __future__ import annotations

import asyncio
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harbor.job import Job
from harbor.models.job.config import JobConfig

from bench import manifest
from bench.sandbox.environment import SandboxEnvironment
from bench.scoring.judge import JUDGE, host_checks
from bench.scoring.outcome import classify, facts_from
from bench.settings import ROOT
from bench.trial import environments
from bench.trial.deadline import task_timeout_s
from tests.trial.services import Stack

pytestmark = [
    pytest.mark.slow,
    # Harbor warns of its own use of it.
    pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated:DeprecationWarning"),
]

MANIFEST = ROOT / "manifests" / "rehearsal.yaml"
TASK = ROOT / "buzz-dataset" / "split-and-merge"


@pytest.fixture
async def run(shared_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a job with a script and returns its results and its directory."""
    from bench.trial import session

    monkeypatch.setenv("HARBOR_TELEMETRY", "off")

    async def job(script: str, attempts: int = 1, **agent: Any) -> tuple[list[Any], Path]:
        name = f"job-{script}"
        monkeypatch.setenv("BUZZBENCH_RUN_DIR", str(shared_stack.run_dir(f"{tmp_path.name}-{name}")))
        kwargs = {
            "manifest": str(MANIFEST),
            "condition_sha256": manifest.load(MANIFEST).sha256,
            "endpoints": None,
            "rehearsal": script,
        }
        config = JobConfig.model_validate(
            {
                "job_name": name,
                "jobs_dir": str(tmp_path),
                "n_attempts": attempts,
                "quiet": True,
                "agents": [{"name": "bench.trial.agent:TeamAgent", "kwargs": kwargs, **agent}],
                "environment": {"import_path": "bench.sandbox.environment:SandboxEnvironment"},
                "tasks": [{"path": str(TASK)}],
            }
        )
        created = await Job.create(config)
        result = await created.run()
        return result.trial_results, tmp_path / name

    yield job
    await session.close()


def outcome_of(job_dir: Path, trial: str) -> Any:
    """As the run's records decide it."""
    directory = job_dir / trial
    evidence = json.loads((directory / "buzzbench-evidence.json").read_text())
    checks = directory / "verifier" / "checks.json"
    facts = facts_from(
        json.loads((directory / "result.json").read_text()),
        checks=json.loads(checks.read_text()) if checks.exists() else None,
    )
    return classify(replace(facts, host_checks=host_checks(TASK / JUDGE, evidence, own_tasks=TASK)))


async def test_a_good_script_passes_and_harbor_has_its_tokens_and_files(run: Any) -> None:
    results, job_dir = await run("good", attempts=2)
    for result in results:
        assert result.exception_info is None
        assert result.agent_result.n_input_tokens > 0
        assert set(result.agent_result.model_usage) == {"scripted"}
        directory = job_dir / result.trial_name
        collected = directory / "artifacts" / "logs" / "artifacts" / "relay_evidence.json"
        assert collected.read_bytes() == (directory / "buzzbench-evidence.json").read_bytes()
        assert (directory / "agent" / "trajectory.json").exists()
        decided = outcome_of(job_dir, result.trial_name)
        assert (decided.outcome, decided.labels) == ("passed", ())
    receipts = (job_dir / "buzzbench-receipts.jsonl").read_text().splitlines()
    calls = sum(used["calls"] for r in results for used in r.agent_result.metadata["buzzbench"]["agents"].values())
    assert len(receipts) == calls


async def test_a_wrong_script_fails_on_the_evidence(run: Any) -> None:
    script = next(path.stem for path in sorted((TASK / "rehearsal").glob("wrong-*.yaml")))
    (result,), job_dir = await run(script)
    assert result.exception_info is None
    decided = outcome_of(job_dir, result.trial_name)
    assert (decided.outcome, decided.labels) == ("failed", ())
    assert decided.reason.startswith("evidence: ")


async def test_a_task_that_leaves_no_time_is_not_graded(run: Any) -> None:
    (result,), _ = await run("good", override_timeout_sec=8)
    assert result.exception_info.exception_type == "HealthcheckError"
    assert "no time is left for work: the task's agent timeout is 8 s" in result.exception_info.exception_message
    assert result.verifier_result is None


@pytest.mark.parametrize("limits", [{}, {"override_timeout_sec": 100, "max_timeout_sec": 50}])
async def test_our_reading_of_the_agent_timeout_is_harbors(limits: dict[str, float], tmp_path: Path) -> None:
    from harbor.models.trial.config import TrialConfig
    from harbor.trial.trial import Trial

    config = {
        "task": {"path": str(TASK)},
        "trials_dir": str(tmp_path),
        "agent": {"name": "nop", **limits},
        "environment": {"import_path": "bench.sandbox.environment:SandboxEnvironment"},
        "timeout_multiplier": 2.0,
    }
    trial = await Trial.create(TrialConfig.model_validate(config))
    task = tomllib.loads((TASK / "task.toml").read_text())
    assert trial.agent_timeout_sec == task_timeout_s(trial.config.model_dump(mode="json"), task)


async def test_an_environment_that_never_stops_keeps_no_job(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = SandboxEnvironment.stop

    async def for_ever(self: SandboxEnvironment, delete: bool) -> None:
        await stop(self, delete)
        await asyncio.Event().wait()

    monkeypatch.setattr(SandboxEnvironment, "stop", for_ever)
    monkeypatch.setattr(environments, "STOP_S", 0.3)
    (result,), job_dir = await run("good")
    assert result.exception_info.exception_type == "StopTimedOut"
    assert outcome_of(job_dir, result.trial_name).outcome == "passed"
