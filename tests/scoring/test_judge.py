"""The host runs a task's own judge over its own evidence, and says clearly when it can't."""

from __future__ import annotations

import os
import socket
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.sandbox import probe
from bench.scoring import judge
from bench.scoring.judge import JudgeError, NoSandbox, host_checks

Run = Callable[[Path, dict[str, Any]], dict[str, bool]]


def task(directory: Path, source: str) -> Path:
    (directory / "tests").mkdir(parents=True)
    path = directory / "tests" / "judge.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


@pytest.fixture(params=["own", "a stranger's"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """A judge of the project's own, in this process, and anybody else's, in a sandbox: both say the same."""
    own_tasks = tmp_path if request.param == "own" else tmp_path / "elsewhere"
    return lambda path, evidence: host_checks(path, evidence, own_tasks=own_tasks)


def test_the_checks_are_the_judges(run: Run, tmp_path: Path) -> None:
    path = task(tmp_path, "def judge(evidence):\n    return {'two messages': len(evidence['messages']) == 2}\n")
    assert run(path, {"messages": [1, 2]}) == {"two messages": True}
    assert run(path, {"messages": []}) == {"two messages": False}


def test_what_a_judge_prints_is_none_of_its_answer(run: Run, tmp_path: Path) -> None:
    path = task(tmp_path, "print('{}')\ndef judge(evidence):\n    print('x' * 100000)\n    return {'é': True}\n")
    assert run(path, {}) == {"é": True}


def test_a_run_leaves_no_bytecode_no_module_and_no_search_path(run: Run, tmp_path: Path) -> None:
    source = "import re\nSEEN = []\ndef judge(evidence):\n    SEEN.append(1)\n    return {'fresh': len(SEEN) == 1}\n"
    path = task(tmp_path, source)
    probe.problem()  # loads what it needs itself
    modules, search = set(sys.modules), list(sys.path)
    assert [run(path, {}), run(path, {})] == [{"fresh": True}] * 2
    assert list((tmp_path / "tests").iterdir()) == [path]
    assert {name for name in set(sys.modules) - modules if "judge" in name} == set()
    assert sys.path == search


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def judge(:", "it can't be loaded (SyntaxError"),
        ("import no_such_module", "it can't be loaded (ModuleNotFoundError: No module named 'no_such_module')"),
        ("raise SystemExit('no')", "it can't be loaded (SystemExit: no)"),
        ("x = 1", "it has no function judge(evidence)"),
        ("def judge(evidence): return evidence['messages']", "judge(evidence) raised KeyError: 'messages'"),
        ("def judge(evidence): return {}", "judge(evidence) gave no checks"),
        ("def judge(evidence): return True", "judge(evidence) gave no checks"),
        ("def judge(evidence): return [1]", "judge(evidence) gave no checks"),
        ("def judge(evidence): return {'x': 1}", "judge(evidence) gave 'x': 1, not a name and a bool"),
    ],
)
def test_a_judge_that_cannot_judge_is_named_with_the_reason(source: str, reason: str, run: Run, tmp_path: Path) -> None:
    path = task(tmp_path, source)
    with pytest.raises(JudgeError) as caught:
        run(path, {})
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert str(caught.value).endswith("; correct the task's judge")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_judge_that_is_no_file_is_named(make: Callable[[Path], None], run: Run, tmp_path: Path) -> None:
    make(tmp_path / "judge.py")
    with pytest.raises(JudgeError, match="it is no file"):
        run(tmp_path / "judge.py", {})


HOSTILE = """
import json, os, socket, urllib.request

def judge(evidence):
    def possible(act):
        try:
            act()
        except OSError:
            return False
        return True
    return {
        "a file of the host is read": possible(lambda: open(evidence["secret"]).read()),
        "a file of the host is written": possible(lambda: open(evidence["secret"], "w").write("x")),
        "a service of the host is reached": possible(lambda: socket.create_connection(("127.0.0.1", evidence["port"]))),
        "the host's variables are there": "BUZZBENCH_TEST_SECRET" in os.environ,
        "the host's process is seen": os.path.exists("/proc/%d" % evidence["pid"]),
    }
"""


def test_a_strangers_judge_has_none_of_the_hosts_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUZZBENCH_TEST_SECRET", "key")
    secret = tmp_path / "secret"
    secret.write_text("key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        evidence = {"secret": str(secret), "port": server.getsockname()[1], "pid": os.getpid()}
        held = host_checks(task(tmp_path, HOSTILE), evidence, own_tasks=tmp_path / "elsewhere")
    assert {name for name, possible in held.items() if possible} == set()
    assert secret.read_text() == "key"


def test_a_judge_that_only_a_way_round_leads_to_is_no_own_one(tmp_path: Path) -> None:
    """A job's record, or a step's name, can be anybody's."""
    stranger, own = tmp_path / "stranger", tmp_path / "own"
    stranger.mkdir()
    own.mkdir()
    path = task(stranger, "import os\ndef judge(evidence): return {'ours': os.getpid() > 100}\n")
    (own / "link").symlink_to(stranger)
    for way in (own / ".." / "stranger" / judge.JUDGE, own / "link" / judge.JUDGE):
        assert not judge.is_own(way, own)
        assert host_checks(way, {}, own_tasks=own) == {"ours": False}
    assert judge.is_own(path, tmp_path)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("while True: pass", "gave no checks within"),
        ("import os\nos._exit(3)", "it ended with code 3 and gave no checks"),
        ("def judge(evidence): return {'x' * (1 << 22): True}", "gave no checks"),
        ("def judge(evidence): return {'x': bool(bytearray(1 << 40))}", "MemoryError"),
        ("import os\ndef judge(evidence): os.write(3, b'[]'), os._exit(0)", "gave no checks"),
    ],
)
def test_a_strangers_judge_cannot_hold_up_or_flood_the_host(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "PATIENCE_S", 1.0)
    with pytest.raises(JudgeError) as caught:
        host_checks(task(tmp_path, source), {}, own_tasks=tmp_path / "elsewhere")
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.usefixtures("no_sandbox")
def test_a_strangers_judge_is_not_run_where_there_is_no_sandbox(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    path = task(tmp_path, f"open({str(mark)!r}, 'w')\ndef judge(evidence): return {{'x': True}}\n")
    with pytest.raises(NoSandbox, match="the verifier's word stands unchecked"):
        host_checks(path, {}, own_tasks=tmp_path / "elsewhere")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("source", "beside", "found"),
    [
        ("def judge(evidence): ...", {}, True),
        ("def judge(:", {"verify.py": "open('/logs/artifacts/relay_evidence.json')"}, True),
        ("def judge(answer, model): ...", {"test.sh": "python3 judge.py"}, False),
        (None, {"verify.py": "relay_evidence.json"}, False),
    ],
)
def test_a_judge_of_another_kind_is_left_alone(
    source: str | None, beside: dict[str, str], found: bool, tmp_path: Path
) -> None:
    """A task of Harbor's may bring a `judge.py` that asks a model."""
    (tmp_path / "tests").mkdir()
    for name, text in ({"judge.py": source} | beside).items():
        if text is not None:
            (tmp_path / "tests" / name).write_text(text)
    assert judge.find(tmp_path) == (tmp_path / judge.JUDGE if found else None)


