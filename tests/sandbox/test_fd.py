"""Descriptors that pass through the guard's shell keep what they are."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.sandbox import fd
from bench.settings import ROOT


def test_a_low_number_is_moved_and_a_high_one_stays() -> None:
    reader, writer = os.pipe()
    moved = fd.out_of_the_way(reader)
    try:
        assert moved >= 10
        assert fd.out_of_the_way(moved) == moved
        os.write(writer, b"x")
        assert os.read(moved, 1) == b"x"
    finally:
        fd.close(moved, writer)


def test_sandboxes_start_also_in_a_process_that_has_no_files_open_yet() -> None:
    """There the pipes get the lowest numbers, which the guard's shell redirects for itself."""
    code = (
        "import select\n"
        "from bench.sandbox import probe\n"
        "from bench.sandbox.launch import Launch\n"
        "from bench.sandbox.layout import Layout\n"
        "for _ in range(4):\n"
        "    many = [Launch(probe.tools(), Layout()) for _ in range(4)]\n"
        "    for launch in many:\n"
        "        while not launch.advance():\n"
        "            select.select([launch.output], [], [])\n"
        "    for launch in many:\n"
        "        launch.abort()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
