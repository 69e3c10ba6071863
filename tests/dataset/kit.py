"""Talk of a team as signed events, and the evidence that the trial's own code derives from them."""

from __future__ import annotations

import time
import tomllib
import uuid
from pathlib import Path
from typing import Any

from bench.nostr import Event, Key, tag_value
from bench.scoring import judge
from bench.trial.evidence import Part, Person, Subject, build

DATASET = Path(__file__).resolve().parents[2] / "buzz-dataset"
TASKS = sorted(path.parent for path in DATASET.glob("*/task.toml"))
IN_STEPS = [task for task in TASKS if (task / "steps").is_dir()]
AT_ONCE = [task for task in TASKS if task not in IN_STEPS]
"""Those that are asked in one piece, by one instruction."""


def instructions(task: Path) -> list[Path]:
    """The files with what a team is asked, one for each step, in order."""
    steps = tomllib.loads((task / "task.toml").read_text(encoding="utf-8")).get("steps", [])
    return [task / "steps" / step["name"] / "instruction.md" for step in steps] or [task / "instruction.md"]


class Talk:
    """One trial's channel: `orch` leads `worker-1` and `worker-2`, and `user` has posted the task.

    Times run backwards from event to event: whoever orders by `created_at` gets everything wrong.
    """

    def __init__(self, task: str) -> None:
        self.task = DATASET / task
        self.channel = str(uuid.uuid4())
        self.keys = {name: Key.generate() for name in ("user", "orch", "worker-1", "worker-2")}
        self.relay = Key.generate()
        self.members: dict[str, list[str]] = {}
        self.events: list[Event] = []
        self._time = int(time.time())
        self.instruction = instructions(self.task)[0].read_text(encoding="utf-8")
        self.posted = self.say("user", self.instruction, "orch")

    def say(
        self,
        author: str,
        text: str,
        *mentions: str,
        reply: Event | None = None,
        channel: str | None = None,
    ) -> Event:
        """A message, with a mention of each name, as a reply in the thread of another one where that is given."""
        tags = [["h", channel or self.channel], *(["p", self.keys[name].public] for name in mentions)]
        if reply is not None:
            root = next((t[1] for t in reply["tags"] if t[0] == "e" and t[3] == "root"), None)
            root = root or next((t[1] for t in reply["tags"] if t[0] == "e"), None)
            tags += [["e", root, "", "root"]] if root else []
            tags.append(["e", reply["id"], "", "reply"])
        return self._signed(author, 9, text, tags)

    def edit(self, author: str, message: Event, text: str) -> Event:
        """A new text for a message."""
        return self._signed(author, 40003, text, [["h", tag_value(message, "h") or ""], ["e", message["id"]]])

    def react(self, author: str, message: Event, emoji: str) -> Event:
        """A reaction to a message."""
        return self._signed(author, 7, emoji, [["e", message["id"]]])

    def make_channel(self, author: str, name: str, *members: str) -> str:
        """A channel with its maker and the members, whom the maker adds one by one; its id."""
        channel = str(uuid.uuid4())
        self.members[channel] = [author]
        self._signed(author, 9007, "", [["h", channel], ["name", name], ["visibility", "private"]])
        self._listed(39000, [["d", channel], ["name", name], ["private"]])
        self._list_members(channel)
        for member in members:
            self.add(author, member, channel)
        return channel

    def add(self, author: str, member: str, channel: str) -> Event:
        """An order to add a member, which the relay has carried out."""
        self.members[channel].append(member)
        return self._moved(author, 9000, member, channel)

    def remove(self, author: str, member: str, channel: str) -> Event:
        """An order to remove a member, which the relay has carried out."""
        self.members[channel].remove(member)
        return self._moved(author, 9001, member, channel)

    def _moved(self, author: str, kind: int, member: str, channel: str) -> Event:
        event = self._signed(author, kind, "", [["h", channel], ["p", self.keys[member].public]])
        self._list_members(channel)
        return event

    def _list_members(self, channel: str) -> None:
        members = [["p", self.keys[name].public, "", "member"] for name in self.members[channel]]
        self._listed(39002, [["d", channel], *members])

    def _signed(self, author: str, kind: int, content: str, tags: list[list[str]]) -> Event:
        self._time -= 1
        event = self.keys[author].sign(kind, content, tags, self._time)
        self.events.append(event)
        return event

    def _listed(self, kind: int, tags: list[list[str]]) -> None:
        """A list of the relay's: the one kind of event whose times it makes rise (BUZZ.md section 3)."""
        self.events.append(self.relay.sign(kind, "", tags, int(time.time()) + len(self.events)))

    def done(self) -> None:
        self.say("orch", "DONE: all of it", "user")

    def evidence(self, step: Part | None = None) -> dict[str, Any]:
        roster = (
            Person("orch", self.keys["orch"].public, "orch", "orchestrator", "lead"),
            Person("worker-1", self.keys["worker-1"].public, "worker", "worker", "implementer"),
            Person("worker-2", self.keys["worker-2"].public, "worker", "worker", "implementer"),
        )
        user = Person("user", self.keys["user"].public)
        return build(Subject("trial", f"buzz/{self.task.name}", self.channel, user, roster), self.events, step=step)


def judged(talk: Talk) -> set[str]:
    """The checks of the talk's task that its evidence doesn't hold."""
    return failing(host_checks(talk.task, talk.evidence()))


def host_checks(task: Path, evidence: dict[str, Any], step: str | None = None) -> dict[str, bool]:
    """What the host says of the evidence."""
    path = judge.find(task, step)
    assert path is not None
    return judge.host_checks(path, evidence, own_tasks=task.parent)


def failing(checks: Any) -> set[str]:
    """The names of the checks that don't hold."""
    return {name for name, held in checks.items() if not held}
