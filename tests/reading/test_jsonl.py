"""Files of JSON lines: whatever a crash cut off, the rest is read and can be appended to."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.reading import jsonl


def test_lines_that_are_no_objects_are_named_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n\n[1]\n\xff\n{"a": NaN}\n{"a": ' + b"[" * 100_000 + b"\n{")
    warnings: list[str] = []
    first, second = jsonl.read(path, warnings)
    assert first == {"a": 1}
    assert math.isnan(second["a"])
    assert warnings == [f"{path}, line {n}: not a JSON object (cut off?), passed over" for n in (3, 4, 6, 7)]


def test_what_is_not_there_or_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    warnings: list[str] = []
    assert list(jsonl.read(tmp_path / "none", warnings)) == []
    assert warnings == []
    assert list(jsonl.read(tmp_path, warnings)) == []
    assert warnings == [f"{tmp_path}: can't be read (Is a directory), passed over"]


@pytest.mark.parametrize(("before", "after"), [(b"", 1), (b'{"a": 1}\n', 2), (b'{"a": 1}\n{"cut', 2), (b'{"a": 1}', 2)])
def test_what_is_appended_is_never_glued_to_a_torn_line(tmp_path: Path, before: bytes, after: int) -> None:
    path = tmp_path / "x.jsonl"
    if before:
        path.write_bytes(before)
    jsonl.append(path, {"b": 2})
    lines = list(jsonl.read(path, []))
    assert (len(lines), lines[-1]) == (after, {"b": 2})
