"""What `inv pack` refuses or passes over: secrets, and files that are no result of a trial's (case 17)."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench import pack, records
from bench.errors import BuzzbenchError, InvalidInput
from bench.keys import ensure
from bench.nostr import Key
from bench.pack import Wish, bundle
from tests.pack import jobs
from tests.pack.kit import KEY, SAID, names_of, packed, refused


def test_a_secret_is_refused_with_its_file_and_line_and_never_shown(tmp_path: Path) -> None:
    state = ensure(tmp_path / "state")
    job = jobs.make(tmp_path)
    (job / "alpha__4" / "agent" / "said.txt").write_text(f"one\nthe key is {KEY}\n{state.owner.nsec}")
    lines = refused(tmp_path, anyway=True)
    text = "\n".join(lines)
    assert "lb-team/alpha__4/agent/said.txt:2: holds the value of ANTHROPIC_API_KEY, in plain" in lines
    assert "lb-team/alpha__4/agent/said.txt:3: holds the owner's secret key, as nsec, in plain" in lines
    way = "take the trial out, or the job apart; where a variable holds no secret, `env -u NAME inv …` leaves it out of"
    assert lines[-1] == f"nothing was packed: it would give secrets away; {way} sight"
    assert KEY not in text
    assert state.owner.nsec not in text


def test_what_could_not_be_looked_for_is_said_in_a_pack_and_an_upload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = jobs.make(tmp_path)
    (job / "alpha__1" / "artifacts" / "readme.txt").write_text("this is a test")
    environ, wish = {"MY_TOKEN": "test", "DB_PASS": "password"}, Wish(out=tmp_path / "out", said=SAID)
    said = "not looked for, since what they hold are words or too short: DB_PASS, MY_TOKEN"
    assert pack.pack(jobs.settings(tmp_path), wish, environ).warnings == (said,)
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), environ)
    assert capsys.readouterr().err == f"warning: {said}\n"
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"MY_TOKEN": "test"})
    assert "since what it holds is a word or too short: MY_TOKEN" in capsys.readouterr().err


def test_what_a_person_says_of_the_team_is_looked_at_as_well(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    lines = refused(tmp_path, said=replace(SAID, agent_url=f"https://example.org/?key={KEY}"))
    assert lines[:2] == [
        "metadata.yaml:1: holds the value of ANTHROPIC_API_KEY, in plain",
        "leaderboard-row.yaml:5: holds the value of ANTHROPIC_API_KEY, in plain",
    ]


def test_an_agents_own_key_is_refused_and_its_public_one_is_not(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    key = Key.generate()
    jobs.evidence(job / "alpha__1", key)
    assert packed(tmp_path).is_new
    shutil.rmtree(tmp_path / "out")
    (job / "alpha__2" / "agent" / "env.txt").write_text(f"BUZZ_PRIVATE_KEY={key.secret}")
    assert refused(tmp_path)[0] == ("lb-team/alpha__2/agent/env.txt:1: holds the secret key of orch in alpha__1")


def test_a_tasks_own_example_key_can_be_let_be_and_the_pack_says_so(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    (job / "alpha__1" / "artifacts" / "readme.txt").write_text("AKIA" + "IOSFODNN7EXAMPLE")
    first, last = refused(tmp_path)
    mark = first.rpartition("[")[2].rstrip("]")
    assert last.endswith("where it is a task's own text and no secret, `inv pack --let-be MARK` lets it be")
    facts, _ = bundle.verify(packed(tmp_path, let_be=(mark,)).directory)
    assert facts["let_be"] == [mark]


def test_an_upload_of_a_job_that_holds_a_secret_is_refused(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"ANTHROPIC_API_KEY": KEY})
    (job / "alpha__1" / "agent" / "buzz-acp.log").write_text(KEY)
    with pytest.raises(InvalidInput, match=r"lb-team/alpha__1/agent/buzz-acp.log:1: holds the value of ANTHROPIC"):
        pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"ANTHROPIC_API_KEY": KEY})


def test_a_variable_that_the_jobs_endpoint_file_names_is_refused_in_a_pack_and_an_upload(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    endpoints = tmp_path / "endpoints.json"
    jobs.write(endpoints, {"e": {"provider": "anthropic", "api_key_env": "MY_LLM"}})
    jobs.write(job / "config.json", {"agents": [{"kwargs": {"endpoints": str(endpoints)}}]})
    (job / "alpha__1" / "agent" / "env.txt").write_text(KEY)
    for leave in (
        lambda: pack.pack(jobs.settings(tmp_path), Wish(anyway=True), {"MY_LLM": KEY}),
        lambda: pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"MY_LLM": KEY}),
    ):
        with pytest.raises(InvalidInput, match=r"env\.txt:1: holds the value of MY_LLM, in plain"):
            leave()


def test_a_file_whose_name_is_not_utf8_is_packed_like_any_other(tmp_path: Path) -> None:
    """An agent may give such a name; it must not keep a job from being packed or sent in."""
    job = jobs.make(tmp_path)
    name = os.fsdecode(b"a\xff\n.txt")
    (job / "alpha__1" / "artifacts" / name).write_text("x")
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {})
    assert f"lb-team/alpha__1/artifacts/{name}" in names_of(packed(tmp_path).directory)
    bundle.verify(tmp_path / "out")


def test_a_long_search_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = jobs.make(tmp_path)
    packed(tmp_path)
    assert capsys.readouterr().err == ""
    (job / "alpha__1" / "artifacts" / "long.txt").write_text("a line of it\n" * 80_000)
    monkeypatch.setattr(pack, "SAID_BYTES", 1_000_000)
    packed(tmp_path)
    said = "looking for secrets in 31 files, 1 MB: a few seconds for each 10 MB\n"
    assert capsys.readouterr().err == said


def test_a_file_that_is_too_large_to_be_looked_through_is_never_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a hole of any size. What can be hashed can be let be."""
    with (jobs.make(tmp_path) / "alpha__1" / "artifacts" / "big").open("wb") as file:
        file.truncate(50_000_000_000)
    assert refused(tmp_path) == [
        "lb-team/alpha__1/artifacts/big: holds 50,000 MB, which can't be looked into",
        "nothing was packed: it would give secrets away; take the trial out, or the job apart",
    ]
    monkeypatch.setattr(pack, "MOST_BYTES", 1_000_000)
    os.truncate(tmp_path / "jobs" / "lb-team" / "alpha__1" / "artifacts" / "big", 2_000_000)
    said, way = refused(tmp_path)
    assert said.startswith("lb-team/alpha__1/artifacts/big: holds 2 MB, which can't be looked into [")
    assert "--let-be MARK" in way
    assert packed(tmp_path, let_be=(said.rpartition("[")[2].rstrip("]"),)).is_new


