"""Where a streamed answer goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class ClientGone(Exception):
    """The client left before the answer's end."""


class Sink(Protocol):
    """The client of one call, for an answer that is passed on as it comes. Its methods raise ClientGone."""

    @property
    def has_begun(self) -> bool:
        """Whether the client has the answer's status: from then on the call can't be made again."""

    @property
    def is_gone(self) -> bool:
        """Whether the client has left: nobody would have the answer of a call that is yet to go out."""

    async def begin(self, status: int, headers: Mapping[str, str]) -> None: ...

    async def write(self, data: bytes) -> None: ...
