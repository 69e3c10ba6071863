"""The team of a trial: of whichever harness its condition names."""

from __future__ import annotations

from collections.abc import Mapping

from bench.gateway.protocol import Grant
from bench.trial.provision import Room
from bench.trial.report import Report
from bench.trial.stage import Stage
from bench.trial.team import Team
from bench.trial.timings import Timings
from bench.trial.work import TeamAtWork


def seated(stage: Stage, room: Room, grants: Mapping[str, Grant], report: Report, timings: Timings) -> TeamAtWork:
    """The team in its room, about to start."""
    if stage.session.condition.harnesses == ("builtin",):
        workdir = stage.environment.task_env_config.workdir
        return Team(stage.session, room, grants, stage.environment, workdir, report.meter, stage.logger)
    from bench.trial.realteam import RealTeam

    return RealTeam(stage, room, grants, report.meter, timings)
