"""The agents' programs on this host, and in an environment."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import MachineLacks
from bench.harness.buzz import failures, fixed, programs


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in (*fixed.AGENTS, fixed.FORWARDER):
        (tmp_path / name).write_text(name)
    (tmp_path / "deps").mkdir()
    return tmp_path


class Environment:
    """One that runs a check by hand, since only its answer matters here."""

    def __init__(
        self, *, mounted: bool = False, answer: tuple[int, str] = (0, ""), default_user: str | None = None
    ) -> None:
        self.mounted, self.answer, self.default_user = mounted, answer, default_user
        self.uploaded: dict[str, list[str]] = {}
        self.ran: list[str] = []

    async def exec(self, command: str, *, timeout_sec: int | None = None, user: Any = None) -> Any:
        self.ran.append(command)
        return SimpleNamespace(return_code=self.answer[0], stdout=self.answer[1], stderr=None)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        self.uploaded[target_dir] = sorted(path.name for path in Path(source_dir).iterdir())

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        raise AssertionError

    def is_path_mounted(self, environment_path: str, host_path: Path) -> bool:
        return self.mounted


def test_each_program_is_known_by_its_hash_also_after_it_was_replaced(directory: Path) -> None:
    found = programs.load(directory, forwarder=True)
    assert found.sha256["buzz-acp"] == hashlib.sha256(b"buzz-acp").hexdigest()
    (directory / "buzz-acp").write_text("another one")
    assert programs.load(directory, forwarder=True).sha256["buzz-acp"] == hashlib.sha256(b"another one").hexdigest()


def test_missing_programs_are_named(directory: Path) -> None:
    (directory / "buzz-agent").unlink()
    (directory / fixed.FORWARDER).unlink()
    with pytest.raises(MachineLacks, match=r"there is no buzz-agent; run `inv xbuild`$"):
        programs.load(directory, forwarder=False)
    with pytest.raises(MachineLacks, match="there is no buzz-agent and no relay-forwarder"):
        programs.load(directory, forwarder=True)


async def test_what_is_mounted_is_not_uploaded(directory: Path) -> None:
    environment = Environment(mounted=True)
    assert not await programs.install(environment, programs.load(directory, forwarder=True))
    assert (environment.uploaded, environment.ran) == ({}, [])


async def test_what_is_mounted_has_to_be_for_the_user_that_the_task_has(directory: Path) -> None:
    """An uploaded copy is made so; a mounted program is as it is on this host."""
    for name in (*fixed.AGENTS, fixed.FORWARDER):
        (directory / name).chmod(0o755)
    (directory / "buzz-acp").chmod(0o744)
    found = programs.load(directory, forwarder=True)
    assert not await programs.install(Environment(mounted=True), found)
    what = f"{directory}: dev, as whom the task has its agents, may not run buzz-acp; chmod a+rx {directory}/buzz-acp"
    with pytest.raises(failures.InstallFailed, match=f"^{re.escape(what)}$"):
        await programs.install(Environment(mounted=True, default_user="dev"), found)
    (directory / "buzz-acp").chmod(0o755)
    assert not await programs.install(Environment(mounted=True, default_user="dev"), found)


async def test_what_is_uploaded_is_the_programs_alone_and_is_checked_there(directory: Path) -> None:
    environment = Environment()
    found = programs.load(directory, forwarder=True)
    assert await programs.install(environment, found)
    assert environment.uploaded == {fixed.PROGRAMS: sorted(found.sha256)}
    (check,) = environment.ran
    assert all(digest in check for digest in found.sha256.values())


async def test_an_upload_that_did_not_arrive_whole_is_told(directory: Path) -> None:
    environment = Environment(answer=(1, "buzz-acp: FAILED\nsha256sum: WARNING: 1 computed checksum did NOT match\n"))
    with pytest.raises(failures.InstallFailed, match=r"did not arrive whole: buzz-acp: FAILED; sha256sum: WARNING"):
        await programs.install(environment, programs.load(directory, forwarder=True))
