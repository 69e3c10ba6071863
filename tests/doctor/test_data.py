"""The dataset: sound, and named by its content."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench import commands
from bench.doctor import data
from bench.errors import InvalidInput
from tests.doctor.conftest import Make
from tests.planning.kit import Project


def test_a_sound_dataset_is_counted_and_one_with_faults_points_to_all_of_them(make: Make, home: Project) -> None:
    home.task("a")
    assert data.tasks(make()).detail == f"1 sound in {home.tasks}"
    home.task("b", more='[environment]\ncpus = "many"\n')
    home.task("c", more="[agent]\ntimeout_sec = -1\n")
    found = data.tasks(make())
    assert (found.state, found.fix) == ("fail", f"`inv validate --path {home.tasks}` names all faults")
    assert "c/task.toml:6: [agent].timeout_sec: -1 is no number of seconds above 0 (and 1 more)" in found.detail


def test_what_a_person_names_and_is_not_there_is_their_mistake_not_the_machines(home: Project) -> None:
    good = {"path": "", "manifest": "", "endpoint_config": ""}
    commands.check_doctor(**good, strict=False)
    nowhere = home.root / "nowhere"
    with pytest.raises(InvalidInput) as caught:
        commands.check_doctor(**good | {"path": str(nowhere), "manifest": "no.yaml", "endpoint_config": "no.json"})
    assert str(caught.value).splitlines() == [
        f"{nowhere}: no such path",
        "no.yaml: no such manifest",
        "no.json: no such endpoint file",
    ]
    with pytest.raises(InvalidInput, match="no tasks found"):
        commands.check_doctor(**good | {"path": str(home.root)})


def test_the_digest_names_the_content_and_not_the_place(make: Make, home: Project, tmp_path: Path) -> None:
    home.task("a")
    first = data.digest(make()).detail
    copy = tmp_path / "elsewhere"
    shutil.copytree(home.tasks, copy)
    assert data.digest(make(dataset=copy)).detail == first
    (copy / "a/instruction.md").write_text("Do something else.\n")
    assert data.digest(make(dataset=copy)).detail != first
