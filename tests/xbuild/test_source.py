"""What names a source: its commit, and every difference from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError, InvalidInput, MachineLacks
from bench.xbuild import source
from bench.xbuild.artifacts import AGENTS
from tests.xbuild import workspace
from tests.xbuild.workspace import git


def test_a_clean_checkout_is_named_by_its_commit(tmp_path: Path) -> None:
    buzz = workspace.make(tmp_path / "buzz")
    (buzz / "target").mkdir()
    (buzz / "target" / "ignored").write_text("by git")
    found = source.checkout(buzz)
    assert found == source.Source(buzz, git(buzz, "rev-parse", "HEAD"), None)
    assert found.name == git(buzz, "rev-parse", "HEAD")[:12]


def test_every_difference_from_the_commit_gives_another_name(tmp_path: Path) -> None:
    buzz = workspace.make(tmp_path / "buzz")
    names = [source.checkout(buzz).digest]
    workspace.say(buzz, "buzz-acp", "two")
    names.append(source.checkout(buzz).digest)
    workspace.say(buzz, "buzz-acp", "three")
    names.append(source.checkout(buzz).digest)
    git(buzz, "add", "--all")
    names.append(source.checkout(buzz).digest)
    assert names[2] == names.pop(), "whether a change is staged changes nothing"
    (buzz / "new").write_text("a")
    names.append(source.checkout(buzz).digest)
    (buzz / "new").write_text("b")
    names.append(source.checkout(buzz).digest)
    (buzz / "new").unlink()
    (buzz / "new").symlink_to("b")
    names.append(source.checkout(buzz).digest)
    assert len(set(names)) == len(names)
    assert " with changes " in source.checkout(buzz).name
    workspace.commit(buzz)
    assert source.checkout(buzz).changes is None


def test_a_directory_without_git_is_named_by_its_files(tmp_path: Path) -> None:
    buzz = workspace.make(tmp_path / "buzz", git=False)
    before = source.checkout(buzz)
    assert before.revision is None
    assert before.name.startswith("no commit with changes ")
    (buzz / "target").mkdir()
    (buzz / "target" / "built").write_text("is no source")
    assert source.checkout(buzz) == before
    workspace.say(buzz, "buzz-agent", "two")
    assert source.checkout(buzz).digest != before.digest


def test_what_git_complains_of_is_passed_on(tmp_path: Path) -> None:
    buzz = workspace.make(tmp_path / "buzz")
    shutil.rmtree(buzz / ".git" / "refs")
    with pytest.raises(BuzzbenchError, match=r"git rev-parse: fatal: "):
        source.checkout(buzz)


def test_members_by_glob_are_found(tmp_path: Path) -> None:
    buzz = workspace.make(tmp_path / "buzz", git=False)
    (buzz / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    source.require(buzz, "--source", AGENTS)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (None, "--source: there is no {buzz}/Cargo.toml; give a checkout of Buzz"),
        ("[workspace", "--source: {buzz}/Cargo.toml: not valid TOML: "),
        ('[package]\nname = "x"', "--source: {buzz} has no buzz-acp and no buzz-agent and no buzz-dev-mcp; "),
        ('[workspace]\nmembers = ["crates/buzz-acp"]', "--source: {buzz} has no buzz-agent and no buzz-dev-mcp; "),
        ('[workspace]\nmembers = "all"', "--source: {buzz}/Cargo.toml is no workspace; give a checkout of Buzz"),
        ("workspace = 1", "--source: {buzz}/Cargo.toml is no workspace; give a checkout of Buzz"),
    ],
)
def test_a_directory_that_is_no_checkout_of_buzz_is_refused(tmp_path: Path, manifest: str | None, said: str) -> None:
    buzz = workspace.make(tmp_path / "buzz", git=False)
    (buzz / "Cargo.toml").unlink()
    if manifest is not None:
        (buzz / "Cargo.toml").write_text(manifest)
    with pytest.raises(InvalidInput) as caught:
        source.require(buzz, "--source", AGENTS)
    assert str(caught.value).startswith(said.format(buzz=buzz))


def test_the_public_repository_is_fetched_once_at_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = workspace.make(tmp_path / "upstream")
    monkeypatch.setattr(source, "REPOSITORY", upstream.as_uri())
    monkeypatch.setattr(source, "REVISION", git(upstream, "rev-parse", "HEAD"))
    workspace.say(upstream, "buzz-acp", "later")
    workspace.commit(upstream)
    git(upstream, "config", "uploadpack.allowAnySHA1InWant", "true")
    found = source.fetch(tmp_path / "state" / "buzz-source")
    assert git(found, "rev-parse", "HEAD") == source.public().revision
    assert '"buzz-acp one' in (found / "crates" / "buzz-acp" / "src" / "main.rs").read_text()
    shutil.rmtree(upstream)
    assert source.fetch(tmp_path / "state" / "buzz-source") == found
    assert [path.name for path in found.parent.iterdir()] == [found.name]


def test_a_repository_that_cannot_be_reached_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "REPOSITORY", (tmp_path / "nowhere").as_uri())
    with pytest.raises(MachineLacks) as caught:
        source.fetch(tmp_path / "buzz-source")
    said = str(caught.value)
    assert said.startswith("xbuild: Buzz's source can't be fetched (git fetch: ")
    assert said.endswith("; name a checkout with --source or BUZZBENCH_BUZZ_SOURCE")
    assert list((tmp_path / "buzz-source").iterdir()) == []


def test_without_git_a_checkout_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineLacks, match="there is no git to fetch Buzz's source with; install it, or name a"):
        source.fetch(tmp_path / "buzz-source")
