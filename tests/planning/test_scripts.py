"""The scripts of a rehearsal are held against tasks and roster before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planning.kit import Project, refused


def test_a_rehearsal_takes_the_scripted_team_the_embedded_stack_and_the_sandbox(both: Project) -> None:
    plan = both.plan()
    assert (plan.condition.name, plan.rehearsal, plan.stack, plan.environment) == (
        "rehearsal",
        "good",
        "embedded",
        "sandbox",
    )
    assert (plan.key_variables, plan.endpoint_config, plan.needs_agents) == ((), None, False)


def test_tasks_without_a_script_are_named(both: Project) -> None:
    both.task("silent", script=None)
    assert refused(both) == (
        "--rehearsal: no rehearsal/good.yaml in silent; leave them out with -x, or write it "
        "(buzz-dataset/README.md has its form)"
    )
    assert both.plan(exclude=("silent",)).rehearsal == "good"
    assert (
        refused(both, script="goood") == "--rehearsal: no rehearsal/goood.yaml in a, b, flow, silent; did you mean good"
    )


def test_another_script_can_be_rehearsed(both: Project) -> None:
    (both.tasks / "a/rehearsal/wrong-early.yaml").write_text((both.tasks / "a/rehearsal/good.yaml").read_text())
    assert both.plan(include=("a",), script="wrong-early").rehearsal == "wrong-early"
    assert "no rehearsal/wrong-early.yaml in b, flow" in refused(both, script="wrong-early")


def test_a_script_for_another_roster_is_refused(both: Project) -> None:
    solo = both.root / "manifests/builtin-solo.yaml"
    (both.tasks / "a/rehearsal/good.yaml").write_text(
        "orch:\n  - {name: ask, do: [{send: {mention: [worker-1], text: x}}]}\n"
    )
    assert refused(both, include=("a",), manifest=solo).endswith(
        "a/rehearsal/good.yaml: is for orch, whom the roster of builtin-solo-sonnet46 lacks; it has solo; a script may "
        "have parts for several teams where task.toml has [metadata].needs_members = []"
    ), "and not whom orch mentions there, whom a solo lacks of course"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "send: {mention: [worker-9], text: x}",
            "send.mention: nobody is called 'worker-9'; there are orch, user, worker-1, worker-2",
        ),
        ("send: {mention: [worker], text: x}", "send.mention: nobody is called 'worker'"),
        ("tool: {list_member: {}}", "tool: there is no tool 'list_member'; did you mean list_members"),
        ("tool: {x: {}}", "tool: there is no tool 'x'; there are add_member, create_channel, done, "),
    ],
)
def test_a_script_that_names_nobody_or_no_tool_is_refused(both: Project, step: str, said: str) -> None:
    script = f"orch:\n  - name: only\n    do:\n      - {step}\n"
    both.task("c", script=script)
    assert f"c/rehearsal/good.yaml:4: orch[0].do[0].{said}" in refused(both, include=("c",))


def test_whom_a_script_may_mention(both: Project) -> None:
    """Placeholders are filled in only when it plays."""
    mentions = '[worker-1, "@worker-2", user, orch, "{{user}}", "worker-{{index}}"]'
    script = f"orch:\n  - name: all\n    do:\n      - send: {{mention: {mentions}, text: x}}\n"
    both.task("c", script=script + "      - tool: {react: {event_id: x, emoji: y}}\n")
    assert len(both.plan(include=("c",)).jobs) == 1


def test_a_script_in_which_the_orchestrator_does_nothing_is_refused(both: Project) -> None:
    both.task("c", script="orch: []\n")
    assert "c/rehearsal/good.yaml: has no steps for orch, the orchestrator of rehearsal" in refused(
        both, include=("c",)
    )


def test_a_script_of_a_task_for_any_team_may_have_parts_for_several(both: Project) -> None:
    file = both.tasks / "a/task.toml"
    file.write_text(file.read_text().replace("[metadata]\n", "[metadata]\nneeds_members = []\n"))
    script = both.tasks / "a/rehearsal/good.yaml"
    solo = both.root / "manifests/builtin-solo.yaml"
    assert refused(both, include=("a",), manifest=solo).endswith("lacks; it has solo; add a part for solo")
    script.write_text(
        "orch:\n  - {name: ask, do: [{send: {mention: [worker-1], text: x}}]}\n"
        "worker-1:\n  - {name: answer, do: [{say: x}]}\n"
        "solo:\n  - {name: alone, do: [{done: alone}]}\n"
    )
    assert both.plan(include=("a",)).condition.name == "rehearsal"
    assert both.plan(include=("a",), manifest=solo).condition.name == "builtin-solo-sonnet46"


def test_tasks_that_call_on_members_whom_the_roster_lacks_are_refused_by_name(both: Project) -> None:
    for name, needs in (("a", '["worker-1"]'), ("b", '["worker-1"]'), ("flow", '["worker-1", "worker-2"]')):
        file = both.tasks / name / "task.toml"
        file.write_text(file.read_text().replace("[metadata]\n", f"[metadata]\nneeds_members = {needs}\n"))
    assert both.plan().condition.name == "rehearsal"
    solo: dict[str, Any] = {"manifest": both.root / "manifests/builtin-solo.yaml", "rehearsal": False}
    expected = [
        "builtin-solo-sonnet46: its roster (solo) lacks worker-1, whom these tasks call on: a, b; "
        "take another --manifest, or leave them out with -x",
        "builtin-solo-sonnet46: its roster (solo) lacks worker-1, worker-2, whom these tasks call on: flow; "
        "take another --manifest, or leave them out with -x",
    ]
    assert refused(both, **solo).splitlines() == expected
    assert refused(both, **solo | {"rehearsal": True}).splitlines() == expected, "and not once more of each script"
    for name in ("a", "b"):
        file = both.tasks / name / "task.toml"
        file.write_text(file.read_text().replace('["worker-1"]', "[]"))
    assert refused(both, **solo).endswith("flow; take another --manifest, or play the others: -i a -i b")


def test_a_script_without_the_orchestrator_is_refused(both: Project) -> None:
    both.task("lead-less", script="worker:\n  - name: x\n    do:\n      - say: y\n")
    assert "has no steps for orch, the orchestrator of rehearsal" in refused(both, include=("lead-less",))


def test_a_broken_script_is_refused_with_its_line(both: Project) -> None:
    both.task("broken", script="orch:\n  - do: [\n")
    assert "broken/rehearsal/good.yaml:" in refused(both, include=("broken",))
