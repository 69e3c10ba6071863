"""Files of JSON lines, which a crash may cut off: what is whole is read, what is appended gets a line of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from bench.files import append_line, sync_directory


def read(path: Path, warnings: list[str]) -> Iterator[dict[str, Any]]:
    """The objects of the file, none where it is missing; a line that is none is named in `warnings` and passed over."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        warnings.append(f"{path}: can't be read ({error.strerror}), passed over")
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = parse(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            yield value
        else:
            warnings.append(passed_over(path, number))


def passed_over(path: Path, number: int) -> str:
    """What is said of a line that is no object."""
    return f"{path}, line {number}: not a JSON object (cut off?), passed over"


def parse(text: bytes) -> Any:
    """A JSON value, also with what only Python's own reader takes (NaN, Infinity). Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def append(path: Path, value: Mapping[str, Any]) -> None:
    """Append one object, on disk when this returns. Raises OSError."""
    line = json.dumps(value, ensure_ascii=False)
    is_new = not path.exists()
    append_line(path, f"\n{line}" if _is_torn(path) else line)
    if is_new:
        sync_directory(path.parent)


def _is_torn(path: Path) -> bool:
    """Whether a crash left the last line without its end: what is appended must not be glued to it."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"
