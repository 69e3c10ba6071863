"""A team's kit: made of who plays and of its tokens, and brought in while the room is still being prepared."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Mapping
from pathlib import Path

from bench.gateway.protocol import Grant
from bench.harness.buzz import environ, kit, prompt
from bench.harness.buzz.crew import Crew
from bench.harness.buzz.fixed import PROGRAMS, TEAM
from bench.trial import reach
from bench.trial.provision import USER, Cast, Seat
from bench.trial.stage import Stage


def crew_in(stage: Stage) -> Crew:
    """The processes in the trial's environment, there or not."""
    return Crew(stage.environment, stage.environment.default_user)


async def bring(stage: Stage, cast: Cast, issuing: Awaitable[Mapping[str, Grant]]) -> Crew:
    """Bring the kit in, and return whom it is for. Raises GatewayError, and what the environment raises."""
    routes = await reach.routes(stage.session, stage.environment)
    grants = await issuing
    crew = crew_in(stage)
    with tempfile.TemporaryDirectory(prefix="bzb-kit-") as home:
        directory = Path(home)
        await asyncio.to_thread(_write, directory, stage, cast, grants, routes)
        await crew.bring(directory)
    return crew


def _write(directory: Path, stage: Stage, cast: Cast, grants: Mapping[str, Grant], routes: kit.Routes) -> None:
    agents = {seat.agent.name: _files(seat, stage, cast, grants[seat.agent.name], routes) for seat in cast.seats}
    logs = kit.OWN_LOGS if stage.has_steps else kit.LOGS
    kit.write(directory, kit.team_file(routes, cast.channel, PROGRAMS, logs=logs), agents)


def _files(seat: Seat, stage: Stage, cast: Cast, grant: Grant, routes: kit.Routes) -> tuple[str, str]:
    agent, session = seat.agent, stage.session
    endpoint = session.endpoints[agent.endpoint]
    env = environ.variables(
        agent,
        environ.Login(seat.key.secret, seat.auth_tag, grant.token),
        environ.Place(routes.relay_url, TEAM, PROGRAMS),
        dialect=endpoint.dialect,
    )
    told = prompt.system(
        agent,
        session.condition.agents,
        cast.main,
        cast.people,
        user=USER,
        workdir=stage.environment.task_env_config.workdir,
        task_skills=stage.skills,
    )
    return environ.shell_file(env, endpoint.dialect), told
