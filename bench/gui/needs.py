"""What the desktop app needs of this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import Problem
from bench.settings import ENVIRONMENT, Settings

APP_CONFIG = Path("desktop", "src-tauri", "tauri.conf.json")
"""In a checkout of Buzz."""

PROGRAMS = {"pnpm": "install pnpm (pnpm.io)", "cargo": "install Rust (rustup.rs)", "rustc": "install Rust (rustup.rs)"}
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def problems(
    where: str,
    settings: Settings,
    named_by: str,
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
) -> Iterator[Problem]:
    """Everything that is missing. `where` is the command or option, `named_by` what names the checkout."""
    if settings.buzz_source is None:
        fix = f"give --source to `inv gui`, or set {ENVIRONMENT['buzz_source']}"
        yield Problem(where, "no checkout of Buzz is named", fix, lacks=True)
    elif not (settings.buzz_source / APP_CONFIG).is_file():
        yield Problem(named_by, f"there is no {settings.buzz_source / APP_CONFIG}", "give a whole checkout of Buzz")
    for program, fix in PROGRAMS.items():
        if shutil.which(program, path=environ.get("PATH")) is None:
            yield Problem(where, f"there is no {program}", fix, lacks=True)
    if platform == "linux" and not any(environ.get(name) for name in DISPLAYS):
        yield Problem(
            where, "there is no display", f"run it in a desktop session ({' or '.join(DISPLAYS)})", lacks=True
        )
