"""One agent of the scripted model: its part, how far it is, and its answers in its dialect."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from bench.endpoints import Dialect
from bench.gateway import conversation, render, scripted
from bench.gateway.buzzcli import CannotRender
from bench.gateway.protocol import Context, Issue
from bench.gateway.script import Script
from bench.gateway.scripted import Fault, Part, Progress, Reply, Say


class ScriptFault(Exception):
    """The script and what the model was shown part ways."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


class Player:
    """An agent that plays its part of a script."""

    def __init__(self, dialect: Dialect, part: Part, context: Context) -> None:
        self._dialect: Dialect = dialect
        self._part = part
        self._context = context
        self._progress = Progress()
        self._number = 0
        self._known_characters = 0

    @classmethod
    def of(cls, dialect: Dialect, issue: Issue, script: Script, context: Context) -> Player:
        """The player of an agent that gets a token."""
        steps = script.steps_for(issue.agent, issue.member)
        return cls(dialect, Part(issue.agent, issue.member, context.user, steps), context)

    def answer(self, body: Mapping[str, Any]) -> tuple[bytes, float]:
        """The response to one request, of a parsed body, and the seconds it takes. Raises ScriptFault, then always."""
        shown = conversation.read(self._dialect, dict(body))
        progress, reply = scripted.advance(self._part, self._progress, shown.shown)
        if isinstance(reply, Fault):
            self._progress = progress
            raise ScriptFault(reply)
        calls = self._calls(reply, shown.tools)
        text = "\n".join(action.text for action in reply.actions if isinstance(action, Say))
        spoken = len(text) + sum(len(str(call.input)) + len(call.name) for call in calls)
        usage = render.usage(self._dialect, shown, known_characters=self._known_characters, answer_characters=spoken)
        self._progress = progress
        self._number += 1
        self._known_characters = shown.prompt_characters
        answer = render.answer(
            self._dialect, model=str(body["model"]), number=self._number, text=text, calls=calls, usage=usage
        )
        return answer, random.uniform(*reply.think_s) if reply.think_s else 0.0  # noqa: S311  (a pause, no secret)

    def _calls(self, reply: Reply, tools: tuple[str, ...]) -> tuple[render.ToolCall, ...]:
        try:
            return render.tool_calls(reply.actions, tools, self._context)
        except CannotRender as error:
            fault = Fault("script_mismatch", f"step {reply.step!r} of {self._part.agent}: {error}")
            self._progress = Progress(fault=fault)
            raise ScriptFault(fault) from error
