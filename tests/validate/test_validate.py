"""A dataset is fit to measure with, or all that is wrong with it is said at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import commands, validate
from bench.errors import InvalidInput
from bench.settings import ROOT
from tests.planning.kit import SCRIPT, Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


def sound(home: Project, name: str, more: str = "") -> Path:
    """A Buzz task without fault."""
    task = home.task(name, more=more)
    (task / "tests/judge.py").write_text("def judge(evidence): return {}\n")
    for script in ("wrong-early", "wrong-late"):
        (task / f"rehearsal/{script}.yaml").write_text(SCRIPT)
    return task


def faults(home: Project, folder: str = "buzz-dataset") -> list[str]:
    found = validate.inspect(home.root / folder, buzz_root=home.tasks).faults
    return [str(fault).removeprefix(f"{home.root / folder}/") for fault in found]


def test_the_shipped_dataset_is_without_fault() -> None:
    assert validate.inspect(ROOT / "buzz-dataset").faults == ()


def test_a_sound_task_has_no_fault(home: Project) -> None:
    sound(home, "a")
    assert faults(home) == []


def test_faults_of_every_kind_and_task_are_said_at_once(home: Project) -> None:
    sound(home, "a", more='[environment]\ncpus = "many"\n[agent]\ntimeout_secs = 9\n')
    (sound(home, "b") / "rehearsal/wrong-late.yaml").unlink()
    (sound(home, "c") / "rehearsal/good.yaml").write_text("orch: 3\n")
    (sound(home, "d") / "tests/judge.py").unlink()
    (home.tasks / "d/rehearsal/other.yaml").write_text(SCRIPT)
    home.task("e", "smoke")
    said = faults(home)
    assert [line.split(":")[0] for line in said] == [
        "a/task.toml",
        "a/task.toml",
        "e/task.toml",
        "b",
        "c/rehearsal/good.yaml",
        "d",
        "d",
    ]
    assert said[0].startswith("a/task.toml:6: [environment].cpus: 'many' is no whole number")
    assert said[1].startswith("a/task.toml: unknown field 'agent.timeout_secs'; remove or correct it")
    assert said[3] == "b: has 1 rehearsal/wrong-*.yaml; 2 at least show what is not rewarded"
    assert said[5] == "d: has no tests/judge.py, so that the host could not judge its evidence again"
    assert said[6] == "d: rehearsal/other.yaml is neither good.yaml nor wrong-*.yaml; rename it"


def test_another_dataset_needs_no_scripts_and_no_layers(home: Project) -> None:
    home.task("x", None, folder="other", script=None)
    assert faults(home, "other") == []
    (home.root / "other/x/instruction.md").write_text("")
    assert faults(home, "other") == ["x/instruction.md: is empty; say in it what is to be done"]


def test_a_script_for_strangers_is_a_fault(home: Project) -> None:
    (sound(home, "a") / "rehearsal/good.yaml").write_text(SCRIPT.replace("orch", "pilot"))
    (said,) = faults(home)
    assert said.startswith("a/rehearsal/good.yaml: is for pilot, whom the roster of rehearsal lacks; it has orch, ")


def test_an_instruction_that_is_not_utf_8_is_a_fault_and_no_traceback(home: Project) -> None:
    file = home.task("a", None, folder="other") / "instruction.md"
    file.write_bytes(b"\xff\xfe")
    assert faults(home, "other") == ["a/instruction.md:1: this instruction is not UTF-8 text"]


def test_what_is_worth_a_thought_is_a_note_and_no_fault(home: Project) -> None:
    task = sound(home, "a")
    (task / "environment/Dockerfile").write_text("FROM scratch\nRUN pip install requests\n")
    found = validate.inspect(home.tasks, buzz_root=home.tasks)
    assert found.faults == ()
    assert [note.where for note in found.notes] == [f"{task}/environment/Dockerfile:2"]
    assert validate.lines(found)[-1] == f"{home.tasks}: 1 task, no faults, 1 note"


def test_the_task_ends_with_2_where_there_is_a_fault(home: Project, capsys: pytest.CaptureFixture[str]) -> None:
    task = home.task("x", None, folder="other", script=None)
    assert validate.validate(task, manifest=None, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(task), "tasks": ["buzz/x"], "faults": [], "notes": []}
    (task / "tests/test.sh").unlink()
    assert validate.validate(task, manifest=None, as_json=False) == 2
    assert capsys.readouterr().out.splitlines() == [
        f"fault  {task}: has no tests/test.sh; it writes 1 or 0 into /logs/verifier/reward.txt",
        f"{task}: 1 task, 1 fault",
    ]


def test_no_such_path_is_refused(home: Project) -> None:
    with pytest.raises(InvalidInput, match="nope: no such path"):
        validate.inspect(home.root / "nope")


def test_what_only_a_run_takes_is_refused_without_one() -> None:
    with pytest.raises(InvalidInput) as caught:
        commands.check_validate(run=False, environment="sandbox", n_concurrent=2, path="", manifest="")
    assert str(caught.value).splitlines() == [
        "--environment/-e: only --run plays tasks; add --run",
        "--n-concurrent/-n: only --run plays tasks; add --run",
    ]
    commands.check_validate(run=False, environment="", n_concurrent=0, path="", manifest="")


@pytest.mark.slow
def test_the_rules_are_harbors() -> None:
    from harbor.lint.models import LintRule

    assert {rule.value for rule in LintRule} >= validate.FAULTS | validate.NOTES
