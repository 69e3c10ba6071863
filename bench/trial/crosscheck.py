"""Asks the relay, as the owner, what a trial's agents said that they used, and holds it against their receipts."""

from __future__ import annotations

from collections.abc import Sequence

from bench.channel import RelayClient
from bench.trial import selfreport
from bench.trial.calls import Call
from bench.trial.provision import Cast
from bench.trial.selfreport import Check
from bench.trial.session import Session

PATIENCE_S = 5.0


async def of_trial(session: Session, cast: Cast, calls: Sequence[Call], stopped_at: float) -> Check:
    """The cross-check of a trial's agents, which were stopped then (Unix seconds). Raises RelayRefused or RelayGone."""
    people = {seat.key.public: seat.agent.name for seat in cast.seats}
    url = session.provisioner.relay_ws_url
    owner = RelayClient(url, session.owner, session=session.http, gone_after_s=PATIENCE_S)
    events = await owner.query([selfreport.wanted(session.owner.public, people)])
    said = selfreport.read(events, session.owner, people)
    counted = {
        name: selfreport.metered([call for call in calls if call.agent == name], stopped_at) for name in people.values()
    }
    return selfreport.compare(said, counted)
