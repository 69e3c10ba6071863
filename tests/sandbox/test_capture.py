"""Whatever a command prints, so much of it is kept, and the gap says its size."""

from __future__ import annotations

import asyncio

import pytest

from bench.sandbox.capture import Capture, Listener, Stream
from tests.sandbox.conftest import Shell


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_little_is_kept_whole(size: int) -> None:
    capture = Capture(half=5)
    for at in range(0, 10, size):
        capture.feed(b"0123456789"[at : at + size])
    assert capture.text() == "0123456789"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_of_much_the_middle_is_left_out_and_counted(size: int) -> None:
    text = b"head." + b"x" * 90 + b".tail"
    capture = Capture(half=5)
    for at in range(0, len(text), size):
        capture.feed(text[at : at + size])
    assert capture.left_out == 90
    assert capture.text() == "head.\n[... 90 bytes left out: the sandbox keeps the first and last 5 ...]\n.tail"


def test_what_is_no_text_is_shown_as_such() -> None:
    capture = Capture()
    capture.feed(b"a\xffb")
    assert capture.text() == "a\ufffdb"


async def test_a_flood_stays_within_bounds(shell: Shell) -> None:
    code, out, _ = await shell.run("head -c 20000000 /dev/zero | tr '\\0' y; echo end")
    assert code == 0
    assert len(out) < 1_100_000
    assert out.endswith("end\n")
    assert "bytes left out" in out


async def test_a_listener_hears_all_in_order_and_no_broken_characters() -> None:
    heard: list[tuple[str, Stream]] = []

    async def callback(text: str, stream: Stream) -> None:
        await asyncio.sleep(0)
        heard.append((text, stream))

    listener = Listener(callback)
    out, err = listener.hears("stdout"), listener.hears("stderr")
    out("é".encode()[:1])
    err(b"!")
    out("é".encode()[1:] + b"t")
    await listener.close()
    assert heard == [("!", "stderr"), ("ét", "stdout")]


async def test_a_callbacks_error_is_raised_to_who_asked() -> None:
    async def callback(text: str, stream: Stream) -> None:
        raise LookupError(text)

    listener = Listener(callback)
    listener.hears("stdout")(b"x")
    with pytest.raises(LookupError):
        await listener.close()
