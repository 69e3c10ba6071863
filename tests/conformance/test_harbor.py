"""What we rely on in Harbor 0.26. A failure here says which assumption a new version broke (HARBOR.md)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, override

import pytest
from harbor.agents.base import BaseAgent
from harbor.environments.base import HealthcheckError
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.job import Job
from harbor.models.agent.context import AgentContext
from harbor.models.job.config import JobConfig
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig
from harbor.models.trial.error_policy import policy_for
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.run.admission import Admission
from bench.sandbox.environment import SandboxEnvironment
from bench.settings import ROOT
from bench.trial.stops import Stop

HERE = "tests.conformance.test_harbor"

# Harbor warns of its own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated:DeprecationWarning")


class Noted(SandboxEnvironment):
    """The sandbox, noting what Harbor asks of it."""

    calls: ClassVar[list[str]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._built = False
        super().__init__(*args, **kwargs)
        self._built = True

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        if not self._built:
            self.calls.append("capabilities before it is built")
        return super().capabilities

    @override
    async def start(self, force_build: bool) -> None:
        self.calls.append("start")
        await super().start(force_build)

    @override
    async def exec(self, command: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(f"exec {command}")
        return await super().exec(command, *args, **kwargs)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        self.calls.append(f"upload {target_dir}")
        await super().upload_dir(source_dir, target_dir)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        self.calls.append(f"download {source_dir}")
        await super().download_dir(source_dir, target_dir)

    @override
    async def stop(self, delete: bool) -> None:
        self.calls.append("stop")
        await super().stop(delete)


class Scripted(BaseAgent):  # type: ignore[misc]  # Harbor ships no types
    """An agent that does as a test tells it."""

    play: ClassVar[Callable[[Scripted, Any, AgentContext], Any]]
    preflights: ClassVar[list[dict[str, Any]]] = []

    @staticmethod
    @override
    def name() -> str:
        return "scripted"

    @override
    def version(self) -> str:
        return "1"

    @classmethod
    @override
    def preflight(cls, kwargs: dict[str, Any] | None = None, env: dict[str, str] | None = None, **_: Any) -> None:
        cls.preflights.append(kwargs or {})

    @override
    async def setup(self, environment: Any) -> None:
        if self.extra_env.get("SETUP") == "fails":
            raise ValueError("set-up")

    @override
    async def run(self, instruction: str, environment: Any, context: AgentContext) -> None:
        await type(self).play(self, environment, context)


async def _nothing(agent: Scripted, environment: Any, context: AgentContext) -> None:
    pass


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HARBOR_TELEMETRY", "off")
    Noted.calls.clear()
    Scripted.preflights.clear()

    Scripted.play = _nothing
    yield


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., JobConfig]:
    """Makes the configuration of a job with one tiny task."""
    task = tmp_path / f"task-{'x' * 40}"
    for part in ("environment", "tests"):
        (task / part).mkdir(parents=True)
    (task / "task.toml").write_text('[task]\nname = "org/tiny"\n[agent]\ntimeout_sec = 1\n')
    (task / "instruction.md").write_text("Do it.\n")
    (task / "tests" / "test.sh").write_text("#!/bin/bash\necho 1 > /logs/verifier/reward.txt\nexit 5\n")

    def make(agent: dict[str, Any] | None = None, **more: Any) -> JobConfig:
        return JobConfig(
            **{
                "job_name": "job",
                "jobs_dir": tmp_path / "jobs",
                "quiet": True,
                "agents": [AgentConfig(name=f"{HERE}:Scripted", **agent or {})],
                "environment": EnvironmentConfig(import_path=f"{HERE}:Noted"),
                "tasks": [TaskConfig(path=task)],
                **more,
            }
        )

    return make


async def _run(config: JobConfig) -> Any:
    """The results of the job's trials."""
    result = await (await Job.create(config)).run()
    return result.trial_results


def test_the_version_is_the_one_these_tests_were_written_for() -> None:
    assert version("harbor") == "0.26.0"


# How errors count (section 7.5)


