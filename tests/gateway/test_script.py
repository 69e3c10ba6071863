"""A bad script is found when it is read, with its path; a good one travels unchanged."""

from __future__ import annotations

import json

import pytest

from bench.errors import InvalidInput
from bench.gateway.script import load_script, read_script

GOOD = """
orch:
  - name: ask
    do: [{send: {text: hi, mention: [worker-1], reply: true}}]
  - name: end
    on: result
    do: [{done: "DONE: {{user}} {{event}} {{index}} {{agent}} {{member}}"}]
"""

STEP = "w: [{name: a, %s}]"


def problems(text: str) -> list[str]:
    """What is said of a script with faults."""
    with pytest.raises(InvalidInput) as raised:
        load_script(text, "f.yaml")
    assert raised.value.exit_code == 2
    return [str(problem) for problem in raised.value.problems]


def test_a_good_script_has_no_problems_and_survives_the_wire() -> None:
    script = load_script(GOOD, "good.yaml")
    assert read_script(json.loads(json.dumps(script.wire)), "wire") == script
    assert script.wire["orch"][1]["on"] == "result", "`on` is a word, not YAML's boolean"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f.yaml: this script is empty"),
        ("- x", "f.yaml: this script is no mapping of fields to values"),
        ("{}", "f.yaml: a script maps roster ids or agents' names to lists of steps"),
        ("w: []\nw: []", "f.yaml:2: w: given twice, first on line 1"),
        ("w: 3", "f.yaml:1: w: 3 is no list"),
        (STEP % "do: []", "f.yaml:1: w[0].do: is empty"),
        (STEP % "do: [{say: x}], if: 1", "f.yaml:1: w[0].if: unknown field"),
        (STEP % "do: [{say: x, run: y}]", "f.yaml:1: w[0].do[0]: give exactly one of say, run, send, done, tool"),
        (STEP % "do: [{say: null}]", "f.yaml:1: w[0].do[0]: give exactly one of say, run, send, done, tool"),
        (STEP % "do: [{tool: {a: {}, b: {}}}]", "f.yaml:1: w[0].do[0]: give one tool: {name: input}"),
        (STEP % "do: [{send: {text: x, mention: w}}]", "f.yaml:1: w[0].do[0].send.mention: 'w' is no list"),
        (STEP % "do: [{send: {mention: [w]}}]", "f.yaml:1: w[0].do[0].send.text: is missing"),
        (
            STEP % "on: results, do: [{say: x}]",
            "f.yaml:1: w[0].on: 'results' is not one of 'message', 'result'; did you mean result",
        ),
        (
            STEP % "on: result, do: [{say: x}]",
            "f.yaml:1: w[0].on: waits for results, but no step before it calls a tool; use `on: message`",
        ),
        (
            STEP % "do: [{run: 'echo {{foo}}'}]",
            "f.yaml:1: w[0]: 'foo' is no placeholder; known are agent, member, index, user, event, event: <text>, sent",
        ),
        (
            "w: [{name: a, do: [{say: x}]}, {name: a, do: [{say: x}]}]",
            "f.yaml:1: w[1].name: 'a' names an earlier step too; name each step once",
        ),
    ],
)
def test_a_fault_is_named_with_file_and_path(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_broken_yaml_is_named_with_its_line() -> None:
    (problem,) = problems("orch: []\nw: [}")
    assert problem.startswith("f.yaml:2: not valid YAML: ")


@pytest.mark.parametrize("think", ["[1]", "[2, 1]", "[-1, 1]", "soon"])
def test_a_pause_that_makes_no_sense_is_refused(think: str) -> None:
    (problem,) = problems(STEP % f"do: [{{say: x}}], think_s: {think}")
    assert "w[0]" in problem


def test_all_faults_are_told_at_once_each_with_its_line() -> None:
    text = "w:\n  - do:\n      - sai: x\n  - name: b\n    do: 1\n"
    assert problems(text) == [
        "f.yaml:2: w[0].name: is missing",
        "f.yaml:3: w[0].do[0].sai: unknown field; did you mean say",
        "f.yaml:5: w[1].do: 1 is no list",
    ]


def test_a_script_that_came_over_the_wire_has_no_lines() -> None:
    with pytest.raises(InvalidInput, match=r"^wire: w: 3 is no list$"):
        read_script({"w": 3}, "wire")
