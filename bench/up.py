"""`inv up`: have the stack running."""

from __future__ import annotations

import sys

from bench.errors import MachineLacks
from bench.keys import State
from bench.settings import Settings
from bench.stack import StackAddress


def up(settings: Settings, state: State, stack: str, fresh: bool) -> StackAddress:
    """Bring the stack of that kind up, a no-op if it is, and say so in one line. See `bench.stack.embedded.up`."""
    if stack != "embedded":
        raise MachineLacks.of("--stack compose", "this version can't run it yet", "use `--stack embedded`")
    from bench.stack import embedded

    found = embedded.up(settings, state, fresh=fresh)
    dropped = ", its old data dropped" if fresh else ""
    print(f"stack is up: relay {found.relay_url}, gateway {found.gateway_url}{dropped}", file=sys.stderr)
    return found
