"""What went wrong with a connection, as people read it: aiohttp's and asyncio's own words name their classes."""

from __future__ import annotations

import errno
import os
import re


def said(error: BaseException) -> str:
    """Why there is no answer, in a few words.

    >>> said(OSError(111, "Connect call failed ('127.0.0.1', 3600)")), said(TimeoutError())
    ('connection refused', 'no answer in time')
    """
    import aiohttp

    match error:
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorDNSError():
            return "no such host"
        case aiohttp.ClientSSLError():
            return "its certificate, or its TLS, is refused"
        case aiohttp.ClientConnectorError():
            return said(error.os_error)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionResetError():
            return "the connection broke off"
        case OSError(errno=int(number)) if number in errno.errorcode:
            return os.strerror(number).lower()
        case OSError() if "Connect call failed" in str(error):
            # Several addresses were tried, and each has its number in the text alone.
            numbers = {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))}
            return ", ".join(sorted(os.strerror(number).lower() for number in numbers)) or "connection refused"
        case aiohttp.ClientError():
            return "the connection failed"
        case _:
            return " ".join(str(error).split()) or type(error).__name__
