"""The judge of the task in steps: what was said in an earlier step is remembered, and counts for that one only."""

from __future__ import annotations

from typing import Any

from bench.nostr import Event
from bench.trial.evidence import Part

from .kit import Talk, failing, host_checks, instructions

TASK = "change-asked-later"


def talk() -> Talk:
    """A talk in which worker-2 has written the rota, and the change was just asked for."""
    made = Talk(TASK)
    asked = made.say("orch", "write the rota, please", "worker-2")
    made.say("worker-2", "it is there", "orch", reply=asked)
    made.done()
    return made


def ask(made: Talk) -> Event:
    text = instructions(made.task)[1].read_text(encoding="utf-8")
    return made.say("user", text, "orch")


def judged(made: Talk, step: str, posted: Event) -> set[str]:
    evidence = made.evidence(Part(step, 1 if step == "draft" else 2, 2, posted["id"]))
    checks: Any = host_checks(made.task, evidence, step)
    return failing(checks)


def test_one_worker_asked_and_reporting_passes_the_first_step() -> None:
    made = talk()
    assert judged(made, "draft", made.posted) == set()


def test_a_second_worker_who_is_asked_too_fails_it() -> None:
    made = Talk(TASK)
    made.say("orch", "write it", "worker-1")
    made.say("orch", "check it", "worker-2")
    made.say("worker-1", "it is there", "orch")
    made.done()
    assert judged(made, "draft", made.posted) == {"the other worker is given nothing"}


def test_the_change_given_to_the_author_passes_the_second_step() -> None:
    made = talk()
    posted = ask(made)
    asked = made.say("orch", "a change, please", "worker-2")
    made.say("worker-2", "made", "orch", reply=asked)
    made.done()
    assert judged(made, "change", posted) == set()


def test_what_was_said_in_the_first_step_earns_nothing_in_the_second() -> None:
    made = talk()
    posted = ask(made)
    made.done()
    assert judged(made, "change", posted) == {
        "the lead gives the change to the worker who wrote the rota",
        "that worker reports to the lead",
    }


def test_the_change_given_to_the_other_worker_fails() -> None:
    made = talk()
    posted = ask(made)
    made.say("orch", "a change, please", "worker-1")
    made.say("worker-1", "made", "orch")
    made.done()
    assert "the other worker is given nothing" in judged(made, "change", posted)
    assert "the lead gives the change to the worker who wrote the rota" in judged(made, "change", posted)


def test_a_lead_that_finishes_before_the_report_fails() -> None:
    made = talk()
    posted = ask(made)
    made.say("orch", "a change, please", "worker-2")
    made.done()
    made.say("worker-2", "made", "orch")
    assert judged(made, "change", posted) == {"the lead finishes only after the report"}
