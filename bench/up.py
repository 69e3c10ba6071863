"""`inv up`: have the stack running."""

from __future__ import annotations

import sys

from bench.gui import opened
from bench.keys import State
from bench.settings import Settings
from bench.stack import StackAddress, kinds


def up(settings: Settings, state: State, stack: str, fresh: bool) -> StackAddress:
    """Bring the stack of that kind up, a no-op if it is, and say so in one line. See `bench.stack.kinds.up`."""
    found = kinds.up(settings, state, stack, fresh=fresh)
    if fresh:
        opened.forget(settings.state_dir)
    dropped = ", its old data dropped" if fresh else ""
    print(f"stack is up: relay {found.relay_url}, gateway {found.gateway_url}{dropped}", file=sys.stderr)
    return found
