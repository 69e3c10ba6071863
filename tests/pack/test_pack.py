"""`inv pack`: jobs become one signed directory that can be sent in; what isn't fit is refused (case 17)."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import pack, records
from bench.errors import BuzzbenchError, Interrupted, InvalidInput
from bench.keys import ensure
from bench.nostr import Key
from bench.pack import Said, Wish, bundle, contents, signing
from bench.planning.leaderboard import Reason, Verdict
from bench.records.claim import claimed
from tests.pack import jobs
from tests.pipeline import contents as bytes_of
from tests.pipeline import new_installation, remove

SAID = Said(agent_url="https://example.org/team", org="Example")
KEY = "canary+key/5f0c1d7e9b"


def packed(home: Path, *names: str, **wish: Any) -> pack.Packed:
    given: dict[str, Any] = {"jobs": names or ("lb-team",), "out": home / "out", "said": SAID} | wish
    return pack.pack(jobs.settings(home), Wish(**given), {"ANTHROPIC_API_KEY": KEY})


def refused(home: Path, *names: str, **wish: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        packed(home, *names, **wish)
    assert not (home / "out").exists()
    return str(caught.value).splitlines()


def names_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_a_fit_job_is_packed_without_logs_and_what_is_nobodys_to_see(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    (job / "alpha__1" / "notes.txt").write_text("a stray file")
    (job / "alpha__1" / "artifacts" / "out.LOG").write_text("a log")
    (job / "alpha__1" / "artifacts" / "passwd").symlink_to("/etc/passwd")
    (job / "alpha__1" / "artifacts" / "etc").symlink_to("/etc")
    made = packed(tmp_path)
    found = names_of(made.directory)
    assert {name for name in found if "alpha" not in name} == {
        *("buzzbench-pack.json", "buzzbench-pack.sig.json", "metadata.yaml", "leaderboard-row.yaml"),
        *(
            f"lb-team/{name}"
            for name in ("buzzbench-plan.json", "buzzbench-journal.jsonl", "config.json", "lock.json", "result.json")
        ),
    }
    assert {name.removeprefix("lb-team/alpha__1/") for name in found if "alpha__1" in name} == {
        *("config.json", "lock.json", "result.json", "agent/trajectory.json", "verifier/test-stdout.txt"),
    }
    assert made.is_new
    assert made.left_out == ()


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    first = bytes_of(packed(tmp_path).directory)
    assert not packed(tmp_path).is_new
    assert bytes_of(tmp_path / "out") == first
    again = {path.name: data for path, data in bytes_of(packed(tmp_path, out=tmp_path / "other").directory).items()}
    assert again == {path.name: data for path, data in first.items()}


def test_metadata_is_what_the_board_requires(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    read = yaml.safe_load((packed(tmp_path).directory / "metadata.yaml").read_text())
    assert read == {
        "agent_url": "https://example.org/team",
        "agent_display_name": "team",
        "agent_org_display_name": "Example",
        "models": [
            {
                "model_name": "claude-x",
                "model_provider": "anthropic",
                "model_display_name": "claude-x",
                "model_org_display_name": "Anthropic",
            }
        ],
    }


@pytest.mark.parametrize("played", ["rehearsal", "replay"])
def test_a_row_of_what_asked_no_model_says_so(tmp_path: Path, played: str) -> None:
    """Packed with `--anyway`, its reward would else stand beside the name of a model that nobody asked."""
    plan: dict[str, Any] = {played: "good"}
    jobs.make(tmp_path, **plan)
    made = packed(tmp_path, said=replace(SAID, agent_name="The Team"))
    row = yaml.safe_load((made.directory / "leaderboard-row.yaml").read_text())["rows"][0]
    assert row["metadata"]["agent"] == f"The Team ({played}: no model was asked)"


def test_what_only_a_person_can_say_is_asked_for_by_its_option(tmp_path: Path) -> None:
    local = {"provider": "openai", "base_url": "http://localhost:1/v1", "dialect": "openai"}
    jobs.make(tmp_path, endpoints={"e": local})
    assert refused(tmp_path, said=Said(model_orgs={"other": "X"})) == [
        "metadata.yaml: agent_url: a board wants a link to what played; give --agent-url https://…",
        "metadata.yaml: agent_org_display_name: a board wants to know whose it is; give --org NAME",
        "metadata.yaml: model_org_display_name: whose model claude-x is isn't known from its endpoint; "
        "give --model-org claude-x=NAME",
        "--model-org other: nobody of the team plays on it; its models are claude-x",
    ]
    made = packed(tmp_path, said=replace(SAID, model_orgs={"claude-x": "Makers"}, agent_name="The Team"))
    read = yaml.safe_load((made.directory / "metadata.yaml").read_text())
    assert (read["agent_display_name"], read["models"][0]["model_org_display_name"]) == ("The Team", "Makers")


# What isn't fit


def test_a_job_that_is_not_eligible_is_refused_with_each_field_unless_told_otherwise(tmp_path: Path) -> None:
    two = Verdict((Reason("agent_timeout_multiplier", "2.0, and a board wants 1"), Reason("n_attempts", "few")))
    jobs.make(tmp_path, verdict=two)
    assert refused(tmp_path) == [
        "lb-team: not fit for a leaderboard: agent_timeout_multiplier: 2.0, and a board wants 1",
        "lb-team: not fit for a leaderboard: n_attempts: few; --anyway packs it all the same",
    ]
    facts, _ = bundle.verify(packed(tmp_path, anyway=True, said=Said()).directory)
    assert facts["leaderboard"]["standing"] == "not eligible"


def test_attempts_without_a_score_are_named_by_their_task(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    (job / "alpha__2" / "result.json").write_text('{"task_na')
    lines = refused(tmp_path)
    assert lines[0].startswith("org/alpha: 4 attempts have a score, and a board wants at least 5; `inv bench --resume")
    assert lines[1].endswith("alpha__2/result.json: is missing or damaged, and Harbor's upload needs it; "
                             "--anyway leaves the trial out")  # fmt: skip
    assert packed(tmp_path, anyway=True).left_out == ("alpha__2",)
    assert not (tmp_path / "out" / "lb-team" / "alpha__2").exists()


def test_where_too_few_attempts_were_planned_no_resume_is_advised(tmp_path: Path) -> None:
    jobs.make(tmp_path, trials=3)
    (said,) = refused(tmp_path)
    assert said.startswith("org/alpha: 3 attempts have a score, and a board wants at least 5; run 2 more under another")


def test_a_copied_trial_is_refused_and_never_packed(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    shutil.copytree(job / "alpha__1", job / "stranger__x")
    (said,) = refused(tmp_path)
    what = "the journal knows no such attempt, so they count for nothing: stranger__x"
    assert said == f"{job}: {what}; --anyway packs it all the same"
    made = packed(tmp_path, anyway=True)
    assert not [name for name in names_of(made.directory) if "stranger" in name]
    assert json.loads((made.directory / bundle.MANIFEST).read_bytes())["doubts"] == [f"lb-team: {what}"]


def test_what_a_trial_was_really_run_with_counts_whatever_the_plan_says(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    jobs.write(job / "alpha__3" / "config.json", {"agent_timeout_multiplier": 3, "environment": {"override_cpus": 8}})
    lines = refused(tmp_path)
    assert [line.split("config.json: ")[1] for line in lines] == [
        "agent_timeout_multiplier: 3, and a board wants 1; --anyway packs it all the same",
        "environment.override_cpus: 8, and a board wants the task's own; --anyway packs it all the same",
    ]


REHEARSED = {"name": "team", "kwargs": {"rehearsal": "perfect"}}


@pytest.mark.parametrize("whose", ["job", "trial"])
def test_a_verdict_that_the_configurations_contradict_does_not_stand(tmp_path: Path, whose: str) -> None:
    """A record that says `eligible` of a rehearsal was changed."""
    job = jobs.make(tmp_path)
    if whose == "job":
        jobs.write(job / "config.json", {"n_attempts": 5, "agents": [REHEARSED]})
    else:
        jobs.write(job / "alpha__3" / "config.json", {"agent": REHEARSED})
    what = "agents.kwargs.rehearsal: a script answered in the models' place"
    assert refused(tmp_path) == [f"lb-team: not fit for a leaderboard: {what}; --anyway packs it all the same"]
    made = packed(tmp_path, anyway=True)
    assert made.record.plan.leaderboard.standing == "not eligible"
    assert bundle.verify(made.directory)[0]["leaderboard"]["standing"] == "not eligible"


@pytest.mark.parametrize("name", ["config.json", "lock.json", "result.json"])
@pytest.mark.parametrize("content", [None, "{"])
def test_a_job_that_lacks_what_an_upload_needs_is_refused(tmp_path: Path, name: str, content: str | None) -> None:
    job = jobs.make(tmp_path)
    (job / name).unlink() if content is None else (job / name).write_text(content)
    what = "is missing or damaged, and Harbor's upload needs it; --anyway packs it all the same"
    assert f"{job / name}: {what}" in refused(tmp_path)
    assert packed(tmp_path, anyway=True).is_new


@pytest.mark.parametrize("name", [records.JOURNAL, records.RECEIPTS])
def test_a_job_whose_books_have_a_broken_line_is_refused(tmp_path: Path, name: str) -> None:
    job = jobs.make(tmp_path)
    with (job / name).open("a") as book:
        book.write('{"broken\n{"also broken\n')
    what = "not a JSON object (cut off?), passed over"
    told = [line for line in refused(tmp_path) if line.startswith(f"{job / name}, line") and what in line]
    assert len(told) == 2


# Several jobs


def test_several_jobs_are_one_pack_and_a_trial_that_two_have_is_in_it_once(tmp_path: Path) -> None:
    first = jobs.make(tmp_path, "one", trials=3, verdict=Verdict((Reason("n_attempts", "3"),)))
    jobs.make(tmp_path, "two", trials=2, first=4, verdict=Verdict((Reason("n_attempts", "2"),)))
    copy = tmp_path / "elsewhere" / "one"
    shutil.copytree(first, copy)
    (first / "alpha__1" / "result.json").write_text("{")
    made = packed(tmp_path, "one", "two", str(copy))
    trials = sorted(name.split("/")[1] for name in names_of(made.directory) if name.endswith("alpha__1/result.json"))
    assert trials == ["alpha__1"]
    assert json.loads((made.directory / "one" / "alpha__1" / "result.json").read_text())["task_name"] == "org/alpha"
    assert {path.name for path in made.directory.iterdir() if path.is_dir()} == {"one", "two"}
    facts, _ = bundle.verify(made.directory)
    assert (facts["counts"], facts["jobs"]) == ({"passed": 5, "failed": 0, "unscored": 0}, ["one", "two"])
    row = yaml.safe_load((made.directory / "leaderboard-row.yaml").read_text())["rows"][0]
    assert len({*row["trial_ids"]}) == 5
    assert row["metrics"] == {"reward": 1.0, "n_trials": 5}


def test_jobs_that_measured_different_things_are_not_one_pack(tmp_path: Path) -> None:
    jobs.make(tmp_path, "one")
    jobs.make(tmp_path, "two", condition="cd")
    assert refused(tmp_path, "one", "two") == [
        "--job two: it measured something else than one: who played, stack, environment or terms; pack it apart"
    ]


def test_a_job_that_still_runs_is_not_packed(tmp_path: Path) -> None:
    with claimed(jobs.make(tmp_path)):
        assert refused(tmp_path)[0].endswith("lb-team: a run works on this job; pack it when that is over")


def test_of_a_task_in_steps_each_steps_files_are_packed(tmp_path: Path) -> None:
    job = jobs.make(tmp_path)
    step = job / "alpha__1" / "steps" / "first"
    (step / "agent").mkdir(parents=True)
    (step / "agent" / "trial.log").write_text("noise\n")
    key = Key.generate()
    jobs.evidence(step, key)
    assert "lb-team/alpha__1/steps/first/buzzbench-evidence.json" in names_of(packed(tmp_path).directory)
    shutil.rmtree(tmp_path / "out")
    (step / "agent" / "env.txt").write_text(key.secret)
    assert "holds the secret key of orch in alpha__1" in refused(tmp_path)[0]


# Secrets


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


# What is in the way, and the key


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


def test_what_is_no_pack_is_refused_without_a_word_of_python(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / bundle.MANIFEST)
    (tmp_path / bundle.SIGNATURE).write_text("[" * 100_000)
    with pytest.raises(InvalidInput, match=r"buzzbench-pack.json: is a pipe or a device, no file of a pack"):
        bundle.verify(tmp_path)
    (tmp_path / bundle.MANIFEST).unlink()
    with pytest.raises(InvalidInput, match=r": is no pack: there is no buzzbench-pack.json$"):
        bundle.verify(tmp_path)
    (tmp_path / bundle.MANIFEST).write_text("{}")
    with pytest.raises(BuzzbenchError, match=r": its list or its signature can't be read: it is damaged$"):
        bundle.verify(tmp_path)


def test_the_key_is_made_once_private_and_damage_is_named(tmp_path: Path) -> None:
    key = signing.ensure(tmp_path / "state")
    path = tmp_path / "state" / signing.FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert signing.ensure(tmp_path / "state") == key
    path.write_text("cut of")
    with pytest.raises(InvalidInput, match=r"signing.key: damaged: not 64 hex digits; restore it from a backup"):
        signing.ensure(tmp_path / "state")


# Checking a pack


def test_a_pack_is_checked_wherever_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    made.directory.rename(tmp_path / "moved")
    pack.verify(jobs.settings(tmp_path), tmp_path / "moved", made.public_key.upper(), as_json=False)
    whose = f"signed by {made.public_key}, this installation's key"
    assert capsys.readouterr().out.endswith(f"{whose}, and the one that was asked for\n")
    pack.verify(jobs.settings(tmp_path), tmp_path / "moved", "", as_json=False)
    assert capsys.readouterr().out.endswith(f"{whose}\n")
    pack.verify(jobs.settings(tmp_path / "another"), tmp_path / "moved", made.public_key, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["public_key"], told["ours"], told["asked_for"]) == (made.public_key, False, True)
    assert not (tmp_path / "another").exists()


def test_without_a_key_to_ask_for_it_is_said_that_anybody_may_have_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    pack.verify(jobs.settings(tmp_path / "another"), made.directory, "", as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(f"signed by {made.public_key}, a key that is not this installation's")
    assert second == (
        "whose key that is nobody has said: whoever changes a pack can sign it anew with a key of their own; "
        f"`inv pack --verify {made.directory} --key PUBLIC_KEY` accepts only the key that its maker told you"
    )


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda out: (out / "lb-team/alpha__1/result.json").write_text("{}"), "alpha__1/result.json: is not what was"),
        (lambda out: (out / "lb-team/alpha__1/lock.json").unlink(), "alpha__1/lock.json: is missing"),
        (lambda out: shutil.rmtree(out / "lb-team/alpha__1/agent"), r"^\S*alpha__1/agent/trajectory.json: is missing$"),
        (lambda out: (out / "lb-team/alpha__1/agent/trajectory.json").unlink(), r"^\S*trajectory.json: is missing$"),
        (lambda out: (out / "lb-team/more.txt").write_text("x"), "lb-team/more.txt: is not on the list"),
        (lambda out: (out / "lb-team/link").symlink_to("/etc"), "lb-team/link: is not on the list"),
        (lambda out: (out / "lb-team/a\nb").write_text("x"), r"out/lb-team/a\\nb: is not on the list$"),
        (lambda out: (out / "lb-team/empty").mkdir(), "lb-team/empty/: is not on the list"),
        (lambda out: os.mkfifo(out / "lb-team/pipe"), "lb-team/pipe: is not on the list"),
        (lambda out: _linked(out / "lb-team/config.json"), "lb-team/config.json: is a link, a pipe or a device"),
        (lambda out: _linked(out / "lb-team/alpha__1"), "lb-team/alpha__1: is not on the list"),
        (lambda out: _linked(out / bundle.MANIFEST), "buzzbench-pack.json: is a link, and no file of a pack is one"),
        (lambda out: _piped(out / "lb-team/config.json"), "lb-team/config.json: is a link, a pipe or a device"),
        (
            lambda out: (out / "metadata.yaml").rename(out / "m.yaml"),
            "m.yaml: is not on the list\n.*metadata.yaml: is mi",
        ),
        (
            lambda out: [(out / f"{number}").touch() for number in range(30)],
            "/26: is not on the list\nand so are 10 more$",
        ),
        (lambda out: _edit(out / bundle.MANIFEST, '"passed": 5', '"passed": 6'), "is not what .* has signed"),
        (lambda out: _edit(out / bundle.SIGNATURE, "signature", "signatur"), "can't be read"),
        (
            lambda out: (out / bundle.SIGNATURE).unlink(),
            "out: is not signed by anybody: there is no buzzbench-pack.sig",
        ),
    ],
)
def test_whatever_was_changed_in_a_pack_is_seen(tmp_path: Path, harm: Any, said: str) -> None:
    jobs.make(tmp_path)
    out = packed(tmp_path).directory
    harm(out)
    with pytest.raises(BuzzbenchError, match=said):
        bundle.verify(out)


def test_a_pack_that_somebody_else_has_signed_anew_is_not_the_expected_one(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    (tmp_path / "state" / signing.FILE_NAME).unlink()
    packed(tmp_path, out=tmp_path / "forged")
    with pytest.raises(BuzzbenchError, match=f"it is signed by .*, not by {made.public_key}"):
        pack.verify(jobs.settings(tmp_path), tmp_path / "forged", made.public_key, as_json=False)


def test_modes_are_no_part_of_a_pack(tmp_path: Path) -> None:
    """They change as it is sent about, and say nothing of what was measured."""
    jobs.make(tmp_path)
    out = packed(tmp_path).directory
    (out / "metadata.yaml").chmod(0o777)
    bundle.verify(out)


def test_a_pack_in_which_a_file_became_a_pipe_is_replaced_all_the_same(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    _piped(packed(tmp_path).directory / "metadata.yaml")
    assert packed(tmp_path).changed == ("metadata.yaml",)
    _piped(tmp_path / "out" / bundle.MANIFEST)
    with pytest.raises(InvalidInput, match="is there already, and no pack"):
        packed(tmp_path)


def _linked(path: Path) -> None:
    """What it was is elsewhere now, and a link leads there."""
    elsewhere = path.parents[2] / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# Harbor's own view


@pytest.mark.slow
def test_what_is_packed_and_uploaded_is_what_harbor_takes(tmp_path: Path) -> None:
    from harbor.hub.leaderboards import LeaderboardRowsCreateConfig
    from harbor.upload import uploader

    jobs.make(tmp_path)
    row = yaml.safe_load((packed(tmp_path).directory / "leaderboard-row.yaml").read_text())
    assert len(LeaderboardRowsCreateConfig.model_validate(row).rows[0].trial_ids) == 5
    assert {*uploader._TRIAL_ARCHIVE_INCLUDES} <= {*contents.OF_A_TRIAL, *contents.FOLDERS_OF_AN_UPLOAD, "trial.log"}
    taken = {*uploader._TRIAL_ARCHIVE_INCLUDES} - {"trial.log", "user-agent-inputs"}
    assert taken == {*contents.OF_A_TRIAL, *contents.FOLDERS_OF_A_TRIAL} - {
        *("buzzbench-evidence.json", "buzzbench-checks.json", "buzzbench-fault.json", "steps")
    }


@pytest.mark.slow
def test_a_real_jobs_pack_is_taken_by_harbors_own_command_up_to_the_login(tmp_path: Path) -> None:
    """A rehearsal in the sandbox, packed as what it is: nothing in it is a secret, and Harbor's models read it."""
    from harbor.models.job.config import JobConfig
    from harbor.models.job.lock import TrialLock
    from harbor.models.job.result import JobResult
    from harbor.models.trial.result import TrialResult

    installation = new_installation(tmp_path)
    try:
        code, _ = installation.rehearse("-i", "mention-names*", "-k", "1", "--job-name", "rehearsed")
        assert code == 0
        done = installation.inv("pack", "--job", "rehearsed", "--out", str(tmp_path / "out"))
        assert done.returncode == 2
        assert "not fit for a leaderboard: agents.kwargs.rehearsal" in done.stderr
        done = installation.inv("pack", "--job", "rehearsed", "--out", str(tmp_path / "out"), "--anyway", "--json")
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        job = tmp_path / "out" / "rehearsed"
        JobConfig.model_validate_json((job / "config.json").read_text())
        JobResult.model_validate_json((job / "result.json").read_text())
        (trial,) = (path for path in job.iterdir() if path.is_dir())
        TrialResult.model_validate_json((trial / "result.json").read_text())
        TrialLock.model_validate_json((trial / "lock.json").read_text())
        upload = subprocess.run(
            shown["commands"][0],
            shell=True,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(tmp_path / "nobody"), "HARBOR_API_KEY": ""},
        )
        assert upload.returncode == 1
        assert "auth login" in upload.stdout + upload.stderr
        create = f"{Path(sys.executable).with_name('harbor')} hub leaderboard row create --help"
        assert "--config" in subprocess.run(create, shell=True, capture_output=True, text=True, check=True).stdout
        assert " hub leaderboard row create BOARD --config " in shown["commands"][1]
        assert bundle.verify(tmp_path / "out")[0]["harbor"] == [version("harbor")]
        checked = installation.inv("pack", "--verify", str(tmp_path / "out"))
        assert checked.returncode == 0, checked.stderr
    finally:
        remove(installation)
