"""A whole job with canary keys in its caller's environment, for tests that look where the keys are to be found."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.settings import ROOT
from tests.hidden import forms, search
from tests.pipeline import DATASET, Installation

PLAY_S = 150
"""How long the job may take."""

KEYS = {
    "CANARY_LEAD": f"sk-lead/{secrets.token_hex(6)}+81b7=d04a&{secrets.token_hex(6)}",
    "CANARY_HELPER": f"sk-help/{secrets.token_hex(6)}+c3e9=06b5&{secrets.token_hex(6)}",
}
"""Their variables, and the keys: with characters that every encoding changes, and others in every run, for two of them
on one machine see each other's processes."""

WANTED = {form: f"{name}: {how}" for name, key in KEYS.items() for form, how in forms(key).items()}
TASK = "mention-names-the-right-member"

LOOK_AROUND = "grep today /app/duty.txt; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
"""What the lead's model has run: it looks for keys where agents could."""


@dataclass
class Model:
    """Two providers' APIs in one, each with its key, and the lines of the task's team."""

    url: str = ""
    served: int = 0
    refused: list[str] = field(default_factory=list)

    def lead(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]] | str:
        """What OpenAI's model says: a tool with its input, or the last word of a turn."""
        told = json.dumps(body["messages"])
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if "PILOT READY" in told:
            return ("done", {"text": "the pilot is on the way"}) if "the pilot is on" not in told else "Done."
        if number == 0:
            return "shell", {"command": LOOK_AROUND}
        if number == 1:
            return "send_message", {"mention": ["worker-2"], "text": "Write your name into /app/pilot.txt and report."}
        return "I wait for the report."

    def helper(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]] | str:
        """What Anthropic's says."""
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if number == 0:
            return "shell", {"command": "echo worker-2 > /app/pilot.txt"}
        return ("send_message", {"mention": ["orch"], "text": "PILOT READY"}) if number == 1 else "Reported."


def _openai(said: tuple[str, dict[str, Any]] | str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        call = {"name": said[0], "arguments": json.dumps(said[1])}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": call}]
    return {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }


def _anthropic(said: tuple[str, dict[str, Any]] | str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": said}
    if not isinstance(said, str):
        block = {"type": "tool_use", "id": "use-1", "name": said[0], "input": said[1]}
    return {"content": [block], "stop_reason": "end_turn", "usage": {"input_tokens": 90, "output_tokens": 9}}


@contextmanager
def serving() -> Iterator[Model]:
    """The stand-in, at the wire. It serves nobody without the right key."""
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/v1/messages":
                key, wanted = self.headers["x-api-key"], KEYS["CANARY_HELPER"]
            else:
                key, wanted = self.headers["authorization"], f"Bearer {KEYS['CANARY_LEAD']}"
            if key != wanted:
                model.refused.append(self.path)
                self._answer(401, {"error": {"type": "authentication_error", "message": "wrong key"}})
                return
            model.served += 1
            is_helper = self.path == "/v1/messages"
            self._answer(200, _anthropic(model.helper(body)) if is_helper else _openai(model.lead(body)))

        def _answer(self, status: int, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  (its name there)
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield model
        server.shutdown()


class Watch(threading.Thread):
    """Looks at every process of the machine, again and again, and into the volatile files of running jobs."""

    def __init__(self, caller: int, home: Path) -> None:
        super().__init__(daemon=True)
        self._caller, self._run = caller, home / "state" / "run"
        self._command = Path(f"/proc/{caller}/cmdline").read_bytes()
        self._ended = threading.Event()
        self.looks = 0
        self.seen: dict[int, str] = {}
        """The arguments of the processes that were looked at, by their id."""
        self.found: set[str] = set()

    def run(self) -> None:
        while not self._ended.wait(0.005):
            self.looks += 1
            for entry in Path("/proc").iterdir():
                if entry.name.isdecimal() and int(entry.name) != self._caller:
                    self._look(entry)
            for path in self._run.glob("*/*"):
                self._note(str(path), _read(path))

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _look(self, process: Path) -> None:
        arguments = _read(process / "cmdline")
        if arguments in (b"", self._command):
            return  # a process that is ending, or the caller's fork before it became another program
        shown = arguments.replace(b"\0", b" ").decode(errors="replace")
        self.seen[int(process.name)] = shown
        self._note(f"arguments of {shown}", arguments)
        self._note(f"environment of {shown}", _read(process / "environ"))

    def _note(self, place: str, data: bytes) -> None:
        self.found |= {f"{place}: {form}" for form in search(data, WANTED)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def team_files(home: Path, url: str) -> tuple[Path, Path]:
    """A manifest and an endpoint file: a lead at OpenAI's stand-in, helpers at Anthropic's."""
    persona = home / "persona.md"
    persona.write_text("You help the user and the others.\n")
    pinned = f"{{path: persona.md, sha256: {hashlib.sha256(persona.read_bytes()).hexdigest()}}}"
    manifest = home / "team.yaml"
    manifest.write_text(f"""
schema_version: "1"
condition: canary
roster:
  - {{id: orch, kind: orchestrator, role: lead, endpoint: lead, model_revision: m, harness: builtin, prompt: {pinned}}}
  - {{id: worker, kind: worker, count: 2, role: helper, endpoint: helper, model_revision: m, harness: builtin,
     prompt: {pinned}}}
prices:
  m: {{input: 1, cached_input: 0.1, cache_write: 2, output: 10}}
trial_budget: {{timeout_seconds: 60}}
""")
    endpoints = home / "endpoints.json"
    lead = {"provider": "openai", "base_url": f"{url}/v1", "api_key_env": "CANARY_LEAD"}
    helper = {"provider": "anthropic", "base_url": url, "api_key_env": "CANARY_HELPER"}
    endpoints.write_text(json.dumps({"lead": lead, "helper": helper}))
    return manifest, endpoints


@dataclass
class Ran:
    """A job that has ended, on a stack that still runs."""

    installation: Installation
    directory: Path
    output: str
    watch: Watch


def play(installation: Installation, url: str, *options: str) -> Ran:
    """The whole job: `inv bench` with keys in its environment, agents on both dialects, recorded."""
    manifest, endpoints = team_files(installation.home, url)
    words = ["bench", "--path", str(DATASET / TASK), "--manifest", str(manifest), "--endpoint-config", str(endpoints)]
    words += ["-k", "1", "--record", "--job-name", "canary", "--json", *options]
    with subprocess.Popen(
        [sys.executable, "-m", "invoke", *words],
        cwd=ROOT,
        env=installation.environment | KEYS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as caller:
        watch = Watch(caller.pid, installation.home)
        watch.start()
        try:
            shown, said = caller.communicate(timeout=PLAY_S)
        finally:
            caller.kill()
            watch.end()
    assert caller.returncode == 0, said
    return Ran(installation, Path(json.loads(shown)["jobs"][0]["directory"]), shown + said, watch)
