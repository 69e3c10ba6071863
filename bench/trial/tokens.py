"""A team's tokens for the gateway: one for every agent, worth nothing elsewhere and dead when the trial ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from bench.gateway.protocol import Context, Grant, Issue
from bench.trial.provision import USER, Cast, Seat
from bench.trial.session import Session

type Script = Mapping[str, Any]


async def issue_tokens(session: Session, cast: Cast, script: Script | None) -> dict[str, Grant]:
    """A token of the gateway for every agent. Raises GatewayError."""
    context = Context(cast.channel, USER, cast.people)

    async def issue(seat: Seat) -> Grant:
        agent = seat.agent
        return await session.lease.issue(
            Issue(
                trial=cast.trial,
                task=cast.task,
                agent=agent.name,
                member=agent.member,
                endpoint=agent.endpoint,
                models=(agent.model,),
                limits=agent.limits,
                trial_limits=session.condition.limits,
                script=script,
                context=context,
            )
        )

    grants = await asyncio.gather(*(issue(seat) for seat in cast.seats))
    return {seat.agent.name: grant for seat, grant in zip(cast.seats, grants, strict=True)}
