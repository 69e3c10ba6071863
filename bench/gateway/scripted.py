"""The scripted model: a pure state machine over a script's steps.

    (progress, what the model was newly shown) -> (progress, reply or fault)

Messages are events' blocks (`[Buzz event: …]` or buzz-acp's `--- Event i (@mention) ---`; BUZZ.md section 4), each
judged once however they are batched: a message that came together with the one that a step waited for is
kept for the next step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bench.gateway.script import EVENT_WITH, PLACEHOLDER, Item, Step

_BLOCK = re.compile(r"^(?:\[Buzz event: .*\]|--- Event \d+(?: \(.*\))? ---)[ \t]*$", re.MULTILINE)
_EVENT_ID = re.compile(r"^Event ID: ([0-9a-f]{64})[ \t]*$", re.MULTILINE)
_CONTENT = re.compile(r"^Content:", re.MULTILINE)
_AUTHOR = re.compile(r"^From: (.*?)(?: \(npub: .*\))?[ \t]*$", re.MULTILINE)
_SENT = re.compile(
    r"^(?:sent|posted), Event ID: ([0-9a-f]{64})"
    r'|\\?"event_id\\?":\s*\\?"([0-9a-f]{64})\\?",\s*\\?"mention_pubkeys\\?"',
    re.MULTILINE,
)
"""What `send_message` says, and what `buzz messages send` prints: to a model, JSON within JSON.

Reactions, edits and members added print an `event_id`, too; only a message's has those whom it mentions beside it.
"""
_SHOWN_CHARACTERS = 200

WAITING = "waiting"
"""What the scripted model says where a step needs more messages."""

NOTHING_TO_DO = "ok"
"""What it says where it was shown results that no step waits for."""


@dataclass(frozen=True)
class Block:
    """One message as it was shown. `event` is its id, None where the text names none."""

    event: str | None
    text: str

    @property
    def author(self) -> str | None:
        """The name of who wrote it."""
        found = _AUTHOR.search(self.text)
        return found and found[1]

    @property
    def start(self) -> str:
        """Its content's first part, for an error."""
        found = _CONTENT.search(self.text)
        text = self.text[found.end() if found else 0 :].strip()
        return text[:_SHOWN_CHARACTERS] + ("…" if len(text) > _SHOWN_CHARACTERS else "")


@dataclass(frozen=True)
class Shown:
    """The content after the model's own last message: texts of user messages, and texts of tool results."""

    messages: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Run:
    command: str


@dataclass(frozen=True)
class Post:
    """A message to send; `reply_to` is an event id, `author` the name of who wrote that event."""

    text: str
    mention: tuple[str, ...] = ()
    reply_to: str | None = None
    channel: str | None = None
    author: str | None = None


@dataclass(frozen=True)
class Done:
    text: str


@dataclass(frozen=True)
class Call:
    """A call of any other tool."""

    name: str
    input: Mapping[str, Any]


type Action = Say | Run | Post | Done | Call


@dataclass(frozen=True)
class Reply:
    """What the model answers. `step` names the step that was taken, None where none was."""

    actions: tuple[Action, ...]
    step: str | None = None
    think_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Fault:
    """The script and what happened part ways: the trial can't be judged."""

    kind: Literal["script_mismatch", "script_exhausted"]
    reason: str


@dataclass(frozen=True)
class Part:
    """An agent's part: its steps, None where the script has none for it, and what fills the placeholders."""

    agent: str
    member: str
    user: str
    steps: tuple[Step, ...] | None

    @property
    def index(self) -> int:
        """The agent's number among its roster id, from 1: 2 for `worker-2`."""
        number = self.agent.removeprefix(f"{self.member}-")
        return int(number) if number.isdecimal() else 1


@dataclass(frozen=True)
class Progress:
    """How far an agent is: the next step, which of its expectations are met, what is shown but not judged.

    `events` are all that were shown, `sent` is the id of the agent's own last message.
    """

    step: int = 0
    met: frozenset[int] = frozenset()
    inbox: tuple[Block, ...] = ()
    events: tuple[Block, ...] = field(default=(), repr=False)
    sent: str | None = None
    fault: Fault | None = None


def advance(part: Part, progress: Progress, shown: Shown) -> tuple[Progress, Reply | Fault]:
    """The answer to one call. A fault stays: every later call gets it again."""
    if progress.fault is not None:
        return progress, progress.fault
    try:
        return _take(part, _note(progress, shown), shown)
    except _Mismatch as mismatch:
        fault = Fault("script_mismatch", str(mismatch))
    except _Exhausted as exhausted:
        fault = Fault("script_exhausted", str(exhausted))
    return replace(progress, fault=fault), fault


def blocks(text: str) -> tuple[Block, ...]:
    """The messages in a text: its events' blocks, or the whole text where it has none."""
    starts = [found.start() for found in _BLOCK.finditer(text)]
    if not starts:
        return (Block(None, text),) if text.strip() else ()
    parts = (text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))
    return tuple(Block(found[1] if (found := _EVENT_ID.search(part)) else None, part) for part in parts)


class _Mismatch(Exception):
    pass


class _Exhausted(Exception):
    pass


def _note(progress: Progress, shown: Shown) -> Progress:
    """The progress with the new messages and results; an event that is shown again is not new."""
    known = {block.event for block in progress.events}
    inbox, events = list(progress.inbox), list(progress.events)
    for text in shown.messages:
        for block in blocks(text):
            if block.event is None:
                inbox.append(block)
            elif block.event not in known:
                known.add(block.event)
                inbox.append(block)
                events.append(block)
    sent = [found[1] or found[2] for text in shown.results for found in _SENT.finditer(text)]
    return replace(progress, inbox=tuple(inbox), events=tuple(events), sent=sent[-1] if sent else progress.sent)


