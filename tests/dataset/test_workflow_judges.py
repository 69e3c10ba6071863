"""The judges of the workflow tasks: who did what for whom, in which order, whatever else was said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged

SPLIT = "split-and-merge"
REVIEW = "review-rejects-once"
RULE = 'Rule 2: The last line of the notice is "Form HM-417, to be kept until Friday".'


# --- split and merge ---------------------------------------------------------------------------------------------


def test_two_parts_reported_by_the_two_who_were_asked_pass() -> None:
    talk = Talk(SPLIT)
    north = talk.say("orch", "north, please", "worker-1")
    south = talk.say("orch", "south, please", "worker-2")
    talk.say("worker-2", "SUM 455", "orch", reply=south)
    talk.say("worker-1", "SUM 818", "orch", reply=north)
    talk.done()
    assert judged(talk) == set()


def test_one_request_to_both_and_chatter_pass_too() -> None:
    talk = Talk(SPLIT)
    talk.say("orch", "one quay each, please", "worker-1", "worker-2")
    talk.say("worker-1", "starting", "orch")
    talk.say("worker-2", "who takes which one?", "worker-1")
    talk.say("worker-1", "The north quay comes to **818** t.", "orch")
    talk.say("orch", "thank you", "worker-1")
    talk.say("worker-2", "The south quay: 455.", "orch")
    talk.say("worker-2", "anything else?", "orch")
    assert judged(talk) == set()


def one_reports_both(talk: Talk) -> None:
    talk.say("orch", "north, please", "worker-1")
    talk.say("orch", "south, please", "worker-2")
    talk.say("worker-1", "SUM 818", "orch")
    talk.say("worker-1", "SUM 455", "orch")


def sums_are_exchanged(talk: Talk) -> None:
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-1", "SUM 455", "orch")
    talk.say("worker-2", "SUM 818", "orch")


def reports_name_nobody(talk: Talk) -> None:
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-1", "@orch SUM 818")
    talk.say("worker-2", "@orch SUM 455")


def another_number_holds_the_sum(talk: Talk) -> None:
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-1", "SUM 8180 or 1.818 or 818.5", "orch")
    talk.say("worker-2", "SUM 455", "orch")


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (one_reports_both, {"worker-2 itself reports the sum of its part to the lead after it was asked"}),
        (
            sums_are_exchanged,
            {f"worker-{n} itself reports the sum of its part to the lead after it was asked" for n in (1, 2)},
        ),
        (
            reports_name_nobody,
            {f"worker-{n} itself reports the sum of its part to the lead after it was asked" for n in (1, 2)},
        ),
        (
            another_number_holds_the_sum,
            {"worker-1 itself reports the sum of its part to the lead after it was asked"},
        ),
    ],
)
def test_reports_that_only_look_right_fail(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(SPLIT)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_a_lead_that_finishes_before_the_second_report_fails() -> None:
    talk = Talk(SPLIT)
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-1", "SUM 818", "orch")
    talk.done()
    talk.say("worker-2", "SUM 455", "orch")
    assert judged(talk) == {"the lead finishes only when the reports are in"}


def test_a_report_that_nobody_asked_for_is_none() -> None:
    talk = Talk(SPLIT)
    talk.say("worker-1", "SUM 818", "orch")
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-2", "SUM 455", "orch")
    assert "worker-1 itself reports the sum of its part to the lead after it was asked" in judged(talk)


# --- the review rejects once -------------------------------------------------------------------------------------


def test_a_version_sent_back_once_and_then_accepted_passes() -> None:
    talk = Talk(REVIEW)
    talk.say("orch", "please write", "worker-1")
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", RULE, "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", "accepted", "orch")
    talk.done()
    assert judged(talk) == set()


def test_two_rounds_with_the_lead_kept_informed_pass_too() -> None:
    talk = Talk(REVIEW)
    talk.say("orch", "worker-1 writes, worker-2 reviews", "worker-1", "worker-2")
    talk.say("worker-2", "waiting", "orch")
    first = talk.say("worker-1", "version 1", "worker-2", "orch")
    talk.say("worker-2", RULE, "worker-1", "orch", reply=first)
    talk.say("worker-1", "which file?", "worker-2")
    talk.say("worker-2", "notice-2.txt", "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", f"still: {RULE}", "worker-1")
    talk.say("worker-1", "version 3", "worker-2")
    talk.say("worker-2", "accepted", "orch")
    talk.done()
    assert judged(talk) == set()


def review_is_skipped(talk: Talk) -> None:
    talk.say("worker-1", "versions 1 and 2", "worker-2")
    talk.say("worker-2", "accepted, with HM-417", "orch")


def rejection_names_no_reason(talk: Talk) -> None:
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", "no", "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", "accepted", "orch")


def lead_sends_it_back(talk: Talk) -> None:
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("orch", RULE, "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", "accepted", "orch")


def author_never_hands_in_again(talk: Talk) -> None:
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", RULE, "worker-1")
    talk.say("worker-2", "accepted", "orch")


def author_accepts_itself(talk: Talk) -> None:
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", RULE, "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-1", "worker-2 has accepted", "orch")


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (review_is_skipped, "the reviewer sends it back to the author with the rule that is not met"),
        (rejection_names_no_reason, "the reviewer sends it back to the author with the rule that is not met"),
        (lead_sends_it_back, "the reviewer sends it back to the author with the rule that is not met"),
        (author_never_hands_in_again, "the author hands a new version in to the reviewer after that"),
        (author_accepts_itself, "the reviewer tells the lead of the acceptance after that"),
    ],
)
def test_a_review_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: str) -> None:
    talk = Talk(REVIEW)
    talk.say("orch", "please write", "worker-1")
    goes_wrong(talk)
    talk.done()
    failed = judged(talk)
    assert intended in failed
    assert "the lead gives the work to the author" not in failed


def test_a_lead_that_finishes_before_the_acceptance_fails() -> None:
    talk = Talk(REVIEW)
    talk.say("orch", "please write", "worker-1")
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", RULE, "worker-1")
    talk.done()
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", "accepted", "orch")
    assert judged(talk) == {"the lead finishes only after the acceptance"}
