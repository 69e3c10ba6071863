"""What the app keeps of its own, outside the project: under our identifier alone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

IDENTIFIER = "xyz.block.buzz.app.benchmark"


def forget(
    home: Path | None = None, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> list[Path]:
    """Remove it; what was there."""
    found = [path for path in _places(home or Path.home(), environ, platform) if path.is_dir()]
    for path in found:
        shutil.rmtree(path)
    return found


def _places(home: Path, environ: Mapping[str, str], platform: str) -> Iterator[Path]:
    if platform == "darwin":
        for part in ("WebKit", "Caches", "Application Support"):
            yield home / "Library" / part / IDENTIFIER
        return
    for variable, default in (("XDG_DATA_HOME", ".local/share"), ("XDG_CACHE_HOME", ".cache")):
        yield Path(environ.get(variable) or home / default) / IDENTIFIER