@pytest.mark.parametrize(
    ("name", "graded", "valid"),
    [
        ("HealthcheckError", False, False),
        ("SandboxBuildFailedError", False, False),
        ("EnvironmentStartTimeoutError", False, False),
        ("AgentSetupTimeoutError", False, False),
        ("CancelledError", False, False),
        ("AgentTimeoutError", True, True),
        ("AnythingElse", True, True),
    ],
)
def test_errors_count_by_their_class_name(name: str, graded: bool, valid: bool) -> None:
    policy = policy_for(name)
    assert (policy.should_grade, policy.has_valid_reward) == (graded, valid)


async def test_a_healthcheck_error_of_the_agent_is_neither_graded_nor_scored(config: Callable[..., JobConfig]) -> None:
    async def gone(agent: Scripted, environment: Any, context: AgentContext) -> None:
        context.metadata = {"buzzbench": {"fault": "relay"}}
        raise HealthcheckError("the relay is gone")

    Scripted.play = gone
    [trial] = await _run(config())
    assert trial.verifier_result is None
    assert trial.exception_info.exception_type == "HealthcheckError"
    assert trial.agent_result.metadata == {"buzzbench": {"fault": "relay"}}


async def test_what_was_written_before_a_timeout_is_kept_and_graded(config: Callable[..., JobConfig]) -> None:
    async def late(agent: Scripted, environment: Any, context: AgentContext) -> None:
        context.n_input_tokens = 7
        await environment.exec("sleep 300")

    Scripted.play = late
    [trial] = await _run(config())
    assert trial.exception_info.exception_type == "AgentTimeoutError"
    assert trial.exception_info.exception_message == "Agent execution timed out after 1.0 seconds"
    assert trial.agent_result.n_input_tokens == 7
    assert trial.verifier_result.rewards == {"reward": 1.0}


# A trial, as environment and agent see it (sections 2.3, 3, 4)


async def test_a_trial_asks_the_environment_in_this_order(config: Callable[..., JobConfig]) -> None:
    async def work(agent: Scripted, environment: Any, context: AgentContext) -> None:
        await environment.exec("work")

    Scripted.play = work
    [trial] = await _run(config())
    calls = [call.split(" > ")[0] for call in Noted.calls]
    before = "capabilities before it is built"
    assert before in calls
    assert [call for call in calls if call != before] == [
        "start",
        "exec work",
        "download /logs/agent",
        "upload /logs/agent",
        "exec test -d /logs/artifacts",
        "download /logs/artifacts",
        "exec rm -f -- /logs/verifier/reward.txt /logs/verifier/reward.json",
        "upload /tests",
        "exec chmod +x /tests/test.sh",
        "exec (/tests/test.sh)",
        "download /logs/verifier",
        "stop",
    ]
    # The verifier's own exit code says nothing.
    assert trial.verifier_result.rewards == {"reward": 1.0}


async def test_only_what_lies_beside_the_result_is_out_of_the_environments_reach(
    config: Callable[..., JobConfig],
) -> None:
    async def work(agent: Scripted, environment: Any, context: AgentContext) -> None:
        for directory in (agent.logs_dir, agent.logs_dir.parent):
            (directory / "evidence.json").write_text("ours")
        await environment.exec("echo theirs > /logs/agent/evidence.json; echo it > /logs/artifacts/it")

    Scripted.play = work
    [trial] = await _run(config())
    directory = Path(trial.trial_uri.removeprefix("file://"))
    assert (directory / "agent" / "evidence.json").read_text() == "theirs\n"
    assert (directory / "evidence.json").read_text() == "ours"
    assert (directory / "artifacts" / "logs" / "artifacts" / "it").read_text() == "it\n"


