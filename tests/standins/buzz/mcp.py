"""buzz-dev-mcp: an MCP server on its standard streams with the tool `shell` (BUZZ.md section 6)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
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

READ_S = 5.0
"""So long it then waits for each stream: what a process of another group holds open is lost, all of it."""


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
    given = asked["params"]["arguments"]
    if "workdir" in given and not Path(given["workdir"]).is_dir():
        what = f"workdir does not exist or is not a directory: {given['workdir']}"
        return {"content": [{"type": "text", "text": what}], "isError": True}
    result = json.dumps(_shell(given), indent=2, ensure_ascii=False)
    return {"content": [{"type": "text", "text": result}], "isError": False}


def _shell(given):
    began = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", given["command"]],
        cwd=given.get("workdir"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    heard = {"stdout": [], "stderr": []}
    readers = [
        threading.Thread(target=lambda to, pipe: to.append(pipe.read()), args=(heard[name], pipe), daemon=True)
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr))
    ]
    for reader in readers:
        reader.start()
    timed_out, notes = False, []
    try:
        process.wait(min(given.get("timeout_ms", 120_000), 600_000) / 1000)
    except subprocess.TimeoutExpired:
        timed_out = True
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if number == signal.SIGTERM:
            time.sleep(AFTER_S)
    code = process.wait()
    for name, reader in zip(heard, readers, strict=True):
        reader.join(READ_S)
        if reader.is_alive():
            notes.append(f"{name} reader did not complete")
    return {
        "duration_ms": round((time.monotonic() - began) * 1000),
        "exit_code": 124 if timed_out else max(code, -1),
        "notes": notes,
        **{
            key: value
            for name, parts in sorted(heard.items())
            for key, value in (
                (name, b"".join(parts).decode(errors="replace")),
                (f"{name}_artifact", None),
                (f"{name}_truncated", False),
            )
        },
        "timed_out": timed_out,
    }
