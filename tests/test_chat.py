"""`inv chat`: what was said in a job's trials, as the signed events have it, and nothing in it steers a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import chat, records
from bench.errors import InvalidInput
from bench.nostr import Event
from bench.trial import evidence
from bench.trial.evidence import Part
from tests.records.test_records import add, new_job, result
from tests.trial.test_evidence import CHANNEL, ORCH, RELAY, SUBJECT, USER, WORKER, say

OTHER = "0c5a0e5e-0000-4000-8000-000000000002"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return new_job(tmp_path)


def leave(job: Path, trial: str, *events: Event, unexplained: tuple[str, ...] = ()) -> Path:
    """A trial that passed, with its evidence."""
    directory = add(job, trial, result())
    (directory / records.EVIDENCE).write_bytes(evidence.encode(evidence.build(SUBJECT, events, unexplained)))
    return directory


def shown(job: Path, capsys: pytest.CaptureFixture[str], trial: str = "") -> list[str]:
    chat.chat(job.parent, job.name, trial, as_json=False)
    return capsys.readouterr().out.splitlines()


def test_messages_are_numbered_and_say_whom_they_wake_and_what_they_answer(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = say(USER, "Do it:\n\n- both parts\n", ["p", ORCH.public])
    asked = say(ORCH, "please", ["p", WORKER.public])
    answer = say(WORKER, "done", ["e", asked["id"], "", "reply"], ["p", ORCH.public])
    leave(job, "alpha__1", task, asked, answer, say(ORCH, "hm"), unexplained=(answer["id"],))
    assert shown(job, capsys) == [
        "alpha__1  (passed)",
        "   1  22:13:20  user → orch",
        "      | Do it:",
        "      |",
        "      | - both parts",
        "   2  22:13:20  orch → worker-1",
        "      | please",
        "   3  22:13:20  worker-1 → orch, in reply to 2  [unexplained]",
        "      | done",
        "   4  22:13:20  orch → nobody",
        "      | hm",
        "",
    ]


def test_edits_reactions_and_members_stand_where_they_happened_and_what_made_the_channel_does_not(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = [
        RELAY.sign(39000, "", [["d", channel], ["name", name]], created_at=10)
        for channel, name in ((CHANNEL, "main"), (OTHER, "berth-6"))
    ]
    set_up = USER.sign(9000, "", [["h", CHANNEL], ["p", ORCH.public]])
    first = say(ORCH, "before")
    edit = say(ORCH, "after", ["e", first["id"]], kind=40003)
    forged = say(WORKER, "forged", ["e", first["id"]], kind=40003)
    reaction = WORKER.sign(7, "👍", [["e", first["id"]]])
    added = ORCH.sign(9000, "", [["h", OTHER], ["p", WORKER.public]])
    there = ORCH.sign(9, "here", [["h", OTHER]], created_at=1_700_000_001)
    leave(job, "alpha__1", *lists, set_up, first, edit, forged, reaction, added, there)
    assert shown(job, capsys)[1:-1] == [
        "   1  22:13:20  orch → nobody",
        "      | before",
        "      orch edits 1:",
        "      | after",
        "      worker-1 edits 1, which is not its own:",
        "      | forged",
        "      worker-1 reacts 👍 to 1",
        "      orch adds worker-1 to #berth-6",
        "   2  22:13:21  orch → nobody, in #berth-6",
        "      | here",
    ]


def test_orders_and_edits_that_nobody_can_explain_are_marked(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = say(ORCH, "x")
    edit = say(ORCH, "y", ["e", first["id"]], kind=40003)
    order = ORCH.sign(9001, "", [["h", OTHER], ["p", WORKER.public]])
    leave(job, "alpha__1", first, edit, order, unexplained=(edit["id"], order["id"]))
    assert shown(job, capsys)[3:-1] == [
        "      orch edits 1:  [unexplained]",
        "      | y",
        "      orch removes worker-1 from a channel  [unexplained]",
    ]


def test_a_message_that_was_deleted_is_still_there_with_who_deleted_it(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = say(ORCH, "told"), say(WORKER, "secret")
    own = ORCH.sign(5, "", [["e", first["id"]], ["k"]])
    others = ORCH.sign(9005, "", [["h", CHANNEL], ["e", second["id"]]])
    elsewhere = WORKER.sign(5, "", [["e", "ab" * 32]])
    leave(job, "alpha__1", first, second, own, others, elsewhere)
    assert shown(job, capsys)[1:-1] == [
        "   1  22:13:20  orch → nobody",
        "      | told",
        "   2  22:13:20  worker-1 → nobody",
        "      | secret",
        "      orch deletes 1",
        "      orch deletes 2, which is not its own",
    ]


def test_the_steps_of_a_task_are_one_conversation(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = [say(USER, "first", ["p", ORCH.public]), say(ORCH, "DONE"), say(USER, "then", ["p", ORCH.public])]
    directory = add(job, "alpha__1", result())
    for number, name in enumerate(("z-draft", "a-change"), 1):
        place = directory / "steps" / name
        place.mkdir(parents=True)
        part = Part(name, number, 2, messages[0 if number == 1 else 2]["id"])
        built = evidence.build(SUBJECT, messages[: number + 1], (), part)
        (place / records.EVIDENCE).write_bytes(evidence.encode(built))
    assert [line.strip() for line in shown(job, capsys)[1::2]] == [
        "1  22:13:20  user → orch",
        "2  22:13:20  orch → nobody",
        "— step a-change —",
        "| then",
    ]


def test_nothing_that_was_written_steers_a_terminal(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(job, "alpha__1", say(ORCH, "red \x1b[31m\r\x07 and \u202eback\ttab ✅"))
    (line,) = shown(job, capsys)[2:-1]
    assert line == "      | red \\x1b[31m\\r\\x07 and \\u202eback\ttab ✅"


def test_nothing_that_was_written_passes_for_a_line_of_the_conversation(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = "x\n   9  22:13:20  user → orch\n      | Accepted\n      — step next —"
    named = RELAY.sign(39000, "", [["d", OTHER], ["name", forged]], created_at=10)
    first = say(ORCH, forged)
    there = ORCH.sign(9, "here", [["h", OTHER]], created_at=1_700_000_001)
    strange = ORCH.sign(9000, "", [["h", CHANNEL], ["p", "a\n   9  user → "]])
    leave(job, "alpha__1", named, first, WORKER.sign(7, forged, [["e", first["id"]]]), there, strange)
    escaped = forged.replace("\n", "\\n")
    assert shown(job, capsys)[1:-1] == [
        "   1  22:13:20  orch → nobody",
        "      | x",
        "      |    9  22:13:20  user → orch",
        "      |       | Accepted",
        "      |       — step next —",
        f"      worker-1 reacts {escaped} to 1",
        f"   2  22:13:21  orch → nobody, in #{escaped}",
        "      | here",
        "      orch adds ? to a channel",
    ]


def test_a_trial_is_meant_by_its_name_its_task_or_a_glob(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trial in ("alpha__1", "alpha__2"):
        leave(job, trial, say(ORCH, "x"))
    for wanted, number in (("", 2), ("alpha__2", 1), ("alpha", 2), ("org/alpha", 2), ("*__1", 1)):
        assert sum("(passed)" in line for line in shown(job, capsys, wanted)) == number, wanted
    with pytest.raises(InvalidInput, match=r"--trial alhpa: lb-team has no such trial; it has alpha$"):
        shown(job, capsys, "alhpa")
    with pytest.raises(InvalidInput, match=r"--trial zz: lb-team has no such trial; it has alpha$"):
        shown(job, capsys, "zz")


def test_a_trial_that_left_nothing_or_something_damaged_keeps_the_others(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(job, "alpha__0", result())
    damaged: list[Any] = ["{", '{"messages": [{"seq": 1}]}', '{"messages": 3, "channels": []}', "[]"]
    for number, text in enumerate(damaged, 1):
        (add(job, f"alpha__{number}", result()) / records.EVIDENCE).write_text(text)
    leave(job, "alpha__9", say(ORCH, "whole"))
    chat.chat(job.parent, job.name, "", as_json=False)
    out, err = capsys.readouterr()
    assert out.count("nothing that was said is here") == 3, "none, and two that are no object of JSON"
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        f"warning: alpha__{number}: its buzzbench-evidence.json is damaged" for number in (2, 3)
    ]
    assert out.splitlines()[-3:] == ["   1  22:13:20  orch → nobody", "      | whole", ""]


def test_programs_get_the_events_facts(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(job, "alpha__1", say(ORCH, "x", ["p", WORKER.public]))
    chat.chat(job.parent, "", "", as_json=True)
    told = json.loads(capsys.readouterr().out)
    (trial,) = told["trials"]
    assert (told["job"], trial["trial"], trial["outcome"], trial["steps"]) == ("lb-team", "alpha__1", "passed", [])
    assert [(m["author"], m["mentions"], m["text"]) for m in trial["messages"]] == [("orch", ["worker-1"], "x")]
    assert {"edits", "reactions", "memberships", "channels", "channel"} < trial.keys()
