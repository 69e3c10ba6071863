"""Scripts of the scripted model as people write them: `rehearsal/good.yaml` and its like.

`load_file` gives a validated Script or every fault with its path; `Script.wire` is what travels to the
gateway. For those who write them, the form is in buzz-dataset/README.md, made from the descriptions here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from bench.errors import InvalidInput, Problem, raise_problems
from bench.faults import shown
from bench.nearest import did_you_mean
from bench.reading import textfile, yamlfile
from bench.reading.yamlfile import Document

PLACEHOLDERS = ("agent", "member", "index", "user", "event", "event: <text>", "sent")
"""What `{{…}}` may hold."""

PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}")

EVENT_WITH = re.compile(r"event:\s*(.+)")
"""`{{event: <text>}}` is the newest event shown whose block contains the text."""

type Text = Annotated[str, Field(min_length=1)]
type Seconds = Annotated[float, Field(ge=0, le=600, strict=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Send(_Strict):
    """A message."""

    text: Text = Field(description="What it says.")
    mention: list[Text] = Field([], description="Names of those to wake.")
    reply: bool | Text = Field(
        False,
        description="`true` answers the newest event that the model was shown, a text the newest whose block has it.",
    )
    channel: Text | None = Field(None, description="A channel's name; by default the trial's own.")


class Item(_Strict):
    """One thing that a step does: exactly one of the fields."""

    say: Text | None = Field(None, description="A text beside the calls, which reaches nobody.")
    run: Text | None = Field(None, description="A command for the shell.")
    send: Send | None = Field(None, description="A message.")
    done: Text | None = Field(None, description="The end of the whole task; the orchestrator's alone.")
    tool: dict[str, dict[str, Any]] | None = Field(None, description="Any other tool: `{name: input}`.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(getattr(self, name) is not None for name in type(self).model_fields) != 1:
            raise ValueError("give exactly one of say, run, send, done, tool")
        if self.tool is not None and len(self.tool) != 1:
            raise ValueError("give one tool: {name: input}")
        return self

    @property
    def calls_a_tool(self) -> bool:
        return self.say is None


class Step(_Strict):
    """What one model call answers. Without expectations any message, or any results, will do."""

    name: Text = Field(description="What messages call the step; each has another.")
    on: Literal["message", "result"] = Field(
        "message", description="Whether it waits for new messages, or for the results of the tools just called."
    )
    expect: list[Text] = Field([], description="Texts, all of which must be in what the model is newly shown.")
    do: Annotated[list[Item], Field(min_length=1)] = Field(description="What it answers.")
    think_s: Annotated[list[Seconds], Field(min_length=2, max_length=2)] | None = Field(
        None, description="The least and the most seconds that the answer takes; at once without it."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.think_s is not None and self.think_s[0] > self.think_s[1]:
            raise ValueError("think_s is [least, most] in seconds")
        return self

    @property
    def calls_tools(self) -> bool:
        return any(item.calls_a_tool for item in self.do)


class Script(RootModel[dict[str, list[Step]]]):
    """Steps by roster id or agent's name."""

    model_config = ConfigDict(frozen=True, strict=True)

    def steps_for(self, agent: str, member: str) -> tuple[Step, ...] | None:
        """The agent's steps: those under its own name, else its roster id's, else None."""
        steps = self.root.get(agent, self.root.get(member))
        return None if steps is None else tuple(steps)

    @property
    def wire(self) -> dict[str, Any]:
        """The script as plain values, for `Issue.script`."""
        steps = self.model_dump(exclude_unset=True)
        assert isinstance(steps, dict)
        return steps


@dataclass(frozen=True)
class Known:
    """What a script may name: people whom it can mention, and tools; None where those aren't known."""

    people: Collection[str]
    tools: Collection[str] | None = None
    parts: Collection[str] | None = None
    """The parts that are played: others are for other teams. None for all."""


def load_file(path: Path, known: Known | None = None) -> Script:
    """The script in a file. Raises InvalidInput as `load_script` does, and where the file can't be read."""
    return load_script(textfile.text(path, what="script"), shown(path), known)


def load_script(text: str, where: str, known: Known | None = None) -> Script:
    """The script in a YAML text. Raises InvalidInput with every fault, its line and path; `where` names the file.

    With `known`, what it names of nobody and nothing is a fault, too.
    """
    document = yamlfile.parse(text, shown=where, what="script", loader=_Loader)
    script = _checked(document)
    if known:
        raise_problems(_unknown(script, document, known))
    return script


def read_script(values: Any, where: str) -> Script:
    """The script in parsed values. Raises InvalidInput with every fault and its path."""
    return _checked(Document(where, values, {}))


def _checked(document: Document) -> Script:
    if not isinstance(document.data, Mapping) or not document.data:
        raise InvalidInput.of(document.shown, "a script maps roster ids or agents' names to lists of steps")
    try:
        script = Script.model_validate(document.data)
    except ValidationError as error:
        raise InvalidInput(document.problems(error, Script)) from None
    raise_problems(_faults(script, document))
    return script


def _faults(script: Script, document: Document) -> Iterator[Problem]:
    """What the fields alone don't show: names told twice, results that nothing brings, unknown placeholders."""
    for role, steps in script.root.items():
        names = [step.name for step in steps]
        for number, step in enumerate(steps):
            at: yamlfile.Field = (role, number)
            if step.name in names[:number]:
                yield document.problem((*at, "name"), f"{step.name!r} names an earlier step too", "name each step once")
            if step.on == "result" and (number == 0 or not steps[number - 1].calls_tools):
                what = "waits for results, but no step before it calls a tool"
                yield document.problem((*at, "on"), what, "use `on: message`")
            for found in sorted(set(_placeholders(document.data[role][number]))):
                if found not in PLACEHOLDERS and not EVENT_WITH.fullmatch(found):
                    yield document.problem(at, f"{found!r} is no placeholder", f"known are {', '.join(PLACEHOLDERS)}")


def _unknown(script: Script, document: Document, known: Known) -> Iterator[Problem]:
    """Mentions of nobody and calls of no tool: the model would only be told so, in the middle of a trial."""
    for role, steps in script.root.items():
        if known.parts is not None and role not in known.parts:
            continue
        for number, step in enumerate(steps):
            for place, item in enumerate(step.do):
                at: yamlfile.Field = (role, number, "do", place)
                for name in item.send.mention if item.send else ():
                    if not PLACEHOLDER.search(name) and name.removeprefix("@") not in known.people:
                        yield document.problem(
                            (*at, "send", "mention"), f"nobody is called {name!r}", _of(known.people)
                        )
                for name in item.tool or ():
                    if known.tools is not None and name not in known.tools:
                        fix = did_you_mean(name, known.tools) or _of(known.tools)
                        yield document.problem((*at, "tool"), f"there is no tool {name!r}", fix)


def _of(names: Collection[str]) -> str:
    return f"there are {', '.join(sorted(names))}"


def _placeholders(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _placeholders(part)
    elif isinstance(value, list):
        for part in value:
            yield from _placeholders(part)


class _Loader(yamlfile.LOADER):  # type: ignore[misc,valid-type]
    """YAML in which `on` is a word, not a boolean."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
