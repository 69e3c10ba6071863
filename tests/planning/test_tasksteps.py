"""A task's steps: each fault is one line before anything starts, and what has no effect is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import validate
from bench.errors import InvalidInput
from bench.planning.dataset import read
from bench.planning.dryrun import render
from tests.planning.kit import Project, project

FIRST = '[[steps]]\nname = "draft"\n'
BOTH = f'{FIRST}[[steps]]\nname = "change"\n'


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


def in_steps(home: Project, more: str = BOTH, *names: str, above: str = "") -> Path:
    """A sound task of these steps, but for what `more` makes of it."""
    task = home.task("a", None, folder="other", more=more)
    (task / "instruction.md").unlink()
    for name in names or ("draft", "change"):
        (task / "steps" / name).mkdir(parents=True)
        (task / "steps" / name / "instruction.md").write_text("Do it.\n")
    (task / "task.toml").write_text(above + (task / "task.toml").read_text())
    return task


def faults(home: Project) -> list[str]:
    (task,) = read(home.root / "other/a", home.tasks).tasks
    return [str(problem).removeprefix(f"{task.directory}/") for problem in task.problems]


def notes(home: Project) -> list[str]:
    (task,) = read(home.root / "other/a", home.tasks).tasks
    return [str(note).removeprefix(f"{task.directory}/") for note in task.notes]


def test_a_sound_task_in_steps_has_no_fault_and_nothing_idle(home: Project) -> None:
    in_steps(home, f"[verifier]\ntimeout_sec = 600\n{FIRST}min_reward = 0.5\n" + '[[steps]]\nname = "change"\n')
    assert (faults(home), notes(home)) == ([], [])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("steps = 3\n", "task.toml:1: steps: 3 is no list; each step begins with [[steps]]"),
        ("steps = [3]\n", "task.toml:1: steps[0]: 3 is no table; it begins with [[steps]]"),
        (
            'multi_step_reward_strategy = "last"\n',
            "task.toml:1: multi_step_reward_strategy: 'last' is not one of mean or final; "
            "final is the reward of the last step that was played",
        ),
    ],
)
def test_what_stands_above_the_tables_is_held_to_harbors_form(home: Project, more: str, said: str) -> None:
    in_steps(home, "" if more.startswith("steps") else BOTH, above=more)
    assert said in faults(home)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("", "task.toml:5: steps[1].name: is missing; it names the step's directory below steps/"),
        ("name = 3", "task.toml:6: steps[1].name: 3 is no name of a directory on every system; it names"),
        ('name = ""', "task.toml:6: steps[1].name: '' is no name of a directory"),
        ('name = "a/b"', "task.toml:6: steps[1].name: 'a/b' is no name of a directory"),
        ('name = ".."', "task.toml:6: steps[1].name: '..' is no name of a directory"),
        ('name = "draft"', "task.toml:6: steps[1].name: draft is an earlier step's name; give each step its own"),
        ('name = "DRAFT"', "task.toml:6: steps[1].name: DRAFT and draft are one name to systems that know no case"),
        ('name = "chnage"', "task.toml:6: steps[1].name: there is no directory steps/chnage; did you mean change"),
        ('name = "change"\nmin_reward = "x"', "task.toml:7: steps[1].min_reward: 'x' is no finite number"),
        ('name = "change"\nmin_reward = nan', "task.toml:7: steps[1].min_reward: nan is no finite number"),
        ('name = "change"\nmin_reward = true', "task.toml:7: steps[1].min_reward: true is no finite number"),
        ('name = "change"\nmin_reward = 80', "task.toml:7: steps[1].min_reward: 80 is above 1, the most that a"),
        ('name = "change"\nmin_reward = {}', "task.toml:7: steps[1].min_reward: names no reward; give a number"),
        (
            'name = "change"\nmin_reward = {style = 0.5}',
            "task.toml:7: steps[1].min_reward.style: nothing of the task's tests or environment names such a reward",
        ),
        ('name = "change"\nmin_rewrad = 1', "task.toml:7: steps[1].min_rewrad: unknown field; did you mean min_reward"),
        ('name = "change"\nverifier = 9', "task.toml:7: steps[1].verifier: 9 is no table; it begins with [steps.v"),
        (
            'name = "change"\n[steps.verifier]\ntimeout_sec = 0',
            "task.toml:8: steps[1].verifier.timeout_sec: 0 is no number of seconds above 0",
        ),
        (
            'name = "change"\n[steps.agent]\ntimeout_sec = "9"',
            "task.toml:8: steps[1].agent.timeout_sec: '9' is no number of seconds above 0",
        ),
    ],
)
def test_a_fault_of_a_step_is_one_line_with_task_step_and_field(home: Project, step: str, said: str) -> None:
    task = in_steps(home, f"{FIRST}[[steps]]\n{step}\n")
    (fault,) = faults(home)
    assert fault.startswith(said)
    with pytest.raises(InvalidInput) as caught:
        home.plan(path=task, rehearsal=False)
    assert str(caught.value) == f"{task}/{fault}"


def test_a_reward_that_the_tests_name_may_be_a_steps_threshold(home: Project) -> None:
    task = in_steps(home, f"{FIRST}min_reward = {{style = 0.5}}\n")
    assert len(faults(home)) == 1
    (task / "steps/draft/tests").mkdir()
    (task / "steps/draft/tests/test.sh").write_text("echo '{\"style\": 1}' > /logs/verifier/reward.json\n")
    assert faults(home) == []


def test_a_task_of_very_many_files_is_not_read_through(home: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    task = in_steps(home, f"{FIRST}min_reward = {{style = 0.5}}\n")
    (task / "tests/data").mkdir()
    for number in range(3):
        (task / f"tests/data/{number}").write_text("")
    assert len(faults(home)) == 1
    monkeypatch.setattr("bench.planning.tasksteps.MOST_FILES", 3)
    assert faults(home) == []


def test_nobody_knows_what_a_verifier_with_an_image_of_its_own_writes(home: Project) -> None:
    task = in_steps(home, f"{FIRST}min_reward = {{style = 0.5}}\n")
    (task / "tests/Dockerfile").write_text("FROM scratch\n")
    assert faults(home) == []


@pytest.mark.parametrize("text", [b"\n", b"", b"\xff", b"<!-- a CANARY, keep out -->\n\n"])
def test_the_second_steps_instruction_is_read_before_the_first_is_played(home: Project, text: bytes) -> None:
    task = in_steps(home)
    (task / "steps/change/instruction.md").write_bytes(text)
    (fault,) = faults(home)
    assert fault.startswith("steps/change/instruction.md:")


def test_a_canary_that_is_no_mark_is_an_instruction(home: Project) -> None:
    (in_steps(home) / "steps/change/instruction.md").write_text("Feed the canary.\n")
    assert faults(home) == []


def test_a_step_may_not_be_a_link_out_of_the_task(home: Project) -> None:
    task = in_steps(home)
    elsewhere = home.root / "elsewhere"
    (task / "steps/change").rename(elsewhere)
    (task / "steps/change").symlink_to(elsewhere)
    assert "task.toml:6: steps[1].name: steps/change is a link that leaves the task; copy it in" in faults(home)


def test_the_tasks_own_verifier_timeout_is_said_to_have_no_effect_on_its_steps(home: Project) -> None:
    """Harbor gives each step 600 s that says nothing itself, and never asks the task's."""
    in_steps(
        home, f"[verifier]\ntimeout_sec = 1200\n{FIRST}" + '[[steps]]\nname = "change"\nverifier.timeout_sec = 9\n'
    )
    said = "[verifier].timeout_sec: 1200 s has no effect on the steps draft, whose verifiers have 600 s"
    assert notes(home) == [f"task.toml:4: {said}; say it in each step's [steps.verifier]"]


