"""Files go in and out whole; what an agent leaves can neither write outside the target nor fill the disk."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bench.sandbox.context import Member, contents
from bench.sandbox.transfer import TransferError, download_directory, download_file, upload
from tests.sandbox.conftest import Shell


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "sub" / "ünïcode name").write_bytes(b"\x00\xff")
    (root / "link").symlink_to("sub/ünïcode name")
    return root


async def test_a_tree_comes_back_as_it_went_in(shell: Shell, tree: Path, tmp_path: Path) -> None:
    await upload(shell.sandbox, contents(tree, "/app/new/tree"))
    assert await shell.say("/app/new/tree/run.sh; stat -c %U /app/new/tree/run.sh") == "ran\nroot"
    back = tmp_path / "back"
    assert await download_directory(shell.sandbox, "/app/new/tree", back) == []
    assert sorted(str(path.relative_to(back)) for path in back.rglob("*")) == sorted(
        str(path.relative_to(tree)) for path in tree.rglob("*")
    )
    assert (back / "run.sh").stat().st_mode & 0o111
    assert (back / "link").read_bytes() == b"\x00\xff"


async def test_uploads_keep_the_rights_of_directories_that_are_there(shell: Shell, tree: Path) -> None:
    await upload(shell.sandbox, contents(tree, "/logs/agent"))
    await upload(shell.sandbox, [Member(tree / "run.sh", "/tmp/run.sh")])
    assert await shell.say("stat -c %a /logs/agent /tmp") == "777\n1777"


async def test_an_empty_directory_is_made(shell: Shell, tmp_path: Path) -> None:
    await upload(shell.sandbox, contents(tmp_path, "/data/empty"))
    assert await shell.say("ls -A /data") == "empty"


async def test_a_file_out(shell: Shell, tmp_path: Path) -> None:
    await shell.say("printf 'x\\0y' > f; ln -s f link")
    await download_file(shell.sandbox, "/app/link", tmp_path / "deep" / "f")
    assert (tmp_path / "deep" / "f").read_bytes() == b"x\0y"


async def test_what_cannot_be_written_is_said(shell: Shell, tree: Path) -> None:
    with pytest.raises(TransferError, match=r"can't bring /usr/x into the sandbox: .*Read-only file system"):
        await upload(shell.sandbox, [Member(tree / "run.sh", "/usr/x")])


async def test_what_is_missing_is_said(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"can't bring /none out of the sandbox: .*No such file"):
        await download_file(shell.sandbox, "/none", tmp_path / "x")
    with pytest.raises(TransferError, match=r"can't bring /none out of the sandbox: .*No such file"):
        await download_directory(shell.sandbox, "/none", tmp_path / "d")
    with pytest.raises(FileNotFoundError):
        await upload(shell.sandbox, [Member(tmp_path / "none", "/app/x")])
    assert list(tmp_path.iterdir()) == []


async def test_links_that_lead_out_stay_behind(shell: Shell, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    await shell.say(f"mkdir d; ln -s {tmp_path} d/abs; ln -s ../.. d/up; ln -s {victim} d/file; echo ok > d/good")
    refused = await download_directory(shell.sandbox, "/app/d", tmp_path / "out")
    assert sorted(entry.split(":")[0] for entry in refused) == ["./abs", "./file", "./up"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]
    assert victim.read_text() == "mine"


async def test_pipes_devices_and_sockets_stay_behind(shell: Shell, tmp_path: Path) -> None:
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('d/sock')"
    await shell.say(f'mkdir d; mkfifo d/pipe; python3 -c "{bind}"; echo ok > d/good')
    refused = await download_directory(shell.sandbox, "/app/d", tmp_path / "out")
    assert [entry.split(":")[0] for entry in refused] == ["./pipe"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]


async def test_there_is_a_limit_to_what_comes_out(shell: Shell, tmp_path: Path) -> None:
    await shell.say("mkdir d; truncate -s 1T d/sparse; truncate -s 1T huge")
    with pytest.raises(TransferError, match="more than 1000000 bytes to bring out of the sandbox"):
        await download_file(shell.sandbox, "/app/huge", tmp_path / "x", limit=1_000_000)
    with pytest.raises(TransferError, match="more than 1000000 bytes to bring out of the sandbox"):
        await download_directory(shell.sandbox, "/app/d", tmp_path / "d", limit=1_000_000)
    assert shell.living() == []


async def test_a_socket_of_the_hosts_cannot_be_reached_by_path(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        code, _, _ = await shell.run(f"test -e {path}")
    assert code == 1
