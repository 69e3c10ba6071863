"""Load on a model's API: closed loops of clients, and streams. Times in milliseconds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import aiohttp
import orjson

from bench.errors import BuzzbenchError
from bench.perf.fakemodel import MARK

PROMPT_CHARACTERS = 20_000
_ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "z" * PROMPT_CHARACTERS}]}


@dataclass(frozen=True)
class Way:
    """One way to the model: its address, and the token that it takes."""

    name: str
    base_url: str
    token: str = ""

    @property
    def url(self) -> str:
        return f"{self.base_url}/v1/chat/completions"

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "authorization": f"Bearer {self.token}"}


async def calls(http: aiohttp.ClientSession, way: Way, *, clients: int, seconds: float) -> list[float]:
    """How long each call took, with so many clients that call again as soon as they are answered."""
    body = orjson.dumps(_ASK)
    took: list[float] = []
    end = time.monotonic() + seconds

    async def client() -> None:
        while (began := time.monotonic()) < end:
            async with http.post(way.url, data=body, headers=way.headers) as response:
                text = await response.read()
                _check(way, response.status, text)
            took.append((time.monotonic() - began) * 1000)

    await asyncio.gather(*(client() for _ in range(clients)))
    return took


async def chunk_delays(http: aiohttp.ClientSession, way: Way, *, streams: int) -> list[float]:
    """From the model's sending of each chunk to the client's having it, over so many streams at once."""
    body = orjson.dumps({**_ASK, "stream": True})
    delays: list[float] = []

    async def stream() -> None:
        async with http.post(way.url, data=body, headers=way.headers) as response:
            _check(way, response.status, b"")
            async for data in response.content.iter_any():
                now = time.monotonic()
                for piece in data.decode().split(f'"{MARK}')[1:]:
                    delays.append((now - float(piece.split(" ", 1)[0])) * 1000)

    await asyncio.gather(*(stream() for _ in range(streams)))
    return delays


def _check(way: Way, status: int, text: bytes) -> None:
    if status != 200:
        raise BuzzbenchError(f"{way.name} answered {status} {text[:300].decode(errors='replace')}", where=way.url)
