"""A stack that is hurt while a team works: what is survived is a label, what isn't has no score."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from harbor.environments.base import HealthcheckError

from bench.keys import State
from bench.nostr import Key
from bench.trial import provisioner
from tests.trial.conftest import GOOD
from tests.trial.services import appears

WAITS = GOOD.replace('- run: "cat part1', '- run: "touch waiting; until [ -e go ]; do sleep 0.02; done; cat part1')


async def waiting(trial: Any) -> asyncio.Task[None]:
    """The trial under way, its orchestrator inside a command. Raises what ended the trial before."""
    running = asyncio.create_task(trial.run())
    there = asyncio.create_task(appears(trial.workspace.root / "waiting"))
    await asyncio.wait({running, there}, return_when=asyncio.FIRST_COMPLETED)
    if not there.done():
        there.cancel()
        await running
        raise AssertionError("the trial ended before its orchestrator came to wait")
    return running


async def test_a_relay_that_comes_back_costs_nothing_but_a_label(own_bench: Any) -> None:
    trial = own_bench.trial(own_bench.task("restart", WAITS))
    running = await waiting(trial)
    own_bench.stack.relay.stop(kill=True)
    await asyncio.to_thread(own_bench.stack.relay.start)
    (trial.workspace.root / "go").touch()
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["relay_restarted"])
    texts = [message["text"] for message in trial.evidence["messages"]]
    assert len(texts) == len(set(texts)) == 6


async def test_a_relay_that_stays_away_is_never_the_teams_failure(
    own_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.provision.PATIENCE_S", 0.5)
    trial = own_bench.trial(own_bench.task("gone", WAITS))
    running = await waiting(trial)
    own_bench.stack.relay.stop(kill=True)
    with pytest.raises(HealthcheckError, match=r"^relay_gone: .* could not be reached for 0\.5 s"):
        await running
    assert trial.facts["fault"]["kind"] == "relay_gone"
    assert trial.evidence["messages"][0]["text"] == "make the file"


def database_away(bench: Any, away: bool) -> None:
    """Cut the relay's connections to its database, and let it make no other; or let it again."""
    dsn = bench.stack.address.dsn
    name = dsn.split("dbname=")[1].split()[0]
    with psycopg.connect(dsn.replace(f"dbname={name}", "dbname=postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {str(not away).lower()}".encode())
        if away:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


async def test_a_database_that_comes_back_costs_nothing(own_bench: Any) -> None:
    trial = own_bench.trial(own_bench.task("database", WAITS))
    running = await waiting(trial)
    await asyncio.to_thread(database_away, own_bench, True)
    (trial.workspace.root / "go").touch()
    await appears(trial.workspace.root / "out")
    await asyncio.to_thread(database_away, own_bench, False)
    await running
    assert (trial.facts["ended"], trial.facts["fault"]) == ("done", None)
    assert [m["text"] for m in trial.evidence["messages"]][-1] == "DONE: merged"


async def test_a_database_that_stays_away_is_never_the_teams_failure(
    own_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = own_bench.trial(own_bench.task("database", WAITS))
    running = await waiting(trial)
    # Not before: on a busy machine putting a team in place may take longer than that.
    monkeypatch.setattr("bench.harness.post.PATIENCE_S", 0.5)
    await asyncio.to_thread(database_away, own_bench, True)
    (trial.workspace.root / "go").touch()
    with pytest.raises(HealthcheckError, match=r"^relay_gone: the relay could store nothing for 0\.5 s"):
        await running
    assert trial.facts["fault"]["kind"] == "relay_gone"
    assert trial.evidence["messages"]


async def test_a_gateway_that_dies_ends_its_trials_and_the_next_opens_another_lease(own_bench: Any) -> None:
    trial = own_bench.trial(own_bench.task("lease", WAITS))
    running = await waiting(trial)
    own_bench.stack.gateway.stop(kill=True)
    with pytest.raises(HealthcheckError, match=r"^gateway_lost: "):
        await running
    assert trial.context.n_input_tokens > 0
    (own_bench.stack.home / "control.sock").unlink(missing_ok=True)
    await asyncio.to_thread(own_bench.stack.gateway.start)
    again = own_bench.trial(own_bench.task("again"))
    await again.run()
    assert again.facts["ended"] == "done"


async def test_no_gateway_at_all_is_a_failed_set_up(own_bench: Any) -> None:
    own_bench.stack.gateway.stop()
    trial = own_bench.trial(own_bench.task("none"))
    with pytest.raises(HealthcheckError, match="no gateway answers"):
        await trial.run()
    assert trial.facts["fault"]["kind"] == "gateway_lost"


async def test_an_agent_that_the_relay_does_not_admit_is_named(own_bench: Any) -> None:
    state = own_bench.stack.state
    strange = State(**{**vars(state), "owner": Key.generate()})
    provisioner.write_provisioner(
        own_bench.stack.home / "state" / "run" / own_bench.job_dir.name, strange, own_bench.stack.address
    )
    trial = own_bench.trial(own_bench.task("foreign"))
    with pytest.raises(HealthcheckError, match=r"^provisioning: .*not a relay member"):
        await trial.run()
    assert "post" not in trial.facts["timings"]


BUZZ_LIMITS = {
    "HUMAN_WS_EVENTS_PER_SEC": "10",
    "HUMAN_MESSAGES_PER_MIN": "60",
    "HUMAN_API_CALLS_PER_MIN": "300",
    "AGENT_STANDARD_MESSAGES_PER_MIN": "120",
    "AGENT_STANDARD_API_CALLS_PER_MIN": "300",
}
"""Buzz's own (BUZZ.md section 1)."""


@pytest.fixture
def buzz_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in BUZZ_LIMITS.items():
        monkeypatch.setenv(f"BUZZ_RATE_LIMIT_{name}", most)


@pytest.mark.usefixtures("buzz_limits")
async def test_eight_trials_at_once_are_all_scored_within_buzzs_own_limits(own_bench: Any) -> None:
    """One user's key fronts them all, and starts them at once: the reference loses six of eight (REFERENCE.md 4)."""
    script = GOOD.replace("  - name: merge", "  - name: merge\n    think_s: [2, 2]")
    trials = [own_bench.trial(own_bench.task(f"one-of-{number}", script)) for number in range(8)]
    await asyncio.gather(*(trial.run() for trial in trials))
    assert [(trial.facts["ended"], trial.facts["labels"]) for trial in trials] == [("done", [])] * 8
