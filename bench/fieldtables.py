"""Tables of the fields that people write, and a schema for their editors, from what reads those files. Pure.

After a line `<!-- fields: MODULE:NAME -->` a text holds the table of what the name stands for: a model of pydantic's,
a mapping of fields to `wording.Described`, the settings, or the tools of an agent.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from bench.harness.toolspecs import Tool
from bench.reading import wording
from bench.settings import ENVIRONMENT, ROOT, Settings

BLOCK = re.compile(r"(<!-- fields: ([\w.]+):(\w+) -->\n)(?:\|.*\n)*")

KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}

type Schema = Mapping[str, Any]


def generated(text: str) -> str:
    """The text with the table after each such line renewed. Raises AttributeError and ImportError for another name."""

    def renewed(block: re.Match[str]) -> str:
        return block[1] + table(getattr(importlib.import_module(block[2]), block[3]))

    return BLOCK.sub(renewed, text)


def table(subject: Any) -> str:
    """The table of a model, of described fields, of the settings or of tools, in Markdown."""
    if subject is Settings:
        return _markdown(("in invoke.yaml", "variable", "by default", "what it is"), _settings())
    if isinstance(subject, Mapping):
        rows = ((f"`{name}`", *told) for name, told in subject.items())
        return _markdown(("field", "takes", "by default", "what it is"), rows)
    if isinstance(subject, Sequence):
        return _markdown(("tool", "input", "what it does"), (_tool(tool) for tool in subject))
    return _markdown(("field", "takes", "by default", "what it is"), _rows(subject.model_json_schema()))


def manifest_schema() -> str:
    """The JSON schema of a manifest, for editors. It has the short names of prices only, and no empty fields."""
    from bench.manifest.schema import Manifest

    schema = _without_noise(Manifest.model_json_schema())
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _settings() -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(Settings, include_extras=True)
    for name, variable in ENVIRONMENT.items():
        default = getattr(Settings, name)
        if isinstance(default, Path):
            default = str(default.relative_to(ROOT))
        yield f"`{name}`", f"`{variable}`", _default(default), hints[name].__metadata__[0]


def _without_noise(value: Any) -> Any:
    """Without titles that only repeat a name, and without the choice of nothing: an editor would offer both."""
    if isinstance(value, list):
        return [_without_noise(part) for part in value]
    if not isinstance(value, dict):
        return value
    kept = {k: _without_noise(part) for k, part in value.items() if not (k == "title" and isinstance(part, str))}
    if kept.get("default", ...) is None:
        del kept["default"]
    given = [part for part in kept.get("anyOf", []) if part != {"type": "null"}]
    if "anyOf" in kept and len(given) == 1:
        del kept["anyOf"]
        kept = given[0] | kept
    return kept


def _rows(model: Schema) -> Iterator[tuple[str, ...]]:
    kinds = model.get("$defs", {})
    for name, field in model["properties"].items():
        assert "description" in field, f"{model.get('title')}.{name} has no description"
        default = field.get("default")
        shown = "needed" if name in model.get("required", ()) else _default(default)
        yield f"`{name}`", _takes(field, kinds), shown, field["description"]


def _default(value: Any) -> str:
    """A default as people would write it; of what is empty, or made of parts, nothing."""
    return "" if value in (None, [], {}) or isinstance(value, dict) else _written(value)


def _written(value: Any) -> str:
    """A value as it stands in YAML: only a text that would be a number has quotes."""
    return f"`{value}`" if isinstance(value, str) and not value.isdigit() else f"`{json.dumps(value)}`"


def _takes(field: Schema, kinds: Schema) -> str:
    """What a field takes, its bounds among that."""
    field = _resolved(field, kinds)
    if "enum" in field or "const" in field:
        return ", ".join(_written(value) for value in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        return " or ".join(_takes(part, kinds) for part in field["anyOf"] if part.get("type") != "null")
    match field.get("type"):
        case "array":
            return f"list{_size(field)} of {_takes(field['items'], kinds)}"
        case "object" if "properties" in field:
            return "fields"
        case "object" if isinstance(field.get("additionalProperties"), Mapping):
            return f"mapping of names to {_takes(field['additionalProperties'], kinds)}"
        case "object":
            return "mapping"
        case "string" if field.get("format") == "date":
            return "date"
        case "string" if form := wording.FORMS.get(field.get("pattern", "")):
            return form.removeprefix("no ") + _most(field)
        case "string":
            return KINDS["string"] + _most(field)
        case [kind, *_] | kind:
            return KINDS[str(kind)] + _bounds(field)


def _resolved(field: Schema, kinds: Schema) -> Schema:
    while "$ref" in field:
        field = kinds[field["$ref"].rpartition("/")[2]]
    return field


def _size(field: Schema) -> str:
    least, most = field.get("minItems"), field.get("maxItems")
    if least and least == most:
        return f" ({least})"
    return f" ({least} or more)" if least else ""


def _most(field: Schema) -> str:
    return f", at most {field['maxLength']} characters" if "maxLength" in field else ""


def _bounds(field: Schema) -> str:
    least, above, most = field.get("minimum"), field.get("exclusiveMinimum"), field.get("maximum")
    if above is not None:
        return f" above {above:,}, at most {most:,}"
    return "" if least is None else f", {least:,} to {most:,}"


def _tool(tool: Tool) -> tuple[str, ...]:
    needed = tool.parameters["required"]
    inputs = (f"`{name}`" + ("" if name in needed else "?") for name in tool.parameters["properties"])
    return f"`{tool.name}`", ", ".join(inputs), tool.description


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
