"""The agent loop of the harness `builtin`: mentions come in, the model acts through tools until it has no more to do.

One loop for each agent. Mentions that arrive during a turn make the next one, in order of arrival. The conversation is
kept over the turns; `bench.harness.context` keeps it within the window.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.harness import context, prompt
from bench.harness.bounds import Conduct, TeamEnded
from bench.harness.directory import Directory
from bench.harness.inbox import Inbox
from bench.harness.models import OWN_CAP, Model, ModelFailed
from bench.harness.talk import Call, Item, Reply, Result, Said
from bench.harness.tools import Toolbox
from bench.harness.toolspecs import Tool
from bench.prices import Tokens

UNFINISHED = "(the work was ended before this was done)"
"""The result of a call that was under way, or still to come, when the trial or a step of its task ended."""


@dataclass(frozen=True)
class Use:
    """A tool call and its result."""

    call: Call
    result: Result


@dataclass(frozen=True)
class Step:
    """One step of an agent, for its trajectory: what it was told (`tokens` is None), or what it answered and did."""

    at: str
    text: str
    reasoning: str = ""
    uses: tuple[Use, ...] = ()
    tokens: Tokens | None = None


@dataclass(frozen=True)
class Mind:
    """What an agent thinks with. `window_tokens` None stands for no limit."""

    model: Model
    system: str
    tools: Sequence[Tool]
    window_tokens: int | None


class BuiltinAgent:
    """One roster member at work. `steps` is what it has done so far; `on_tokens` is called after each model call."""

    def __init__(
        self,
        name: str,
        mind: Mind,
        toolbox: Toolbox,
        inbox: Inbox,
        directory: Directory,
        conduct: Conduct,
        on_tokens: Callable[[Tokens], None],
    ) -> None:
        self.name = name
        self.steps: list[Step] = []
        self._mind, self._toolbox, self._inbox = mind, toolbox, inbox
        self._directory, self._conduct, self._on_tokens = directory, conduct, on_tokens
        self._conversation: list[Item] = []
        self._halting = False
        self.is_thinking = False
        """Whether a call of its model is under way."""
        schemas = [{"name": t.name, "text": t.description, "schema": t.parameters} for t in mind.tools]
        self._fixed_chars = len(mind.system) + len(json.dumps(schemas))

    async def run(self) -> None:
        """Work until `done` was said, else until cancelled. Called again, it goes on with the same conversation.

        A cap of its own that refuses a call ends its turn. Raises TeamEnded, ModelFailed, GatewayUnreachable and
        RelayGone.
        """
        self._toolbox.done = self._halting = False
        while not self._toolbox.done and not self._halting:
            batch = await self._inbox.batch()
            self._conduct.begin_turn(self.name)
            await self._turn(prompt.mentions(batch, self._directory) or prompt.NUDGE)
            self._conduct.end_turn(self.name)

    def halt(self) -> None:
        """Go no further than to the end of a model call that is under way: what it says is heard, and not done."""
        self._halting = True

    @property
    def has_said_done(self) -> bool:
        """Whether the agent has called `done`: then it stops of itself."""
        return self._toolbox.done

    async def _turn(self, told: str) -> None:
        self._conversation.append(Said(told))
        self.steps.append(Step(_now(), told))
        while not self._halting:
            self._make_room()
            self._conduct.call(self.name)
            at = _now()
            try:
                reply = await self._think()
            except ModelFailed as error:
                if error.refusal != OWN_CAP:
                    raise
                # The rest of the team goes on, and is told by whoever runs it: no silent turn.
                self._conduct.publish(self.name)
                self.steps.append(Step(at, error.message))
                return
            self._on_tokens(reply.tokens)
            self._conversation.append(reply)
            results = await self._carry_out(at, reply)
            if not results or self._toolbox.done:
                return
            # A model whose answers take no time must not keep the others from being heard.
            await asyncio.sleep(0)

    async def _think(self) -> Reply:
        self.is_thinking = True
        try:
            return await self._mind.model.complete(
                system=self._mind.system, conversation=self._conversation, tools=self._mind.tools
            )
        finally:
            self.is_thinking = False

    async def _carry_out(self, at: str, reply: Reply) -> list[Result]:
        """Results of all calls, in their order. What was done stays known when the work is ended meanwhile.

        A conversation that goes on later must have a result for each call: models are sent nothing else.
        """
        results: list[Result] = []
        try:
            for call in () if self._halting else reply.calls:
                results.append(await self._toolbox.call(call))
        finally:
            unfinished = [Result(call.id, UNFINISHED, is_error=True) for call in reply.calls[len(results) :]]
            uses = tuple(map(Use, reply.calls, [*results, *unfinished]))
            self.steps.append(Step(at, reply.text, reply.reasoning, uses, reply.tokens))
            if uses:
                self._conversation.append(tuple(use.result for use in uses))
        return results

    def _make_room(self) -> None:
        if self._mind.window_tokens is None:
            return
        try:
            self._conversation = context.fit(
                self._conversation,
                fixed_chars=self._fixed_chars,
                window_tokens=self._mind.window_tokens,
                output_tokens=self._mind.model.generation.max_output_tokens,
            )
        except context.WindowFull as error:
            raise TeamEnded("loop", f"{self.name}'s conversation outgrew its context window: {error}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