def test_a_steps_own_judge_comes_before_the_tasks(tmp_path: Path) -> None:
    task(tmp_path, "def judge(evidence): ...")
    (tmp_path / "steps" / "draft").mkdir(parents=True)
    own = task(tmp_path / "steps" / "draft", "def judge(evidence): ...")
    assert judge.find(tmp_path, "draft") == own
    assert judge.find(tmp_path, "other") == tmp_path / judge.JUDGE


@pytest.mark.parametrize(
    ("file", "source", "said"),
    [
        ("judge.py", "X = 1\ndef judge(:", "t/tests/judge.py:2: not valid Python: invalid syntax"),
        ("judge.py", "x = 'relay_evidence.json'", "t/tests/judge.py: has no function judge(evidence)"),
        ("judge.py", "x = '\0'", "t/tests/judge.py: not valid Python: source code string cannot contain null bytes"),
        ("files.py", "def checks(read)", "t/tests/files.py:1: not valid Python: expected ':'"),
        ("verify.py", "=", "t/tests/verify.py:1: not valid Python: invalid syntax"),
    ],
)
def test_what_is_wrong_with_a_judge_is_found_without_running_it(
    file: str, source: str, said: str, tmp_path: Path
) -> None:
    task(tmp_path, "raise SystemExit\ndef judge(evidence): ...")
    (tmp_path / "tests" / "test.sh").write_text("relay_evidence.json")
    assert list(judge.faults(tmp_path, Path("t"))) == []
    (tmp_path / "tests" / file).write_text(source)
    assert [str(fault) for fault in judge.faults(tmp_path, Path("t"))] == [said]


@pytest.mark.parametrize(
    ("source", "what"), [("def judge(", ":1: not valid Python: '(' was never closed"), ("x = 1", "")]
)
def test_the_same_fault_in_two_tasks_is_told_of_each(source: str, what: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        task(tmp_path / name, source)
        (tmp_path / name / "tests" / "test.sh").write_text("relay_evidence.json")
    told = [str(fault) for name in ("a", "b") for fault in judge.faults(tmp_path / name, Path(name))]
    what = what or ": has no function judge(evidence)"
    assert told == [f"a/tests/judge.py{what}", f"b/tests/judge.py{what}"]
