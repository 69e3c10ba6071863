"""JSON objects that Buzzbench wrote itself, read back: what is damaged is named with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import jsonl
from bench.errors import InvalidInput
from bench.faults import shown


def read(path: Path, *, fix: str) -> dict[str, Any]:
    """The object in a file. Raises FileNotFoundError, and InvalidInput where it is damaged; `fix` says what to do."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput.of(shown(path), f"can't be read: {error.strerror}", fix) from None
    except json.JSONDecodeError as error:
        raise InvalidInput.of(
            f"{shown(path)}:{error.lineno}", f"is damaged ({error.msg}, column {error.colno})", fix
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(shown(path), f"is damaged ({error})", fix) from None
    if not isinstance(value, dict):
        raise InvalidInput.of(shown(path), "is damaged (not a JSON object)", fix)
    return value


def object_in(path: Path, *, most_bytes: int | None = None) -> dict[str, Any] | None:
    """The object in a file; None where there is none, or where it is larger than it may be. Never raises."""
    try:
        if not path.is_file() or (most_bytes is not None and path.stat().st_size > most_bytes):
            return None
        value = jsonl.parse(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def place(path: Path, field: str) -> str:
    """Where a field of a flat object stands: `state.json:3: owner_secret_key`, without a line where it is missing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next((number for number, line in enumerate(lines, 1) if f'"{field}":' in line), None)
    return f"{shown(path)}:{number}: {field}" if number else f"{shown(path)}: {field}"
