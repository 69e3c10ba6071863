"""The gateway's configuration, as it comes on standard input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bench.errors import InvalidInput


@dataclass(frozen=True)
class Config:
    """Where the gateway listens; port 0 lets the system choose. `ready_file` is written when it serves.

    `bridge` is a second address, on which containers reach it, with the same port; empty where there is none.
    """

    host: str
    port: int
    control: Path
    ready_file: Path
    bridge: str = ""


def read(text: str) -> Config:
    """The configuration in a JSON text. Raises InvalidInput."""
    try:
        given = json.loads(text)
        return Config(
            str(given["host"]),
            int(given["port"]),
            Path(given["control"]),
            Path(given["ready_file"]),
            str(given.get("bridge") or ""),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput.of(
            "standard input",
            f"no configuration of the gateway ({type(error).__name__}: {error})",
            'give {"host", "port", "control", "ready_file"}',
        ) from error
