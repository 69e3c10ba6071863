"""What is fixed about real agents, and a plan has to know: their programs' names, the places in an environment that are
ours, and the longest silence. Constants alone: planning loads nothing of the harness."""

from __future__ import annotations

AGENTS = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")
FORWARDER = "relay-forwarder"

PLACE = "/opt/buzzbench"
"""What is ours in an environment is below it."""

PROGRAMS = f"{PLACE}/bin"
TEAM = f"{PLACE}/team"
"""The kit of one trial."""

DOORS = f"{PLACE}/doors"
"""Where the sockets of relay and gateway are mounted, if they are."""

IDLE_TIMEOUT_S = 3600
"""buzz-acp cancels a turn of which it hears nothing for 900 s, and begins it again (BUZZ.md sections 4 and 5). Nothing
is heard while a model or a tool is at work, so that this has to be the longest."""
