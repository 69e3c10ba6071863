"""The scripted model follows its script or says where it can't: there is no silent pass."""

from __future__ import annotations

import pytest

from bench.gateway.script import load_script
from bench.gateway.scripted import (
    NOTHING_TO_DO,
    WAITING,
    Call,
    Done,
    Fault,
    Part,
    Post,
    Progress,
    Reply,
    Run,
    Say,
    Shown,
    advance,
    blocks,
)

SCRIPT = """
orch:
  - name: delegate
    expect: ["write the two parts"]
    do:
      - say: "I split this."
      - send: {mention: [worker-1], text: "please write part 1"}
      - send: {mention: [worker-2], text: "please write part 2"}
  - name: merge
    expect: ["REPORT part 1", "REPORT part 2"]
    do:
      - run: "cat part1.txt part2.txt > out.txt"
  - name: finish
    on: result
    expect: ["exit 0"]
    do:
      - done: "DONE: merged for {{user}}"
worker:
  - name: write
    expect: ["please write part {{index}}"]
    do:
      - run: "echo part{{index}} > part{{index}}.txt"
      - send: {mention: [orch], text: "REPORT part {{index}}", reply: true}
  - name: more
    expect: ["more"]
    do:
      - send: {text: "no", reply: "please write", channel: "side"}
      - tool: {react: {event_id: "{{event}}", deep: [{n: 1, by: "{{agent}} of {{member}}"}]}}
worker-9:
  - name: own
    do: [{say: "mine"}]
  - name: next
    expect: ["B"]
    do: [{run: "b"}]
"""


def block(number: int, text: str) -> str:
    return f"[Buzz event: @mention]\nEvent ID: {event(number)}\nChannel: c\nFrom: orch\nContent: {text}\n"


def event(number: int) -> str:
    return f"{number:064x}"


def part(agent: str) -> Part:
    member = agent.split("-")[0]
    return Part(agent, member, "user", load_script(SCRIPT, "s").steps_for(agent, member))


class Model:
    """A part being played."""

    def __init__(self, agent: str) -> None:
        self.part, self.progress = part(agent), Progress()

    def __call__(self, *messages: str, results: tuple[str, ...] = ()) -> Reply | Fault:
        self.progress, reply = advance(self.part, self.progress, Shown(messages, results))
        return reply


def texts(reply: Reply | Fault) -> list[str]:
    assert isinstance(reply, Reply), reply
    return [a.text for a in reply.actions if isinstance(a, Say)]


def ran(reply: Reply | Fault) -> list[str]:
    assert isinstance(reply, Reply), reply
    return [a.command for a in reply.actions if isinstance(a, Run)]


def delegated() -> Model:
    model = Model("orch")
    model(block(1, "write the two parts"))
    model(results=("sent", "sent"))
    return model


def test_a_step_is_taken_when_its_expectation_is_shown() -> None:
    reply = Model("orch")(block(1, "please write the two parts, team"))
    assert reply == Reply(
        (
            Say("I split this."),
            Post("please write part 1", ("worker-1",)),
            Post("please write part 2", ("worker-2",)),
        ),
        "delegate",
    )


def test_results_that_no_step_waits_for_end_the_turn() -> None:
    model = Model("orch")
    model(block(1, "write the two parts"))
    assert texts(model(results=("sent",))) == [NOTHING_TO_DO]


def test_expectations_are_ticked_off_over_several_calls() -> None:
    model = delegated()
    assert texts(model(block(2, "REPORT part 2"))) == [WAITING]
    assert ran(model(block(3, "REPORT part 1"))) == ["cat part1.txt part2.txt > out.txt"]


def test_two_reports_in_one_message_list_are_both_counted() -> None:
    model = delegated()
    assert ran(model(block(2, "REPORT part 2") + block(3, "REPORT part 1"))) == ["cat part1.txt part2.txt > out.txt"]


def test_buzz_acps_batches_are_split_into_their_events() -> None:
    batch = (
        "[Context]\nScope: channel\n[Buzz events - 2 events]\n"
        f"--- Event 1 ---\nEvent ID: {event(2)}\nContent: REPORT part 1\n"
        f"--- Event 2 ---\nEvent ID: {event(3)}\nContent: REPORT part 2\n"
    )
    assert [b.event for b in blocks(batch)] == [event(2), event(3)]
    assert ran(delegated()(batch))


