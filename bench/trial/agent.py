"""Harbor's agent: `bench.trial.agent:TeamAgent` stands for a whole team (row R1).

Harbor makes one for each trial, and runs it once, or once for each step of the task. What the team did is judged by
the task's verifier, so `run` returns normally for every end of the team's own doing. Faults of the infrastructure are
raised as HealthcheckError: Harbor neither grades nor scores those (HARBOR.md 7.5).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment, HealthcheckError
from harbor.models.agent.context import AgentContext

from bench import __version__, settings
from bench.docker import marks
from bench.errors import InvalidInput
from bench.harness import taskskills
from bench.stack.paths import make_door_dir
from bench.trial import closing, journal, provisioner, steps, taskfile
from bench.trial import session as sessions
from bench.trial.deadline import task_timeout_s, work_limit
from bench.trial.ends import End, of_error
from bench.trial.environments import Watched, bound_stop, check_usable
from bench.trial.play import Act, Play, Task
from bench.trial.report import Report, unstarted
from bench.trial.session import Session
from bench.trial.stage import Stage
from bench.trial.terms import Terms, api_key
from bench.trial.timings import Timings
from bench.trial.tokens import Script
from bench.useranswers import Answer
from bench.useranswers import load as load_answers


class TeamAgent(BaseAgent):  # type: ignore[misc]  # Harbor ships no types
    """A team of a condition. Its options are Terms (ARCHITECTURE, "Harbor")."""

    capabilities = AgentCapabilities(atif=True, skills=True)

    def __init__(
        self,
        *args: Any,
        manifest: str = "",
        condition_sha256: str = "",
        endpoints: str | None = None,
        rehearsal: str | None = None,
        record: bool = False,
        replay: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._terms = Terms.of(
            {
                "manifest": manifest,
                "condition_sha256": condition_sha256,
                "endpoints": endpoints,
                "rehearsal": rehearsal,
                "record": record,
                "replay": replay,
            }
        )
        self._programs: dict[str, Any] | None = None
        self._runs = 0
        self._play: tuple[Play, Watched] | None = None

    @staticmethod
    def name() -> str:
        return "buzzbench-team"

    def version(self) -> str:
        return __version__

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None, env: Mapping[str, str] | None = None) -> None:
        """Check condition, endpoints, keys and stack before any trial is queued. Raises InvalidInput, MachineLacks."""
        super().preflight(kwargs, env)
        terms = Terms.of(kwargs or {})
        for endpoint in terms.team_endpoints(terms.condition()).values():
            api_key(endpoint)
        provisioner.check_stack()
        if terms.condition().is_real:
            # What is mounted has to be there before the first container starts.
            make_door_dir(settings.load().state_dir)
        if provisioner.given_run_dir() is None:
            marks.mark_this_process(settings.load().state_dir)

    async def set_web_tools_disabled(self, disabled: bool, environment: BaseEnvironment) -> None:
        """The builtin tools have no access to the web of their own, so there is nothing to disable."""

    async def setup(self, environment: BaseEnvironment) -> None:
        """Bring in what real agents run; those on the host need nothing. Raises HealthcheckError."""
        bound_stop(environment)
        try:
            if self._terms.condition().is_real:
                self._programs = await self._install(environment)
        except Exception as error:
            raise HealthcheckError(of_error(error).message) from error

    async def _install(self, environment: BaseEnvironment) -> dict[str, Any]:
        """What was brought in, for the records."""
        from bench.harness.buzz import programs
        from bench.xbuild.artifacts import provenance

        job = self.logs_dir.parent.parent.name
        directory = provisioner.load_provisioner(provisioner.run_dir_of(job)).agent_programs
        found = programs.load(Path(directory), forwarder=environment.type() != "sandbox")
        await programs.install(environment, found)
        return provenance(found.directory, found.sha256)

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Play the trial, or the next step of its task. Raises HealthcheckError where it can't be judged."""
        timings = Timings()
        job_dir, task_dir = self.logs_dir.parent.parent, environment.environment_dir.parent
        if not self._runs and not provisioner.given_run_dir():
            # In a job of ours the parent's hook has written it, before Harbor started the environment.
            path, trial = job_dir / journal.FILE_NAME, self.logs_dir.parent.name
            journal.attempt_started(path, trial=trial, task=taskfile.name(task_dir), at=datetime.now(UTC))
        try:
            act = self._act(instruction, task_dir)
            if self._play is None:
                self._play = await self._open(environment, task_dir, timings)
        except Exception as error:
            end = of_error(error)
            context.metadata = unstarted(self._terms, end, timings)
            raise HealthcheckError(end.message) from error
        play, watched = self._play
        session = play.session
        report = Report(context, session.condition, self._terms, timings, act.step, play.used)
        if self._programs:
            report.programs(self._programs)
        end = await play.perform(act, report, timings)
        if watched.gone and end.fault is None:
            end = of_error(watched.gone)
            report.end(end)
            await play.close()
        if end.fault is not None:
            await self._after_fault(end, job_dir, session)
            raise HealthcheckError(end.message)

    async def _open(self, environment: BaseEnvironment, task_dir: Path, timings: Timings) -> tuple[Play, Watched]:
        """The trial's play, before its first act. Raises what stands in its way."""
        script = _script(task_dir, self._terms.rehearsal) if self._terms.rehearsal else None
        task = Task(taskfile.name(task_dir), script, _answers(task_dir))
        if not self._terms.condition().is_real:
            with timings.step("environment"):
                await check_usable(environment)
        with timings.step("session"):
            session = await sessions.of(self.logs_dir.parent.parent, self._terms)
        watched, has_steps = Watched(environment), bool(steps.of_task(taskfile.definition(task_dir)))
        skills = taskskills.told(await taskskills.read(watched, self.skills_dir)) if self.skills_dir else ""
        play = Play(Stage(session, watched, self.logs_dir, self.version(), self.logger, has_steps, skills), task)
        if has_steps:
            closing.with_trial(play.close)
        return play, watched

    async def _after_fault(self, end: End, job_dir: Path, session: Session) -> None:
        """A lease whose gateway is gone is of no use to the next trial: that one opens another."""
        if end.fault and end.fault.kind == "gateway_lost":
            await sessions.discard(job_dir, session)

    def _act(self, instruction: str, task_dir: Path) -> Act:
        """What is asked in this run, with the time that there is for it. Raises InvalidInput."""
        definition = taskfile.definition(task_dir)
        config = json.loads((self.logs_dir.parent / "config.json").read_text(encoding="utf-8"))
        index, self._runs = self._runs, self._runs + 1
        limit = work_limit(
            trial_budget_s=self._terms.condition().timeout_seconds,
            task_timeout_s=task_timeout_s(config, definition, index),
        )
        listed = steps.of_task(definition)
        return Act(instruction, limit, listed[index] if listed else None)


@functools.cache
def _answers(task_dir: Path) -> tuple[Answer, ...]:
    """What the task's user answers. Raises InvalidInput."""
    return load_answers(task_dir)


@functools.cache
def _script(task_dir: Path, name: str) -> Script:
    """The task's script of that name. Raises InvalidInput where there is none, or it is wrong."""
    from bench.gateway.script import load_file

    path = task_dir / "rehearsal" / f"{name}.yaml"
    if not path.exists():
        raise InvalidInput.of(str(path), "this task has no such script", "write it, or leave the task out")
    return load_file(path).wire
