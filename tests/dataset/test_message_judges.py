"""The judges of tasks about what is done to a message: edited instead of posted anew, reacted to by the right one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged
from .talks import DRAFT, NOTICES, correction, reactions

EDIT = "message-corrected-by-edit"
REACTION = "reaction-on-the-right-message"
RIGHT = DRAFT.replace("15:10", "16:40")


# --- a message is corrected by an edit ---------------------------------------------------------------------------


def test_a_draft_that_is_edited_after_the_answer_passes() -> None:
    talk = Talk(EDIT)
    correction(talk)
    talk.done()
    assert judged(talk) == set()


def test_two_edits_and_talk_about_the_time_pass_too() -> None:
    talk = Talk(EDIT)
    talk.say("orch", "posting the draft", "user")
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.edit("orch", draft, DRAFT + "!")
    talk.say("worker-1", "15:10 is the Aurora's; the Meridian has 16:40", "orch")
    talk.say("orch", "thank you, 16:40 for the Meridian then", "worker-1")
    talk.edit("orch", draft, RIGHT)
    assert judged(talk) == set()


def posted_anew(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "16:40", reply=draft)
    talk.say("orch", RIGHT, "worker-1")


def edited_and_posted_anew(talk: Talk) -> None:
    correction(talk)
    talk.say("orch", RIGHT)


def edited_by_the_worker(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "16:40", reply=draft)
    talk.edit("worker-1", draft, RIGHT)


def edited_before_the_answer(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.edit("orch", draft, RIGHT)
    talk.say("worker-1", "16:40, as it says", reply=draft)


def both_times(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "16:40", reply=draft)
    talk.edit("orch", draft, DRAFT.replace("15:10", "16:40 (not 15:10)"))


def emptied(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "16:40", reply=draft)
    talk.edit("orch", draft, "16:40")


def the_answer_is_wrong(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "17:20", reply=draft)
    talk.edit("orch", draft, RIGHT)


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (
            posted_anew,
            {
                "the lead edits that very message after that",
                "the message now has the right time and not the wrong one",
                "the lead doesn't post the text a second time",
            },
        ),
        (edited_and_posted_anew, {"the lead doesn't post the text a second time"}),
        (
            edited_by_the_worker,
            {
                "the lead edits that very message after that",
                "the message now has the right time and not the wrong one",
            },
        ),
        (edited_before_the_answer, {"the lead edits that very message after that"}),
        (both_times, {"the message now has the right time and not the wrong one"}),
        (emptied, {"the message now has the right time and not the wrong one"}),
        (
            the_answer_is_wrong,
            {"the worker tells the lead the right time", "the lead edits that very message after that"},
        ),
    ],
)
def test_a_correction_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(EDIT)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_a_draft_that_was_right_from_the_start_was_not_corrected() -> None:
    talk = Talk(EDIT)
    posted = talk.say("orch", RIGHT, "worker-1")
    talk.say("worker-1", "16:40", reply=posted)
    assert "the lead posts the draft with a mention of the worker" in judged(talk)


# --- the right reaction on the right message ---------------------------------------------------------------------


def test_each_ones_reaction_on_its_own_notice_passes() -> None:
    talk = Talk(REACTION)
    reactions(talk)
    talk.done()
    assert judged(talk) == set()


def test_other_emojis_a_variation_selector_and_other_talk_pass_too() -> None:
    talk = Talk(REACTION)
    request = talk.say("orch", "react, please", "worker-1", "worker-2")
    # Buzz's own agents put 👀 on whatever mentions them (BUZZ.md section 4).
    talk.react("worker-1", request, "👀")
    berth_3, berth_4 = (talk.say("orch", f"{text}\n", "worker-1", "worker-2") for text in NOTICES)
    talk.react("worker-2", berth_4, "👀")
    talk.react("worker-2", berth_3, "✅\ufe0f")
    talk.say("worker-2", "✅ done", "orch", reply=berth_3)
    talk.react("worker-1", berth_4, "✅")
    talk.say("worker-1", "done", "orch")
    assert judged(talk) == set()


def both_notices(talk: Talk) -> tuple[dict[str, object], dict[str, object]]:
    berth_3, berth_4 = (talk.say("orch", text, "worker-1", "worker-2") for text in NOTICES)
    talk.react("worker-2", berth_3, "✅")
    talk.say("worker-2", "reacted", "orch")
    return berth_3, berth_4


def another_emoji(talk: Talk) -> None:
    _, berth_4 = both_notices(talk)
    talk.react("worker-1", berth_4, "👍")
    talk.say("worker-1", "reacted", "orch")


def on_both(talk: Talk) -> None:
    berth_3, berth_4 = both_notices(talk)
    talk.react("worker-1", berth_3, "✅")
    talk.react("worker-1", berth_4, "✅")
    talk.say("worker-1", "reacted", "orch")


def by_the_lead(talk: Talk) -> None:
    _, berth_4 = both_notices(talk)
    talk.react("orch", berth_4, "✅")
    talk.say("worker-1", "the lead has done it for me", "orch")


def told_before_it_was_done(talk: Talk) -> None:
    _, berth_4 = both_notices(talk)
    talk.say("worker-1", "reacted", "orch")
    talk.react("worker-1", berth_4, "✅")


def on_the_request(talk: Talk) -> None:
    request = talk.say("orch", "react, please", "worker-1", "worker-2")
    both_notices(talk)
    talk.react("worker-1", request, "✅")
    talk.say("worker-1", "reacted", "orch")


def taken_back(talk: Talk) -> None:
    _, berth_4 = both_notices(talk)
    reaction = talk.react("worker-1", berth_4, "✅")
    talk.say("worker-1", "reacted", "orch")
    talk.events.append(talk.keys["worker-1"].sign(5, "", [["e", reaction["id"]]]))


OWN = {
    "worker-1 puts the reaction on the notice about its own berth",
    "worker-1 tells the lead after its reaction",
}
STRAY = "no other message has the reaction, and nobody else gives it"


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (another_emoji, OWN),
        (on_both, {STRAY}),
        (by_the_lead, OWN | {STRAY}),
        (told_before_it_was_done, {"worker-1 tells the lead after its reaction"}),
        (on_the_request, OWN | {STRAY}),
        (taken_back, OWN),
    ],
)
def test_a_reaction_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(REACTION)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_two_notices_in_one_message_are_no_two_messages() -> None:
    talk = Talk(REACTION)
    both = talk.say("orch", "\n".join(NOTICES), "worker-1", "worker-2")
    for worker in ("worker-1", "worker-2"):
        talk.react(worker, both, "✅")
        talk.say(worker, "reacted", "orch")
    assert {
        "the lead posts the notice for worker-1 as a message of its own",
        "the lead posts the notice for worker-2 as a message of its own",
    } <= judged(talk)
