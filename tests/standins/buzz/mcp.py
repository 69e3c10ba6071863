"""buzz-dev-mcp: an MCP server on its standard streams with the tool `shell` (BUZZ.md section 6)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHELL = {
    "name": "shell",
    "description": "Run a command in a shell.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "workdir": {"type": "string"},
            "timeout_ms": {"type": "integer"},
        },
        "required": ["command"],
    },
}
AFTER_S = 0.2
"""After each call its process group gets TERM, and after this time KILL, whatever it did (BUZZ.md section 0)."""


def main() -> int:
    links = tempfile.mkdtemp(prefix="buzz-dev-mcp-")
    (Path(links) / "buzz").symlink_to(Path(sys.argv[0]).resolve())
    os.environ["PATH"] = links + ":" + os.environ["PATH"]
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": _answer(asked)}), flush=True)
    return 0


def _answer(asked):
    if asked["method"] == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "buzz-dev-mcp"}}
    if asked["method"] == "tools/list":
        return {"tools": [SHELL]}
    return {"content": [{"type": "text", "text": json.dumps(_shell(asked["params"]["arguments"]))}]}


def _shell(given):
    began = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", given["command"]],
        cwd=given.get("workdir"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
        text=True,
    )
    timed_out = False
    try:
        out, err = process.communicate(timeout=given.get("timeout_ms", 120000) / 1000)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if number == signal.SIGTERM:
            time.sleep(AFTER_S)
    return {
        "exit_code": process.returncode,
        "stdout": out,
        "stderr": err,
        "timed_out": timed_out,
        "duration_ms": round((time.monotonic() - began) * 1000),
    }
