"""The team of a trial: of whichever harness its condition names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from bench.gateway.protocol import Grant
from bench.trial.provision import Cast, Room
from bench.trial.report import Report
from bench.trial.stage import Stage
from bench.trial.team import Team
from bench.trial.timings import Timings
from bench.trial.work import TeamAtWork

if TYPE_CHECKING:
    from bench.harness.buzz.crew import Crew


def bringing(stage: Stage, cast: Cast, issuing: Awaitable[Mapping[str, Grant]]) -> asyncio.Task[Crew] | None:
    """What has to come into the environment before the team can start, on its way; None for one on the host."""
    if stage.session.condition.harnesses == ("builtin",):
        return None
    from bench.trial.realkit import bring

    return asyncio.create_task(bring(stage, cast, issuing))


def seated(
    stage: Stage,
    room: Room,
    grants: Mapping[str, Grant],
    brought: asyncio.Task[Crew] | None,
    report: Report,
    timings: Timings,
) -> TeamAtWork:
    """The team in its room, about to start."""
    if brought is None:
        return Team(stage, room, grants, report.meter)
    from bench.trial.realteam import RealTeam

    return RealTeam(stage, room, grants, brought, report.meter, timings)
