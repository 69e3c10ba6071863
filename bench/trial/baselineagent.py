"""Harbor's agent `bench.trial.baselineagent:BaselineAgent`: one of Harbor's own in a team's place, through the gateway.

    BaselineAgent(agent="terminus-2", …)  ─ setup ─►  a token of the trial  ─►  Harbor's Terminus2(base_url, key, …)

The agent of Harbor's is made once its trial has a token: that is all of a key that it gets. Its calls are metered,
priced and capped like a team's; its time is what a team would have.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from harbor.agents.base import BaseAgent
from harbor.agents.factory import AgentFactory
from harbor.environments.base import BaseEnvironment, HealthcheckError
from harbor.models.agent.context import AgentContext
from harbor.models.agent.name import AgentName
from harbor.models.trial.config import AgentConfig
from harbor.models.trial.result import AgentInfo

from bench import __version__, settings
from bench.baseline import MEMBER, WAYS
from bench.docker import marks
from bench.gateway.client import GatewayError
from bench.gateway.protocol import AgentUsage, Context, Grant, Issue, Notice
from bench.trial import closing, journal, provisioner, reach, steps, taskfile
from bench.trial import session as sessions
from bench.trial.deadline import CALL_GRACE_S, WIND_DOWN_S, Deadline, WorkLimit, task_timeout_s, work_limit
from bench.trial.ends import End, fault, of_error, of_notice
from bench.trial.environments import bound_stop
from bench.trial.report import Report, unstarted
from bench.trial.session import Session
from bench.trial.terms import BaselineTerms, api_key
from bench.trial.timings import Timings

KEY = "BUZZBENCH_GATEWAY_TOKEN"
"""The variable that Harbor is told to take the key from; it is in no process but in what Harbor makes of it."""

NOTICE_S = 0.5
"""An agent that gives up on a refusal may be quicker than the gateway's notice of it."""


