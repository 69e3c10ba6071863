"""One file that is four programs, by the name it is called by: buzz-acp, buzz-agent, buzz-dev-mcp, buzz."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main() -> int:
    name = Path(sys.argv[0]).name
    if name == "buzz-acp":
        from acp import main as run
    elif name == "buzz-agent":
        from agent import main as run
    elif name == "buzz-dev-mcp":
        from mcp import main as run
    else:
        from cli import main as run
    program: Callable[[], int] = run
    return program()


sys.exit(main())
