"""`inv pack`: jobs become one signed directory that can be sent in; what isn't fit is refused (case 17)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import records
from bench.nostr import Key
from bench.pack import Said, bundle, contents
from bench.planning.leaderboard import Reason, Verdict
from bench.records.claim import claimed
from tests.pack import jobs
from tests.pack.kit import SAID, names_of, packed, refused
from tests.pipeline import contents as bytes_of
from tests.pipeline import new_installation, remove


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
