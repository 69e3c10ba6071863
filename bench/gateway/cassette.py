"""A cassette: the model calls of one job as a file of JSON lines that people can read and compare.

    {"schema": "buzzbench-cassette-1", "job": …, "condition": …, "endpoints": {name: dialect}, …}
    {"call": {"task": "buzz/hello", "attempt": 1, "agent": "orch", "number": 1}, "request": {…}, "answer": {…}}
    {"time": {"task": "buzz/hello", "attempt": 1, "agent": "orch", "number": 1}, "asked": 1, "answered": 2, …}

A request holds what is new in it: `keep` is how many messages it shares with the agent's request before, `set` and
`drop` are its other fields that changed. What differs between any two runs is named (bench.gateway.normalise) or lies
in the `time` lines, which come last in a finished file: two recordings of the same are the same down to those.

`asked` and `answered` number what happened in a trial, all agents together; `answer` null is a call that nobody
answered before its trial ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from bench import faults
from bench.endpoints import Dialect, Endpoint
from bench.errors import InvalidInput, Problem, raise_problems
from bench.reading import textfile
from bench.reading.wording import shown

SCHEMA = "buzzbench-cassette-1"
FILE_NAME = "buzzbench-cassette.jsonl"
ANEW = "record it anew with --record"
MOST_BYTES = 4096 * textfile.MIB
"""It is read whole; a job of a thousand attempts leaves some hundred MiB."""
ADDRESS = {"task": str, "attempt": int, "agent": str, "number": int}
HEADER = {"job": str, "condition": str, "condition_sha256": str, "endpoints": dict}
CONVERSATIONS = ("messages", "input")
"""The field of a request that holds its conversation: `input` in OpenAI's Responses."""


@dataclass(frozen=True)
class Header:
    """What was recorded. `rehearsal` is the script's name where no model was asked."""

    job: str
    condition: str
    condition_sha256: str
    rehearsal: str | None
    endpoints: Mapping[str, Dialect]


@dataclass(frozen=True, order=True)
class Address:
    """One call: the `number`th of an agent in an attempt at a task, each counted from 1."""

    task: str
    attempt: int
    agent: str
    number: int

    def __str__(self) -> str:
        return f"call {self.number} of {self.agent} in attempt {self.attempt} at {self.task}"


@dataclass(frozen=True)
class Answer:
    """What the agent got, with names for values. The body is `json`, `text`, or `chunks`: the events of a stream.

    `failed` says why no answer came from the upstream, or why it broke off; `failed_status` is the gateway's for that,
    and `sent` whether the call may have been billed all the same.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    text: str | None = None
    chunks: tuple[str, ...] | None = None
    failed: str | None = None
    failed_status: int | None = None
    sent: bool = False


@dataclass(frozen=True)
class Timing:
    """When a call happened: its places in the order of its trial's events, and milliseconds.

    `trial` is the trial's name in the job that was recorded. `asked_ms` counts from the trial's first call, the
    others from when this call was asked. `chunks_ms` is when each event of a stream was whole.
    """

    asked: int
    answered: int | None = None
    trial: str = ""
    asked_ms: float = 0.0
    first_byte_ms: float | None = None
    total_ms: float | None = None
    chunks_ms: tuple[float, ...] = ()


@dataclass(frozen=True)
class Call:
    """One recorded call. `request` is whole."""

    address: Address
    request: Mapping[str, Any]
    answer: Answer | None
    timing: Timing


@dataclass(frozen=True)
class Cassette:
    """A whole cassette. `sha256` is the file's."""

    header: Header
    calls: tuple[Call, ...]
    sha256: str

    @property
    def attempts(self) -> dict[str, int]:
        """How many attempts there are at each task."""
        counts: dict[str, int] = {}
        for call in self.calls:
            address = call.address
            counts[address.task] = max(counts.get(address.task, 0), address.attempt)
        return counts

    def trial(self, task: str, attempt: int) -> tuple[Call, ...]:
        """The calls of one attempt, each agent's in order."""
        found = [c for c in self.calls if (c.address.task, c.address.attempt) == (task, attempt)]
        return tuple(sorted(found, key=lambda call: call.address))


def header_line(header: Header) -> bytes:
    return line({"schema": SCHEMA, **asdict(header)})


def call_line(address: Address, request: Mapping[str, Any], answer: Answer | None) -> bytes:
    """`request` as `difference` gives it."""
    given = None if answer is None else {k: v for k, v in asdict(answer).items() if v not in (None, False, {})}
    return line({"call": asdict(address), "request": request, "answer": given})


def time_line(address: Address, timing: Timing) -> bytes:
    given = {name: value for name, value in asdict(timing).items() if value not in (None, ())}
    return line({"time": asdict(address), **given})


