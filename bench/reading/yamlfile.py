"""YAML and JSON that people write, read strictly: a value's line is known, and a key given twice is an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bench import faults
from bench.errors import InvalidInput, Problem, raise_problems
from bench.nearest import did_you_mean
from bench.reading import textfile, wording

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

type Field = wording.Field

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: a tenth of the time."""

MOST_VALUES = 1_000_000
"""What a file may unfold to: aliases of aliases double with each line."""

TEXT = "tag:yaml.org,2002:str"
"""The tag of scalars that are what is written, so that nothing has to be made of them."""

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

    def problems(self, error: ValidationError, form: type[BaseModel] | None = None) -> Iterator[Problem]:
        """What pydantic says of the data, in our words, one for each place; with `form`, also which field was meant."""
        for field, what in wording.by_place(self.data, error.errors(include_url=False)).items():
            known = wording.fields_beside(field, form) if form and what == wording.UNKNOWN_FIELD else []
            yield self.problem(field, what, did_you_mean(str(field[-1]), known) if known else "")


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
            walk = _Walk(shown, reader)
            size, depth = walk.node(root, ())
            raise_problems(walk.problems)
            if depth > textfile.MOST_DEPTH:
                raise InvalidInput.of(shown, f"this {what} {textfile.TOO_DEEP}")
            if size > MOST_VALUES:
                raise InvalidInput.of(shown, f"this {what} unfolds to more than {MOST_VALUES:,} values")
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
    return Document(shown, data, walk.lines)


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
    try:
        # No tab is inside a text: there JSON has it escaped.
        root = yaml.compose(text.replace("\t", " "), Loader=LOADER)
    except yaml.YAMLError:
        return Document(shown, data, {})
    assert root is not None
    walk = _Walk(shown)
    walk.node(root, ())
    raise_problems(walk.problems)
    return Document(shown, data, walk.lines)


class _Walk:
    """Where each value of a text stands, and the faults of how it is written; `reader` makes values of scalars.

    Without one, they are taken as they are.
    """

    def __init__(self, shown: str, reader: Any = None) -> None:
        self.shown, self.reader = shown, reader
        self.lines: dict[Field, int] = {}
        self.problems: list[Problem] = []
        self._measured: dict[int, tuple[int, int]] = {}
        self._within: set[int] = set()

    def node(self, node: yaml.Node, at: Field) -> tuple[int, int]:
        """Look at all that is in a node. How many values it unfolds to, aliases (`*name`) followed, and how deep."""
        line = node.start_mark.line + 1
        self.lines.setdefault(at, line)
        # An alias repeats a node: what is in it has been seen already, and one that holds itself has no end.
        known = id(node)
        if known in self._within:
            self.problems.append(Problem(f"{self.shown}:{line}", f"{dotted(at)}: refers to itself"))
            return 1, 1
        if known not in self._measured:
            if isinstance(node, yaml.ScalarNode):
                self._scalar(node, at)
                self._measured[known] = 1, 1
            else:
                self._within.add(known)
                inner = [*(self._items if isinstance(node, yaml.SequenceNode) else self._fields)(node, at)]
                self._within.remove(known)
                self._measured[known] = (
                    1 + sum(size for size, _ in inner),
                    1 + max((deep for _, deep in inner), default=0),
                )
        return self._measured[known]

    def _items(self, node: yaml.Node, at: Field) -> Iterator[tuple[int, int]]:
        for number, item in enumerate(node.value):
            yield self.node(item, (*at, number))

    def _fields(self, node: yaml.Node, at: Field) -> Iterator[tuple[int, int]]:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            field = (*at, key)
            if key in seen:
                what = f"{dotted(field)}: given twice, first on line {seen[key]}"
                self.problems.append(Problem(f"{self.shown}:{line}", what))
            seen[key] = self.lines[field] = line
            told = len(self.problems)
            yield self.node(key_node, field)
            if not isinstance(key_node, yaml.ScalarNode):
                del self.problems[told:]  # That such a thing is no key is said when values are made.
            yield self.node(value_node, field)

    def _scalar(self, node: yaml.ScalarNode, at: Field) -> None:
        """A scalar that is not what its tag or its form says: an impossible date, a number of thousands of digits."""
        if self.reader is None:
            return
        value = node.value
        if node.tag != TEXT:
            try:
                value = self.reader.construct_object(node)
                if textfile.is_too_long(value):
                    raise OverflowError(node.value)
            except yaml.MarkedYAMLError:
                raise
            except (ArithmeticError, AttributeError, LookupError, ValueError):
                # PyYAML lets through whatever Python's own types say of the text.
                tag = node.tag.rpartition(":")[2]
                self._fault(node, at, f"{wording.shown(node.value)} is {SCALARS.get(tag, f'no {tag}')}")
                return
        if isinstance(value, str) and textfile.has_half(value):
            self._fault(node, at, textfile.NO_CHARACTER)

    def _fault(self, node: yaml.Node, at: Field, what: str) -> None:
        where = f"{self.shown}:{node.start_mark.line + 1}"
        self.problems.append(Problem(where, f"{dotted(at)}: {what}" if at else what))
