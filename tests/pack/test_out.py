"""Where a pack goes: nothing of somebody's is replaced, and nothing is left half made."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import pack, records
from bench.errors import BuzzbenchError, Interrupted, InvalidInput
from bench.nostr import Key
from bench.pack import Wish, bundle, signing
from tests.pack import jobs
from tests.pack.kit import KEY, SAID, names_of, packed, refused
from tests.pipeline import contents as bytes_of


def test_reading_a_packed_job_leaves_its_pack_as_it_was(tmp_path: Path) -> None:
    """A task whose verdict was never kept is judged anew each time a report is made of a pack."""
    (tmp_path / "task" / "tests").mkdir(parents=True)
    (tmp_path / "task" / "tests" / "judge.py").write_text("def judge(evidence): return {'asked': True}\n")
    job = jobs.make(tmp_path, tasks=[{"name": "org/alpha", "directory": str(tmp_path / "task")}])
    packed(tmp_path)
    made = tmp_path / "out" / "lb-team"
    for trial in ("alpha__1", "alpha__2"):
        jobs.evidence(job / trial, Key.generate())
        jobs.evidence(made / trial, Key.generate())
    before = names_of(made)
    records.read_job(made)
    assert names_of(made) == before
    records.read_job(job)
    assert (job / "alpha__1" / records.CHECKS).exists()


@pytest.mark.parametrize("what", ["file", "directory", "changed pack"])
def test_nothing_that_is_no_pack_is_replaced(tmp_path: Path, what: str) -> None:
    jobs.make(tmp_path)
    out = tmp_path / "out"
    if what == "file":
        out.write_text("mine")
    elif what == "directory":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    else:
        packed(tmp_path)
        (out / "lb-team" / "mine.txt").write_text("mine")
    before = bytes_of(tmp_path)
    with pytest.raises(InvalidInput, match=r"out: (is there already, and no pack|has lb-team/mine.txt).*another --out"):
        packed(tmp_path)
    after = bytes_of(tmp_path)
    assert {path: after[path] for path in before} == before


def test_a_pack_of_before_is_replaced_whole(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    packed(tmp_path)
    (job / "alpha__1" / "agent" / "trajectory.json").unlink()
    made = packed(tmp_path)
    assert (made.is_new, made.changed) == (True, ("lb-team/alpha__1/agent/trajectory.json",))
    bundle.verify(tmp_path / "out")
    assert not (tmp_path / "out" / "lb-team" / "alpha__1" / "agent" / "trajectory.json").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


def test_what_a_pack_changes_in_the_one_that_it_replaces_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.make(tmp_path)
    assert packed(tmp_path).changed is None
    wish = Wish((), tmp_path / "out", replace(SAID, agent_url="https://example.org/another"))
    pack.task(jobs.settings(tmp_path), wish, as_json=False)
    told = "warning: it replaces the pack that was there, and differs in leaderboard-row.yaml, metadata.yaml"
    assert capsys.readouterr().err.splitlines() == [told]


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("file/x", "can't be written: Not a directory"),
        ("file/x/y", "can't be written: Not a directory"),
        ("link", "is a link to what isn't there"),
        ("x" * 300, "can't be written: File name too long"),
        ("jobs/new", "lies among the jobs or in a pack, where it would be taken for a part of them"),
        ("jobs/lb-team/pack", "lies among the jobs or in a pack, where it would be taken for a part of them"),
        ("elsewhere/lb-team/a/b", "lies among the jobs or in a pack, where it would be taken for a part of them"),
        ("/proc/x/y", "can't be written: No such file or directory"),
    ],
)
def test_an_out_that_cannot_be_is_told_before_the_files_are_looked_through(tmp_path: Path, out: str, said: str) -> None:
    job = jobs.make(tmp_path)
    (job / "alpha__1" / "agent" / "said.txt").write_text(KEY)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    shutil.copytree(job, tmp_path / "elsewhere" / "lb-team")
    before = bytes_of(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        packed(tmp_path, out=tmp_path / out)
    assert str(caught.value) == f"{tmp_path / out}: {said}; give another --out"
    assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("content", [b"\xff\xfe", b"zz", None])
def test_a_damaged_signing_key_is_one_line_wherever_it_is_read(tmp_path: Path, content: bytes | None) -> None:
    jobs.make(tmp_path)
    packed(tmp_path)
    key = tmp_path / "state" / signing.FILE_NAME
    key.unlink()
    key.mkdir() if content is None else key.write_bytes(content)
    what = "can't be read: Is a directory" if content is None else "damaged: not 64 hex digits"
    said = rf"^{key}: {what}; restore it from a backup, or delete it to sign with a new one$"
    with pytest.raises(InvalidInput, match=said):
        packed(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        pack.verify(jobs.settings(tmp_path), tmp_path / "out", "", as_json=False)


def test_an_out_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    with pytest.raises(InvalidInput, match=r"^/proc/x: can't be written: .*; give another --out$"):
        packed(tmp_path, out=Path("/proc/x"))


def test_a_pack_that_the_disk_has_no_room_for_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    files = {"job/big": tmp_path / "big"}
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(BuzzbenchError, match=r"out: the pack can't be written: File too large; free some space"):
            bundle.write(tmp_path / "out", files, {}, {}, signing.ensure(tmp_path / "state"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big", "state"]


class Stopping(dict[str, Path]):
    """Files, after the first of which this process is asked to end."""

    def items(self) -> Any:
        for one in super().items():
            yield one
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_pack_that_is_stopped_leaves_nothing_half_made(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="nothing was packed"), pack.stopped_in_order():
        bundle.write(tmp_path / "out", Stopping(a=tmp_path / "a"), {}, {}, signing.ensure(tmp_path / "state"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "state"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_mark_that_no_finding_has_is_refused(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    assert refused(tmp_path, let_be=("foo",)) == ["--let-be foo: no finding has this mark; leave it out"]
