"""Harbor's environment `sandbox`: one trial in one bubblewrap sandbox, started in milliseconds, without Docker."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult, HealthcheckError, SandboxBuildFailedError
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.options import EnvironmentOptions
from pydantic import Field

from bench.errors import MachineLacks
from bench.sandbox import command, context, definition, probe, transfer
from bench.sandbox.capture import Capture, Listener
from bench.sandbox.command import Command, CommandTimeout
from bench.sandbox.context import Member
from bench.sandbox.definition import Network
from bench.sandbox.dockerfile import Run
from bench.sandbox.instance import Instance, SandboxLost
from bench.sandbox.launch import LaunchError
from bench.sandbox.layout import ENVIRON, Layout


class SandboxOptions(EnvironmentOptions):  # type: ignore[misc]  # Harbor ships no types
    """The environment's kwargs."""

    network: Network = Field(
        default="none",
        description="none: only the sandbox's own loopback. host: the host's network, unless the task asks for none.",
    )


class SandboxUnavailable(MachineLacks, ValueError):
    """This machine can't make sandboxes (exit 3). A ValueError too: Harbor's command line prints those in a line."""


class SandboxEnvironment(BaseEnvironment):  # type: ignore[misc]  # Harbor ships no types
    """A sandbox for one trial. Root is the only user; the userland is the host's; nothing limits memory or CPU."""

    options_model = SandboxOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sandbox: Instance | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    @override
    def type() -> str:
        return "sandbox"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """No limit can be kept, so Harbor refuses a job that insists on one; a task's wishes are passed over."""
        return EnvironmentResourceCapabilities(fractional_cpus=True)

    @classmethod
    @override
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        super().preflight(kwargs)
        if found := probe.problem():
            raise SandboxUnavailable([found])

    @override
    def _validate_definition(self) -> None:
        found = definition.refusals(self.environment_dir, self.task_env_config.model_dump(mode="json"))
        if self._host_mounts:
            found.append("has mounts, and the sandbox shows nothing of the host's")
        if found:
            raise ValueError(f"{self.environment_name}: {'; '.join(found)}; use another environment, such as -e docker")
        self._plan = definition.read(self.environment_dir)
        self._workdir = posixpath.join(self._plan.workdir, self.task_env_config.workdir or "")

    # Lifecycle

    @override
    async def start(self, force_build: bool) -> None:
        """Bring it up and do what the Dockerfile says: nothing is kept from one trial to the next."""
        assert isinstance(self.options, SandboxOptions)
        layout = Layout(
            network=self.options.network == "host" and not self._network_disabled,
            directories=(*context.leading_directories(self._plan), self._workdir),
            shared=tuple(self._mount_targets(writable_only=True)),
        )
        try:
            self._sandbox = await Instance.start(probe.tools(), layout)
        except LaunchError as error:
            # By this name Harbor neither grades nor scores the trial (HARBOR.md section 7.5).
            raise HealthcheckError(f"the sandbox did not start: {error}") from error
        try:
            await self._build(self._sandbox)
        except BaseException:
            await self._sandbox.stop()
            raise

    async def _build(self, sandbox: Instance) -> None:
        for layer in context.layers(self._plan, self.environment_dir, sandbox.layout):
            if isinstance(layer, Run):
                line = Command(
                    bash=f"exec /bin/sh -c {shlex.quote(layer.command)}",
                    cwd=layer.cwd,
                    environ={**ENVIRON, **layer.environ},
                )
                code, out, errors = await command.output(sandbox, line)
                if code:
                    said = (errors or out).strip()
                    raise SandboxBuildFailedError(f"Dockerfile line {layer.line}: RUN ended with code {code}: {said}")
            else:
                await transfer.upload(sandbox, layer)

    @override
    async def stop(self, delete: bool) -> None:
        if self._sandbox is None:
            return
        try:
            await self._sandbox.stop()
        except TimeoutError:
            # Said, not raised: it must not hide how the trial itself ended.
            self.logger.warning("the kernel hasn't ended the sandbox's processes; process 1 is %s", self._sandbox.pid)

    @property
    def sandbox(self) -> Instance:
        """The running sandbox. Raises SandboxLost where it never started."""
        if self._sandbox is None:
            raise SandboxLost("the sandbox was never started")
        return self._sandbox

    # Commands

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command line with bash, as root. Processes that it leaves in the background live until `stop`.

        Raises CommandTimeout, SandboxLost, and ValueError for any other user.
        """
        if refused := definition.user_refusal([self._resolve_user(user)]):
            raise ValueError(refused)
        line = Command(
            bash=command,
            cwd=posixpath.join(self._workdir, cwd or ""),
            environ={**ENVIRON, **self._plan.environ, **(self._merge_env(env) or {})},
            timeout_s=timeout_sec,
        )
        return await self._run(line)

    async def _run(self, line: Command) -> ExecResult:
        callback = self._output_callback()
        listener = Listener(callback) if callback else None
        out = Capture(listener=listener.hears("stdout") if listener else None)
        err = Capture(listener=listener.hears("stderr") if listener else None)
        try:
            code = await command.run(self.sandbox, line, out.feed, err.feed)
        except CommandTimeout as error:
            error.stdout, error.stderr = out.text(), err.text()
            raise
        finally:
            if listener:
                await listener.close()
        return ExecResult(stdout=out.text() or None, stderr=err.text() or None, return_code=code)

    # Files

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await transfer.upload(self.sandbox, [Member(Path(source_path), self._inside(target_path))])

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        members = await asyncio.to_thread(context.contents, Path(source_dir), self._inside(target_dir))
        await transfer.upload(self.sandbox, members)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await transfer.download_file(self.sandbox, self._inside(source_path), Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        left = await transfer.download_directory(self.sandbox, self._inside(source_dir), Path(target_dir))
        for entry in left:
            self.logger.warning("not brought out of the sandbox: %s", entry)

    def _inside(self, path: str) -> str:
        return posixpath.join(self._workdir, path)
