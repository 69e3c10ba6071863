"""`python -m bench.perf.fakemodel`: a model's API for measurements, OpenAI's chat completions, in a process of its own.

It prints its port and serves until standard input ends. Answers have 1.8 KB. A stream has `CHUNKS` chunks, one each
`CHUNK_EVERY_S`; the text of each is the clock (`time.monotonic`, one for all processes of a machine) at its sending.
"""

from __future__ import annotations

import asyncio
import sys
import time

import orjson
import uvloop
from aiohttp import web

CHUNKS = 40
CHUNK_EVERY_S = 0.02
MARK = "T"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 400, "total_tokens": 1400}
_COMMON = {"id": "c1", "created": 1, "model": "m"}
_ANSWER = orjson.dumps(
    {
        **_COMMON,
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "y" * 1800}, "finish_reason": "stop"},
        ],
        "usage": USAGE,
    }
)


async def answer(request: web.Request) -> web.StreamResponse:
    asked = orjson.loads(await request.read())
    if not asked.get("stream"):
        return web.Response(body=_ANSWER, content_type="application/json")
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(CHUNKS):
        await response.write(_chunk([_choice({"content": f"{MARK}{time.monotonic():.9f} "}, None)]))
        await asyncio.sleep(CHUNK_EVERY_S)
    await response.write(_chunk([_choice({}, "stop")]))
    if (asked.get("stream_options") or {}).get("include_usage"):
        await response.write(_chunk([], usage=USAGE))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _choice(delta: dict[str, str], finish: str | None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _chunk(choices: list[dict[str, object]], **more: object) -> bytes:
    return (
        b"data: " + orjson.dumps({**_COMMON, "object": "chat.completion.chunk", "choices": choices, **more}) + b"\n\n"
    )


async def main() -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(main())
