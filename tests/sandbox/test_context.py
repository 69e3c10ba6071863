"""COPY takes what Docker would take from the task's environment directory, and nothing from outside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.sandbox.context import Member, contents, copied, layers, leading_directories
from bench.sandbox.dockerfile import Copy, Run, parse
from bench.sandbox.layout import Layout
from bench.sandbox.words import Unsupported


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    root = tmp_path / "environment"
    (root / "data").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "data/c.txt"):
        (root / name).write_text(name)
    return root


def test_a_file_is_named_by_its_target_unless_that_is_a_directory(directory: Path) -> None:
    file = directory / "a.txt"
    assert copied(Copy(("a.txt",), "/x", False), directory) == [Member(file, "/x")]
    assert copied(Copy(("a.txt",), "/x", True), directory) == [Member(file, "/x/a.txt")]
    assert copied(Copy(("a.txt",), "/x", False), directory, into=True) == [Member(file, "/x/a.txt")]


def test_of_a_directory_the_contents_are_taken(directory: Path) -> None:
    assert copied(Copy(("data",), "/x", True), directory) == [Member(directory / "data", "/x")]


def test_patterns_take_all_that_match(directory: Path) -> None:
    members = copied(Copy(("*.txt",), "/x", True), directory)
    assert [member.target for member in members] == ["/x/a.txt", "/x/b.txt"]


def test_a_missing_file_is_named(directory: Path) -> None:
    for source in ("none.txt", "*.md"):
        with pytest.raises(Unsupported, match=r"COPY: there is no .* in the task's environment directory"):
            copied(Copy((source,), "/x", False), directory)


def test_a_link_out_of_the_directory_is_refused(directory: Path) -> None:
    (directory / "out").symlink_to("/etc/hostname")
    with pytest.raises(Unsupported, match="COPY: out lies outside the task's environment directory"):
        copied(Copy(("out",), "/x", False), directory)


def test_copies_between_two_runs_go_in_together(directory: Path) -> None:
    plan = parse("WORKDIR /app\nCOPY a.txt /app\nWORKDIR /w\nCOPY b.txt /w\nRUN x\nWORKDIR /late\nRUN y", {})
    layout = Layout(directories=leading_directories(plan))
    assert layout.directories == ("/app", "/w")
    first, run, late, last = layers(plan, directory, layout)
    assert first == [Member(directory / "a.txt", "/app/a.txt"), Member(directory / "b.txt", "/w/b.txt")]
    assert late == [Member(None, "/late")]
    assert isinstance(run, Run)
    assert isinstance(last, Run)


def test_what_a_directory_holds_comes_after_the_directory(directory: Path) -> None:
    assert [member.target for member in contents(directory, "/t")] == ["/t", "/t/a.txt", "/t/b.txt", "/t/data"]
