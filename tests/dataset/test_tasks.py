"""Every task of buzz-dataset is a whole one: valid for Harbor, for us, and with scripts to rehearse it."""

from __future__ import annotations

import hashlib
import itertools
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from harbor.models.task.task import Task

from bench.gateway.script import load_script
from bench.useranswers import load as load_answers

from .kit import DATASET, IN_STEPS, TASKS, instructions

PARTS = {"task.toml", "environment", "tests", "rehearsal"}
SHARED = ("test.sh", "verify.py")

each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def test_eight_regression_and_six_workflow_tasks_are_there_at_least() -> None:
    layers = Counter(
        tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))["metadata"]["evaluation_layer"]
        for task in TASKS
    )
    assert set(layers) == {"regression", "workflow"}
    assert layers["regression"] >= 8
    assert layers["workflow"] >= 6


@each_task
def test_a_task_says_who_it_is_and_what_it_may_take(task: Path) -> None:
    config = tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))
    assert config["schema_version"] == "1.4"
    assert config["task"]["name"] == f"buzz/{task.name}"
    assert config["agent"]["timeout_sec"] > 0
    # Of a task in steps each has its own: Harbor never asks the task's.
    assert all(part["verifier"]["timeout_sec"] > 0 for part in config.get("steps", [config]))
    assert {"cpus", "memory_mb"} <= set(config["environment"])
    # No network beyond relay and gateway: what declares more is refused in the sandbox for unscripted models.
    assert "network_mode" not in config["environment"]
    # Harbor cuts a trial's name at 32 characters, and reads "__" in a name as its own separator.
    assert len(task.name) <= 32
    assert "__" not in task.name


@each_task
def test_harbor_takes_the_task(task: Path) -> None:
    asked = "steps" if task in IN_STEPS else "instruction.md"
    assert {path.name for path in task.iterdir()} - {"user.yaml"} == PARTS | {asked}
    assert Task.is_valid_dir(task)
    assert Task(task).name == f"buzz/{task.name}"


@each_task
def test_the_dockerfile_keeps_to_what_the_sandbox_can_do(task: Path) -> None:
    lines = (task / "environment" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["FROM python:3.13-slim-bookworm", "WORKDIR /app"]
    assert {line.split()[0] for line in lines[2:]} <= {"WORKDIR", "ENV", "COPY", "RUN"}


@each_task
def test_all_tasks_are_verified_by_the_same_program(task: Path) -> None:
    for name in SHARED:
        here, there = task / "tests" / name, TASKS[0] / "tests" / name
        assert here.read_bytes() == there.read_bytes(), f"{here} differs from {there}"
    assert (task / "tests" / "test.sh").stat().st_mode & 0o111


@each_task
def test_a_task_needs_exactly_those_whom_it_calls_on(task: Path) -> None:
    needed = tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))["metadata"]["needs_members"]
    # What is for any team calls on nobody; its scripts have a part for whoever a team has.
    scripts = (task / "rehearsal").iterdir() if needed else ()
    files = [*instructions(task), *(task / "environment").iterdir(), *scripts]
    called = {name for file in files for name in re.findall(r"worker-\d+", file.read_text(encoding="utf-8"))}
    assert sorted(called) == needed
    # The lead is called by its kind: conditions give it other names.
    assert not [file for file in instructions(task) if "orch" in file.read_text(encoding="utf-8")]


@each_task
def test_what_the_user_would_answer_is_nowhere_else_to_be_found(task: Path) -> None:
    answers = load_answers(task)
    assert bool(answers) == (task.name == "question-to-the-user")
    files = [*instructions(task), *(task / "environment").iterdir()]
    assert not [a for a in answers if any(a.answer in file.read_text(encoding="utf-8") for file in files)]


@each_task
def test_the_instruction_tells_nothing_of_the_judge(task: Path) -> None:
    instruction = "\n".join(file.read_text(encoding="utf-8") for file in instructions(task))
    source = (task / "tests" / "judge.py").read_text(encoding="utf-8")
    forms = set(re.findall(r'"([A-Z]{2,}-\d+|\d{2,}|[0-9a-f]{64})"', source))
    assert not [form for form in forms if form in instruction]
    assert not re.search(r"judge|verif|evidence|reward|\bseq\b|DONE:|p tag", instruction)


@each_task
def test_a_task_has_a_good_script_and_wrong_ones_that_say_what_is_wrong(task: Path) -> None:
    scripts = sorted(path.name for path in (task / "rehearsal").iterdir())
    assert scripts[0] == "good.yaml"
    assert len(scripts) >= 3
    for name in scripts[1:]:
        assert re.fullmatch(r"wrong-[a-z-]+\.yaml", name)
        assert (task / "rehearsal" / name).read_text(encoding="utf-8").startswith("# ")
    for name in scripts:
        path = task / "rehearsal" / name
        script = load_script(path.read_text(encoding="utf-8"), str(path))
        any_team = not tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))["metadata"]["needs_members"]
        for leader in ("orch", "solo") if any_team else ("orch",):
            lead = script.steps_for(leader, leader)
            assert lead is not None
            assert lead[-1].do[-1].done is not None


@each_task
def test_what_a_script_expects_of_results_is_what_its_own_commands_print(task: Path) -> None:
    """Of what a tool did the builtin tools and the CLI of real agents tell in words of their own."""
    for path in task.rglob("rehearsal/*.yaml"):
        for steps in load_script(path.read_text(encoding="utf-8"), path.name).root.values():
            for before, step in itertools.pairwise(steps):
                if step.on == "result" and step.expect:
                    assert all(item.run or item.say for item in before.do), (path.name, step.name)


def test_the_notice_is_the_one_that_its_judge_knows() -> None:
    task = DATASET / "multiline-message-kept-whole"
    notice = (task / "environment" / "notice.md").read_bytes().rstrip(b"\n")
    assert hashlib.sha256(notice).hexdigest() in (task / "tests" / "judge.py").read_text(encoding="utf-8")
    text = notice.decode()
    assert "```" in text
    assert re.search(r"(^|\s)@\w", text)
    assert "\n\n" in text
    assert not text.isascii()
    # No line ends in a blank and there is no tab: nobody can be asked to keep what nobody can see.
    assert not re.search(r"[ \t]$|\t", text, re.MULTILINE)
