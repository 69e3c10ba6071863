"""Makes the stand-ins' programs: each one executable file that needs nothing but Python 3.11 and bash beside it."""

from __future__ import annotations

import shutil
import sys
import zipapp
from pathlib import Path

SOURCE = Path(__file__).parent / "buzz"
NAMES = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")


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