def difference(before: Mapping[str, Any] | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as what is new in it against the agent's request before; `whole` undoes it."""
    before = before or {}
    name = conversation_of(request)
    messages, known = request[name], before.get(name) or []
    keep = 0
    while keep < min(len(messages), len(known)) and messages[keep] == known[keep]:
        keep += 1
    changed = {k: v for k, v in request.items() if k != name and (k not in before or before[k] != v)}
    dropped = [k for k in before if k not in request]
    return {"keep": keep, name: messages[keep:]} | _some(set=changed, drop=dropped)


def whole(before: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """The request that `difference` was given. Raises KeyError or TypeError for what is none."""
    before = before or {}
    name = next(name for name in CONVERSATIONS if name in new)
    dropped = {name, *new.get("drop", ())}
    request: dict[str, Any] = {k: v for k, v in before.items() if k not in dropped} | new.get("set", {})
    return request | {name: [*(before.get(name) or [])[: new["keep"]], *new[name]]}


def conversation_of(request: Mapping[str, Any]) -> str:
    """The name of the field that holds the conversation."""
    return next((name for name in CONVERSATIONS if isinstance(request.get(name), list)), CONVERSATIONS[0])


def read(path: Path) -> Cassette:
    """The cassette in a file. Raises InvalidInput naming the line that is wrong."""
    data = read_bytes(path)
    lines = [line for line in enumerate(data.splitlines(), 1) if line[1].strip()]
    header = _header(path, lines[0][1] if lines else b"")
    calls = tuple(_calls(path, lines[1:]))
    return Cassette(header, calls, hashlib.sha256(data).hexdigest())


def read_header(path: Path) -> Header:
    """A cassette's header alone. Raises InvalidInput."""
    return _header(path, read_bytes(path).partition(b"\n")[0])


def read_bytes(path: Path) -> bytes:
    """A cassette's file. Raises InvalidInput."""
    return textfile.data(path, what="cassette", most_bytes=MOST_BYTES)


def _header(path: Path, line: bytes) -> Header:
    try:
        given = orjson.loads(line)
        schema = given.pop("schema")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise InvalidInput.of(str(path), "is no cassette: its first line has no `schema`") from None
    if schema != SCHEMA:
        version = schema if isinstance(schema, str) else shown(schema)
        raise InvalidInput.of(
            str(path),
            f"is a cassette of another version: {version}, not {SCHEMA}",
            ANEW,
        )
    if missing := [name for name in Header.__dataclass_fields__ if name not in given]:
        raise InvalidInput.of(f"{path}:1", f"the cassette's header lacks {', '.join(missing)}", ANEW)
    if wrong := [name for name, kind in HEADER.items() if not isinstance(given[name], kind)]:
        raise InvalidInput.of(f"{path}:1", f"the cassette's header has a wrong {', '.join(wrong)}", ANEW)
    return Header(**{name: given[name] for name in Header.__dataclass_fields__})


def _calls(path: Path, lines: Iterable[tuple[int, bytes]]) -> Iterator[Call]:
    times: dict[Address, Timing] = {}
    told: dict[Address, tuple[dict[str, Any], Answer | None]] = {}
    for number, text in lines:
        try:
            given = orjson.loads(text)
            if "time" in given:
                timing = Timing(**{name: given[name] for name in Timing.__dataclass_fields__ if name in given})
                times[_address(given["time"])] = replace(timing, chunks_ms=tuple(timing.chunks_ms))
            else:
                told[_address(given["call"])] = given["request"], _answer(given["answer"])
        except orjson.JSONDecodeError:
            raise InvalidInput.of(f"{path}:{number}", "no line of a cassette: it is no JSON", ANEW) from None
        except KeyError as error:
            what = f"no line of a cassette: it lacks {error.args[0]}"
            raise InvalidInput.of(f"{path}:{number}", what, ANEW) from None
        except (TypeError, AttributeError):
            what = "no line of a cassette: a field of it is missing, unknown or of another kind"
            raise InvalidInput.of(f"{path}:{number}", what, ANEW) from None
    requests: dict[Address, dict[str, Any]] = {}
    for address, (new, answer) in sorted(told.items(), key=lambda item: item[0]):
        before = replace(address, number=address.number - 1)
        if address not in times:
            raise InvalidInput.of(str(path), f"{address} has no line with its times", ANEW)
        if before.number and before not in requests:
            raise InvalidInput.of(str(path), f"{address} is there, but not the one before it", ANEW)
        try:
            timing = times[address]
            requests[address] = request = whole(requests[before] if before.number else None, new)
        except (KeyError, TypeError, StopIteration):
            raise InvalidInput.of(str(path), f"{address} has an incomplete request", ANEW) from None
        yield Call(address, request, answer, timing)


def _address(given: dict[str, Any]) -> Address:
    """Raises TypeError for what is none."""
    address = Address(**given)
    if not all(type(getattr(address, name)) is kind for name, kind in ADDRESS.items()):
        raise TypeError
    return address


def _answer(given: dict[str, Any] | None) -> Answer | None:
    if given is None:
        return None
    chunks = given.pop("chunks", None)
    return Answer(**given, chunks=None if chunks is None else tuple(chunks))


def line(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def endpoints_of(names: Collection[str], path: Path) -> dict[str, Endpoint]:
    """The endpoints that a roster names, as a cassette plays them. Raises InvalidInput; needs no key and no file."""
    header = read_header(path)
    known, rehearsed = header.endpoints, header.rehearsal is not None
    listed = ", ".join(sorted(known))
    raise_problems(
        Problem(faults.shown(path), f"no endpoint {name}, which the manifest names; recorded were {listed}")
        for name in names
        if name not in known
    )
    return {name: Endpoint(name, "replay", known[name], None, rehearsed=rehearsed) for name in names}