def _take(part: Part, progress: Progress, shown: Shown) -> tuple[Progress, Reply]:
    """One step, and more only where the turn would end although the next step's message is already here.

    The answer takes as long as all of them.
    """
    actions: tuple[Action, ...] = ()
    name: str | None = None
    think_s: tuple[float, float] | None = None
    while True:
        step = _next(part, progress)
        if step is None or (step.on == "message" and not progress.inbox):
            return progress, Reply(actions or (Say(NOTHING_TO_DO),), name, think_s)
        if step.on == "result":
            _match_results(part, progress, step, shown)
            rest = progress.inbox
        else:
            met, rest = _match_messages(part, progress, step)
            if len(met) < len(step.expect):
                waiting = replace(progress, met=met, inbox=())
                return waiting, Reply((*actions, Say(WAITING)), name, think_s)
        actions += tuple(_action(part, progress, step, item) for item in step.do)
        name = step.name
        if step.think_s is not None:
            least_s, most_s = think_s or (0.0, 0.0)
            think_s = least_s + step.think_s[0], most_s + step.think_s[1]
        progress = replace(progress, step=progress.step + 1, met=frozenset(), inbox=rest)
        if step.calls_tools:
            return progress, Reply(actions, name, think_s)


def _next(part: Part, progress: Progress) -> Step | None:
    if part.steps is not None and progress.step < len(part.steps):
        return part.steps[progress.step]
    if not progress.inbox:
        return None
    came = f"but was shown: {progress.inbox[0].start!r}"
    if part.steps is None:
        raise _Exhausted(f"the script has no steps for {part.agent} (roster id {part.member}), {came}")
    last = f"its last was {part.steps[-1].name!r}" if part.steps else "it has none"
    raise _Exhausted(f"{part.agent} has no step left ({last}), {came}")


def _match_results(part: Part, progress: Progress, step: Step, shown: Shown) -> None:
    if not shown.results:
        came = progress.inbox[0].start if progress.inbox else "nothing new"
        raise _Mismatch(f"step {step.name!r} of {part.agent} waits for results of tools, but was shown: {came!r}")
    text = "\n".join(shown.results)
    for wanted in (_fill(part, progress, step, e) for e in step.expect):
        if wanted not in text:
            raise _Mismatch(
                f"step {step.name!r} of {part.agent} expected {wanted!r} in the results, "
                f"but was shown: {Block(None, text).start!r}"
            )


def _match_messages(part: Part, progress: Progress, step: Step) -> tuple[frozenset[int], tuple[Block, ...]]:
    """(the expectations met so far, the blocks that met none)."""
    if not step.expect:
        return frozenset(), ()
    wanted = [_fill(part, progress, step, e) for e in step.expect]
    met, rest = set(progress.met), []
    for block in progress.inbox:
        hits = {number for number, text in enumerate(wanted) if text in block.text}
        met |= hits
        if not hits:
            rest.append(block)
    if rest and len(met) < len(wanted):
        missing = " and ".join(repr(text) for number, text in enumerate(wanted) if number not in met)
        raise _Mismatch(f"step {step.name!r} of {part.agent} expected {missing}, but was shown: {rest[0].start!r}")
    return frozenset(met), tuple(rest)


def _action(part: Part, progress: Progress, step: Step, item: Item) -> Action:
    def fill(text: str) -> str:
        return _fill(part, progress, step, text)

    if item.say is not None:
        return Say(fill(item.say))
    if item.run is not None:
        return Run(fill(item.run))
    if item.done is not None:
        return Done(fill(item.done))
    if item.send is not None:
        send = item.send
        answered = _answered(part, progress, step, send.reply)
        return Post(
            text=fill(send.text),
            mention=tuple(fill(name) for name in send.mention),
            reply_to=answered.event if answered else None,
            channel=None if send.channel is None else fill(send.channel),
            author=answered.author if answered else None,
        )
    assert item.tool is not None
    ((name, given),) = item.tool.items()
    return Call(name, {key: _fill_all(value, fill) for key, value in given.items()})


def _answered(part: Part, progress: Progress, step: Step, reply: bool | str) -> Block | None:
    if reply is False:
        return None
    return _event(part, progress, step, "answers", "" if reply is True else _fill(part, progress, step, reply))


def _event(part: Part, progress: Progress, step: Step, does: str, wanted: str) -> Block:
    """The block of the newest event shown that contains a text."""
    for block in reversed(progress.events):
        if wanted in block.text:
            return block
    what = f"an event with {wanted!r}" if wanted else "an event"
    raise _Mismatch(f"step {step.name!r} of {part.agent} {does} {what}, but none was shown")


def _fill(part: Part, progress: Progress, step: Step, text: str) -> str:
    values = {"agent": part.agent, "member": part.member, "index": str(part.index), "user": part.user}

    def value(found: re.Match[str]) -> str:
        if found[1] == "event":
            return str(_event(part, progress, step, "names", "").event)
        if with_text := EVENT_WITH.fullmatch(found[1]):
            return str(_event(part, progress, step, "names", with_text[1]).event)
        if found[1] == "sent":
            if progress.sent is None:
                raise _Mismatch(f"step {step.name!r} of {part.agent} names its own message, but has sent none")
            return progress.sent
        return values[found[1]]

    return PLACEHOLDER.sub(value, text)


def _fill_all(value: Any, fill: Any) -> Any:
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, list):
        return [_fill_all(part, fill) for part in value]
    if isinstance(value, dict):
        return {key: _fill_all(part, fill) for key, part in value.items()}
    return value
