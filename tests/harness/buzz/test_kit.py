"""A trial's kit as it comes into an environment."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from bench.harness.buzz import kit
from bench.harness.buzz.kit import Routes


def test_a_shared_network_needs_no_forwarder() -> None:
    assert Routes("ws://localhost:3600", "http://127.0.0.1:4000").forward == ""


def test_the_forwarder_gives_the_relays_own_authority_and_any_port_for_the_gateway() -> None:
    routes = Routes("ws://localhost:3600", "http://127.0.0.1:4000", "host:3600", "host:4001")
    assert routes.forward == "localhost:3600=host:3600 127.0.0.1:0=host:4001"


def test_what_the_start_script_is_told() -> None:
    text = kit.team_file(Routes("ws://localhost:3600", "http://127.0.0.1:4000"), "c-1", "/opt/bin")
    assert "bzb_ready_line='subscribed to channel c-1|subscribing to new channel channel_id=c-1'\n" in text
    assert "bzb_forward=''\n" in text
    assert "bzb_relay_port=3600\n" in text
    assert "bzb_gateway_port=4000\n" in text


def test_keys_are_private_and_scripts_can_be_run(tmp_path: Path) -> None:
    kit.write(tmp_path, "x=1\n", {"orch": ("export K=secret\n", "Be good.\n")})
    env = tmp_path / "agents" / "orch" / "env"
    assert env.read_text() == "export K=secret\n"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert (tmp_path / "agents" / "orch" / "prompt.md").read_text() == "Be good.\n"
    for script in ("start.sh", "alive.sh", "stop.sh", "agent.sh", "mcp.sh"):
        assert stat.S_IMODE((tmp_path / script).stat().st_mode) & 0o111


@pytest.mark.parametrize("shell", ["dash", "bash --posix"])
def test_the_scripts_are_such_as_any_shell_reads(shell: str) -> None:
    for script in kit.SCRIPTS.glob("*.sh"):
        done = subprocess.run([*shell.split(), "-n", str(script)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script
