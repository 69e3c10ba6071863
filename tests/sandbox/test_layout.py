"""What is the host's stays the host's: a sandbox shows programs, and nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from bench.sandbox import probe
from bench.sandbox.instance import Instance
from bench.sandbox.launch import NOBODY
from bench.sandbox.layout import Layout, read_only
from bench.settings import ROOT
from tests.sandbox.conftest import Shell


async def test_nothing_of_the_persons_is_there(shell: Shell) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        hidden = (secret.name, str(ROOT), str(Path("~/.ssh").expanduser()), "/etc/shadow", "/etc/hostname.d", "/sys")
        for path in hidden:
            code, _, _ = await shell.run(f"test -e {path}")
            assert code == 1, path


async def test_its_own_directories_are_empty(shell: Shell) -> None:
    listing = await shell.say("for d in /app /tmp /root /home /run /var/tmp /mnt /opt /srv; do ls -A $d; done")
    assert listing == ""


async def test_of_etc_only_the_list_is_shown(shell: Shell) -> None:
    names = set((await shell.say("ls -A /etc")).split())
    assert {"passwd", "group", "hosts", "hostname", "nsswitch.conf"} <= names
    assert not names & {"shadow", "gshadow", "sudoers", "ssh", "machine-id", "gitconfig", "npmrc", "pip.conf", "apt"}
    assert await shell.say("ls /etc/ssl") in ("certs", "certs\nopenssl.cnf", "cert.pem\ncerts\nopenssl.cnf")


async def test_the_hosts_users_are_unknown(shell: Shell) -> None:
    assert await shell.say("cut -d: -f1 /etc/passwd /etc/group") == "root\nnobody\nroot\nnogroup"
    assert await shell.say("whoami; hostname; echo $HOME") == "root\nsandbox\n/root"


async def test_root_inside_is_a_user_with_a_namespace_of_its_own(shell: Shell) -> None:
    assert await shell.say("id -u") == "0"
    inside, outside, length = (await shell.say("cat /proc/self/uid_map")).split()
    assert (inside, length) == ("0", "1")
    theirs = Path(f"/proc/{shell.sandbox.pid}/ns/user").readlink()
    assert theirs != Path("/proc/self/ns/user").readlink()
    assert outside == str(os.geteuid() or NOBODY), "what only root may read must stay unread"


async def test_the_hosts_programs_cannot_be_written_nor_made_writable(shell: Shell) -> None:
    code, _, errors = await shell.run("touch /usr/x")
    assert code == 1
    assert "Read-only file system" in errors
    for attempt in ("mount -o remount,rw,bind /usr", "unshare -Urm mount -o remount,rw,bind /usr"):
        code, _, _ = await shell.run(attempt)
        assert code != 0, attempt
    code, _, errors = await shell.run("mount -t tmpfs x /app; umount -l /usr; touch /usr/x")
    assert code != 0


async def test_the_kernel_is_not_its_to_set(shell: Shell) -> None:
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname.x", "/proc/sysrq-trigger"):
        code, _, _ = await shell.run(f"echo x > {path}")
        assert code == 1, path


async def test_nothing_of_our_environment_is_in_any_process(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "sk-123")
    sandbox = await Instance.start(probe.tools(), Layout())
    try:
        seen = await Shell(sandbox).say("cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
    finally:
        await sandbox.stop()
    assert "sk-123" not in seen
    assert {line.split("=")[0] for line in seen.splitlines()} <= {
        *("PATH", "HOME", "LANG", "HOSTNAME", "PWD", "SHLVL", "_", "OLDPWD")
    }


async def test_python_and_bash_are_there(shell: Shell) -> None:
    assert await shell.say("python3 -c 'import json, ssl, sqlite3; print(1)'") == "1"
    assert (await shell.say("echo ${BASH_VERSINFO[0]}")) >= "4"


async def test_without_network_there_is_only_loopback_of_its_own(shell: Shell) -> None:
    assert await shell.say("tail -n +3 /proc/net/dev | cut -d: -f1") == "lo"
    assert Path(f"/proc/{shell.sandbox.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    code, _, _ = await shell.run("python3 -m http.server 8123 --bind 127.0.0.1 & sleep 0.01; kill %1")
    assert code == 0


async def test_with_the_hosts_network_it_is_shared() -> None:
    sandbox = await Instance.start(probe.tools(), Layout(network=True))
    try:
        inside = await Shell(sandbox).say("readlink /proc/self/ns/net")
    finally:
        await sandbox.stop()
    assert inside == str(Path("/proc/self/ns/net").readlink())


async def test_directories_asked_for_are_there_and_shared_ones_open_to_all() -> None:
    sandbox = await Instance.start(probe.tools(), Layout(directories=("/app/a/b", "/data"), shared=("/logs/agent",)))
    try:
        modes = await Shell(sandbox).say("stat -c '%a %n' /app/a/b /data /logs/agent /tmp /root")
    finally:
        await sandbox.stop()
    assert modes.splitlines() == ["755 /app/a/b", "755 /data", "777 /logs/agent", "1777 /tmp", "700 /root"]


def test_directories_known_from_the_start() -> None:
    layout = Layout(directories=("/data/deep",))
    assert all(layout.is_directory(path) for path in ("/", "/app", "/data", "/data/deep", "/etc", "/var/tmp"))
    assert not layout.is_directory("/data/deeper")


def test_what_belongs_to_the_host() -> None:
    assert read_only("/usr") and read_only("/bin/x") and read_only("/usr/local/lib")
    assert not read_only("/usrlocal") and not read_only("/app/usr")
