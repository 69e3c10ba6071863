"""`inv chat`: what was said in the trials of a job, from the host's own copy of the signed events.

What agents have written is shown with every character that could steer a terminal escaped, and marked as theirs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput
from bench.nearest import nearest
from bench.nostr import tag_values
from bench.printable import one_line, printable
from bench.reading.jsonfile import object_in
from bench.records import EVIDENCE, read_job
from bench.records.job import JobRecord, TrialRecord
from bench.report import directories_of

INDENT = " " * 6
SAID = f"{INDENT}| "
"""Before each line of what somebody wrote: so none of them can pass for a line of ours, such as a reaction."""
LONGEST_NAME = 24
"""Of an author whom nobody knows: a whole key in hex says no more than its beginning."""

NAMES_SHOWN = 5

TOLD = ("channel", "channels", "messages", "edits", "reactions", "memberships")
"""What of the evidence is for programs; the rest of it is in the trial's directory."""

ORDERS = {9000: "adds {target} to", 9001: "removes {target} from", 9021: "joins", 9022: "leaves"}
"""Events of membership by their kind (NIP-29)."""

DELETIONS = (5, 9005)
"""Events that delete others by their kind: anybody's own (NIP-09), and a channel's (NIP-29)."""


@dataclass(frozen=True)
class Talk:
    """What a trial left of its conversation. `steps` are (name, seq of its first event) of its task's, but the first.

    `evidence` is None where there is none, or none that can be read.
    """

    trial: TrialRecord
    evidence: Mapping[str, Any] | None
    steps: tuple[tuple[str, int], ...] = ()


def chat(jobs_dir: Path, job: str, trial: str, *, as_json: bool) -> None:
    """The task: print the conversations of a job's trials, by default the newest's; `trial` is a name or a glob.

    Raises InvalidInput for what is no job, for one without trials, and for a name that matches none.
    """
    (directory,) = directories_of(jobs_dir, [job] if job else [])
    record = read_job(directory)
    if not record.trials:
        raise InvalidInput.of(f"--job {directory.name}", "no trial of it has begun yet")
    talks = (_talk(directory, found) for found in _chosen(record, trial))
    if as_json:
        print(json.dumps({"job": record.plan.job, "trials": [_to_json(talk) for talk in talks]}, indent=2))
        return
    for talk in talks:
        try:
            shown = [*lines(talk)]
        except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError) as error:
            print(f"warning: {talk.trial.trial}: its {EVIDENCE} is damaged ({error!r})", file=sys.stderr)
        else:
            print(printable("\n".join(shown)))


def _chosen(record: JobRecord, wanted: str) -> Sequence[TrialRecord]:
    """The trials that a name or a glob means: their own names, or those of their tasks. Raises InvalidInput."""
    if not wanted:
        return record.trials

    def names(trial: TrialRecord) -> tuple[str, ...]:
        return trial.trial, trial.trial.rpartition("__")[0], trial.task, trial.task.rpartition("/")[2]

    found = [trial for trial in record.trials if any(fnmatchcase(name, wanted) for name in names(trial))]
    if not found:
        tasks = sorted({trial.task.rpartition("/")[2] for trial in record.trials})
        near = nearest(wanted.strip("*"), tasks) or tasks[:NAMES_SHOWN]
        more = ", …" if len(near) < len(tasks) else ""
        raise InvalidInput.of(
            f"--trial {wanted}", f"{record.plan.job} has no such trial", f"it has {', '.join(near)}{more}"
        )
    return found


def _talk(directory: Path, trial: TrialRecord) -> Talk:
    place = directory / trial.trial
    if (evidence := object_in(place / EVIDENCE)) is not None:
        return Talk(trial, evidence)
    found = [object_in(file) for file in place.glob(f"steps/*/{EVIDENCE}")]
    steps = sorted(
        ((one["step"], one) for one in found if one and _is_step(one.get("step"))), key=lambda s: s[0]["number"]
    )
    # The last one's evidence has what was said in all of them.
    return Talk(trial, steps[-1][1] if steps else None, tuple((s["name"], s["since"]) for s, _ in steps[1:]))


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, dict) and all(type(step.get(name)) is int for name in ("number", "since")) and "name" in step
    )


