"""The way to a real upstream: bodies byte for byte both ways, only keys and connection headers changed.

No total timeout, because a generation may take minutes; a silence of `SILENCE_S` ends the call. The upstream is asked
not to compress, so that its usage can be read (MEASURED.md section 2).
"""

from __future__ import annotations

import io
import time
import urllib.request
from collections.abc import AsyncGenerator, Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from bench import unreachable
from bench.gateway.protocol import Endpoint
from bench.gateway.wire import Wire

CONNECT_S = 30
SILENCE_S = 900

_WHOLE_BYTES = 1024 * 1024
"""A longer body goes out in pieces, so that other calls go on meanwhile."""

_OF_CONNECTION = ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
_OF_EACH_END = ("host", "content-length", "expect", "accept-encoding", "date", "server")
_OF_CLIENT = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto")
_CREDENTIALS = ("authorization", "x-api-key", "cookie", "set-cookie", "proxy-authenticate", "proxy-authorization")
_DROPPED = frozenset((*_OF_CONNECTION, *_OF_EACH_END, *_OF_CLIENT, *_CREDENTIALS))


class UpstreamFailed(Exception):
    """No answer came, or not to its end. `status` is what the client gets: 502, or 504 for a timeout.

    `sent` tells whether the request may have reached the upstream, which then may bill it. `again` tells whether
    another attempt is sensible: after a long silence it isn't.
    """

    def __init__(self, status: int, message: str, *, sent: bool, again: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent
        self.again = again


@dataclass(frozen=True)
class Answer:
    """What an upstream answered, whole. Times in seconds of `time.monotonic`."""

    status: int
    headers: CIMultiDict[str]
    body: bytes
    first_byte_at: float


@dataclass(frozen=True)
class Outgoing:
    """A call as the client made it: what is sent to the upstream."""

    headers: Mapping[str, str]
    query: str
    body: bytes


class Opening(Protocol):
    """An answer that has begun, of an upstream or of a cassette. Reading raises UpstreamFailed where it breaks off."""

    @property
    def status(self) -> int: ...

    @property
    def first_byte_at(self) -> float:
        """In seconds of the monotonic clock."""

    @property
    def headers(self) -> CIMultiDict[str]:
        """Those that are for the client."""

    @property
    def told(self) -> Mapping[str, str]:
        """Its headers, all of them."""

    @property
    def streams(self) -> bool:
        """Whether it comes event by event."""

    async def read(self) -> bytes:
        """The whole body."""

    def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it comes."""


class Opened:
    """An upstream's answer that has begun: an Opening over a response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.first_byte_at = time.monotonic()
        self.status = response.status
        self.told = response.headers
        """Its headers, all of them."""
        self.headers = passed_on(response.headers)
        """Those that are for the client."""

    @property
    def streams(self) -> bool:
        """Whether it comes event by event."""
        return self.status < 400 and self._response.content_type == "text/event-stream"

    async def read(self) -> bytes:
        """The whole body."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error, self._response.url) from error

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it comes."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error, self._response.url) from error

    def close(self) -> None:
        """The answer is no longer read. One that has not ended is broken off: the upstream then stops, where it can."""
        self._response.close()


def session() -> aiohttp.ClientSession:
    """The gateway's one client: no limit on connections, bodies as they come."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def opened(client: aiohttp.ClientSession, endpoint: Endpoint, wire: Wire, call: Outgoing) -> Opened:
    """The upstream's answer to one call, to be closed. Raises UpstreamFailed where none came.

    The message holds no key.
    """
    url = URL(wire.url(endpoint.base_url) + (f"?{call.query}" if call.query else ""), encoded=True)
    try:
        response = await client.post(
            url,
            data=call.body if len(call.body) <= _WHOLE_BYTES else io.BytesIO(call.body),
            headers=outgoing(call.headers, wire, endpoint.api_key),
            allow_redirects=False,
            proxy=_proxy(url.scheme, url.host or ""),
        )
    except (aiohttp.ClientError, OSError) as error:
        raise _failure(error, url) from error
    return Opened(response)


def _failure(error: Exception, url: URL) -> UpstreamFailed:
    """A failure of the connection as people read it, each timeout with its clock, its limit and where that is set."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            what = f"{url.host} took no connection within {CONNECT_S} s (bench.gateway.upstream.CONNECT_S)"
            return UpstreamFailed(504, what, sent=False)
        case aiohttp.ClientConnectorError():
            return UpstreamFailed(502, f"{url.host} can't be reached: {unreachable.said(error)}", sent=False)
        case aiohttp.SocketTimeoutError():
            what = f"{url.host} sent nothing for {SILENCE_S} s (bench.gateway.upstream.SILENCE_S)"
            return UpstreamFailed(504, what, sent=True, again=False)
        case _:
            return UpstreamFailed(502, f"{url.host} broke off: {type(error).__name__}", sent=True)


def outgoing(headers: Mapping[str, str], wire: Wire, api_key: str) -> CIMultiDict[str]:
    """The client's headers with the provider's key in place of the agent's token."""
    kept = passed_on(headers)
    kept["accept-encoding"] = "identity"
    # A request body that came compressed was unpacked for reading.
    kept.popall("content-encoding", None)
    if api_key:
        name, value = wire.key_header(api_key)
        kept[name] = value
    return kept


def passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """The headers without those that belong to one connection or hold a credential."""
    dropped: Container[str] = _DROPPED
    if named := headers.get("connection"):
        dropped = _DROPPED.union(name.strip().lower() for name in named.split(","))
    return CIMultiDict([(name, value) for name, value in headers.items() if name.lower() not in dropped])


@lru_cache
def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for a host. (aiohttp's own look-up would read `.netrc` for every call.)"""
    return None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(scheme)
