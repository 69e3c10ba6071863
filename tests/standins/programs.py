"""Makes the stand-ins' programs: each one executable file that needs nothing but Python 3.11 and bash beside it.

Where BUZZBENCH_REAL_PROGRAMS names a directory with Buzz's own, built for this machine, the tests in `tests/trial` run
with those in their place; what holds the stand-ins against them runs only then.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipapp
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "buzz"
NAMES = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")
REAL_PROGRAMS = Path(given) if (given := os.environ.get("BUZZBENCH_REAL_PROGRAMS")) else None
ONLY_WITH_REAL_PROGRAMS = pytest.mark.skipif(
    REAL_PROGRAMS is None, reason="BUZZBENCH_REAL_PROGRAMS names no directory with Buzz's own programs"
)


def make(directory: Path) -> Path:
    """The directory, with the three programs in it."""
    directory.mkdir(parents=True, exist_ok=True)
    first = directory / NAMES[0]
    zipapp.create_archive(SOURCE, first, interpreter="/usr/bin/env python3", filter=lambda path: path.suffix == ".py")
    for name in NAMES[1:]:
        shutil.copy(first, directory / name)
    for name in NAMES:
        (directory / name).chmod(0o755)
    return directory


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
