"""What pydantic finds wrong with a value, in a person's words: `'many' is no whole number`.

Its own words speak of inputs, validation and the types that it tried; ours say what the value is, and what it should
be.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAliasType, get_args, get_origin

from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

type Field = tuple[str | int, ...]
"""The way to a value: `("roster", 0, "prompt")`."""


class Described(NamedTuple):
    """A field that no model of pydantic's reads, for the tables of `bench/fieldtables.py`."""

    takes: str
    default: str
    what: str


UNKNOWN_FIELD = "unknown field"

LONGEST_SHOWN = 80
"""Characters of a value in a message."""

FORMS = {
    r"^[0-9a-f]{64}$": "no SHA-256: 64 hex digits, in lower case",
    r"^[a-z0-9][a-z0-9._-]*$": "no name: lower-case letters, digits, dots, - and _, the first a letter or a digit",
}
"""What a text then is that hasn't the form of a pattern of ours."""

KINDS = {
    "string_type": "no text",
    "int_type": "no whole number",
    "int_parsing": "no whole number",
    "int_from_float": "no whole number",
    "float_type": "no number",
    "float_parsing": "no number",
    "finite_number": "no finite number",
    "bool_type": "neither true nor false",
    "bool_parsing": "neither true nor false",
    "list_type": "no list",
    "tuple_type": "no list",
    "set_type": "no list",
    "dict_type": "no mapping of names to values",
    "mapping_type": "no mapping of names to values",
    "model_type": "no mapping of fields to values",
    "model_attributes_type": "no mapping of fields to values",
    "date_type": "no date, such as 2026-07-01",
    "date_parsing": "no date, such as 2026-07-01",
    "date_from_datetime_parsing": "no date, such as 2026-07-01",
}
"""pydantic's types of errors (its documentation, "Validation Errors"), and what the value then is."""


def said(fault: ErrorDetails) -> str:
    """What is wrong with one value, without its place. What has no words of ours keeps pydantic's."""
    value, context = shown(fault["input"]), fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return UNKNOWN_FIELD
        case "literal_error" | "enum":
            return _unlisted(fault["input"], str(context["expected"]).replace(" or ", ", "))
        case "greater_than":
            return f"{value} is not above {context['gt']}"
        case "greater_than_equal":
            return f"{value} is not at least {context['ge']}"
        case "less_than":
            return f"{value} is not below {context['lt']}"
        case "less_than_equal":
            return f"{value} is not at most {context['le']}"
        case "string_too_short" | "too_short" if context["min_length"] == 1:
            return "is empty"
        case "string_too_short" | "too_short":
            return f"{value} is too short: at least {context['min_length']} are needed"
        case "string_too_long" | "too_long":
            return f"{value} is too long: at most {context['max_length']} are allowed"
        case "string_pattern_mismatch":
            return f"{value} is {FORMS.get(context['pattern'], 'not of the form that is needed')}"
        case "value_error":
            return _lowered(str(context["error"]).rstrip("."))
        case kind if kind in KINDS:
            return f"{value} is {KINDS[kind]}"
        case _:
            return f"{_lowered(fault['msg'])}, not {value}"


def fields_beside(loc: tuple[int | str, ...], whole: type[BaseModel]) -> list[str]:
    """The names of the fields that may stand at the place of the last part of `loc`, in a file of the form `whole`."""
    models = _models(whole)
    for part in loc[:-1]:
        # Numbers of a list's items and names that people chose lead no deeper.
        inner = [model.model_fields[part].annotation for model in models if part in model.model_fields]
        models = [model for annotation in inner for model in _models(annotation)] or models
    return list(dict.fromkeys(name for model in models for name in model.model_fields))


def _models(annotation: Any) -> list[Any]:
    """The models in a type, however it is made of others."""
    if isinstance(annotation, TypeAliasType):
        return _models(annotation.__value__)
    if get_origin(annotation) is Annotated:
        return _models(annotation.__origin__)
    fields = getattr(annotation, "model_fields", None)
    if fields is None:
        return [model for part in get_args(annotation) for model in _models(part)]
    return _models(fields["root"].annotation) if list(fields) == ["root"] else [annotation]


def _unlisted(given: Any, expected: str) -> str:
    """A value that is none of those there are, with the one that was probably meant."""
    if not isinstance(given, str) and f"'{given}'" in expected.split(", "):
        return f'{shown(given)} is no text; write it in quotes: "{given}"'
    near = did_you_mean(given, [name.strip("'") for name in expected.split(", ")]) if isinstance(given, str) else ""
    return f"{shown(given)} is not one of {expected}" + (f"; {near}" if near else "")


def by_place(data: Any, faults: Iterable[ErrorDetails]) -> dict[Field, str]:
    """What is wrong at each place in the data. Where a value may have several forms, it is held against the first."""
    found: dict[Field, str] = {}
    for fault in faults:
        found.setdefault(place(data, fault["loc"]), said(fault))
    return found


def place(data: Any, loc: tuple[int | str, ...]) -> Field:
    """The way to a value in the data, without the names of types that pydantic puts into it.

    >>> place({"steps": [{"reply": 3}]}, ("steps", 0, "reply", "bool"))
    ('steps', 0, 'reply')
    """
    way: list[str | int] = []
    for part in loc:
        inside = part in data if isinstance(data, Mapping) else isinstance(data, list) and isinstance(part, int)
        if not inside and not isinstance(data, Mapping):
            break
        way.append(part)
        data = data[part] if inside else None
    return tuple(way)


def _lowered(sentence: str) -> str:
    """Without its capital letter."""
    return sentence[:1].lower() + sentence[1:]


def shown(value: Any) -> str:
    """A value as people write it in a file: what is long or made of parts, only by its kind.

    >>> shown("many"), shown(True), shown(datetime.date(2026, 7, 1)), shown(None)
    ("'many'", 'true', '2026-07-01', 'nothing')
    """
    match value:
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return f"a list of {len(value)}"
        case bool():
            return str(value).lower()
        case None:
            return "nothing"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case str() if len(value) > LONGEST_SHOWN:
            return f"{value[:LONGEST_SHOWN]!r}…"
        case int() if abs(value) >= 10**LONGEST_SHOWN:
            return "a number of that many digits"
        case bytes():
            return "binary data"
        case _:
            return repr(value)