def test_the_same_report_twice_is_no_second_report() -> None:
    model = delegated()
    assert texts(model(block(2, "REPORT part 1"))) == [WAITING]
    assert texts(model(block(4, "REPORT part 1"))) == [WAITING]
    assert texts(model(block(4, "REPORT part 1"))) == [NOTHING_TO_DO], "an event shown again is not new"


def test_a_message_that_meets_nothing_is_a_mismatch_that_stays() -> None:
    model = delegated()
    fault = model(block(2, "hello"))
    assert fault == Fault(
        "script_mismatch",
        "step 'merge' of orch expected 'REPORT part 1' and 'REPORT part 2', but was shown: 'hello'",
    )
    assert model(block(3, "REPORT part 1")) == fault


def test_a_message_of_a_later_step_is_a_mismatch() -> None:
    fault = Model("orch")(block(1, "REPORT part 1"))
    assert isinstance(fault, Fault)
    assert fault.kind == "script_mismatch"


def test_only_the_first_part_of_a_long_message_is_quoted() -> None:
    fault = Model("orch")(block(1, "x" * 5000))
    assert isinstance(fault, Fault)
    assert fault.reason.endswith("x…'")
    assert len(fault.reason) < 400


def test_results_that_differ_are_a_mismatch() -> None:
    model = delegated()
    model(block(2, "REPORT part 2"), block(3, "REPORT part 1"))
    assert model(results=("exit 1: no such file",)) == Fault(
        "script_mismatch",
        "step 'finish' of orch expected 'exit 0' in the results, but was shown: 'exit 1: no such file'",
    )


def test_results_that_never_came_are_a_mismatch() -> None:
    model = delegated()
    model(block(2, "REPORT part 2"), block(3, "REPORT part 1"))
    assert model(block(4, "hurry")) == Fault(
        "script_mismatch", "step 'finish' of orch waits for results of tools, but was shown: 'hurry'"
    )


def test_a_message_after_the_last_step_exhausts_the_script() -> None:
    model = delegated()
    model(block(2, "REPORT part 2"), block(3, "REPORT part 1"))
    assert model(results=("exit 0",)) == Reply((Done("DONE: merged for user"),), "finish")
    assert texts(model(results=("posted",))) == [NOTHING_TO_DO]
    assert model(block(5, "again")) == Fault(
        "script_exhausted", "orch has no step left (its last was 'finish'), but was shown: 'again'"
    )


def test_an_agent_without_steps_is_exhausted_by_any_message() -> None:
    fault = Model("tester-1")(block(1, "test it"))
    assert fault == Fault(
        "script_exhausted", "the script has no steps for tester-1 (roster id tester), but was shown: 'test it'"
    )


def test_the_more_exact_name_wins_and_the_index_is_filled_in() -> None:
    assert texts(Model("worker-9")(block(1, "x"))) == ["mine"]
    reply = Model("worker-2")(block(7, "please write part 2"))
    assert reply == Reply(
        (Run("echo part2 > part2.txt"), Post("REPORT part 2", ("orch",), event(7), author="orch")), "write"
    )


def test_an_answer_takes_as_long_as_the_steps_it_is_made_of_also_where_none_calls_a_tool() -> None:
    steps = load_script(
        """
worker:
  - {name: a, expect: [x], think_s: [1, 2], do: [{say: a}]}
  - {name: b, expect: [y], do: [{say: b}]}
  - {name: c, expect: [z], think_s: [3, 5], do: [{run: c}]}
  - {name: d, think_s: [7, 7], on: result, do: [{say: d}]}
""",
        "s",
    ).steps_for("worker-1", "worker")
    played = Part("worker-1", "worker", "user", steps)
    progress, reply = advance(played, Progress(), Shown((block(1, "x") + block(2, "y") + block(3, "z"),), ()))
    assert isinstance(reply, Reply)
    assert (texts(reply), ran(reply), reply.think_s) == (["a", "b"], ["c"], (4, 7))
    _, reply = advance(played, progress, Shown((), ("exit 0",)))
    assert isinstance(reply, Reply)
    assert (texts(reply), reply.think_s) == (["d"], (7, 7))


