"""JSON objects that Buzzbench wrote itself, read back: what is damaged is named with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput
from bench.faults import shown
from bench.reading import jsonl, textfile

MOST_BYTES = 256 * textfile.MIB
"""Harbor's records of a job name each of its trials."""


def read(path: Path, *, fix: str) -> dict[str, Any]:
    """The object in a file. Raises FileNotFoundError, and InvalidInput where it is damaged; `fix` says what to do."""
    if not path.exists():
        raise FileNotFoundError(path)
    where = shown(path)
    try:
        value = json.loads(textfile.text(path, what="file", most_bytes=MOST_BYTES))
    except InvalidInput as error:
        raise InvalidInput(replace(problem, fix=fix) for problem in error.problems) from None
    except json.JSONDecodeError as error:
        raise InvalidInput.of(
            f"{where}:{error.lineno}", f"is damaged ({error.msg}, column {error.colno})", fix
        ) from None
    except RecursionError:
        raise InvalidInput.of(where, "is damaged (nested without end)", fix) from None
    except ValueError:
        raise InvalidInput.of(where, f"is damaged ({textfile.TOO_LONG_A_NUMBER})", fix) from None
    if not isinstance(value, dict):
        raise InvalidInput.of(where, "is damaged (not a JSON object)", fix)
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
