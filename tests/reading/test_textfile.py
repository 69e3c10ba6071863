"""Files that people name: whatever they are, reading one ends at once, in its data or in one clear line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import endpoints, manifest, useranswers
from bench.errors import InvalidInput
from bench.gateway import cassette, script
from bench.manifest import pricesheet
from bench.planning import dataset
from bench.reading import jsonfile, textfile, tomlfile, yamlfile

READERS: dict[str, Callable[[Path], Any]] = {
    "manifest": manifest.load,
    "price sheet": pricesheet.load,
    "endpoint file": endpoints.load,
    "script": script.load_file,
    "cassette": cassette.read,
    "task.toml": lambda path: tomlfile.read(path, shown=str(path)),
    "Buzzbench's own JSON": lambda path: jsonfile.read(path, fix="restore it"),
}


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _directory(path: Path) -> None:
    path.mkdir()


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(8192 * textfile.MIB)


def _latin(path: Path) -> None:
    path.write_bytes(b"a: 1\nb: \xe9\n")


def _deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def _empty(path: Path) -> None:
    path.touch()


KINDS = [
    (_fifo, "is a pipe or a device, no "),
    (_device, "is a pipe or a device, no "),
    (_directory, "is a directory, no "),
    (_huge, " has more than "),
]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("make", "said"), KINDS)
def test_what_is_no_file_of_a_sensible_size_is_refused_and_never_waited_for(
    tmp_path: Path, name: str, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / "f")
    assert said in _refused(READERS[name], tmp_path / "f")


@pytest.mark.parametrize(
    ("name", "make"), [(name, make) for name in READERS for make in (_latin, _deep, _empty) if name != "task.toml"]
)
def test_what_is_no_text_or_nests_without_end_is_one_line_without_a_word_of_python(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "f")
    said = _refused(READERS[name], tmp_path / "f")
    assert not any(word in said for word in ("Error", "codec", "recursion", "set_int_max"))


def test_what_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    _latin(tmp_path / "f")
    assert _refused(manifest.load, tmp_path / "f").endswith("f:2: this manifest is not UTF-8 text")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2024-13-45", "f:2: b: '2024-13-45' is no date that there is"),
        ("2024-02-30: 1", "f:1: 2024-02-30: '2024-02-30' is no date that there is"),
        ("a: !!timestamp x", "f:1: a: 'x' is no date that there is"),
        ("a: !!int x", "f:1: a: 'x' is no whole number, or one of too many digits"),
        ("a: !!int ''", "f:1: a: '' is no whole number, or one of too many digits"),
        ("a: !!float x", "f:1: a: 'x' is no number"),
        ("a: !!bool x", "f:1: a: 'x' is neither true nor false"),
        ("a: [" + "9" * 5000 + "]", f"f:1: a[0]: '{'9' * 80}'… is no whole number, or one of too many digits"),
        ("a: " + "9" * 101, f"f:1: a: '{'9' * 80}'… is no whole number, or one of too many digits"),
        ("a: " + "[" * 60 + "]" * 60, "f: this manifest is nested more than 50 times"),
        ("a: " + "[" * 990 + "]" * 990, "f: this manifest is nested more than 50 times"),
        ("", "f: this manifest is empty"),
        ("# nothing\n", "f: this manifest is empty"),
        ("- a", "f: this manifest is no mapping of fields to values"),
    ],
)
def test_yaml_that_python_would_stumble_over_is_told_with_its_line(text: str, said: str) -> None:
    assert _refused(lambda _: yamlfile.parse(text, shown="f", what="manifest"), Path()) == said


def test_aliases_of_aliases_are_refused_before_they_fill_the_memory() -> None:
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]" for n in range(20)]
    text = "\n".join(lines)
    said = _refused(lambda _: yamlfile.parse(text, shown="f", what="manifest"), Path())
    assert said == "f: this manifest unfolds to more than 1,000,000 values"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": "http://\\ud800"}', "f: this endpoint file holds half a character, such as \\ud800"),
        ('{"a": ' + "9" * 5000 + "}", "f: this endpoint file has a number of more than 100 digits"),
        ('{"a": ' * 60 + "1" + "}" * 60, "f: this endpoint file is nested more than 50 times"),
    ],
)
def test_json_that_python_would_stumble_over_is_one_line(text: str, said: str) -> None:
    assert _refused(lambda _: yamlfile.parse_json(text, shown="f", what="endpoint file"), Path()) == said


@pytest.mark.parametrize("value", ["[" * 3000, "9" * 5000, "[" * 60 + "]" * 60, "2024-13-45"])
def test_a_task_toml_that_python_would_stumble_over_is_a_fault_of_the_task(tmp_path: Path, value: str) -> None:
    (tmp_path / "task.toml").write_text(f"a = {value}")
    (task,) = dataset.read(tmp_path, tmp_path / "elsewhere").tasks
    (problem,) = task.problems
    assert str(problem).startswith(f"{tmp_path / 'task.toml'}")


def test_answers_of_a_user_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    _fifo(tmp_path / useranswers.FILE)
    assert "is a pipe or a device" in _refused(useranswers.load, tmp_path)


def _refused(read: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(path)
    (line,) = str(refused.value).splitlines()
    return line
