"""TOML that people write, with the line of each field. `tomllib` keeps none, so that they are found in the text."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bench.errors import InvalidInput
from bench.reading import textfile, yamlfile
from bench.reading.yamlfile import Document, Field

_NAME = r"[\w.\"' -]+?"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_NAME})\s*\]")
_KEY = re.compile(rf"\s*({_NAME})\s*=")


class TomlDocument(Document):
    """A file's data and where each field stands."""

    def written(self, field: Field) -> str:
        """A field as people write it: `[environment].cpus`, and `steps[0].agent.timeout_sec` of a list."""
        text = yamlfile.dotted(field)
        if len(field) > 1 and all(isinstance(part, str) for part in field):
            table, _, key = text.rpartition(".")
            return f"[{table}].{key}"
        return text


def read(path: Path, *, shown: str) -> TomlDocument:
    """The data in a TOML file, as `parse` gives it. Raises InvalidInput also where the file can't be read."""
    return parse(textfile.text(path, what=path.name, where=shown), shown=shown)


def parse(text: str, *, shown: str) -> TomlDocument:
    """The data in a TOML text; `shown` is the path as messages name it. Raises InvalidInput with a fault's line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise InvalidInput.of(f"{shown}:{line[1]}" if line else shown, f"not valid TOML: {reason}") from None
    except RecursionError:
        raise InvalidInput.of(shown, f"this TOML {textfile.TOO_DEEP}") from None
    except ValueError:
        raise InvalidInput.of(shown, f"this TOML {textfile.TOO_LONG_A_NUMBER}") from None
    if fault := textfile.fault(data):
        raise InvalidInput.of(shown, f"this TOML {fault}")
    return TomlDocument(shown, data, _lines(text))


def _lines(text: str) -> dict[Field, int]:
    """The line of each table and key.

    >>> _lines('[task]\\nname = "a/b"\\n[[steps]]\\n[steps.agent]\\nuser = 1')[("steps", 0, "agent", "user")]
    5
    """
    lines: dict[Field, int] = {}
    table: Field = ()
    last: dict[Field, int] = {}
    within = ""  # the quotes of a text that goes over several lines
    quotes = [mark for mark in ('"""', "'''") if mark in text]
    for number, line in enumerate(text.splitlines(), 1):
        if within:
            within = "" if within in line else within
            continue
        if found := _TABLE.match(line):
            table = _way(found[2], last)
            if found[1] == "[[":
                last[table] = last.get(table, -1) + 1
                table = (*table, last[table])
            lines.setdefault(table, number)
        elif found := _KEY.match(line):
            lines.setdefault((*table, *_parts(found[1])), number)
        within = next((mark for mark in quotes if line.count(mark) % 2), "")
    return lines


def _way(name: str, last: dict[Field, int]) -> Field:
    """The way to a table: one below a list of tables is of the list's last."""
    way: Field = ()
    for part in _parts(name):
        if way in last:
            way = (*way, last[way])
        way = (*way, part)
    return way


def _parts(name: str) -> list[str]:
    return [part.strip(" \"'") for part in name.split(".")]