async def test_what_an_agent_knows_of_its_trial(config: Callable[..., JobConfig], tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    async def work(agent: Scripted, environment: Any, context: AgentContext) -> None:
        seen.update(
            session=agent.session_id,
            context=agent.context_id,
            logs=agent.logs_dir,
            environment=environment.session_id,
            empty=context.is_empty(),
        )

    Scripted.play = work
    [trial] = await _run(config())
    name = trial.trial_name
    assert name.split("__")[0] == f"task-{'x' * 27}"
    assert trial.task_name == "org/tiny"
    assert seen["session"] == f"{name}__agent"
    assert seen["environment"] == f"{name}__env"
    assert str(seen["context"]) == str(trial.id)
    assert seen["logs"] == tmp_path / "jobs" / "job" / name / "agent"
    assert seen["empty"]


async def test_the_environment_is_stopped_once_when_the_agents_setup_fails(config: Callable[..., JobConfig]) -> None:
    [trial] = await _run(config({"env": {"SETUP": "fails"}}))
    assert trial.exception_info.exception_message == "set-up"
    assert Noted.calls.count("stop") == 1


# A job's directory, and what a resume does to it (sections 7.1, 7.2, 7.4)


async def test_a_jobs_directory(config: Callable[..., JobConfig], tmp_path: Path) -> None:
    [trial] = await _run(config())
    job = tmp_path / "jobs" / "job"
    assert {path.name for path in job.iterdir()} == {
        *("config.json", "lock.json", "result.json", "job.log"),
        trial.trial_name,
    }
    assert {path.name for path in (job / trial.trial_name).iterdir()} == {
        *("config.json", "lock.json", "result.json", "trial.log", "agent", "verifier", "artifacts")
    }
    result = json.loads((job / "result.json").read_text())
    assert result["stats"]["n_completed_trials"] == 1
    assert not result.get("trial_results")
    assert result["finished_at"]


async def test_a_resume_drops_directories_without_a_result_and_keeps_flat_files(
    config: Callable[..., JobConfig], tmp_path: Path
) -> None:
    [trial] = await _run(config())
    job = tmp_path / "jobs" / "job"
    (job / "half").mkdir()
    (job / "buzzbench-journal.jsonl").write_text("{}\n")
    with pytest.raises(FileExistsError, match="cannot be resumed with a different config"):
        await Job.create(config({"kwargs": {"other": 1}}))
    assert (job / "half").exists()
    assert [again.id for again in await _run(config())] == [trial.id]
    assert not (job / "half").exists()
    assert (job / "buzzbench-journal.jsonl").read_text() == "{}\n"


async def test_a_cancelled_trial_is_recorded_ungraded_and_stays_so_on_a_resume(
    config: Callable[..., JobConfig], tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def work(agent: Scripted, environment: Any, context: AgentContext) -> None:
        context.n_input_tokens = 7
        begun.set()
        await environment.exec("sleep 300")

    Scripted.play = work
    running = asyncio.create_task(_run(config()))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    [trial] = await _run(config())
    assert trial.exception_info.exception_type == "CancelledError"
    assert trial.verifier_result is None
    assert trial.agent_result.n_input_tokens == 7


async def test_trials_that_wait_for_a_place_can_be_kept_from_beginning(
    config: Callable[..., JobConfig], tmp_path: Path
) -> None:
    """What `bench.run.admission` relies on: the name of Harbor's coroutine, and what a cancelled one of them does."""
    admission = Admission()
    begun: list[str] = []

    async def work(agent: Scripted, environment: Any, context: AgentContext) -> None:
        admission.stop(Stop("budget", "enough"))

    async def on_start(event: Any) -> None:
        begun.append(event.trial_name)
        admission.begin()

    Scripted.play = work
    job = await Job.create(config(n_attempts=4, n_concurrent_trials=1))
    job.on_trial_started(on_start)
    with pytest.raises(asyncio.CancelledError):
        await job.run()
    assert len(begun) == 1
    [trial] = [path for path in (tmp_path / "jobs" / "job").iterdir() if path.is_dir()]
    assert json.loads((trial / "result.json").read_text())["verifier_result"]["rewards"] == {"reward": 1.0}
    Scripted.play = _nothing
    assert len(await _run(config(n_attempts=4, n_concurrent_trials=1))) == 4


async def test_harbor_tells_how_many_results_a_resume_has_taken(
    config: Callable[..., JobConfig], tmp_path: Path
) -> None:
    """It passes over what it can't read, without a word; `bench.run.child` compares the number."""
    trials = await _run(config(n_attempts=2))
    (tmp_path / "jobs" / "job" / trials[0].trial_name / "result.json").write_text('{"task_name": "org/tiny"}')
    assert len((await Job.create(config(n_attempts=2)))._existing_trial_results) == 1


def test_configurations_are_equal_but_for_name_and_debug(config: Callable[..., JobConfig]) -> None:
    assert config() == config(job_name="other", debug=True)
    assert config() != config(quiet=False)
    assert config() != config(n_concurrent_trials=9)


# Preflight and the command line (sections 1.1, 1.2)


async def test_a_job_asks_the_agent_but_not_the_environment_beforehand(
    config: Callable[..., JobConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SandboxEnvironment, "preflight", classmethod(lambda cls, kwargs=None: pytest.fail("asked")))
    await Job.create(config({"kwargs": {"a": 1}}))
    assert Scripted.preflights == [{"a": 1}]


def test_the_command_line_prints_a_value_error_of_a_preflight_in_one_line(
    config: Callable[..., JobConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harbor.cli.jobs import _run_preflight

    from bench.sandbox import probe

    probe.tools.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SystemExit) as stopped:
        _run_preflight(config())
    assert stopped.value.code == 1
    assert capsys.readouterr().out == "sandbox: bubblewrap runs on Linux only; use -e docker\n"


@pytest.mark.slow
def test_what_the_command_line_makes_of_import_paths_and_arguments(tmp_path: Path) -> None:
    words = "-a a.b:Agent --ak text=x --ak number=2 --ak none=null -e c.d:Environment --ek network=host -k 2 -n 3 -q -y"
    (tmp_path / "task").mkdir()
    done = subprocess.run(
        [Path(sys.executable).parent / "harbor", "run", "-p", tmp_path, *words.split(), "--print-config"],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = JobConfig.model_validate_json(done.stdout)
    assert printed == JobConfig(
        agents=[AgentConfig(name="a.b:Agent", kwargs={"text": "x", "number": 2, "none": None})],
        environment=EnvironmentConfig(import_path="c.d:Environment", kwargs={"network": "host"}),
        n_attempts=2,
        n_concurrent_trials=3,
        quiet=True,
        datasets=[{"path": tmp_path}],
    )


@pytest.mark.slow
def test_without_a_model_harbor_does_not_load_litellm(config: Callable[..., JobConfig]) -> None:
    code = (
        "import asyncio, sys; from harbor.job import Job; from harbor.models.job.config import JobConfig;"
        "asyncio.run(Job.create(JobConfig.model_validate_json(sys.stdin.read()))); print('litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=config().model_dump_json(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"


# Trajectories (section 3)


def _trajectory(**more: Any) -> dict[str, Any]:
    steps = [{"step_id": 1, "source": "user", "message": "hi"}, {"step_id": 2, "source": "agent", "message": "ok"}]
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "team", "version": "1"}, "steps": steps, **more}


def test_the_validator_takes_a_team_with_its_members_embedded() -> None:
    member = _trajectory(trajectory_id="worker-1")
    assert TrajectoryValidator().validate(_trajectory(subagent_trajectories=[member]))


@pytest.mark.parametrize("damage", [{"surprise": 1}, {"steps": [{"step_id": 2, "source": "user", "message": "hi"}]}])
def test_the_validator_refuses_what_is_damaged(damage: dict[str, Any]) -> None:
    assert not TrajectoryValidator().validate(_trajectory(**damage))


def test_the_validator_overlooks_a_reference_to_no_member() -> None:
    """So the trial checks that itself."""
    trajectory = _trajectory()
    trajectory["steps"][1] |= {
        "tool_calls": [{"tool_call_id": "c", "function_name": "ask", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_id": "nobody"}]}]},
    }
    assert TrajectoryValidator().validate(trajectory)
