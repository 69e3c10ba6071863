"""`inv down`: stop the stack, and remove what killed runs left in Docker."""

from __future__ import annotations

import sys

from bench.settings import Settings
from bench.stack import kinds, paths


def down(settings: Settings) -> bool:
    """Stop every service and say so in one line. Whether anything ran. Raises BuzzbenchError while a job runs."""
    from bench.run import leftovers

    ran = kinds.down(settings)
    leftovers.clear(settings.state_dir)
    paths.remove_door_dir(settings.state_dir)
    print("stack is down" if ran else "stack is down already", file=sys.stderr)
    return ran