def test_pipes_and_sockets_and_what_looks_like_evidence_among_artifacts_are_left_alone(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    artifacts = job / "alpha__1" / "artifacts"
    os.mkfifo(artifacts / "pipe")
    os.mkfifo(artifacts / records.EVIDENCE)
    (artifacts / "device").symlink_to("/dev/zero")
    key = Key.generate()
    jobs.evidence(job / "alpha__2" / "artifacts", key)
    (job / "alpha__2" / "agent" / "env.txt").write_text(key.secret)  # That key is what an agent says it is.
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {})
    assert not [name for name in names_of(packed(tmp_path).directory) if name.endswith(("pipe", "device"))]


def test_what_a_link_would_have_uploaded_is_refused(tmp_path: Path) -> None:
    """Harbor takes where a link leads as a text, and reads a trajectory that is one."""
    job = jobs.make(tmp_path)
    (job / "alpha__1" / "artifacts" / "notes").symlink_to("/etc/passwd")
    pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"MY_KEY": KEY})
    (job / "alpha__1" / "artifacts" / "more").symlink_to(KEY)
    (job / "alpha__2" / "agent" / "trajectory.json").unlink()
    (job / "alpha__2" / "agent" / "trajectory.json").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput) as caught:
        pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {"MY_KEY": KEY})
    said = str(caught.value).splitlines()
    assert said[0] == "lb-team/alpha__1/artifacts/more:1: holds the value of MY_KEY, in plain"
    what = "what is elsewhere on this host: it is a link, which Harbor follows"
    assert said[1] == f"lb-team/alpha__2/agent/trajectory.json: holds {what}"


def test_artifacts_that_are_a_link_are_not_followed(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.txt").write_text("mine")
    (job / "alpha__1" / "artifacts").rmdir()
    (job / "alpha__1" / "artifacts").symlink_to(tmp_path / "elsewhere")
    assert not [name for name in names_of(packed(tmp_path).directory) if "mine" in name]


def test_directories_too_deep_to_have_a_path_are_refused_and_not_left_out(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    _deep(job / "alpha__1" / "artifacts")
    what = r"artifacts/dddd[d/]*…: can't be read \(File name too long\); remove it, or take the trial out$"
    assert re.search(what, refused(tmp_path)[0])
    with pytest.raises(InvalidInput, match=what):
        pack.refuse_upload(jobs.settings(tmp_path), records.read_job(job), {})


def test_directories_too_deep_to_have_a_path_are_seen_in_a_pack(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    _deep(packed(tmp_path).directory / "lb-team")
    with pytest.raises(BuzzbenchError, match="out: can't be looked through: File name too long"):
        bundle.verify(tmp_path / "out")


def _deep(place: Path) -> None:
    here = os.open(place, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
