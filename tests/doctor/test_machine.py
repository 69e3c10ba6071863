"""The machine: room, clock and architecture, with numbers."""

from __future__ import annotations

import json
import os
import platform
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bench.doctor import machine
from bench.doctor.machine import GB, room
from tests.doctor.conftest import Make
from tests.planning.kit import Project


@pytest.mark.parametrize(
    ("free_gb", "state", "detail"),
    [
        (100, "ok", "100.0 GB free at /data"),
        (10, "warn", "10.0 GB free at /data; the images of a large dataset need 30 GB with -e docker"),
        (0.5, "fail", "0.5 GB free at /data; a job needs 1 GB"),
    ],
)
def test_too_little_room_is_said_in_numbers(free_gb: float, state: str, detail: str) -> None:
    """Case 43."""
    found = room(int(free_gb * GB), Path("/data"))
    assert (found.state, found.detail) == (state, detail)


def test_a_place_that_cannot_be_written_is_a_failure() -> None:
    found = room(100 * GB, Path("/data"), writable=False)
    assert (found.state, found.detail) == ("fail", "/data can't be written")


def test_disk_looks_where_state_and_jobs_will_be(make: Make) -> None:
    assert "GB free at " in machine.disk(make()).detail


def test_a_clock_that_went_back_is_told_by_the_files(make: Make, home: Project) -> None:
    (home.root / "state").mkdir()
    assert machine.clock(make()).state == "ok"
    ahead = time.time() + 3600
    os.utime(home.root / "state", (ahead, ahead))
    found = machine.clock(make())
    assert found.state == "fail"
    assert "behind the newest files here: it went back" in found.detail


@pytest.mark.parametrize(("skew_s", "state"), [(0, "ok"), (45, "fail")])
def test_the_relays_clock_is_compared(make: Make, home: Project, skew_s: int, state: str) -> None:
    class Relay(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(200)
            self.send_header("Date", formatdate(time.time() + skew_s, usegmt=True))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Relay)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        (home.root / "state").mkdir()
        address = {"kind": "embedded", "relay_url": f"ws://localhost:{server.server_port}", "dsn": ""}
        (home.root / "state/stack.json").write_text(json.dumps(address | {"gateway_url": "", "gateway_control": ""}))
        assert machine.clock(make()).state == state
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("name", "state"), [("x86_64", "ok"), ("arm64", "ok"), ("riscv64", "fail")])
def test_an_architecture_without_builds_is_named(
    make: Make, monkeypatch: pytest.MonkeyPatch, name: str, state: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: name)
    found = machine.architecture(make())
    assert found.state == state
    assert name in found.detail


def test_the_sandbox_is_tried_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.sandbox import probe

    monkeypatch.setenv("PATH", "")
    probe.tools.cache_clear()
    found = machine.sandbox(make())
    probe.tools.cache_clear()
    assert (found.state, found.detail) == ("fail", "sandbox: there is no nsenter")
    assert "or use -e docker" in found.fix
