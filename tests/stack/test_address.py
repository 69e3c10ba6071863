"""The address of a stack is read as it was written, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError, InvalidInput
from bench.stack import StackAddress, address, forget_address, paths

FOUND = StackAddress("embedded", "ws://localhost:1", "host=/x", "http://127.0.0.1:2", "/x/gateway.sock")


def test_an_address_is_read_back(tmp_path: Path) -> None:
    assert address(tmp_path) is None
    (tmp_path / "stack.json").write_text(json.dumps(asdict(FOUND)))
    assert address(tmp_path) == FOUND


WHOLE = json.dumps(asdict(FOUND), indent=2)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("", ":1: is damaged (Expecting value, column 1)"),
        (WHOLE[:-10], ":6: is damaged ("),
        ("[]", ": is damaged (not a JSON object)"),
        (WHOLE.replace('"ws://localhost:1"', "1"), ":3: relay_url: is missing, or no text"),
        ("[" * 99_999, ": is damaged (nested without end)"),
        ('{"kind": "embedded"}', ": dsn: is missing, or no text"),
    ],
)
def test_a_damaged_one_is_named_with_its_line_and_the_way_on(tmp_path: Path, damage: str, said: str) -> None:
    (tmp_path / "stack.json").write_text(damage)
    with pytest.raises(InvalidInput) as caught:
        address(tmp_path)
    assert f"{tmp_path}/stack.json{said}" in str(caught.value)
    assert all(line.endswith("; run `inv down`, then `inv up`") for line in str(caught.value).splitlines())
    # What `inv down` asks of it on its way.
    assert paths.socket_dir(tmp_path).is_absolute()
    forget_address(tmp_path)
    assert address(tmp_path) is None


def test_an_address_that_cannot_be_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "stack.json").mkdir()
    assert paths.socket_dir(tmp_path).is_absolute()
    with pytest.raises(BuzzbenchError, match=r"stack\.json: can't be removed: Is a directory; remove it"):
        forget_address(tmp_path)


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
