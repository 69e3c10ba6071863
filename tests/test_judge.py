"""The host runs a task's own judge over its own evidence, and says clearly when it can't."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.judge import JudgeError, host_checks


def task(directory: Path, source: str) -> Path:
    (directory / "tests").mkdir()
    (directory / "tests" / "judge.py").write_text(source, encoding="utf-8")
    return directory


def test_the_checks_are_the_judges(tmp_path: Path) -> None:
    source = "def judge(evidence):\n    return {'two messages': len(evidence['messages']) == 2}\n"
    assert host_checks(task(tmp_path, source), {"messages": [1, 2]}) == {"two messages": True}
    assert host_checks(tmp_path, {"messages": []}) == {"two messages": False}


def test_a_task_without_a_judge_has_no_checks(tmp_path: Path) -> None:
    assert host_checks(tmp_path, {}) is None


def test_a_run_leaves_no_bytecode_no_module_and_no_search_path(tmp_path: Path) -> None:
    source = "import re\nSEEN = []\ndef judge(evidence):\n    SEEN.append(1)\n    return {'fresh': len(SEEN) == 1}\n"
    made = task(tmp_path, source)
    modules, path = set(sys.modules), list(sys.path)
    assert [host_checks(made, {}), host_checks(made, {})] == [{"fresh": True}] * 2
    assert list((tmp_path / "tests").iterdir()) == [tmp_path / "tests" / "judge.py"]
    assert (set(sys.modules), sys.path) == (modules, path)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def judge(:", "it can't be loaded (SyntaxError"),
        ("import no_such_module", "it can't be loaded (ModuleNotFoundError: No module named 'no_such_module')"),
        ("x = 1", "it has no function judge(evidence)"),
        ("def judge(evidence): return evidence['messages']", "judge(evidence) raised KeyError: 'messages'"),
        ("def judge(evidence): return {}", "judge(evidence) gave no checks"),
        ("def judge(evidence): return True", "judge(evidence) gave no checks"),
        ("def judge(evidence): return {'x': 1}", "judge(evidence) gave 'x': 1, not a name and a bool"),
    ],
)
def test_a_judge_that_cannot_judge_is_named_with_the_reason(source: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(JudgeError) as caught:
        host_checks(task(tmp_path, source), {})
    path = tmp_path / "tests" / "judge.py"
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert str(caught.value).endswith("; correct the task's judge")
    assert caught.value.exit_code == 1


def test_a_judge_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tests" / "judge.py").mkdir(parents=True)
    with pytest.raises(JudgeError, match=r"it can't be read \(Is a directory\)"):
        host_checks(tmp_path, {})
