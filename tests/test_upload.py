"""Uploading: the login is checked before anything costs money, and a failed upload loses nothing."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from bench import pack, upload
from bench.errors import BuzzbenchError, InvalidInput
from bench.records import read_job
from bench.run import asked, command
from tests.pack import jobs
from tests.planning.kit import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


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
    """For a shell, and with what keeps Harbor from reporting it to a third party."""
    nowhere = tmp_path / "no where"
    with pytest.raises(BuzzbenchError) as caught:
        upload.upload(nowhere)
    command = re.fullmatch(r"the upload ended with \d+; the job is kept; repeat `(.*)`", str(caught.value))
    assert command
    first, program, *words = shlex.split(command[1])
    assert (first, Path(program).name, words) == ("HARBOR_TELEMETRY=off", "harbor", ["upload", str(nowhere)])


def test_the_way_to_a_login_reports_nothing_to_a_third_party(tmp_path: Path) -> None:
    assert "HARBOR_TELEMETRY=off " in str(upload.problem({"HOME": str(tmp_path)}))


# Records that contradict each other


def doubted(home: Path) -> Path:
    """A job that is whole, into which somebody has copied one of its trials."""
    job = jobs.make(home)
    shutil.copytree(job / "alpha__1", job / "stranger__x")
    return job


STRANGER = "the journal knows no such attempt, so they count for nothing: stranger__x"


def test_a_job_whose_records_contradict_each_other_is_not_uploaded(tmp_path: Path) -> None:
    job = doubted(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        pack.refuse_upload(jobs.settings(tmp_path), read_job(job), {})
    assert str(caught.value).splitlines() == [
        f"{job}: {STRANGER}; --upload-anyway uploads it all the same",
        "nothing was uploaded",
    ]
    pack.refuse_upload(jobs.settings(tmp_path), read_job(job), {}, anyway=True)


def test_of_several_jobs_none_is_uploaded_where_one_is_not_fit(home: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUZZBENCH_STATE_DIR", str(home.root / "state"))
    fit, unfit = jobs.make(home.root, "lb-one"), jobs.make(home.root, "lb-two")
    (unfit / "alpha__1" / "agent" / "said.txt").write_text("canary+key/5f0c1d7e9b")
    options = home.options(upload=True, environ={"MY_KEY": "canary+key/5f0c1d7e9b"})
    # Had the first been sent, its failure would be told: nobody is logged in.
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.delenv("HARBOR_API_KEY", raising=False)
    said = str(command._upload([read_job(fit), read_job(unfit)], options))
    assert said.startswith("lb-two/alpha__1/agent/said.txt:1: holds the value of MY_KEY, in plain\n")
    assert str(command._upload([read_job(fit)], options)).startswith("the upload ended with ")


def test_upload_anyway_is_no_way_past_a_secret(tmp_path: Path) -> None:
    job = doubted(tmp_path)
    (job / "alpha__1" / "agent" / "said.txt").write_text("canary+key/5f0c1d7e9b")
    with pytest.raises(InvalidInput, match="holds the value of MY_KEY"):
        pack.refuse_upload(jobs.settings(tmp_path), read_job(job), {"MY_KEY": "canary+key/5f0c1d7e9b"}, anyway=True)


def test_what_contradicts_in_a_job_that_is_there_is_said_before_a_login_is_asked_for(
    home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "BUZZBENCH_STATE_DIR"):
        monkeypatch.setenv(name, str(home.root / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    home.task("alpha")
    job = doubted(home.root)
    manifest = home.manifest(home.team())
    given = {"path": str(home.tasks), "job_name": "lb-team", "jobs_dir": str(job.parent), "manifest": str(manifest)}
    with pytest.raises(InvalidInput) as caught:
        asked.planned(**given, upload=True)
    lines = str(caught.value).splitlines()
    said = [next(n for n, line in enumerate(lines) if what in line) for what in (STRANGER, "not logged in to Harbor")]
    assert said == sorted(said)
    assert lines[said[0]].startswith(f"{job}: ")
    with pytest.raises(BuzzbenchError) as caught_anyway:
        asked.planned(**given, upload_anyway=True)
    assert STRANGER not in str(caught_anyway.value)
