"""Harbor gets from the sandbox what it gets from its own environments: real Harbor objects, and a real job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError, SandboxBuildFailedError
from harbor.environments.factory import EnvironmentFactory
from harbor.job import Job
from harbor.models.job.config import JobConfig
from harbor.models.task.config import EnvironmentConfig as TaskEnvironment
from harbor.models.task.config import NetworkPolicy
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig
from harbor.models.trial.paths import TrialPaths

from bench.sandbox import probe
from bench.sandbox.command import CommandTimeout
from bench.sandbox.environment import SandboxEnvironment
from bench.sandbox.instance import SandboxLost
from bench.sandbox.launch import Tools

IMPORT_PATH = "bench.sandbox.environment:SandboxEnvironment"


class Maker:
    """Makes environments as a trial does, and stops them all at the end."""

    def __init__(self, tmp_path: Path) -> None:
        self.directory = tmp_path / "environment"
        self.directory.mkdir()
        self._trial = TrialPaths(tmp_path / "trial")
        self._made: list[SandboxEnvironment] = []

    def dockerfile(self, *lines: str) -> None:
        (self.directory / "Dockerfile").write_text("\n".join(("FROM debian", *lines)))

    def make(self, task: dict[str, Any] | None = None, **more: Any) -> SandboxEnvironment:
        made = SandboxEnvironment(
            environment_dir=self.directory,
            environment_name="some-task",
            session_id="some-task__1__env",
            trial_paths=self._trial,
            task_env_config=TaskEnvironment.model_validate(task or {}),
            logger=logging.getLogger("test"),
            **{"auto_mounts": [{"type": "bind", "source": "/x", "target": "/logs/agent"}], **more},
        )
        self._made.append(made)
        return made

    async def start(self, task: dict[str, Any] | None = None, **more: Any) -> SandboxEnvironment:
        made = self.make(task, **more)
        await made.start(force_build=False)
        return made

    async def stop(self) -> None:
        for made in self._made:
            await made.stop(delete=True)


@pytest.fixture
async def maker(tmp_path: Path) -> AsyncIterator[Maker]:
    maker = Maker(tmp_path)
    try:
        yield maker
    finally:
        await maker.stop()


async def test_exec_says_what_was_printed_and_how_it_ended(maker: Maker) -> None:
    environment = await maker.start()
    result = await environment.exec("pwd; echo no >&2; exit 2")
    assert (result.stdout, result.stderr, result.return_code) == ("/app\n", "no\n", 2)
    silent = await environment.exec("true")
    assert (silent.stdout, silent.stderr, silent.return_code) == (None, None, 0)


async def test_the_dockerfile_is_honoured(maker: Maker) -> None:
    (maker.directory / "data").mkdir()
    (maker.directory / "data" / "in.txt").write_text("in\n")
    (maker.directory / "tool.sh").write_text("#!/bin/sh\necho tool $1\n")
    (maker.directory / "tool.sh").chmod(0o755)
    maker.dockerfile(
        "WORKDIR /srv/work",
        "ENV NAME=world PATH=/srv/bin:$PATH",
        "COPY data .",
        "COPY tool.sh /srv/bin/tool",
        "RUN tool $NAME > made.txt && pwd >> made.txt",
        "COPY tool.sh made.txt",
        "WORKDIR after",
    )
    environment = await maker.start()
    result = await environment.exec("pwd; cat ../in.txt; tool $NAME; ls -l ../made.txt | cut -c1-10")
    assert result.stdout == "/srv/work/after\nin\ntool world\n-rwxr-xr-x\n"


async def test_a_run_that_fails_names_its_line_and_what_it_said(maker: Maker) -> None:
    maker.dockerfile("WORKDIR /app", "RUN echo why >&2; exit 3")
    environment = maker.make()
    with pytest.raises(SandboxBuildFailedError, match="Dockerfile line 3: RUN ended with code 3: why"):
        await environment.start(force_build=False)
    with pytest.raises(SandboxLost):
        await environment.exec("true")


async def test_a_refused_task_is_named_before_anything_starts(maker: Maker) -> None:
    maker.dockerfile("USER app")
    with pytest.raises(
        ValueError, match="some-task: Dockerfile line 2: USER: root is the only user there; use another"
    ):
        maker.make()
    maker.dockerfile()
    with pytest.raises(ValueError, match="needs an accelerator"):
        maker.make({"gpus": 1})
    with pytest.raises(ValueError, match="has mounts, and the sandbox shows nothing of the host's"):
        maker.make(mounts=[{"type": "bind", "source": "/", "target": "/host"}])
    with pytest.raises(ValueError, match="sandbox does not support automatic host mounts"):
        maker.make(auto_mounting=True)


async def test_options_are_checked(maker: Maker) -> None:
    with pytest.raises(ValueError, match="network"):
        maker.make(network="all")
    with pytest.raises(ValueError, match="Unknown option 'nettwork'"):
        maker.make(nettwork="host")


async def test_directories_for_harbors_logs_are_there_without_a_command(maker: Maker) -> None:
    environment = await maker.start()
    result = await environment.exec("stat -c %a /logs/agent /tests /solution")
    assert result.stdout == "777\n755\n755\n"


async def test_environment_in_harbors_order(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ON_HOST", "host")
    maker.dockerfile("ENV A=docker B=docker C=docker D=docker")
    environment = await maker.start(
        {"env": {"B": "task", "C": "task", "D": "${ON_HOST}"}}, persistent_env={"C": "trial"}
    )
    with environment.scoped_exec_env({"E": "scope"}):
        result = await environment.exec("echo $A $B $C $D $E $F $ON_HOST.", env={"E": "exec", "F": "exec"})
    assert result.stdout == "docker task trial host scope exec .\n"


async def test_working_directories(maker: Maker) -> None:
    maker.dockerfile("WORKDIR /srv")
    environment = await maker.start({"workdir": "/data"})
    assert (await environment.exec("pwd")).stdout == "/data\n"
    assert (await environment.exec("pwd", cwd="/tmp")).stdout == "/tmp\n"
    await environment.exec("mkdir deep")
    assert (await environment.exec("pwd", cwd="deep")).stdout == "/data/deep\n"


async def test_root_is_the_only_user(maker: Maker) -> None:
    environment = await maker.start()
    assert (await environment.exec("id -un", user="root")).stdout == "root\n"
    assert (await environment.exec("id -un", user=0)).stdout == "root\n"
    with environment.with_default_user("agent"), pytest.raises(ValueError, match="runs as user 'agent'"):
        await environment.exec("true")


async def test_a_timeout_reads_as_harbors_and_keeps_what_was_said(maker: Maker) -> None:
    environment = await maker.start()
    with pytest.raises(RuntimeError, match=r"^Command timed out after 1 seconds$") as late:
        await environment.exec("echo so far; sleep 300", timeout_sec=1)
    assert isinstance(late.value, CommandTimeout)
    assert late.value.stdout == "so far\n"


async def test_output_is_streamed_while_the_command_runs(maker: Maker) -> None:
    environment = await maker.start()
    heard: list[tuple[str, str]] = []

    async def callback(text: str, stream: str) -> None:
        heard.append((text, stream))
        if "one" in text:
            await environment.exec("touch /app/go")

    with environment.scoped_output_callback(callback):
        result = await environment.exec("echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2")
    assert ("one\n", "stdout") in heard
    assert ("two\n", "stderr") in heard
    assert result.stdout == "one\n"


async def test_files_go_in_and_out(maker: Maker, tmp_path: Path) -> None:
    environment = await maker.start()
    await environment.upload_dir(maker.directory.parent / "environment", "/tests")
    (tmp_path / "f").write_text("f\n")
    await environment.upload_file(tmp_path / "f", "deep/f")
    assert await environment.is_file("/app/deep/f")
    assert await environment.is_dir("/app/deep")
    assert not await environment.is_dir("/app/deep/f")
    await environment.exec("echo g > deep/g; ln -s /etc/passwd deep/out")
    await environment.download_dir("/app/deep", tmp_path / "back")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["f", "g"]
    await environment.download_file("deep/g", tmp_path / "g")
    assert (tmp_path / "g").read_text() == "g\n"
    await environment.empty_dirs(["/app/deep"])
    assert (await environment.exec("ls deep")).stdout is None


async def test_links_left_behind_are_in_the_log(maker: Maker, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    environment = await maker.start()
    await environment.exec("ln -s /etc/passwd out")
    await environment.download_dir("/app", tmp_path / "back")
    assert "not brought out of the sandbox: ./out" in caplog.text


async def test_network_is_none_unless_asked_for_and_allowed(maker: Maker) -> None:
    async def interfaces(network: str, mode: str) -> bool:
        environment = await maker.start(network=network, network_policy=NetworkPolicy(network_mode=mode))
        result = await environment.exec("readlink /proc/self/ns/net")
        return result.stdout is not None and result.stdout.strip() == str(Path("/proc/self/ns/net").readlink())

    assert not await interfaces("none", "public")
    assert not await interfaces("host", "no-network")
    assert await interfaces("host", "public")


async def test_a_sandbox_that_does_not_start_is_the_infrastructures_fault(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "tools", lambda: Tools(Path("/usr/bin/false"), "", "", drop=False))
    with pytest.raises(HealthcheckError, match="the sandbox did not start: bubblewrap ended with code 1"):
        await maker.start()


async def test_before_its_start_nothing_runs_and_stop_is_harmless(maker: Maker) -> None:
    environment = maker.make()
    await environment.stop(delete=True)
    with pytest.raises(SandboxLost, match="the sandbox was never started"):
        await environment.exec("true")


async def test_the_kernels_delay_does_not_hide_how_a_trial_ended(
    maker: Maker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = await maker.start()

    async def late() -> None:
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(environment.sandbox, "stop", late)
        await environment.stop(delete=True)
    assert "the kernel hasn't ended the sandbox's processes" in caplog.text


def _task(root: Path, name: str, *, solution: str, test: str) -> TaskConfig:
    task = root / name
    for part in ("environment", "solution", "tests"):
        (task / part).mkdir(parents=True)
    (task / "task.toml").write_text('schema_version = "1.4"\n[agent]\ntimeout_sec = 60\n')
    (task / "instruction.md").write_text("Do it.\n")
    (task / "environment" / "Dockerfile").write_text(
        "FROM debian\nWORKDIR /app\nCOPY seed.txt .\nRUN cp seed.txt run.txt\n"
    )
    (task / "environment" / "seed.txt").write_text("seed\n")
    (task / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{solution}\n")
    (task / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    return TaskConfig(path=task)


async def _run(jobs: Path, agent: str, *tasks: TaskConfig) -> Any:
    config = JobConfig(
        job_name="job",
        jobs_dir=jobs,
        quiet=True,
        n_attempts=2,
        n_concurrent_trials=4,
        agents=[AgentConfig(name=agent)],
        environment=EnvironmentConfig(import_path=IMPORT_PATH),
        tasks=list(tasks),
    )
    EnvironmentFactory.run_preflight(type=None, import_path=IMPORT_PATH, kwargs={})
    return await (await Job.create(config)).run()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:harbor")
async def test_a_real_job_is_graded_rightly(tmp_path: Path) -> None:
    tasks = [
        _task(
            tmp_path,
            "right",
            solution="cat seed.txt run.txt > out.txt; mkdir -p /logs/artifacts; cp out.txt /logs/artifacts",
            test="[ $(wc -l < out.txt) = 2 ]; echo $((1 - $?)) > /logs/verifier/reward.txt",
        ),
        _task(tmp_path, "wrong", solution="true", test="echo 0 > /logs/verifier/reward.txt"),
    ]
    result = await _run(tmp_path / "jobs", "oracle", *tasks)
    rewards = {(trial.task_name, trial.verifier_result.rewards["reward"]) for trial in result.trial_results}
    assert rewards == {("right", 1.0), ("wrong", 0.0)}
    assert not [trial.exception_info for trial in result.trial_results if trial.exception_info]
    artifacts = list((tmp_path / "jobs").rglob("artifacts/logs/artifacts/out.txt"))
    assert [file.read_text() for file in artifacts] == ["seed\nseed\n"] * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning:harbor")
async def test_a_cancelled_job_leaves_no_process(tmp_path: Path) -> None:
    task = _task(tmp_path, "long", solution="setsid sleep 303 & touch /app/x; sleep 304", test="true")
    running = asyncio.create_task(_run(tmp_path / "jobs", "oracle", task))

    def sleepers() -> int:
        return sum(_sleeps(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit())

    async with asyncio.timeout(60):
        while sleepers() < 4:  # noqa: ASYNC110 - processes tell nobody that they are there
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert sleepers() == 0


def _sleeps(process: Path) -> bool:
    try:
        return (process / "cmdline").read_bytes() in (b"sleep\x00303\x00", b"sleep\x00304\x00")
    except (FileNotFoundError, ProcessLookupError):
        return False
