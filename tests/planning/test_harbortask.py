"""A task's whole configuration: what Harbor would stumble over is said before a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import InvalidInput
from bench.planning.dataset import read
from bench.planning.harbortask import problems
from tests.planning.kit import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


def said(home: Project, more: str) -> list[str]:
    home.task("a", more=more)
    file = f"{home.tasks}/a/task.toml:"
    found = [str(problem) for problem in problems(read(home.tasks, home.tasks).tasks)]
    assert all(line.startswith(file) for line in found)
    return [line.removeprefix(file) for line in found]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("", []),
        (
            '[environment]\ncpus = "many"\nmemory_mb = "2 GB"\n',
            [
                "6: [environment].cpus: 'many' is no whole number",
                "7: [environment].memory_mb: '2 GB' is no whole number",
            ],
        ),
        (
            '[verifier]\nenvironment_mode = "seperate"\n',
            ["6: [verifier].environment_mode: 'seperate' is not one of 'shared', 'separate'; did you mean separate"],
        ),
        (
            '[environment]\nmemory = "2Q"\n',
            ["5: environment: invalid size format: 2Q. Expected format like '1G', '512M', etc"],
        ),
        ("[[steps]]\nname = 3\n", ["6: steps[0].name: 3 is no text"]),
        ("[environment.healthcheck]\nretries = 1\n", ["5: [environment.healthcheck].command: is missing"]),
    ],
)
def test_a_fault_has_its_file_and_field(home: Project, more: str, lines: list[str]) -> None:
    assert said(home, more) == lines


def test_of_several_forms_that_a_field_may_have_one_is_said(home: Project) -> None:
    (home.task("a") / "task.toml").write_text('artifacts = [3]\n[task]\nname = "buzz/a"\n')
    assert [p.what for p in problems(read(home.tasks, home.root / "elsewhere").tasks)] == ["artifacts[0]: 3 is no text"]


def test_a_step_without_its_files_is_said_before_harbor_passes_over_the_task(home: Project) -> None:
    task = home.task("a", more='[[steps]]\nname = "one"\n')
    (problem,) = problems(read(home.tasks, home.tasks).tasks)
    assert str(problem) == f"{task}: Harbor refuses it: Step directory not found: {task}/steps/one"


def test_a_link_that_leaves_the_task_is_said(home: Project) -> None:
    task = home.task("a")
    (task / "tests/outside").symlink_to("/etc/hostname")
    (problem,) = problems(read(home.tasks, home.tasks).tasks)
    assert problem.where == str(task)
    assert problem.what.startswith("Harbor refuses it: ")


@pytest.mark.parametrize("name", ["Dockerfile", "docker-compose.yaml"])
def test_a_verifier_may_bring_its_own_image(home: Project, name: str) -> None:
    task = home.task("a", more='[verifier]\nenvironment_mode = "separate"\n')
    (task / "tests/test.sh").rename(task / "tests" / name)
    (found,) = read(home.tasks, home.tasks).tasks
    assert found.problems == ()
    assert list(problems([found])) == []


def test_a_run_checks_what_is_selected_before_anything_starts(home: Project) -> None:
    home.task("a")
    home.task("b", more='[environment]\ncpus = "many"\n')
    with pytest.raises(InvalidInput, match=r"b/task\.toml:6: \[environment\]\.cpus: 'many' is no whole number"):
        home.plan(dry_run=False)
    assert home.plan(include=("b",)).jobs, "a dry run leaves it to the run"
