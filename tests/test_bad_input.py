"""Bad input: one clear line for each fault, the right exit code, nothing started and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BuzzbenchError
from tests.planning import Project, project


@dataclass(frozen=True)
class Bad:
    """An input and what is said of it. `arrange` gives options; without any, one good task is rehearsed, dry."""

    name: str
    arrange: Callable[[Project], dict[str, Any]]
    said: str
    exit_code: int = 2


def _toml(home: Project) -> dict[str, Any]:
    (home.tasks / "good/task.toml").write_text("[task\n")
    return {}


def _manifest(**changes: Any) -> Callable[[Project], dict[str, Any]]:
    return lambda home: {"manifest": home.manifest(home.team(**changes))}


def _member(number: int, **changes: Any) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        data = home.team()
        data["roster"][number] |= changes
        return {"manifest": home.manifest(data)}

    return arrange


def _second_task(name: str, layer: str | None, **given: Any) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        home.task(name, layer, **given)
        return {"include": ("good",)}  # Also the faults of a task that is not selected are said.

    return arrange


def _options(**given: Any) -> Callable[[Project], dict[str, Any]]:
    return lambda home: given


WRONG_HASH = {"path": "personas/own.md", "sha256": "0" * 64}

TABLE = [
    Bad("no such path", lambda h: {"path": h.root / "nope"}, "nope: no such path"),
    Bad("a file", lambda h: {"path": h.tasks / "good/task.toml"}, "task.toml: is a file; give a task's directory"),
    Bad("an empty dataset", lambda h: {"path": h.root / "manifests"}, "manifests: no tasks found"),
    Bad("broken TOML", _toml, "good/task.toml:1: not valid TOML: "),
    Bad("no layer", _second_task("b", None), "b/task.toml: [metadata].evaluation_layer: is missing"),
    Bad("unknown layer of a task", _second_task("b", "smoke"), "unknown layer 'smoke'; it is regression or workflow"),
    Bad(
        "duplicate names",
        _second_task("b", "workflow", full_name="buzz/good"),
        "good/task.toml: [task].name: buzz/good is also the name of b",
    ),
    Bad("-k 0", _options(attempts="0"), "--attempts/-k: 0 is not a whole number from 1"),
    Bad("-k -1", _options(attempts="-1"), "--attempts/-k: -1 is not a whole number from 1"),
    Bad("-k many", _options(attempts="many"), "--attempts/-k: many is not a whole number from 1"),
    Bad("-k 1.5", _options(attempts="1.5"), "--attempts/-k: 1.5 is not a whole number from 1"),
    Bad("-n 0", _options(n_concurrent="0"), "--n-concurrent/-n: 0 is not a whole number from 1"),
    Bad("-d and -p", _options(dataset="x"), "--dataset and --path: exclude each other; give one of the two"),
    Bad("a bad dataset name", _options(path=None, dataset="a b"), "--dataset: 'a b' is no dataset's name"),
    Bad(
        "a rehearsal of a registry", _options(path=None), "--rehearsal: the tasks of terminal-bench/terminal-bench-2-1"
    ),
    Bad(
        "--layer outside the dataset",
        lambda h: {"path": h.task("x", None, folder="other"), "layer": "workflow"},
        "--layer: only tasks under buzz-dataset/ have layers, and ",
    ),
    Bad("--layer without a path", _options(path=None, layer="workflow"), "--layer: only tasks under buzz-dataset/"),
    Bad("unknown --layer", _options(layer="regresion"), "--layer: unknown layer 'regresion'; it is regression or"),
    Bad("nothing of a layer", _options(layer="workflow"), "--layer workflow: selects none of the 1 tasks"),
    Bad("an unmatched glob", _options(include=("god",)), "--include-task god: matches no task; the nearest are good"),
    Bad("an unmatched exclusion", _options(exclude=("zz*",)), "--exclude-task zz*: matches no task; there are good"),
    Bad("all excluded", _options(exclude=("*",)), "--exclude-task *: selects none of the 1 tasks"),
    Bad("no such manifest", lambda h: {"manifest": h.root / "nope.yaml"}, "nope.yaml: no such manifest"),
    Bad("a wrong hash", _member(0, prompt=WRONG_HASH), "has changed: the manifest pins 0000"),
    Bad("an unknown endpoint", _member(1, endpoint="gpt"), "no endpoint gpt, which the manifest names; it has claude"),
    Bad("two orchestrators", _member(1, kind="orchestrator", count=1), "a team has exactly one"),
    Bad("no orchestrator", _member(0, kind="worker"), "has no orchestrator"),
    Bad("a price missing", _manifest(prices={}), "no price for claude-sonnet-4-6 (orch, worker)"),
    Bad("an unknown field", _manifest(team="x"), "team: unknown field"),
    Bad("an unknown harness", _member(0, harness="claude"), "roster[0].harness: 'claude' is not one of 'buzz-agent',"),
    Bad(
        "no such endpoint file",
        lambda h: {"manifest": h.manifest(h.team()), "endpoint_config": h.root / "nope.json"},
        "nope.json: no such endpoint file",
    ),
    Bad(
        "a scripted model without a rehearsal",
        lambda h: {"rehearsal": False, "manifest": h.root / "manifests/rehearsal.yaml", "environment": "sandbox"},
        "the endpoint scripted answers only in a rehearsal; add --rehearsal",
    ),
    Bad(
        "a key missing",
        _options(rehearsal=False, dry_run=False),
        "ANTHROPIC_API_KEY is not set; set it, or go on without a key",
    ),
    Bad("unknown environment", _options(environment="dokcer"), "--environment/-e: unknown environment 'dokcer'; did"),
    Bad("unknown stack", _options(stack="embeded"), "--stack: unknown stack 'embeded'; it is embedded or compose; did"),
    Bad("a bad job name", _options(job_name="../x"), "--job-name: '../x' is no job name"),
    Bad("a long job name", _options(job_name="x" * 129), "is no job name: letters, digits, dots, dashes"),
    Bad("jobs in a file", lambda h: {"jobs_dir": h.tasks / "good/task.toml"}, "jobs are written into a directory"),
    Bad("a script alone", _options(rehearsal=False, script="good"), "--script: only a rehearsal follows a script"),
    Bad("no such script", _options(script="wrong"), "--rehearsal: no rehearsal/wrong.yaml in good; leave them out"),
    Bad("--upload of a rehearsal", _options(upload=True), "--upload: a rehearsal measures nothing and can't be"),
    Bad("--gui on the embedded stack", _options(gui=True), "--gui: the desktop app needs the Docker stack; add"),
    Bad(
        "real agents",
        _options(rehearsal=False, dry_run=False, environ={"ANTHROPIC_API_KEY": "x"}),
        "agents of harness buzz-agent can't run yet",
        exit_code=3,
    ),
]


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.name)
def test_bad_input_is_refused_with_one_clear_line(tmp_path: Path, bad: Bad) -> None:
    home = project(tmp_path)
    home.task("good")
    options = bad.arrange(home)
    before = home.files()
    with pytest.raises(BuzzbenchError) as caught:
        home.plan(**options)
    lines = str(caught.value).splitlines()
    assert len([line for line in lines if bad.said in line]) == 1
    assert caught.value.exit_code == bad.exit_code
    assert home.files() == before
