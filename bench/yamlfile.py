"""YAML and JSON that people write, read strictly: a value's line is known, and a key given twice is an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bench import faults, textfile, wording
from bench.errors import InvalidInput, Problem, raise_problems

if TYPE_CHECKING:
    from pydantic import ValidationError

type Field = wording.Field

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: a tenth of the time."""

MOST_VALUES = 1_000_000
"""What a file may unfold to: aliases of aliases double with each line."""

SCALARS = {
    "int": "no whole number, or one of too many digits",
    "float": "no number",
    "bool": "neither true nor false",
    "timestamp": "no date that there is",
}
"""What a scalar then is, by its tag."""


@dataclass(frozen=True)
class Document:
    """A file's data and where each value stands. `shown` is the path as messages name it."""

    shown: str
    data: Any
    lines: dict[Field, int]

    def problem(self, field: Field, what: str, fix: str = "") -> Problem:
        """A problem of one field, with the file and the line of the value or the nearest thing around it."""
        line = next((self.lines[field[:n]] for n in range(len(field), -1, -1) if field[:n] in self.lines), None)
        where = f"{self.shown}:{line}" if line else self.shown
        return Problem(where, f"{self.written(field)}: {what}" if field else what, fix)

    def written(self, field: Field) -> str:
        """A field as people write it."""
        return dotted(field)

    def problems(self, error: ValidationError) -> Iterator[Problem]:
        """What pydantic says of the data, in our words, one for each place."""
        for field, what in wording.by_place(self.data, error.errors(include_url=False)).items():
            yield self.problem(field, what)


def dotted(field: Field) -> str:
    """The way as people write it: `roster[0].prompt.sha256`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in field).removeprefix(".")


def read(path: Path, *, what: str, parser: Callable[..., Document] | None = None) -> Document:
    """The mapping in a file, `what` naming its kind in messages; `parser` is `parse`, or `parse_json` for JSON alone.

    Raises InvalidInput for a file that can't be read, for broken text (with its line) and for duplicate keys.
    """
    text = textfile.text(path, what=what)
    return (parser or parse)(text, shown=faults.shown(path), what=what)


def parse(text: str, *, shown: str, what: str, loader: Any = LOADER) -> Document:
    """The mapping in a YAML text, as `read` gives it; `loader` is a class of PyYAML's."""
    try:
        reader = loader(text)
        try:
            root = reader.get_single_node()
            if root is None:
                raise InvalidInput.of(shown, f"this {what} is empty")
            if not isinstance(root, yaml.MappingNode):
                raise InvalidInput.of(shown, f"this {what} is no mapping of fields to values")
            # Looked at first: constructing the data rewrites merged mappings (`<<`).
            lines: dict[Field, int] = {}
            raise_problems(_walk(root, (), shown, lines, set(), reader))
            if fault := _measured(root):
                raise InvalidInput.of(shown, f"this {what} {fault}")
            data = reader.construct_document(root)
        finally:
            reader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{shown}:{mark.line + 1}" if mark else shown
        raise InvalidInput.of(where, f"not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InvalidInput.of(shown, f"not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InvalidInput.of(shown, f"this {what} {textfile.TOO_DEEP}") from None
    return Document(shown, data, lines)


def parse_json(text: str, *, shown: str, what: str) -> Document:
    """The object in a JSON text, as `read` gives it.

    JSON is YAML, but for tabs between its parts and for some escapes that nobody needs in such files; where the text
    has one of these, its lines are unknown.
    """
    if not text.strip():
        raise InvalidInput.of(shown, f"this {what} is empty")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput.of(f"{shown}:{error.lineno}", f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise InvalidInput.of(shown, f"this {what} {textfile.TOO_DEEP}") from None
    except ValueError:
        raise InvalidInput.of(shown, f"this {what} {textfile.TOO_LONG_A_NUMBER}") from None
    if fault := textfile.fault(data):
        raise InvalidInput.of(shown, f"this {what} {fault}")
    if not isinstance(data, dict):
        raise InvalidInput.of(shown, f"this {what} is no object of fields and values")
    lines: dict[Field, int] = {}
    try:
        # No tab is inside a text: there JSON has it escaped.
        root = yaml.compose(text.replace("\t", " "), Loader=LOADER)
    except yaml.YAMLError:
        return Document(shown, data, lines)
    assert root is not None
    raise_problems(_walk(root, (), shown, lines, set(), None))
    return Document(shown, data, lines)


def _walk(
    node: yaml.Node,
    at: Field,
    shown: str,
    lines: dict[Field, int],
    walked: set[int],
    reader: Any,
    within: frozenset[int] = frozenset(),
) -> Iterator[Problem]:
    """The faults of what is written, and where each value stands; `reader` makes values of scalars, unless None."""
    line = node.start_mark.line + 1
    lines.setdefault(at, line)
    # An alias (`*name`) repeats a node: its line is known already, and one that holds itself has no end.
    if id(node) in within:
        yield Problem(f"{shown}:{line}", f"{dotted(at)}: refers to itself")
    if id(node) in walked:
        return
    walked.add(id(node))
    within |= {id(node)}
    if isinstance(node, yaml.ScalarNode):
        yield from _scalar_faults(node, at, shown, reader)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _walk(item, (*at, number), shown, lines, walked, reader, within)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in seen:
                yield Problem(f"{shown}:{line}", f"{dotted((*at, key))}: given twice, first on line {seen[key]}")
            seen[key] = line
            lines[(*at, key)] = line
            if isinstance(key_node, yaml.ScalarNode):
                yield from _scalar_faults(key_node, (*at, key), shown, reader)
            yield from _walk(value_node, (*at, key), shown, lines, walked, reader, within)


def _scalar_faults(node: yaml.ScalarNode, at: Field, shown: str, reader: Any) -> Iterator[Problem]:
    """A scalar that is not what its tag or its form says: an impossible date, a number of thousands of digits."""
    if reader is None:
        return
    tag = node.tag.rpartition(":")[2]
    try:
        value = reader.construct_object(node)
        if textfile.is_too_long(value):
            raise OverflowError(node.value)
    except yaml.MarkedYAMLError:
        raise
    except (ArithmeticError, AttributeError, LookupError, ValueError):
        # PyYAML lets through whatever Python's own types say of the text.
        what = f"{wording.shown(node.value)} is {SCALARS.get(tag, f'no {tag}')}"
        yield Problem(f"{shown}:{node.start_mark.line + 1}", f"{dotted(at)}: {what}" if at else what)
        return
    if isinstance(value, str) and textfile.HALF.search(value):
        yield Problem(f"{shown}:{node.start_mark.line + 1}", f"{dotted(at)}: {textfile.NO_CHARACTER}")


def _measured(root: yaml.Node) -> str | None:
    """What is wrong with how much a text unfolds to, its aliases (`*name`) followed, if anything is."""
    known: dict[int, tuple[int, int]] = {}

    def measure(node: yaml.Node) -> tuple[int, int]:
        """How many values it is, and how deep they lie."""
        if id(node) not in known:
            parts = node.value if isinstance(node, yaml.SequenceNode | yaml.MappingNode) else ()
            inner = [measure(n) for part in parts for n in (part if isinstance(part, tuple) else (part,))]
            known[id(node)] = 1 + sum(size for size, _ in inner), 1 + max((depth for _, depth in inner), default=0)
        return known[id(node)]

    size, depth = measure(root)
    if depth > textfile.MOST_DEPTH:
        return textfile.TOO_DEEP
    return f"unfolds to more than {MOST_VALUES:,} values" if size > MOST_VALUES else None
