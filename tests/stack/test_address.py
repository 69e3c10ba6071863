"""The address of a stack is read as it was written, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.errors import InvalidInput
from bench.stack import StackAddress, address, paths

FOUND = StackAddress("embedded", "ws://localhost:1", "host=/x", "http://127.0.0.1:2", "/x/gateway.sock")


def test_an_address_is_read_back(tmp_path: Path) -> None:
    assert address(tmp_path) is None
    (tmp_path / "stack.json").write_text(json.dumps(asdict(FOUND)))
    assert address(tmp_path) == FOUND


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"kind": "embedded"}'])
def test_a_damaged_one_is_named_with_the_way_on(tmp_path: Path, damage: str) -> None:
    (tmp_path / "stack.json").write_text(damage)
    with pytest.raises(
        InvalidInput, match=r"stack\.json: damaged: not the address of a stack; run `inv down`, then `inv up`"
    ):
        address(tmp_path)


def test_a_changed_address_never_names_another_directory_of_sockets(tmp_path: Path) -> None:
    """`inv down` removes that directory."""
    before = paths.socket_dir(tmp_path)
    (tmp_path / "stack.json").write_text(
        json.dumps({**asdict(FOUND), "gateway_control": str(tmp_path / "gateway.sock")})
    )
    assert paths.socket_dir(tmp_path) == before


def test_sockets_have_short_paths_however_deep_the_project_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("a" * 100)
    for runtime in ("", str(deep), "/no/such/directory", f"{tmp_path}/with blank"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        found = paths.socket_dir(deep)
        assert len(str(found / ".s.PGSQL.5432")) <= 103
        assert " " not in str(found)
