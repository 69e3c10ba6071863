"""The machine: its architecture, its room on disk, its clock, and whether it can make sandboxes."""

from __future__ import annotations

import email.utils
import http.client
import os
import platform
import shutil
import sys
import time
from pathlib import Path

from bench.doctor.check import Check, Context, Found, of_problems
from bench.stack import address

ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""As Python names them, and as Docker does. What has wheels and agent builds (SEED.md row X1)."""

GB = 1_000_000_000
LEAST_FREE_BYTES = 1 * GB
"""A job of many trials and PostgreSQL's data: below that it would end in the middle."""

IMAGES_FREE_BYTES = 30 * GB
"""Task images of a large dataset take 0.4 GB each (public case 43: 120 GiB for 300): what a first run may need."""

SKEW_S = 30.0
"""Half of what a relay accepts in a signed request (NIP-98: 60 s, BUZZ.md section 1)."""


def architecture(context: Context) -> Found:
    """One that wheels and agent binaries are built for."""
    name = platform.machine()
    if name.lower() not in ARCHITECTURES:
        known = " and ".join(sorted(set(ARCHITECTURES.values())))
        return Found("fail", f"{name}; there are builds for {known}", "use a machine of one of those")
    return Found("ok", f"{name} ({sys.platform})")


def disk(context: Context) -> Found:
    """Room where state and jobs are written."""
    places = [_existing(path) for path in (context.settings.state_dir, context.settings.jobs_dir)]
    free, where = min((shutil.disk_usage(place).free, place) for place in places)
    return room(free, where, writable=[place for place in places if os.access(place, os.W_OK)] == places)


def room(free_bytes: int, where: Path, *, writable: bool = True) -> Found:
    """What so much room is good for (public case 43)."""
    shown = f"{free_bytes / GB:.1f} GB free at {where}"
    if not writable:
        return Found(
            "fail", f"{where} can't be written", "set BUZZBENCH_STATE_DIR and BUZZBENCH_JOBS_DIR to other places"
        )
    if free_bytes < LEAST_FREE_BYTES:
        return Found("fail", f"{shown}; a job needs {LEAST_FREE_BYTES / GB:g} GB", "make room, or write elsewhere")
    if free_bytes < IMAGES_FREE_BYTES:
        what = f"{shown}; the images of a large dataset need {IMAGES_FREE_BYTES / GB:g} GB with -e docker"
        return Found("warn", what, "make room, or run part of it at a time with -i")
    return Found("ok", shown)


def clock(context: Context) -> Found:
    """Signed events say when they are: a clock that jumped back, or a relay with another one, refuses them."""
    newest = max(_changed(path) for path in (context.root / "tasks.py", context.settings.state_dir))
    if newest - time.time() > SKEW_S:
        ago = newest - time.time()
        return Found(
            "fail", f"it is {ago:.0f} s behind the newest files here: it went back", "set the clock, or use NTP"
        )
    stack = address(context.settings.state_dir)
    if stack is None:
        return Found("ok", "not behind the files here; no relay is up to compare it with")
    host, _, port = stack.relay_url.removeprefix("ws://").rpartition(":")
    date = _date(host, int(port))
    if date is None:
        return Found("ok", "not behind the files here; the relay tells no time")
    skew_s = abs(time.time() - date)
    if skew_s > SKEW_S:
        return Found("fail", f"{skew_s:.0f} s from the relay's, which refuses 60", "set both by NTP")
    return Found("ok", f"within {max(1.0, skew_s):.0f} s of the relay's")


def _changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _date(host: str, port: int) -> float | None:
    """The time that the relay's answers carry, in whole seconds; None where it doesn't answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_liveness", headers={"Host": f"{host}:{port}"})
        text = connection.getresponse().getheader("Date")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return email.utils.parsedate_to_datetime(text).timestamp() if text else None


def sandbox(context: Context) -> Found:
    """bubblewrap and user namespaces, tried out by making a sandbox."""
    from bench.sandbox import probe

    if problem := probe.problem():
        return of_problems([problem])
    return Found("ok", f"made one with {probe.tools().bwrap}")


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())


CHECKS = (
    Check("architecture", architecture),
    Check("disk", disk),
    Check("clock", clock),
    Check("sandbox", sandbox, required=False),
)
