"""`inv down`: stop the stack."""

from __future__ import annotations

import sys

from bench.settings import Settings
from bench.stack import kinds


def down(settings: Settings) -> bool:
    """Stop every service and say so in one line. Whether anything ran. Raises BuzzbenchError while a job runs."""
    ran = kinds.down(settings)
    print("stack is down" if ran else "stack is down already", file=sys.stderr)
    return ran
