"""What a Dockerfile asks for, as far as it can be had without an image: pure, nothing is read or run.

WORKDIR, ENV, COPY, ADD of plain files, and RUN are honoured. FROM, CMD, LABEL and EXPOSE say nothing that a sandbox
could do, and are passed over: the userland is the host's. Everything else is refused by name, as is what can't work.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bench.sandbox.layout import read_only
from bench.sandbox.words import Unsupported, split, word

_PASSED_OVER = {"CMD", "LABEL", "EXPOSE"}
_REASONS = {
    "ARG": "build arguments aren't supported",
    "USER": "root is the only user there",
    "SHELL": "RUN goes through /bin/sh",
}
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[^<\s]+")
_URL = re.compile(r"^(?:https?|ftp|git|ssh)://|^git@")
_ARCHIVE = re.compile(r"\.(?:tar(?:\.\w+)?|t[gbx]z2?|tzst)$")
_INSTALLS = re.compile(r"(?:^|[\s;&|(])(?:apt-get|apt|apk|yum|dnf|microdnf|zypper|pacman)\s")


@dataclass(frozen=True)
class Directory:
    """Make a directory, if it is missing."""

    path: str


@dataclass(frozen=True)
class Copy:
    """Copy from the context. `into` says that the target is a directory to copy into, by how it was written."""

    sources: tuple[str, ...]
    target: str
    into: bool


@dataclass(frozen=True)
class Run:
    """Run a command line with /bin/sh."""

    line: int
    command: str
    cwd: str
    environ: Mapping[str, str]


Step = Directory | Copy | Run


@dataclass(frozen=True)
class Dockerfile:
    """The steps in order, and what holds for every later command. `problems` are sentences, with their lines."""

    steps: tuple[Step, ...] = ()
    workdir: str = "/"
    environ: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def parse(text: str, base: Mapping[str, str]) -> Dockerfile:
    """Read a Dockerfile. `base` is the environment that the image would bring, for `ENV PATH=/x:$PATH`."""
    reader = _Reader(base)
    for number, line in _lines(text, reader.problems):
        reader.take(number, line)
    return Dockerfile(tuple(reader.steps), reader.workdir, reader.environ, tuple(reader.problems))


class _Reader:
    def __init__(self, base: Mapping[str, str]) -> None:
        self.base = base
        self.steps: list[Step] = []
        self.workdir = "/"
        self.environ: dict[str, str] = {}
        self.problems: list[str] = []
        self.stages = 0

    def take(self, number: int, line: str) -> None:
        name, _, rest = line.partition(" ") if " " in line else line.partition("\t")
        name, rest = name.upper(), rest.strip()
        try:
            self._instruction(number, name, rest)
        except Unsupported as error:
            self.problems.append(f"line {number}: {name}: {error}")

    def _instruction(self, number: int, name: str, rest: str) -> None:
        if name == "FROM":
            self.stages += 1
            if self.stages > 1:
                raise Unsupported("a second stage isn't supported")
        elif name == "WORKDIR":
            self.workdir = posixpath.normpath(posixpath.join(self.workdir, self._word(rest)))
            self.steps.append(Directory(_writable(self.workdir)))
        elif name == "ENV":
            self.environ |= self._pairs(rest)
        elif name in ("COPY", "ADD"):
            self.steps.append(self._copy(name, rest))
        elif name == "RUN":
            self.steps.append(self._run(number, rest))
        elif name not in _PASSED_OVER:
            raise Unsupported(_REASONS.get(name, "isn't supported"))

    def _word(self, text: str) -> str:
        return word(text, {**self.base, **self.environ})

    def _words(self, text: str) -> list[str]:
        return split(text, {**self.base, **self.environ})

    def _pairs(self, rest: str) -> dict[str, str]:
        name, _, value = rest.partition(" ")
        if "=" not in name:
            return {name: self._word(value.strip())}
        pairs = [pair.partition("=") for pair in self._words(rest)]
        if bad := next((pair[0] for pair in pairs if not pair[1]), None):
            raise Unsupported(f"{bad} has no value")
        return {name: value for name, _, value in pairs}

    def _copy(self, name: str, rest: str) -> Copy:
        rest = _plain(rest)
        words = [self._word(item) for item in _json(rest)] if rest.startswith("[") else self._words(rest)
        if len(words) < 2:
            raise Unsupported("needs a source and a target")
        *sources, target = words
        for source in sources:
            if name == "ADD" and (_URL.search(source) or _ARCHIVE.search(source)):
                raise Unsupported(f"{source}: only plain files of the task can be added")
            if posixpath.normpath(source).split("/")[0] == "..":
                raise Unsupported(f"{source} lies outside the task's environment directory")
        path = posixpath.normpath(posixpath.join(self.workdir, target))
        into = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
        inside = tuple(posixpath.normpath(source.lstrip("/") or ".") for source in sources)
        return Copy(inside, _writable(path), into)

    def _run(self, number: int, rest: str) -> Run:
        rest = _plain(rest)
        command = shlex.join(_json(rest)) if rest.startswith("[") else rest
        if installer := _INSTALLS.search(command):
            name = installer.group().strip(" \t\n;&|(")
            raise Unsupported(f"{name} can't install anything: /usr is the host's, read-only")
        return Run(number, command, self.workdir, dict(self.environ))


def _plain(rest: str) -> str:
    """The rest of an instruction, sure to have no flags and no heredoc."""
    if flag := re.match(r"--[\w-]+", rest):
        raise Unsupported(f"{flag.group()} isn't supported")
    if _HEREDOC.search(rest):
        raise Unsupported("a heredoc isn't supported")
    return rest


def _writable(path: str) -> str:
    if read_only(path):
        raise Unsupported(f"{path} can't be written: it is the host's, read-only")
    return path


def _json(text: str) -> list[str]:
    try:
        items = json.loads(text)
    except ValueError:
        raise Unsupported(f"{text} is no list in JSON") from None
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        raise Unsupported(f"{text} is no list of strings")
    return items


def _lines(text: str, problems: list[str]) -> Iterator[tuple[int, str]]:
    """Instructions, each on one line, with the number of its first; comments and blank lines within are dropped."""
    pending, first = "", 0
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            if re.match(r"#\s*escape\s*=\s*`", line, re.IGNORECASE) and number == 1:
                problems.append("line 1: another escape character isn't supported")
            continue
        first = first or number
        continued = line.endswith("\\")
        pending += raw.rstrip()[:-1] if continued else raw.rstrip()
        if not continued:
            yield first, pending.strip()
            pending, first = "", 0
    if pending.strip():
        yield first, pending.strip()
