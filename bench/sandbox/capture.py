"""What a command prints: read as it comes, kept within bounds.

Pipes, not files: a runaway command, or a server it leaves behind, can't fill the disk, and `> /dev/stderr` doesn't
truncate what was said before. But their end is never waited for, since whoever a command leaves behind may hold them
open for ever (HARBOR.md section 9.1): the process's end is what counts, and what still comes later is read and dropped.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Awaitable, Callable
from typing import Literal

from bench.sandbox import fd

HALF_BYTES = 512 * 1024
"""Of each stream the first and the last so many bytes are kept."""

_CHUNK_BYTES = 64 * 1024
_LAST_READS = 16  # a pipe holds one chunk; a writer that lives on must not keep us reading

Stream = Literal["stdout", "stderr"]
Callback = Callable[[str, Stream], Awaitable[None]]


class Capture:
    """The head and the tail of a stream of bytes. `listener` is shown all of it."""

    def __init__(self, half: int = HALF_BYTES, listener: Callable[[bytes], None] | None = None) -> None:
        self._half = half
        self._listener = listener
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        """Take in what was read next."""
        if self._listener:
            self._listener(data)
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[max(room, 0) :]
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self.left_out += excess

    def text(self) -> str:
        """What is kept, as text; what isn't UTF-8 becomes U+FFFD. Says how much is missing in the middle."""
        if not self.left_out:
            return (self._head + self._tail).decode(errors="replace")
        gap = f"\n[... {self.left_out} bytes left out: the sandbox keeps the first and last {self._half} ...]\n"
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")


class Pump:
    """A pipe whose one end is for a command, and whose other is read into `sink` as the loop turns.

    What the sink raises is kept in `error`, and sets `failed`; the rest is dropped.
    """

    def __init__(self, sink: Callable[[bytes], None], failed: asyncio.Event) -> None:
        self._sink: Callable[[bytes], None] | None = sink
        self._failed = failed
        self.error: Exception | None = None
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        # The sandbox's root is another user where ours is the host's: it reopens /dev/stdout by these rights.
        os.fchmod(self.write, 0o666)
        self.open = True

    def begin(self) -> None:
        """The command has its end: close ours, and read."""
        os.close(self.write)
        asyncio.get_running_loop().add_reader(self._read, self._turn)

    def finish(self) -> bool:
        """The command has ended: take in what it left in the pipe, and drop what comes later. False if none will."""
        for _ in range(_LAST_READS):
            if not self._turn():
                break
        self._sink = None
        return self.open

    def close(self) -> None:
        """Stop reading. Whoever still writes gets SIGPIPE."""
        if self.open:
            self.open = False
            asyncio.get_running_loop().remove_reader(self._read)
            os.close(self._read)

    def discard(self) -> None:
        """Close both ends: no command ever got its own."""
        self.open = False
        fd.close(self._read, self.write)

    def _turn(self) -> bool:
        if not self.open:
            return False
        try:
            data = os.read(self._read, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        if self._sink:
            try:
                self._sink(data)
            except Exception as error:  # raised to who waits for the command: here is nobody but the loop
                self.error, self._sink = error, None
                self._failed.set()
        return True


class Listener:
    """Hands what is printed to Harbor's callback, in order and while the command runs."""

    def __init__(self, callback: Callback) -> None:
        self._pieces: asyncio.Queue[tuple[str, Stream] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._hand_on(callback))

    def hears(self, stream: Stream) -> Callable[[bytes], None]:
        """What to call with the bytes of one stream; characters cut in two by a read are put together again."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def hear(data: bytes) -> None:
            text = decoder.decode(data)
            if text:
                self._pieces.put_nowait((text, stream))

        return hear

    async def close(self) -> None:
        """Return when the callback has had everything; an error that it raised is raised here."""
        self._pieces.put_nowait(None)
        await self._task

    async def _hand_on(self, callback: Callback) -> None:
        while (piece := await self._pieces.get()) is not None:
            await callback(*piece)
