"""Why a connection failed, without a word of aiohttp's or asyncio's."""

from __future__ import annotations

import aiohttp
import pytest
from yarl import URL

from bench import unreachable
from tests.ports import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_is_called_so(host: str) -> None:
    assert await _said(f"http://{host}:{free_port()}/") == "connection refused"


async def test_a_host_that_there_isnt_is_called_so() -> None:
    assert await _said("http://nowhere.invalid/") == "no such host"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "no answer in time"),
        (aiohttp.ServerDisconnectedError(), "the connection broke off"),
        (ConnectionResetError(104, "Connection reset by peer"), "the connection broke off"),
        (OSError(28, "No space left on device"), "no space left on device"),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] …"),
            "connection refused",
        ),
    ],
)
def test_other_failures_are_told_in_a_few_words(error: Exception, said: str) -> None:
    assert unreachable.said(error) == said


async def _said(url: str) -> str:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as failed:
            await session.get(URL(url))
    return unreachable.said(failed.value)
