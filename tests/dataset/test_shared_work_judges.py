"""The judges of tasks in which members work together: a hand-over after a failure, and pieces at the same time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged
from .talks import export, yards

EXPORT = "hand-over-after-failure"
YARDS = "parallel-pieces"


# --- a hand-over after a failure ---------------------------------------------------------------------------------


def test_a_failure_reported_and_handed_over_with_its_code_passes() -> None:
    talk = Talk(EXPORT)
    export(talk)
    talk.done()
    assert judged(talk) == set()


def test_a_second_worker_who_was_told_to_wait_passes_too() -> None:
    talk = Talk(EXPORT)
    talk.say("orch", "please export; worker-2 takes over if it breaks off", "worker-1", "worker-2")
    talk.say("worker-2", "waiting", "orch")
    talk.say("worker-1", "starting", "orch")
    talk.say("worker-1", "broke off after 3 of 7 ships, code E-4417", "orch", "worker-2")
    talk.say("orch", "worker-1 broke off with E-4417, go on", "worker-2")
    talk.say("worker-2", "will do", "orch")
    talk.say("worker-2", "seal: 625422079.", "orch")
    talk.done()
    assert judged(talk) == set()


def workers_settle_it_alone(talk: Talk) -> None:
    talk.say("worker-1", "broke off with E-4417, please go on", "worker-2")
    talk.say("worker-2", "625422079", "orch")


def failure_without_its_code(talk: Talk) -> None:
    talk.say("worker-1", "it broke off", "orch")
    talk.say("orch", "go on from E-4417", "worker-2")
    talk.say("worker-2", "625422079", "orch")


def handed_over_without_the_code(talk: Talk) -> None:
    talk.say("worker-1", "it broke off: E-4417", "orch")
    talk.say("orch", "go on, please", "worker-2")
    talk.say("worker-2", "625422079", "orch")


def handed_back_to_the_first(talk: Talk) -> None:
    talk.say("worker-1", "it broke off: E-4417", "orch")
    talk.say("orch", "go on from E-4417", "worker-1")
    talk.say("worker-1", "625422079", "orch")


def seal_before_the_hand_over(talk: Talk) -> None:
    talk.say("worker-1", "it broke off: E-4417", "orch")
    talk.say("worker-2", "625422079", "orch")
    talk.say("orch", "go on from E-4417", "worker-2")


FAILED = "the first worker reports the failure to the lead with its code"
HANDED = "the lead hands the work over to the second worker with the code, after that"
SEALED = "the second worker reports the seal to the lead after that"


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (workers_settle_it_alone, {FAILED, HANDED, SEALED}),
        (failure_without_its_code, {FAILED, HANDED, SEALED}),
        (handed_over_without_the_code, {HANDED, SEALED}),
        (handed_back_to_the_first, {HANDED, SEALED}),
        (seal_before_the_hand_over, {SEALED}),
    ],
)
def test_a_hand_over_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(EXPORT)
    talk.say("orch", "please export", "worker-1")
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_a_lead_that_finishes_before_the_seal_fails() -> None:
    talk = Talk(EXPORT)
    talk.say("orch", "please export", "worker-1")
    talk.say("worker-1", "E-4417", "orch")
    talk.say("orch", "E-4417", "worker-2")
    talk.done()
    talk.say("worker-2", "625422079", "orch")
    assert judged(talk) == {"the lead finishes only after that"}


# --- pieces at the same time -------------------------------------------------------------------------------------


def test_two_counts_exchanged_and_added_up_by_both_pass() -> None:
    talk = Talk(YARDS)
    yards(talk)
    talk.done()
    assert judged(talk) == set()


def test_one_request_acknowledgements_and_a_fast_worker_pass_too() -> None:
    talk = Talk(YARDS)
    talk.say("orch", "first the one", "worker-1")
    talk.say("worker-1", "on it", "orch")
    talk.say("orch", "and the other", "worker-2")
    talk.say("worker-1", "yard A has 23", "worker-2", "user")
    talk.say("worker-2", "yard B has 38, so 61", "worker-1")
    talk.say("worker-2", "23 + 38 = 61", "orch", "worker-1")
    talk.say("worker-1", "61", "orch")
    talk.done()
    assert judged(talk) == set()


def one_after_the_other(talk: Talk) -> None:
    talk.say("orch", "yard A", "worker-1")
    talk.say("worker-1", "23", "orch")
    talk.say("orch", "yard B", "worker-2")
    talk.say("worker-1", "23", "worker-2")
    talk.say("worker-2", "38", "worker-1")
    talk.say("worker-1", "61", "orch")
    talk.say("worker-2", "61", "orch")


def through_the_lead(talk: Talk) -> None:
    talk.say("orch", "one yard each", "worker-1", "worker-2")
    talk.say("worker-1", "23", "orch")
    talk.say("worker-2", "38", "orch")
    talk.say("orch", "23 and 38", "worker-1", "worker-2")
    talk.say("worker-1", "61", "orch")
    talk.say("worker-2", "61", "orch")


def one_counts_both(talk: Talk) -> None:
    talk.say("orch", "one yard each", "worker-1", "worker-2")
    talk.say("worker-1", "23", "worker-2")
    talk.say("worker-2", "61", "orch")
    talk.say("worker-1", "61", "orch")


ASKED = "the lead asks both before either reports"
TELLS = {n: f"worker-{n} tells its number to worker-{3 - n}" for n in (1, 2)}
REPORTS = {n: f"worker-{n} reports the sum to the lead after it has heard worker-{3 - n}'s number" for n in (1, 2)}


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (one_after_the_other, {ASKED}),
        (through_the_lead, {TELLS[1], TELLS[2], REPORTS[1], REPORTS[2]}),
        (one_counts_both, {TELLS[2], REPORTS[1]}),
    ],
)
def test_parallel_work_that_only_looks_so_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(YARDS)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_a_lead_that_finishes_with_one_report_missing_fails() -> None:
    talk = Talk(YARDS)
    talk.say("orch", "one yard each", "worker-1", "worker-2")
    talk.say("worker-1", "23", "worker-2")
    talk.say("worker-2", "38", "worker-1")
    talk.say("worker-1", "61", "orch")
    talk.done()
    talk.say("worker-2", "61", "orch")
    assert judged(talk) == {"the lead finishes only when the reports are in"}
