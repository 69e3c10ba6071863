"""One websocket that is kept up: dialled with a bounded back-off, authenticated, and its losses recorded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import orjson

from bench import unreachable
from bench.channel.errors import RelayGone, RelayRefused, is_trouble
from bench.nostr import Key

HEARTBEAT_S = 15.0
HANDSHAKE_S = 10.0
CHALLENGE_GRACE_S = 0.5
"""A relay that has sent no AUTH by then asks for it only after a refusal."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
FRAME_BYTES = 1 << 20

log = logging.getLogger("buzzbench.channel")


@dataclass(frozen=True)
class Interruption:
    """One loss of the connection. Times are Unix seconds; `back_at` is None while it lasts."""

    lost_at: float
    back_at: float | None
    cause: str


class Connection:
    """The websocket of one identity.

    `on_frame` gets every frame but those of the authentication; `on_open` is called when frames may go out
    (True: on a new connection; False: on the same one, now authenticated); `on_loss`, with Unix seconds, when
    it broke.
    """

    def __init__(
        self,
        url: str,
        key: Key,
        auth_tag: Sequence[str] | None,
        gone_after_s: float,
        *,
        on_frame: Callable[[list[Any]], None],
        on_open: Callable[[bool], None],
        on_loss: Callable[[float], None],
    ) -> None:
        self.url, self.key, self.auth_tag, self.gone_after_s = url, key, auth_tag, gone_after_s
        self.on_frame, self.on_open, self.on_loss = on_frame, on_open, on_loss
        self.interruptions: list[Interruption] = []
        self.authenticated = False
        self._open = False
        self._auth_id = ""
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._down_since: float | None = None  # of the loop's clock
        self._pauses = pauses()

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Keep the connection up until cancelled. Raises RelayGone, or RelayRefused (the host, the AUTH)."""
        self._down_since = asyncio.get_running_loop().time()
        try:
            while True:
                self._socket = await self._dial(session)
                cause = await self._converse(self._socket)
                if self._down_since is not None:  # it broke before it was of use
                    await self._back_off(cause)
                self._lost(cause)
        finally:
            if self._socket is not None:
                await self._socket.close()

    async def send(self, frame: str) -> None:
        """Send it if the connection can carry it now; else `on_open` is the time to send it again."""
        if self._open:
            await self._write(frame)

    async def _write(self, frame: str) -> None:
        assert self._socket is not None
        # Into a connection that has just broken: after the reconnect, everything unanswered is sent again.
        with contextlib.suppress(ConnectionError):
            await self._socket.send_str(frame)

    async def _dial(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        while True:
            try:
                async with asyncio.timeout(HANDSHAKE_S):
                    return await session.ws_connect(self.url, heartbeat=HEARTBEAT_S, max_msg_size=FRAME_BYTES)
            except aiohttp.WSServerHandshakeError as error:
                cause = f"HTTP {error.status} {error.message}"
                if error.status < 500:
                    raise RelayRefused("the connection", cause) from None
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                cause = unreachable.said(error)
            await self._back_off(cause)

    async def _back_off(self, cause: str) -> None:
        pause = next(self._pauses)
        assert self._down_since is not None
        if asyncio.get_running_loop().time() + pause > self._down_since + self.gone_after_s:
            raise RelayGone(f"{self.url} could not be reached for {self.gone_after_s:g} s: {cause}")
        await asyncio.sleep(pause)

    async def _converse(self, socket: aiohttp.ClientWebSocketResponse) -> str:
        """Handle what the relay says until the connection ends; returns why it did."""
        self.authenticated, self._auth_id = False, ""
        grace = asyncio.get_running_loop().call_later(CHALLENGE_GRACE_S, self._ready)
        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                match frame := orjson.loads(message.data):
                    case ["AUTH", challenge]:
                        grace.cancel()
                        answer = self.key.answer_challenge(challenge, self.url, self.auth_tag)
                        self._auth_id = answer["id"]
                        await self._write(orjson.dumps(["AUTH", answer]).decode())
                    case ["OK", identity, accepted, reason] if identity == self._auth_id:
                        if not accepted and is_trouble(reason):
                            await socket.close()
                            return f"the authentication failed: {reason}"
                        if not accepted:
                            raise RelayRefused("the authentication", reason)
                        self.authenticated = True
                        self._ready()
                    case _:
                        self.on_frame(frame)
        finally:
            grace.cancel()
            self._open = False
        error = socket.exception()
        return unreachable.said(error) if error else f"closed with code {socket.close_code}"

    def _lost(self, cause: str) -> None:
        now = time.time()
        if self._down_since is None:
            self._down_since = asyncio.get_running_loop().time()
            self.interruptions.append(Interruption(now, None, cause))
        self.on_loss(now)

    def _ready(self) -> None:
        new, self._open = not self._open, True
        if self.interruptions and self._down_since is not None:
            self.interruptions[-1] = replace(self.interruptions[-1], back_at=time.time())
        self._down_since, self._pauses = None, pauses()
        self.on_open(new)


def pauses() -> Iterator[float]:
    """Seconds to wait between attempts, without end; jittered so that many clients don't knock at once."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311 (not a secret)
        pause = min(pause * 2, LONGEST_PAUSE_S)
