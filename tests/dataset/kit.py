"""Talk of a team as signed events, and the evidence that the trial's own code derives from them."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from bench.nostr import Event, Key
from bench.trial.evidence import Person, Subject, build

DATASET = Path(__file__).resolve().parents[2] / "buzz-dataset"
TASKS = sorted(path.parent for path in DATASET.glob("*/task.toml"))


class Talk:
    """One trial's channel: `orch` leads `worker-1` and `worker-2`, and `user` has posted the task.

    Times run backwards from event to event: whoever orders by `created_at` gets everything wrong.
    """

    def __init__(self, task: str) -> None:
        self.task = DATASET / task
        self.channel = str(uuid.uuid4())
        self.keys = {name: Key.generate() for name in ("user", "orch", "worker-1", "worker-2")}
        self.events: list[Event] = []
        self._time = int(time.time())
        self.instruction = (self.task / "instruction.md").read_text(encoding="utf-8")
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
        self._time -= 1
        event = self.keys[author].sign(9, text, tags, self._time)
        self.events.append(event)
        return event

    def done(self) -> None:
        self.say("orch", "DONE: all of it", "user")

    def evidence(self) -> dict[str, Any]:
        roster = (
            Person("orch", self.keys["orch"].public, "orch", "orchestrator", "lead"),
            Person("worker-1", self.keys["worker-1"].public, "worker", "worker", "implementer"),
            Person("worker-2", self.keys["worker-2"].public, "worker", "worker", "implementer"),
        )
        user = Person("user", self.keys["user"].public)
        return build(Subject("trial", f"buzz/{self.task.name}", self.channel, user, roster), self.events)


def failing(checks: Any) -> set[str]:
    """The names of the checks that don't hold."""
    return {name for name, held in checks.items() if not held}
