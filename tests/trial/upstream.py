"""A fake model API at the wire, in Anthropic's dialect: what it answers is a function of what an agent was told."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

type Blocks = list[dict[str, Any]]

USAGE = {
    "input_tokens": 100,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 10,
    "output_tokens": 20,
}


@dataclass(frozen=True)
class Asked:
    """One call: the model, what the last message shows, and how many calls this model had before."""

    model: str
    text: str
    number: int
    results: bool
    system: str = ""


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(name: str, /, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{abs(hash(json.dumps(given)))}", "name": name, "input": given}


@dataclass
class Upstream:
    """`answer` gives the content blocks, or (status, message) for an error."""

    answer: Callable[[Asked], Blocks | tuple[int, str]]
    delay_s: float = 0.0
    before: Callable[[Asked], Awaitable[None]] | None = None
    error_headers: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        model = body["model"]
        content = body["messages"][-1]["content"]
        shown = "\n".join(
            block["text"] if block["type"] == "text" else block["content"][0]["text"] for block in content
        )
        asked = Asked(
            model,
            shown,
            sum(a.model == model for a in self.asked),
            any(block["type"] == "tool_result" for block in content),
            body["system"][0]["text"],
        )
        self.asked.append(asked)
        await asyncio.sleep(self.delay_s)
        if self.before is not None:
            await self.before(asked)
        answer = self.answer(asked)
        if isinstance(answer, tuple):
            status, message = answer
            error = {"type": "error", "error": {"type": "test_error", "message": message}}
            return web.json_response(error, status=status, headers=self.error_headers)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in answer) else "end_turn"
        return web.json_response({"content": answer, "stop_reason": stop, "usage": USAGE})


@asynccontextmanager
async def serving(
    upstream: Upstream,
    directory: Path,
    *,
    workers: int = 1,
    trial: str = "",
    harness: str = "builtin",
    caps: Mapping[str, str] | None = None,
    limit_s: int = 30,
) -> AsyncIterator[dict[str, Any]]:
    """The options of a team whose models are this upstream: `lead` and `help`. `caps` are members' budgets by id."""
    app = web.Application()
    app.router.add_post("/v1/messages", upstream.handle)
    server = TestServer(app)
    await server.start_server()
    try:
        yield {
            "rehearsal": None,
            **_files(directory, str(server.make_url("")), workers, f"{limit_s}{trial}", harness, caps or {}),
        }
    finally:
        await server.close()


def _files(
    directory: Path, url: str, workers: int, trial: str, harness: str, caps: Mapping[str, str]
) -> dict[str, Any]:
    persona = directory / "persona.md"
    names = "the user and the orchestrator" + (" and the worker" if workers else "")
    persona.write_text(f"You work with {names}.\n")
    digest = hashlib.sha256(persona.read_bytes()).hexdigest()
    pinned = f"{{path: persona.md, sha256: {digest}}}"
    roster = [
        f"- {{id: orch, kind: orchestrator, role: lead, endpoint: lead, model_revision: lead, harness: {harness}, "
        f"prompt: {pinned}{_budget(caps, 'orch')}}}"
    ]
    if workers:
        roster.append(
            f"- {{id: worker, kind: worker, role: helper, count: {workers}, endpoint: help, model_revision: help, "
            f"harness: {harness}, prompt: {pinned}{_budget(caps, 'worker')}}}"
        )
    prices = "{input: 1, cached_input: 0.1, cache_write: 2, output: 10}"
    lines = [
        'schema_version: "1"',
        "condition: test",
        "roster:",
        *(f"  {row}" for row in roster),
        "prices:",
        f"  lead: {prices}",
        *([f"  help: {prices}"] if workers else []),
        f"trial_budget: {{timeout_seconds: {trial}}}",
    ]
    manifest = directory / "team.yaml"
    manifest.write_text("\n".join(lines) + "\n")
    endpoints = directory / "endpoints.json"
    endpoint = {"provider": "anthropic", "base_url": url, "api_key_env": "TEST_MODEL_KEY"}
    endpoints.write_text(json.dumps({"lead": endpoint, "help": endpoint}))
    return {"manifest_path": manifest, "endpoints": str(endpoints)}


def _budget(caps: Mapping[str, str], member: str) -> str:
    return f", budget: {{{caps[member]}}}" if member in caps else ""