def test_a_message_that_came_with_the_awaited_one_is_kept_for_the_next_step() -> None:
    model = Model("worker-1")
    first = model(block(1, "please write part 1") + block(2, "and more"))
    assert ran(first) == ["echo part1 > part1.txt"]
    second = model(results=("", "sent"))
    assert second == Reply(
        (
            Post("no", (), event(1), "side", "orch"),
            Call("react", {"event_id": event(2), "deep": [{"n": 1, "by": "worker-1 of worker"}]}),
        ),
        "more",
    )


def test_a_step_that_only_talks_does_not_lose_the_message_after_it() -> None:
    model = Model("worker-9")
    assert texts(model("A")) == ["mine"]
    script = "w: [{name: a, expect: [A], do: [{say: a}]}, {name: b, expect: [B], do: [{run: b}]}]"
    talker = Part("w", "w", "user", load_script(script, "s").steps_for("w", "w"))
    _, reply = advance(talker, Progress(), Shown((block(1, "A") + block(2, "B"),)))
    assert reply == Reply((Say("a"), Run("b")), "b")


def test_a_mention_during_a_turn_waits_for_its_step() -> None:
    model = delegated()
    model(block(2, "REPORT part 2"), block(3, "REPORT part 1"))
    assert isinstance(model(block(4, "late"), results=("exit 0",)), Reply)
    fault = model(results=("posted",))
    assert isinstance(fault, Fault)
    assert fault.kind == "script_exhausted"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("send: {text: x, reply: true}", "step 'a' of w answers an event, but none was shown"),
        ("send: {text: x, reply: B}", "step 'a' of w answers an event with 'B', but none was shown"),
        ("run: '{{event}}'", "step 'a' of w names an event, but none was shown"),
        ("run: '{{event: B}}'", "step 'a' of w names an event with 'B', but none was shown"),
        ("run: '{{sent}}'", "step 'a' of w names its own message, but has sent none"),
    ],
)
def test_an_event_that_was_never_shown_is_a_mismatch(item: str, reason: str) -> None:
    script = load_script("w: [{name: a, do: [{%s}]}]" % item, "s")  # noqa: UP031
    _, fault = advance(Part("w", "w", "user", script.steps_for("w", "w")), Progress(), Shown(("plain text",)))
    assert fault == Fault("script_mismatch", reason)


POINTS = """
w:
  - name: ask
    do: [{send: {text: one}}, {send: {text: two}}]
  - name: point
    expect: [berth 4]
    do:
      - tool: {react: {event_id: "{{event: berth 4}}", emoji: "x"}}
      - tool: {edit_message: {event_id: "{{ sent }}", text: "{{event}}"}}
"""


@pytest.mark.parametrize(
    "results",
    [
        (f"sent, Event ID: {event(8)}; mentioned: nobody", f"sent, Event ID: {event(9)}; mentioned: orch"),
        (
            f'{{"accepted":true,"event_id":"{event(9)}","mention_pubkeys":[],"message":""}}\n'
            f'{{"accepted":true,"event_id":"{event(8)}","message":""}}\n',
        ),
        (f'"stdout": "{{\\"accepted\\":true,\\"event_id\\":\\"{event(9)}\\",\\"mention_pubkeys\\":[]}}\\n"',),
    ],
    ids=["builtin", "buzz, then a reaction", "buzz, as its tool shows it"],
)
def test_a_step_can_point_at_a_certain_message_and_at_the_agents_own_last_one(results: tuple[str, ...]) -> None:
    script = load_script(POINTS, "s")
    part = Part("w", "w", "user", script.steps_for("w", "w"))
    progress, _ = advance(part, Progress(), Shown(("begin",)))
    progress, _ = advance(part, progress, Shown((), results))
    shown = block(1, "berth 3"), block(2, "berth 4 and more"), block(3, "berth 5")
    _, reply = advance(part, progress, Shown(shown, (f"Event ID: {event(5)}\nContent: read, not sent",)))
    assert isinstance(reply, Reply)
    assert reply.actions == (
        Call("react", {"event_id": event(2), "emoji": "x"}),
        Call("edit_message", {"event_id": event(9), "text": event(3)}),
    )
