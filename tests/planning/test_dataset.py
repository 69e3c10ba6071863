"""Tasks on disk: found one level down, and checked as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import InvalidInput
from bench.planning.dataset import Dataset, read
from bench.settings import ROOT
from tests.planning.kit import Project


def found(home: Project, folder: str = "buzz-dataset") -> Dataset:
    return read(home.root / folder, home.tasks)


def faults(home: Project, folder: str = "buzz-dataset") -> list[str]:
    return [str(problem) for task in found(home, folder).tasks for problem in task.problems]


def test_the_shipped_tasks_are_without_fault() -> None:
    dataset = read(ROOT / "buzz-dataset", ROOT / "buzz-dataset")
    assert dataset.buzz
    assert [str(problem) for task in dataset.tasks for problem in task.problems] == []
    assert {task.layer for task in dataset.tasks} == {"regression", "workflow"}


def test_a_task_says_its_name_layer_timeout_and_network(home: Project) -> None:
    more = (
        '[agent]\ntimeout_sec = 600\nuser = "root"\n[environment]\nnetwork_mode = "no-network"\n'
        '[verifier]\nnetwork_mode = "public"\n'
    )
    home.task("hello", "workflow", more=more)
    (task,) = found(home).tasks
    assert (task.name, task.layer, task.agent_timeout_s) == ("buzz/hello", "workflow", 600)
    assert task.network_modes == ("no-network", None, "public")
    assert task.users == ("root", None)


def test_a_task_says_whom_it_needs(home: Project) -> None:
    needing = home.task("a")
    with (needing / "task.toml").open("a") as file:
        file.write('needs_members = ["worker-1", "worker-2"]\n')
    home.task("b")
    assert [task.needs_members for task in found(home).tasks] == [("worker-1", "worker-2"), ()]
    assert faults(home) == []


def test_a_task_may_say_that_it_calls_on_nobody(home: Project) -> None:
    with (home.task("a") / "task.toml").open("a") as file:
        file.write("needs_members = []\n")
    home.task("b")
    assert [(task.needs_members, task.for_any_team) for task in found(home).tasks] == [((), True), ((), False)]
    assert faults(home) == []


@pytest.mark.parametrize("folder", ["buzz-dataset", "other"])
@pytest.mark.parametrize("value", ['"worker-1"', "[3]", '["worker-1", 2]', "{worker-1 = true}"])
def test_needed_members_that_are_no_names_are_refused(home: Project, value: str, folder: str) -> None:
    with (home.task("a", folder=folder) / "task.toml").open("a") as file:
        file.write(f"needs_members = {value}\n")
    (fault,) = faults(home, folder)
    assert fault.startswith(f"{home.root / folder}/a/task.toml:5: [metadata].needs_members: ")
    assert fault.endswith('is no list of names; its form is ["worker-1"], or [] for any team')


def test_what_the_user_answers_is_checked_with_the_task(home: Project) -> None:
    (home.task("a") / "user.yaml").write_text('answers:\n  - asked: ["?"]\n    answer: "Nine."\n')
    (home.task("b") / "user.yaml").write_text("answers:\n  - asked: []\n")
    assert faults(home) == [
        f"{home.tasks}/b/user.yaml:2: answers[0].asked: is empty",
        f"{home.tasks}/b/user.yaml:2: answers[0].answer: is missing",
    ]


def test_a_path_is_a_task_or_a_folder_of_tasks(home: Project) -> None:
    home.task("a")
    home.task("b")
    assert [t.directory.name for t in found(home).tasks] == ["a", "b"]
    single = found(home, "buzz-dataset/b")
    assert (single.single, [t.directory.name for t in single.tasks]) == (True, ["b"])


def test_buzz_tasks_are_those_whose_resolved_path_lies_under_the_projects_folder(home: Project) -> None:
    home.task("a")
    home.task("b", None, folder="elsewhere")
    (home.root / "link").symlink_to(home.tasks)
    assert found(home, "link").buzz
    assert not found(home, "elsewhere").buzz
    assert found(home, "elsewhere").tasks[0].layer is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nope", "no such path"),
        ("buzz-datasett", "/buzz-datasett: no such path; did you mean /"),
        ("manifests/rehearsal.yaml", "is a file; give a task's directory, or a folder of tasks"),
        ("buzz-dataset", "no tasks found: neither a task.toml in it nor in a directory of it"),
        ("deep", "tasks are looked for one level down: is it "),
    ],
)
def test_a_path_without_tasks_is_an_error(home: Project, path: str, message: str) -> None:
    home.task("a", folder="deep/inner")
    with pytest.raises(InvalidInput) as caught:
        found(home, path)
    assert message in str(caught.value)


def test_the_projects_own_tasks_are_offered_from_anywhere(home: Project, tmp_path: Path) -> None:
    home.task("a")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(InvalidInput, match=rf"no such path; did you mean {home.tasks}$"):
        read(elsewhere / "buzz-dataset", home.tasks)


def test_all_faults_of_a_dataset_are_found_at_once(home: Project) -> None:
    (home.task("a") / "task.toml").write_text("[task]\nname = \n")
    (home.task("b", "smoke") / "instruction.md").unlink()
    (home.task("c", None, full_name="c") / "tests/test.sh").unlink()
    (home.task("d") / "task.toml").write_text('[metadata]\nevaluation_layer = "workflow"\n')
    home.task("e", full_name="buzz/f")
    (home.task("f", more="[agent]\ntimeout_sec = -1\n") / "environment/Dockerfile").unlink()
    (home.tasks / "f/environment").rmdir()
    at = home.tasks
    assert faults(home) == [
        f"{at}/a/task.toml:2: not valid TOML: Invalid value",
        f"{at}/b: has no instruction.md; say in it what is to be done",
        f"{at}/b/task.toml:4: [metadata].evaluation_layer: unknown layer 'smoke'; it is regression or workflow",
        f"{at}/c/task.toml:2: [task].name: 'c' is no task name; its form is org/name, such as buzz/hello",
        f"{at}/c: has no tests/test.sh; it writes 1 or 0 into /logs/verifier/reward.txt",
        f"{at}/c/task.toml: [metadata].evaluation_layer: is missing; it is regression or workflow",
        f"{at}/d/task.toml: [task].name: is missing; give it a name such as buzz/hello",
        f"{at}/f: has neither an environment/ directory nor [environment].docker_image; say in environment/Dockerfile "
        "what the team works in",
        f"{at}/f/task.toml:6: [agent].timeout_sec: -1 is no number of seconds above 0",
        f"{at}/f/task.toml:2: [task].name: buzz/f is also the name of e",
    ]


def test_outside_the_buzz_dataset_a_task_needs_no_name_and_no_layer(home: Project) -> None:
    (home.task("a", None, folder="other") / "task.toml").write_text("[agent]\ntimeout_sec = 60.5\n")
    assert faults(home, "other") == []
    assert found(home, "other").tasks[0].name == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'task.toml: is empty; begin it with [task] and its name, such as name = "buzz/hello"'),
        ("metadata = 3\n", "task.toml:1: metadata: 3 is no table; it begins with a line [metadata]"),
        (
            '[metadata]\nevaluation_layer = "regresion"\n',
            "task.toml:2: [metadata].evaluation_layer: unknown layer 'regresion'; it is regression or workflow",
        ),
        (
            '[metadata]\nneed_members = ["worker-1"]\n',
            "task.toml:2: [metadata].need_members: unknown field; did you mean needs_members",
        ),
        (
            '[metadata]\nevaluation-layer = "workflow"\n',
            "task.toml:2: [metadata].evaluation-layer: unknown field; did you mean evaluation_layer",
        ),
    ],
)
def test_what_buzzbench_reads_of_any_task_is_checked(home: Project, text: str, said: str) -> None:
    (home.task("a", None, folder="other") / "task.toml").write_text(text)
    assert faults(home, "other") == [f"{home.root}/other/a/{said}"]


def test_metadata_of_a_tasks_own_are_its_own_business(home: Project) -> None:
    more = '[metadata]\nauthor_name = "A"\ndifficulty = "hard"\nmembers = 3\nlayer = "x"\n'
    home.task("a", None, folder="other", more=more)
    assert faults(home, "other") == []


def test_an_empty_instruction_is_a_fault_of_a_task_and_of_its_step(home: Project) -> None:
    home.task("a", None, folder="other", more='[[steps]]\nname = "draft"\n')
    (home.root / "other/a/steps/draft").mkdir(parents=True)
    (home.root / "other/a/steps/draft/instruction.md").write_text(" \n")
    (home.task("b", None, folder="other") / "instruction.md").write_text("")
    assert faults(home, "other") == [
        f"{home.root}/other/a/steps/draft/instruction.md: is empty; say in it what is to be done",
        f"{home.root}/other/b/instruction.md: is empty; say in it what is to be done",
    ]


def test_an_instruction_that_is_not_utf_8_is_a_fault_of_a_task_and_of_its_step(home: Project) -> None:
    """Harbor would play the steps before it, then judge one that no team was ever given."""
    home.task("a", None, folder="other", more='[[steps]]\nname = "draft"\n')
    (home.root / "other/a/steps/draft").mkdir(parents=True)
    (home.root / "other/a/steps/draft/instruction.md").write_bytes(b"\xff\xfe")
    (home.task("b", None, folder="other") / "instruction.md").write_bytes(b"Do it.\n\xff\n")
    assert faults(home, "other") == [
        f"{home.root}/other/a/steps/draft/instruction.md:1: this instruction is not UTF-8 text",
        f"{home.root}/other/b/instruction.md:2: this instruction is not UTF-8 text",
    ]


def test_a_broken_judge_is_a_fault_before_anything_runs(home: Project) -> None:
    """Else it would be taken for the team's failure, or found only when everything is paid for."""
    task = home.task("a", None, folder="other", more='[[steps]]\nname = "draft"\n')
    (task / "steps/draft/tests").mkdir(parents=True)
    (task / "steps/draft/instruction.md").write_text("Do it.\n")
    (task / "tests/judge.py").write_text("def judge(evidence):\n  return {\n")
    (task / "steps/draft/tests/judge.py").write_text("'relay_evidence.json'\n")
    assert faults(home, "other") == [
        f"{home.root}/other/a/tests/judge.py:2: not valid Python: '{{' was never closed",
        f"{home.root}/other/a/steps/draft/tests/judge.py: has no function judge(evidence)",
    ]


def test_a_file_that_is_no_text_is_a_fault(home: Project) -> None:
    (home.task("a") / "task.toml").write_bytes(b"\xff\xfe")
    assert faults(home) == [f"{home.tasks}/a/task.toml:1: this task.toml is not UTF-8 text"]


def test_a_step_whose_name_no_directory_can_have_is_no_traceback(home: Project) -> None:
    file = home.task("a") / "task.toml"
    file.write_text(file.read_text() + f'[[steps]]\nname = "{"y" * 5000}"\n')
    assert found(home).tasks[0].steps == ()
