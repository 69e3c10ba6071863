"""Jobs packed in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import pack
from bench.errors import InvalidInput
from bench.pack import Said, Wish
from tests.pack import jobs

SAID = Said(agent_url="https://example.org/team", org="Example")
KEY = "canary+key/5f0c1d7e9b"


def packed(home: Path, *names: str, **wish: Any) -> pack.Packed:
    given: dict[str, Any] = {"jobs": names or ("lb-team",), "out": home / "out", "said": SAID} | wish
    return pack.pack(jobs.settings(home), Wish(**given), {"ANTHROPIC_API_KEY": KEY})


def refused(home: Path, *names: str, **wish: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        packed(home, *names, **wish)
    assert not (home / "out").exists()
    return str(caught.value).splitlines()


def names_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
