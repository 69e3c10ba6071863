"""The judges of tasks about names: of two people who share one, and of a file that must be named in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged
from .talks import OFFICE, office, order

NAME = "same-name-told-apart"
PATH = "file-outside-the-workspace"


# --- two of the same name ----------------------------------------------------------------------------------------


def test_an_order_for_the_one_it_describes_passes() -> None:
    talk = Talk(NAME)
    order(talk)
    talk.done()
    assert judged(talk) == set()


def test_asking_both_who_dives_before_the_order_passes_too() -> None:
    talk = Talk(NAME)
    talk.say("orch", "which of you dives?", "worker-1", "worker-2")
    talk.say("worker-1", "not me", "orch")
    talk.say("worker-2", "I do", "orch")
    talk.say("orch", "Then order HM-52 is for you.", "worker-2")
    talk.say("worker-2", "HM-52: link 27 (3.2 mm)", "orch")
    talk.say("orch", "it was for the other one, thank you", "worker-1")
    assert judged(talk) == set()


def namesake_gets_it(talk: Talk) -> None:
    talk.say("orch", "HM-52 is yours", "worker-1")
    talk.say("worker-1", "27", "orch")


def both_get_it(talk: Talk) -> None:
    talk.say("orch", "HM-52 is for the one who dives", "worker-1", "worker-2")
    talk.say("worker-2", "27", "orch")


def it_is_passed_on(talk: Talk) -> None:
    talk.say("orch", "HM-52 is yours", "worker-2")
    talk.say("worker-2", "can you do HM-52 for me?", "worker-1")
    talk.say("worker-1", "27", "worker-2")
    talk.say("worker-2", "27", "orch")


def nobody_is_mentioned(talk: Talk) -> None:
    talk.say("orch", "@worker-2 HM-52 is yours")
    talk.say("worker-2", "27", "orch")


def the_number_is_wrong(talk: Talk) -> None:
    talk.say("orch", "HM-52 is yours", "worker-2")
    talk.say("worker-2", "29, or 127, or 2.27", "orch")


GIVEN = "the lead gives the order to the one it describes"
NAMESAKE = "nobody gives the order to the other one of that name"
RESULT = "the one it describes reports the result to the lead after that"


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (namesake_gets_it, {GIVEN, NAMESAKE, RESULT}),
        (both_get_it, {NAMESAKE}),
        (it_is_passed_on, {NAMESAKE}),
        (nobody_is_mentioned, {GIVEN, RESULT}),
        (the_number_is_wrong, {RESULT}),
    ],
)
def test_an_order_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(NAME)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


# --- a file outside the workspace --------------------------------------------------------------------------------


def test_a_file_named_in_full_and_read_passes() -> None:
    talk = Talk(PATH)
    office(talk)
    talk.done()
    assert judged(talk) == set()


def test_a_path_that_is_told_on_asking_passes_too() -> None:
    talk = Talk(PATH)
    talk.say("orch", "the highest tide, please", "worker-1")
    talk.say("worker-1", "of which file?", "orch")
    talk.say("orch", f"Path: '{OFFICE}'.", "worker-1")
    talk.say("worker-1", "Highest: **431** cm", "orch")
    assert judged(talk) == set()


@pytest.mark.parametrize(
    "path",
    ["srv/harbour office/tides.csv", "/srv/harbour\\ office/tides.csv", "/srv/harbour", "tides.csv", "/app/tides.csv"],
)
def test_a_path_that_is_not_the_full_one_fails(path: str) -> None:
    talk = Talk(PATH)
    talk.say("orch", f"the highest tide in {path}", "worker-1")
    talk.say("worker-1", "431", "orch")
    assert judged(talk) == {
        "the lead names the file to the worker by its full path",
        "the worker reports the highest tide of that file to the lead after that",
    }


@pytest.mark.parametrize(
    ("author", "text", "mentions"),
    [("worker-1", "417", ["orch"]), ("worker-1", "431", []), ("orch", "431", ["worker-1"])],
    ids=["other file", "nobody mentioned", "lead itself"],
)
def test_a_level_that_the_worker_did_not_report_is_none(author: str, text: str, mentions: list[str]) -> None:
    talk = Talk(PATH)
    talk.say("orch", f"the highest tide in {OFFICE}", "worker-1")
    talk.say(author, text, *mentions)
    assert judged(talk) == {"the worker reports the highest tide of that file to the lead after that"}