def _to_json(talk: Talk) -> dict[str, Any]:
    trial, evidence = talk.trial, talk.evidence or {}
    return {
        "trial": trial.trial,
        "task": trial.task,
        "outcome": trial.outcome.outcome,
        **{name: evidence.get(name) for name in TOLD},
        "steps": [{"name": name, "since": since} for name, since in talk.steps],
    }


def lines(talk: Talk) -> Iterator[str]:
    """A trial's conversation for people: its messages by number, and between them what else was done.

    Raises whatever Python says of evidence that isn't of its form.
    """
    trial = talk.trial
    yield f"{trial.trial}  ({trial.outcome.outcome})"
    if talk.evidence is None:
        yield f"{INDENT}nothing that was said is here"
        yield ""
        return
    steps = [(since, f"{INDENT}— step {name} —") for name, since in talk.steps]
    entries = sorted([*steps, *_entries(talk.evidence)], key=itemgetter(0))
    first = min((message["seq"] for message in talk.evidence["messages"]), default=0)
    # What comes before the first message made the channel.
    yield from (text for seq, text in entries if seq >= first)
    yield ""


def _entries(evidence: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """(seq, text) of everything that was done, in no order."""
    titles = {channel["id"]: f"#{one_line(channel['name'])}" for channel in evidence["channels"]}
    numbers = {message["id"]: number for number, message in enumerate(evidence["messages"], 1)}
    authors = {message["id"]: message["author"] for message in evidence["messages"]}
    unexplained = set(evidence.get("unexplained") or ())

    def marked(event: Mapping[str, Any]) -> str:
        return "  [unexplained]" if event["id"] in unexplained else ""

    def meant(event: Any) -> str:
        return str(numbers.get(event, "a message that isn't here"))

    for message in evidence["messages"]:
        at = datetime.fromtimestamp(message["created_at"], UTC)
        head = f"{numbers[message['id']]:>4}  {at:%H:%M:%S}  {_name(message['author'])} → "
        head += ", ".join(map(_name, message["mentions"])) or "nobody"
        head += f", in reply to {meant(message['parent'])}" if message["parent"] else ""
        if message["channel"] != evidence["channel"]:
            head += f", in {titles.get(message['channel'], 'a channel that is not here')}"
        yield message["seq"], f"{head}{marked(message)}\n{_indented(message['first_text'])}"
    for edit in evidence["edits"]:
        own = "" if edit["author"] == authors.get(edit["target"]) else ", which is not its own"
        head = f"{INDENT}{_name(edit['author'])} edits {meant(edit['target'])}{own}:{marked(edit)}"
        yield edit["seq"], f"{head}\n{_indented(edit['text'])}"
    for reaction in evidence["reactions"]:
        yield (
            reaction["seq"],
            f"{INDENT}{_name(reaction['author'])} reacts {one_line(reaction['emoji'])} to {meant(reaction['target'])}",
        )
    yield from _deletions(evidence, numbers, authors)
    for order in evidence["memberships"]:
        does = ORDERS.get(order["kind"], "changes").format(target=_name(order["target"]))
        where = f"{titles.get(order['channel'], 'a channel')}{marked(order)}"
        yield order["seq"], f"{INDENT}{_name(order['author'])} {does} {where}"


def _deletions(
    evidence: Mapping[str, Any], numbers: Mapping[str, int], authors: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """(seq, text) of each message that somebody deleted: it was said all the same, and is judged."""
    names = {one["public"]: one["name"] for one in (evidence["user"], *evidence["roster"])}
    for seq, event in enumerate(evidence["events"]):
        if event["kind"] in DELETIONS and event["id"] not in evidence["invalid"]:
            author = names.get(event["pubkey"], event["pubkey"])
            for target in (event_id for event_id in tag_values(event, "e") if event_id in numbers):
                own = "" if author == authors[target] else ", which is not its own"
                yield seq, f"{INDENT}{_name(author)} deletes {numbers[target]}{own}"


def _name(name: str) -> str:
    return one_line(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")


def _indented(text: str) -> str:
    return "\n".join(f"{SAID}{line}".rstrip() for line in text.strip("\n").split("\n"))
