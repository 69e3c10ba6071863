"""Uploading: the login is checked before anything costs money, and a failed upload loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import upload
from bench.errors import BuzzbenchError


def test_without_a_login_the_way_to_one_is_named(tmp_path: Path) -> None:
    problem = upload.problem({"HOME": str(tmp_path)})
    assert problem
    assert problem.lacks
    assert "harbor auth login" in str(problem)


def test_a_key_or_stored_credentials_are_a_login(tmp_path: Path) -> None:
    assert upload.problem({"HOME": str(tmp_path), "HARBOR_API_KEY": "x"}) is None
    (tmp_path / ".harbor").mkdir()
    (tmp_path / ".harbor" / "credentials.json").write_text("{}")
    assert upload.problem({"HOME": str(tmp_path)}) is None


def test_harbor_keeps_its_credentials_where_we_look() -> None:
    from harbor.auth.constants import CREDENTIALS_PATH

    assert Path.home() / upload.CREDENTIALS == CREDENTIALS_PATH


def test_a_failed_upload_names_the_command_to_repeat(tmp_path: Path) -> None:
    with pytest.raises(BuzzbenchError, match=r"the job is kept; repeat `.*harbor upload .*nowhere`"):
        upload.upload(tmp_path / "nowhere")
