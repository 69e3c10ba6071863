"""The process: what it is told, how it starts and ends, and that neither its death nor PostgreSQL's loses anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.nostr import Key
from bench.relay.process import read_config
from bench.stack import pgprograms
from bench.stack.postgres import Postgres
from tests.relay.running import WAIT_S, RunningRelay, add, create

GOOD = RunningRelay("dbname=x", port=3600).config(Path("ready.json"))


def test_the_configuration_is_read_whole() -> None:
    assert read_config(json.dumps(GOOD)).relay_url == "ws://localhost:3600"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"port": "3600"}, "port is missing or no int"),
        ({"port": True}, "port is missing or no int"),
        ({"dsn": None}, "dsn is missing or no str"),
        ({"extra": 1}, "unknown: extra"),
    ],
)
def test_a_bad_configuration_is_named_without_its_secrets(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$") as caught:
        read_config(json.dumps({**GOOD, **change}))
    assert GOOD["relay_private_key"] not in str(caught.value)


def run(given: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.relay"], input=given, capture_output=True, text=True, timeout=WAIT_S
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("given", ["", "[]", '{"host": 5}'])
def test_a_bad_configuration_ends_with_code_2(given: str) -> None:
    code, said = run(given)
    assert code == 2
    assert "configuration: " in said


def test_a_taken_port_ends_with_code_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        code, said = run(json.dumps({**GOOD, "port": holder.getsockname()[1]}))
    assert code == 3
    assert "Address already in use" in said


def test_a_missing_database_ends_with_code_3(tmp_path: Path) -> None:
    config = {**GOOD, "port": 0, "relay_url": "ws://localhost:0", "dsn": f"host={tmp_path}"}
    code, said = run(json.dumps(config))
    assert code == 3
    assert "No such file or directory" in said
    assert GOOD["relay_private_key"] not in said


async def test_a_kill_loses_nothing(own_relay: RunningRelay) -> None:
    agent, tag = own_relay.agent()
    channel, creation = create(own_relay.owner, name="kept")
    message = agent.sign(9, "kept", [["h", channel]])
    async with own_relay.socket(own_relay.owner) as owner, own_relay.socket(agent, tag) as wire:
        await owner.publish(creation)
        await owner.publish(add(own_relay.owner, channel, agent.public, "admin"))
        await owner.publish(own_relay.owner.sign(9002, "", [["h", channel], ["topic", "kept, too"]]))
        await wire.publish(message)
        before = await wire.request("s", {"#h": [channel]})
    assert own_relay.stop(signal.SIGKILL) == -signal.SIGKILL
    own_relay.start()
    metric = agent.sign(44200, "x", [["p", own_relay.owner.public]])
    async with own_relay.socket(agent, tag) as wire:
        assert await wire.request("s", {"#h": [channel]}) == before
        assert await wire.publish(message) == [True, "duplicate:"]
        assert await wire.publish(metric) == [True, ""], "its owner is remembered"
        assert await wire.publish(creation) == [
            False,
            "invalid: event pubkey does not match authenticated identity",
        ]
        archived = agent.sign(9002, "", [["h", channel], ["archived", "true"]])
        assert await wire.publish(archived) == [True, ""], "its role is remembered"
        [metadata] = await wire.request("m", {"kinds": [39000], "#d": [channel]})
        assert ["topic", "kept, too"] in metadata["tags"]
        assert ["archived", "true"] in metadata["tags"]
    outsider, outsider_tag = own_relay.agent()
    async with own_relay.socket(outsider, outsider_tag) as wire:
        await wire.send("REQ", "s", {"#h": [channel]})
        assert await wire.receive() == ["CLOSED", "s", "restricted: not a channel member"]


async def test_sigterm_ends_it_cleanly_within_a_second_and_says_why(own_relay: RunningRelay) -> None:
    async with own_relay.socket(own_relay.owner) as wire, own_relay.socket() as stranger:
        began = time.monotonic()
        assert own_relay.stop() == 0
        took = time.monotonic() - began
        message = await wire.socket.receive(WAIT_S)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1012)
        assert message.extra == "the relay restarts"
        assert (await stranger.socket.receive(WAIT_S)).type is aiohttp.WSMsgType.CLOSE
    assert took < 5, f"{took:.1f} s: a second, and much more on a busy machine"


async def test_sigterm_ends_it_also_when_clients_do_not_listen(own_relay: RunningRelay) -> None:
    with socket.create_connection(("localhost", own_relay.port)) as deaf:
        deaf.sendall(
            b"GET / HTTP/1.1\r\nHost: localhost:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: fXNhd5TN1xaJh7JKXC95wA==\r\n\r\n" % own_relay.port
        )
        deaf.recv(12)
        assert own_relay.stop() == 0


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL that the test may stop."""
    home = Path(tempfile.mkdtemp(prefix="bzb-pg-"))
    (home / "s").mkdir(mode=0o700)
    server = Postgres(
        programs=pgprograms.find(None),
        data_dir=home / "pg18",
        socket_dir=home / "s",
        log=home / "postgres.log",
        mode=pgprograms.launch_mode(),
        die_with=os.getpid() if sys.platform == "linux" else 0,
    )
    server.ensure()
    yield server
    server.stop()
    shutil.rmtree(home)


