"""`inv up`: have the stack running."""

from __future__ import annotations

import sys

from bench.gui import opened
from bench.keys import State
from bench.settings import Settings
from bench.stack import StackAddress, address, kinds


def up(settings: Settings, state: State, stack: str, *, fresh: bool) -> StackAddress:
    """Bring the stack of that kind up, a no-op if it is, and say so in one line. See `bench.stack.kinds.up`."""
    before = address(settings.state_dir)
    found = kinds.up(settings, state, stack, fresh=fresh)
    if before and before.relay_url != found.relay_url:
        print(f"the relay has moved from {before.relay_url} to {found.relay_url}", file=sys.stderr)
    if fresh:
        opened.forget(settings.state_dir)
    dropped = ", its old data dropped" if fresh else ""
    print(f"stack is up: relay {found.relay_url}, gateway {found.gateway_url}{dropped}", file=sys.stderr)
    return found
