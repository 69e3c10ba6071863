"""The state: made once, private, never silently made anew."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bench import keys
from bench.errors import InvalidInput


def test_the_state_is_made_once_and_reused(tmp_path: Path) -> None:
    first = keys.ensure(tmp_path / "state")
    before = keys.state_path(tmp_path / "state").read_bytes()
    assert keys.ensure(tmp_path / "state") == first
    assert keys.state_path(tmp_path / "state").read_bytes() == before


def test_directory_and_file_are_private(tmp_path: Path) -> None:
    keys.ensure(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert keys.state_path(tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_the_fields_are_those_of_the_reference(tmp_path: Path) -> None:
    keys.ensure(tmp_path)
    values = json.loads(keys.state_path(tmp_path).read_text())
    lengths = {name: len(value) for name, value in values.items()}
    assert lengths == {
        "owner_secret_key": 64,
        "user_secret_key": 64,
        "relay_private_key": 64,
        "postgres_password": 32,
        "redis_password": 32,
        "s3_access_key": 20,
        "s3_secret_key": 40,
        "git_hook_hmac_secret": 64,
    }


def test_two_makers_at_once_get_the_same_state(tmp_path: Path) -> None:
    made: list[keys.State] = []
    threads = [threading.Thread(target=lambda: made.append(keys.ensure(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert all(state == made[0] for state in made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "damaged"),
        ("{", r"state\.json:1: is damaged \(Expecting property name"),
        ('{\n"a": 1,\n', r"state\.json:3: is damaged"),
        ("[" * 100_000, "damaged"),
        ("[]", "not a JSON object"),
        ("\x00\xff", "damaged"),
    ],
)
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, text: str, said: str) -> None:
    path = keys.state_path(tmp_path)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput, match=said) as raised:
        keys.ensure(tmp_path)
    assert str(path) in str(raised.value)
    assert "restore it from a backup, or delete it" in str(raised.value)
    assert path.read_text(encoding="latin-1") == text


def test_every_bad_field_is_named_at_once_and_no_key_is_shown(tmp_path: Path) -> None:
    keys.ensure(tmp_path)
    path = keys.state_path(tmp_path)
    values = json.loads(path.read_text())
    secret = values["owner_secret_key"]
    damaged = {name: value for name, value in values.items() if name != "redis_password"}
    path.write_text(json.dumps(damaged | {"owner_secret_key": secret + "00", "s3_access_key": 7}, indent=2))
    with pytest.raises(InvalidInput) as raised:
        keys.ensure(tmp_path)
    assert len(raised.value.problems) == 3
    assert f"{path}:2: owner_secret_key: neither nsec1… nor 64 hex digits" in str(raised.value)
    assert f"{path}: redis_password: missing" in str(raised.value)
    assert f"{path}:6: s3_access_key: not a text" in str(raised.value)
    assert secret not in str(raised.value)


def test_without_a_state_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="run `inv keys`"):
        keys.load(tmp_path)


def test_secrets_are_printed_on_a_terminal_or_on_request_only(tmp_path: Path) -> None:
    state = keys.ensure(tmp_path)
    piped = "\n".join(keys.report(state, show=False, interactive=False))
    terminal = "\n".join(keys.report(state, show=False, interactive=True))
    asked = "\n".join(keys.report(state, show=True, interactive=False))
    assert state.user.npub in piped
    assert state.user.nsec not in piped
    assert "inv keys --show" in piped
    assert state.user.nsec in terminal
    assert state.user.secret in asked
    assert state.owner.secret not in terminal + asked


def test_a_state_never_shows_its_secrets(tmp_path: Path) -> None:
    state = keys.ensure(tmp_path)
    assert state.user.secret not in repr(state)
    assert state.postgres_password not in repr(state)


def test_a_state_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"the state directory can't be made: .*; set BUZZBENCH_STATE_DIR"):
        keys.ensure(tmp_path / "file")