@pytest.mark.parametrize(
    ("more", "extra", "said"),
    [
        (
            f"{BOTH}min_reward = 1\n",
            "steps/change/notes.txt",
            "task.toml:7: steps[1].min_reward: has no effect on the last step, after which",
        ),
        (BOTH, "instruction.md", "instruction.md: has no effect: each of the task's steps has its own"),
        (BOTH, "trajectory.json", "trajectory.json: has no effect: a conversation to go on with is the first step's"),
        (BOTH, "steps/change/trajectory.json", "steps/change/trajectory.json: has no effect: a conversation to go on"),
        (BOTH, "steps/drafts/instruction.md", "steps/drafts: is no step of task.toml's; did you mean draft"),
        (BOTH, "steps/draft/setup.sh", "steps/draft/setup.sh: has no effect there; it belongs in the step's workdir/"),
        ("", "instruction.md", "steps: has no effect, since task.toml has no [[steps]]"),
    ],
)
def test_what_harbor_passes_over_in_a_task_in_steps_is_said(home: Project, more: str, extra: str, said: str) -> None:
    task = in_steps(home, more)
    (task / extra).parent.mkdir(exist_ok=True)
    (task / extra).write_text("{}\n")
    assert faults(home) == []
    (note,) = notes(home)
    assert note.startswith(said)


def test_a_strategy_without_steps_or_in_a_table_has_no_effect(home: Project) -> None:
    task = home.task("a", None, folder="other")
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text(
        f'multi_step_reward_strategy = "final"\n{text}multi_step_reward_strategy = "mean"\n'
    )
    assert notes(home) == [
        "task.toml:4: [task].multi_step_reward_strategy: has no effect in [task]; write it above the first table",
        "task.toml:1: multi_step_reward_strategy: has no effect, since the task has no steps",
    ]


def test_what_has_no_effect_is_said_by_the_dry_run_and_by_validate(home: Project) -> None:
    task = in_steps(home, f"[verifier]\ntimeout_sec = 60\n{BOTH}")
    said = f"{task}/task.toml:4: [verifier].timeout_sec: 60 s has no effect on the steps draft, change, whose"
    plan = home.plan(path=task, rehearsal=False)
    assert f"# note         {said}" in render(plan)
    (note,) = json.loads(render(home.plan(path=task, rehearsal=False, json=True)))["notes"]
    assert note.startswith(said)
    found = validate.inspect(task)
    assert [str(note).startswith(said) for note in found.notes] == [True]
