"""One trial's kit: the directory that is brought into the environment before its agents start. Pure but for `write`.

team.env                             what scripts/start.sh needs to know
start.sh alive.sh stop.sh go_on.sh   the host's commands
agent.sh mcp.sh                      what buzz-acp and buzz-agent start in place of their programs
agents/NAME/env prompt.md            one agent's variables (its key and token among them) and system prompt
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.harness.buzz.fixed import TEAM

LOGS = "/logs/agent"
"""Harbor brings what is there to the trial's `agent/`."""

OWN_LOGS = f"{TEAM}/logs"
"""Where a team logs that plays several steps: Harbor empties LOGS before each."""

SCRIPTS = Path(__file__).parent / "scripts"
READY_S = 40
"""For all agents to listen. A buzz-acp that can't reach the relay says so after 26 s (BUZZ.md section 4)."""


@dataclass(frozen=True)
class Routes:
    """How relay and gateway are reached from inside.

    `relay` and `gateway` are `host:port` or `unix:/path` as the environment reaches them, None where it shares this
    host's network.
    """

    relay_url: str
    gateway_url: str
    relay: str | None = None
    gateway: str | None = None

    @property
    def forward(self) -> str:
        """The forwarder's arguments, empty where none is needed: the relay's authority, any port for the gateway."""
        if self.relay is None:
            return ""
        return f"{urlsplit(self.relay_url).netloc}={self.relay} 127.0.0.1:0={self.gateway}"


def team_file(routes: Routes, channel: str, programs: str, *, logs: str = LOGS) -> str:
    """team.env. Where the agents log elsewhere, it is copied to LOGS whenever they are halted or ended."""
    relay, gateway = urlsplit(routes.relay_url), urlsplit(routes.gateway_url)
    settings = {
        "bin": programs,
        "logs": logs,
        "collected": LOGS,
        "forward": routes.forward,
        "relay_host": relay.hostname,
        "relay_port": relay.port,
        "gateway": routes.gateway_url,
        "gateway_port": gateway.port,
        # The second is of one that the relay told of its channel only after it had looked for those that it is in.
        "ready_line": f"subscribed to channel {channel}|subscribing to new channel channel_id={channel}",
        "ready_s": READY_S,
    }
    return "".join(f"bzb_{name}={shlex.quote(str(value))}\n" for name, value in settings.items())


def write(directory: Path, team: str, agents: Mapping[str, tuple[str, str]]) -> None:
    """Write the kit: team.env's text, and by agent the texts of its env and prompt.md. Private: it holds keys."""
    directory.chmod(0o700)
    for script in SCRIPTS.glob("*.sh"):
        copy = directory / script.name
        copy.write_bytes(script.read_bytes())
        copy.chmod(0o755)
    (directory / "team.env").write_text(team, encoding="utf-8")
    for name, (env, prompt) in agents.items():
        home = directory / "agents" / name
        home.mkdir(parents=True)
        for file, text in (("env", env), ("prompt.md", prompt)):
            path = home / file
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