async def test_without_postgresql_it_says_so_and_goes_on_when_that_is_back(own_server: Postgres) -> None:
    relay = RunningRelay(own_server.dsn).start()
    try:
        async with relay.socket(relay.owner) as wire, relay.socket(relay.owner) as watcher:
            channel, creation = create(relay.owner)
            assert await wire.publish(creation) == [True, ""]
            await watcher.request("live", {"#h": [channel], "limit": 0})
            own_server.stop()

            refused = relay.owner.sign(9, "refused", [["h", channel]])
            text = "error: not stored, the database does not answer; try again"
            assert await wire.publish(refused) == [False, text]
            assert await wire.publish(add(relay.owner, channel, Key.generate().public)) == [False, text]
            assert (await relay.get("/_readiness"))[0] == 503
            assert (await relay.get("/_liveness"))[0] == 200
            away = "error: the database does not answer; try again"
            assert await relay.post("/query", [{"kinds": [0]}], relay.owner) == (503, {"error": away})
            assert await relay.post("/events", refused, relay.owner) == (503, {"error": text})
            await wire.send("REQ", "s", {"kinds": [0]})
            assert await wire.receive() == ["CLOSED", "s", away]

            own_server.ensure()
            while (await relay.get("/_readiness"))[0] != 200:
                pass
            while await wire.publish(refused) != [True, ""]:
                pass
            assert await watcher.receive() == ["EVENT", "live", refused], "nobody heard it before"
            [members] = await wire.request("m", {"kinds": [39002], "#d": [channel]})
            assert len(members["tags"]) == 2, "the refused addition changed nothing"
    finally:
        assert relay.stop() == 0


async def test_a_new_relay_waits_for_the_last_commit_of_a_killed_one(own_relay: RunningRelay) -> None:
    """Many writes in flight, a kill, a start at once: what was answered is there, and the state is whole."""
    keys = [Key.generate().public for _ in range(50)]
    async with own_relay.socket(own_relay.owner) as wire:
        channel, creation = create(own_relay.owner)
        await wire.publish(creation)
        for key in keys:
            await wire.send("EVENT", add(own_relay.owner, channel, key))
        answered = {(await wire.receive())[1] for _ in range(20)}
        own_relay.stop(signal.SIGKILL)
    own_relay.start()
    async with own_relay.socket(own_relay.owner) as wire:
        additions = await wire.request("s", {"kinds": [9000], "#h": [channel]})
        assert answered <= {event["id"] for event in additions}
        [members] = await wire.request("m", {"kinds": [39002], "#d": [channel]})
        added = {tag[1] for event in additions for tag in event["tags"] if tag[0] == "p"}
        assert {tag[1] for tag in members["tags"] if tag[0] == "p"} == added | {own_relay.owner.public}


def test_the_log_goes_to_standard_error_and_holds_no_secret(database: str, tmp_path: Path) -> None:
    running = RunningRelay(database)
    config = running.config(tmp_path / "ready.json")
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.relay"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(config).encode())
    process.stdin.close()
    process.stdin = None

    assert process.poll() is None
    deadline = time.monotonic() + WAIT_S
    while not (tmp_path / "ready.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (tmp_path / "ready.json").stat().st_mode & 0o077 == 0
    process.terminate()
    output, log = process.communicate(timeout=WAIT_S)
    assert output == b""
    assert b"serving ws://localhost:" in log
    assert config["relay_private_key"].encode() not in log
