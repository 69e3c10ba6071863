"""The table of public cases in tests/README.md names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_test_that_the_table_of_cases_names_is_there() -> None:
    rows = [line for line in (TESTS / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = 0
    for row in rows:
        file = ""
        for reference in re.findall(r"`([^`]*)`", row.rsplit("|", 2)[1]):
            file, _, name = (reference if not reference.startswith("::") else file + reference).partition("::")
            assert f"def {name}" in (TESTS / file).read_text(encoding="utf-8"), f"{file}::{name}"
            named += 1
    assert named > len(rows) > 40