class BaselineAgent(BaseAgent):  # type: ignore[misc]  # Harbor ships no types
    """An agent of Harbor's. Its options are BaselineTerms."""

    def __init__(
        self,
        *args: Any,
        agent: str = "",
        model: str = "",
        options: Mapping[str, Any] | None = None,
        manifest: str = "",
        condition_sha256: str = "",
        endpoints: str | None = None,
        record: bool = False,
        replay: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._terms = BaselineTerms.of(
            {
                "agent": agent,
                "model": model,
                "options": options,
                "manifest": manifest,
                "condition_sha256": condition_sha256,
                "endpoints": endpoints,
                "record": record,
                "replay": replay,
            }
        )
        # What a task brings (skills, MCP servers) goes to the agent, where it takes such.
        self._brought = {name: kwargs[name] for name in ("mcp_servers", "skills_dir") if name in kwargs}
        own = AgentFactory.get_agent_class(AgentName(agent)).capabilities
        self.capabilities = own.model_copy(
            update={"resume": False, "load_native_trajectory": False, "load_atif_trajectory": False}
        )
        self._inner: BaseAgent | None = None
        self._session: Session | None = None
        self._resources = AsyncExitStack()
        self._runs, self._worked_s = 0, 0.0
        self._used: Mapping[str, AgentUsage] = {}
        self._told = AgentContext()

    @staticmethod
    def name() -> str:
        return "buzzbench-baseline"

    def version(self) -> str:
        return __version__

    def to_agent_info(self) -> AgentInfo:
        """What Harbor's records call it: the agent that plays."""
        if self._inner is None:
            return AgentInfo(name=self._terms.agent, version="unknown")
        return self._inner.to_agent_info()

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None, env: Mapping[str, str] | None = None) -> None:
        """Check condition, endpoint, key, options and stack before any trial is queued.

        Raises InvalidInput, MachineLacks, and Harbor's ValueError for an option that the agent doesn't have.
        """
        super().preflight(kwargs, env)
        terms = BaselineTerms.of(kwargs or {})
        for endpoint in terms.team_endpoints(terms.condition()).values():
            api_key(endpoint)
        AgentFactory.get_agent_class(AgentName(terms.agent)).parse_options(dict(terms.options), env)
        provisioner.check_stack()
        if provisioner.given_run_dir() is None:
            marks.mark_this_process(settings.load().state_dir)

    async def set_web_tools_disabled(self, disabled: bool, environment: BaseEnvironment) -> None:
        """As the agent has it."""
        if self._inner is not None:
            await self._inner.set_web_tools_disabled(disabled, environment)

    async def setup(self, environment: BaseEnvironment) -> None:
        """Make the agent, with a token of this trial, and set it up. Raises HealthcheckError, and what that raises."""
        bound_stop(environment)
        closing.with_trial(self._resources.aclose)
        try:
            self._inner = await self._make(environment)
        except Exception as error:
            raise HealthcheckError(of_error(error).message) from error
        await self._inner.setup(environment)

    async def _make(self, environment: BaseEnvironment) -> BaseAgent:
        session = self._session = await sessions.of(self._job_dir, self._terms)
        alone = session.condition.soloist
        assert alone is not None
        self._resources.push_async_callback(self._settle)
        way, dialect = WAYS[alone.agent], session.endpoints[alone.endpoint].dialect
        grant = await self._issue(session, environment)
        config = AgentConfig(
            name=alone.agent,
            # Harbor strips the provider, and is told by it which client's format is meant.
            model_name=f"{dialect}/{alone.model}",
            base_url=await reach.gateway_url(session, environment, inside=way.installed),
            model_api_key_name=KEY,
            model_api_format=way.formats[dialect],
            kwargs=dict(alone.options),
            env={KEY: grant.token},
        )
        made = AgentFactory.create_agent_from_config(config, self.logs_dir, logger=self.logger, **self._brought)
        made.session_id, made.context_id = self.session_id, self.context_id
        return made

    async def _issue(self, session: Session, environment: BaseEnvironment) -> Grant:
        alone = session.condition.soloist
        assert alone is not None
        task_dir = environment.environment_dir.parent
        return await session.lease.issue(
            Issue(
                trial=self._trial,
                task=taskfile.name(task_dir),
                agent=MEMBER,
                member=MEMBER,
                endpoint=alone.endpoint,
                models=(alone.model,),
                trial_limits=session.condition.limits,
                # No channel of the relay's: on a cassette it tells this run of the trial from Harbor's retry of it.
                context=Context(channel=uuid4().hex, user="user", members={}),
            )
        )

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Let it play, for the whole task or one step of it. Raises HealthcheckError where that can't be judged."""
        timings, self._told = Timings(), AgentContext()
        task_dir = environment.environment_dir.parent
        if not self._runs and not provisioner.given_run_dir():
            path = self._job_dir / journal.FILE_NAME
            journal.attempt_started(path, trial=self._trial, task=taskfile.name(task_dir), at=datetime.now(UTC))
        try:
            limit, step = self._limit(task_dir)
        except Exception as error:
            end = of_error(error)
            self._told.metadata = unstarted(self._terms, end, timings)
            raise HealthcheckError(end.message) from error
        session = self._session
        assert session is not None
        report = Report(self._told, session.condition, self._terms, timings, step, self._used)
        used_before, deadline = self._used, Deadline.start(limit, time.monotonic())
        try:
            if deadline.passed:
                # Earlier steps have used up the trial's time.
                end = End("deadline", deadline.reason())
            else:
                async with session.lease.notices(self._trial) as notices:
                    if step is not None:
                        await session.lease.step(self._trial, step.name)
                    with timings.step("post"):
                        playing = asyncio.create_task(self._play(instruction, environment))
                    with timings.step("work"):
                        end = await _first_end(playing, notices, deadline)
        finally:
            self._worked_s += deadline.worked_s
            held = await self._book(report, is_last=step is None or step.is_last)
        if held and end.ended == "deadline":
            end = fault("upstream_failed", f"model calls still waited for an upstream in trouble when {end.reason}")
        report.end(end)
        if self._used is not used_before:
            report.booked(self._used, used_before)
        if end.fault is not None:
            if end.fault.kind == "gateway_lost":
                await sessions.discard(self._job_dir, session)
            raise HealthcheckError(end.message)
        if end.ended == "agents_died":
            # Harbor knows what its own agents' exceptions mean.
            playing.result()

    async def _play(self, instruction: str, environment: BaseEnvironment) -> None:
        assert self._inner is not None
        await self._inner.run(instruction, environment, AgentContext())

    def populate_context_post_run(self, context: AgentContext) -> None:
        """The gateway's figures and our own facts, and the trajectory that the agent makes of its logs."""
        for name in ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd", "metadata"):
            setattr(context, name, getattr(self._told, name))
        if self._inner is not None:
            self._inner.populate_context_post_run(AgentContext())

    async def _book(self, report: Report, *, is_last: bool) -> int:
        """Let no further call out, and book what was used; how many calls waited for an upstream in trouble."""
        session, before = self._session, self._used
        assert session is not None
        try:
            if is_last:
                self._used = await session.lease.revoke(self._trial, grace_s=CALL_GRACE_S)
            else:
                self._used = await session.lease.rest(self._trial, grace_s=CALL_GRACE_S, cut=True)
        except GatewayError as error:
            self.logger.warning("usage of %s is unknown: %s", self._trial, error)
            return 0
        report.meter.settle(self._used)
        return sum(used.held_calls for used in self._used.values()) - sum(used.held_calls for used in before.values())

    async def _settle(self) -> None:
        """Kill the token, whatever became of the trial."""
        assert self._session is not None
        try:
            await self._session.lease.revoke(self._trial)
        except GatewayError as error:
            self.logger.warning("the token of %s: %s", self._trial, error)

    def _limit(self, task_dir: Path) -> tuple[WorkLimit, steps.TaskStep | None]:
        """The time for this run, and the step that it is for. Raises InvalidInput."""
        definition = taskfile.definition(task_dir)
        config = json.loads((self.logs_dir.parent / "config.json").read_text(encoding="utf-8"))
        index, self._runs = self._runs, self._runs + 1
        limit = work_limit(
            trial_budget_s=self._terms.condition().timeout_seconds,
            task_timeout_s=task_timeout_s(config, definition, index),
            worked_s=self._worked_s,
        )
        listed = steps.of_task(definition)
        return limit, listed[index] if listed else None

    @property
    def _job_dir(self) -> Path:
        return Path(self.logs_dir.parent.parent)

    @property
    def _trial(self) -> str:
        return str(self.logs_dir.parent.name)


async def _first_end(playing: asyncio.Task[None], notices: AsyncIterator[Notice], deadline: Deadline) -> End:
    """The end of the agent's run, of the gateway's patience, or of the time. The agent is told to stop then."""
    trouble = ""

    async def fatal() -> End:
        nonlocal trouble
        async for notice in notices:
            if (end := of_notice(notice)) is not None:
                return end
            if notice.kind == "upstream_failed":
                trouble = notice.reason
        return fault("gateway_lost", "the gateway's notices ended")

    watching = asyncio.create_task(fatal())
    try:
        left_s = None if math.isinf(deadline.left_s) else deadline.left_s
        await asyncio.wait({playing, watching}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        error = playing.exception() if playing.done() else None
        if error is not None:
            await asyncio.wait({watching}, timeout=NOTICE_S)
        if watching.done():
            return watching.result()
        if not playing.done():
            return End("deadline", deadline.reason())
        if error is None:
            return End("done")
        if trouble:
            return fault("upstream_failed", trouble)
        return End("agents_died", " ".join(f"{type(error).__name__}: {error}".split()))
    finally:
        watching.cancel()
        playing.cancel()
        await asyncio.wait({playing}, timeout=WIND_DOWN_S)
