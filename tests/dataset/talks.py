"""A good trial of each task: what a team that does it right says, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Callable

from .kit import DATASET, Talk

FACTS = (DATASET / "review-rejects-once" / "environment" / "brief.txt").read_text(encoding="utf-8")
FORM = "Form HM-417, to be kept until Friday\n"
REGISTER = (DATASET / "hand-over-after-failure" / "environment" / "register.csv").read_text(encoding="utf-8")
OFFICE = "/srv/harbour office/tides.csv"
DRAFT = (DATASET / "message-corrected-by-edit" / "environment" / "draft.txt").read_text(encoding="utf-8").strip()
NOTICES = (
    (DATASET / "reaction-on-the-right-message" / "environment" / "notices.txt").read_text(encoding="utf-8").splitlines()
)


def pilot(talk: Talk) -> None:
    talk.say("orch", "please come", "worker-2")
    talk.say("worker-2", "READY", "orch")


def thread(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    answer = talk.say("worker-1", "7", "orch", reply=question)
    follow_up = talk.say("orch", "which one last?", "worker-1", reply=answer)
    talk.say("worker-1", "Halcyon", "orch", reply=follow_up)


def notice(talk: Talk) -> None:
    talk.say("orch", (talk.task / "environment" / "notice.md").read_text(encoding="utf-8"), "worker-1")
    talk.say("worker-1", "received", "orch")


def night_watch(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch", "worker-2")
    call = talk.say("orch", "are you there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", reply=call, channel=watch)


def order(talk: Talk) -> None:
    talk.say("orch", "HM-52 is yours", "worker-2")
    talk.say("worker-2", "it is link 27", "orch")


def office(talk: Talk) -> None:
    asked = talk.say("orch", f"the highest tide in `{OFFICE}`, please", "worker-1")
    talk.say("worker-1", "431 cm", "orch", reply=asked)


def correction(talk: Talk) -> None:
    draft = talk.say("orch", DRAFT, "worker-1")
    talk.say("worker-1", "it leaves at 16:40", reply=draft)
    talk.edit("orch", draft, DRAFT.replace("15:10", "16:40"))


def reactions(talk: Talk) -> None:
    talk.say("orch", "react to your own berth's", "worker-1", "worker-2")
    berth_3, berth_4 = (talk.say("orch", text, "worker-1", "worker-2") for text in NOTICES)
    talk.react("worker-1", berth_4, "✅")
    talk.react("worker-2", berth_3, "✅")
    talk.say("worker-2", "reacted", "orch")
    talk.say("worker-1", "reacted", "orch")


def shift(talk: Talk) -> None:
    berth = talk.make_channel("orch", "berth-6", "worker-1", "worker-2")
    talk.say("orch", "the shift changes", "worker-1", "worker-2", channel=berth)
    talk.remove("orch", "worker-1", berth)
    code = talk.say("orch", "KX-4471", "worker-2", channel=berth)
    talk.say("worker-2", "noted", reply=code, channel=berth)


def split(talk: Talk) -> None:
    talk.say("orch", "one quay each", "worker-1", "worker-2")
    talk.say("worker-1", "SUM 818", "orch")
    talk.say("worker-2", "SUM 455", "orch")


def review(talk: Talk) -> None:
    talk.say("orch", "please write", "worker-1")
    talk.say("worker-1", "version 1", "worker-2")
    talk.say("worker-2", FORM, "worker-1")
    talk.say("worker-1", "version 2", "worker-2")
    talk.say("worker-2", "accepted", "orch")


def export(talk: Talk) -> None:
    talk.say("orch", "please export", "worker-1")
    talk.say("worker-1", "it broke off: E-4417", "orch")
    talk.say("orch", "go on from E-4417", "worker-2")
    talk.say("worker-2", "whole, seal 625422079", "orch")


def yards(talk: Talk) -> None:
    talk.say("orch", "yard A", "worker-1")
    talk.say("orch", "yard B", "worker-2")
    talk.say("worker-2", "38 here", "worker-1")
    talk.say("worker-1", "23 here", "worker-2")
    talk.say("worker-2", "61 together", "orch")
    talk.say("worker-1", "61 together", "orch")


def berth(talk: Talk) -> None:
    question = talk.say("orch", "which berth?", "user")
    talk.say("user", "The Meridian gets berth 9.", "orch", reply=question)
    talk.say("orch", "berth 9, please", "worker-1")
    talk.say("worker-1", "written", "orch")


def two_threads(talk: Talk) -> None:
    cranes = talk.say("orch", "how many cranes?", "worker-1")
    tide = talk.say("orch", "how high?", "worker-2")
    ready = talk.say("worker-1", "14", "orch", reply=cranes)
    level = talk.say("worker-2", "463", "orch", reply=tide)
    check_tide = talk.say("orch", "please check", "worker-1", reply=level)
    check_cranes = talk.say("orch", "please check", "worker-2", reply=ready)
    talk.say("worker-1", "463 it is", "orch", reply=check_tide)
    talk.say("worker-2", "14 it is", "orch", reply=check_cranes)


def totals(talk: Talk) -> None:
    talk.say("orch", "May, please", "worker-1")
    talk.say("worker-1", "1135", "orch")
    talk.say("orch", "2210 tonnes", "user", reply=talk.posted)


def longest(talk: Talk) -> None:
    talk.say("orch", "the Meridian, 63 hours", reply=talk.posted)


GOOD: dict[str, tuple[Callable[[Talk], None], dict[str, str]]] = {
    "mention-names-the-right-member": (pilot, {"pilot.txt": "worker-2\n"}),
    "thread-reply-stays-in-thread": (thread, {"answers.txt": "7\nHalcyon\n"}),
    "multiline-message-kept-whole": (notice, {}),
    "channel-has-exactly-these": (night_watch, {}),
    "same-name-told-apart": (order, {"link.txt": "27\n"}),
    "file-outside-the-workspace": (office, {"level.txt": f"431\n{OFFICE}\n"}),
    "message-corrected-by-edit": (correction, {}),
    "reaction-on-the-right-message": (reactions, {}),
    "removed-member-gets-no-more": (shift, {}),
    "split-and-merge": (
        split,
        {"north.total": "818\n", "south.total": "455", "report.txt": "north 818\nsouth 455\ntotal 1273\n"},
    ),
    "review-rejects-once": (review, {"notice-1.txt": FACTS, "notice-2.txt": FACTS + FORM}),
    "hand-over-after-failure": (
        export,
        {"export.csv": REGISTER, "export.broken": "worker-1\n", "export.whole": "worker-2\n"},
    ),
    "parallel-pieces": (yards, {"total.txt": "61\n"}),
    "question-to-the-user": (berth, {"place.txt": "Meridian 9\n"}),
    "two-threads-kept-apart": (two_threads, {"answers.txt": "14\n463\n"}),
    "totals-told-to-the-user": (totals, {"totals.txt": "april 1075\nmay 1135\nboth 2210\n"}),
    "answer-in-the-users-thread": (longest, {"longest.txt": "Meridian 63\n"}),
}
