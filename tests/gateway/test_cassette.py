"""The file of a cassette: what is written is read, what differs by chance comes last, what is wrong is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import InvalidInput
from bench.gateway import cassette, upkeep
from bench.gateway.cassette import Address, Answer, Header, Timing

HEADER = Header("lb-team", "team", "ab" * 32, None, {"claude": "anthropic"})
ANSWER = Answer(200, {"content-type": "application/json"}, json={"content": [{"type": "text", "text": "ok"}]})


def request(*texts: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], **more}


def lines(
    agent: str, *requests: dict[str, Any], task: str = "t", attempt: int = 1, trial: str = "t__1", asked: int = 1
) -> bytes:
    """An agent's calls, each asked and answered before the next."""
    written, before = b"", None
    for number, asking in enumerate(requests, 1):
        address = Address(task, attempt, agent, number)
        timing = Timing(asked + 2 * number - 2, asked + 2 * number - 1, trial, 1.5 * number, 0.5, 2.0)
        new = cassette.difference(before, asking)
        written += cassette.call_line(address, new, ANSWER) + cassette.time_line(address, timing)
        before = asking
    return written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "buzzbench-cassette.jsonl"


def test_what_is_written_is_read(path: Path) -> None:
    first, second = request("task", tools=["t"]), request("task", "result", tools=["t"], system="s")
    path.write_bytes(cassette.header_line(HEADER) + lines("orch", first, second))
    read = cassette.read(path)
    assert read.header == HEADER
    assert [call.request for call in read.calls] == [first, second]
    assert [call.answer for call in read.calls] == [ANSWER, ANSWER]
    assert read.calls[1].timing == Timing(3, 4, "t__1", 3.0, 0.5, 2.0)
    assert read.attempts == {"t": 1}
    assert cassette.read_header(path) == HEADER


def test_a_request_is_told_by_what_is_new_in_it() -> None:
    before, now = request("task", tools=["t"], user="u"), request("task", "result", tools=["t", "s"])
    new = cassette.difference(before, now)
    assert new == {
        "keep": 1,
        "messages": [{"role": "user", "content": "result"}],
        "set": {"tools": ["t", "s"]},
        "drop": ["user"],
    }


REQUESTS = st.fixed_dictionaries(
    {"messages": st.lists(st.sampled_from([{"role": "user", "content": c} for c in "abc"]), max_size=4)},
    optional={
        "model": st.sampled_from("mn"),
        "tools": st.lists(st.integers(0, 9), max_size=2),
        "max_tokens": st.none(),
    },
)


@given(before=st.none() | REQUESTS, now=REQUESTS)
def test_nothing_of_a_request_is_lost(before: dict[str, Any] | None, now: dict[str, Any]) -> None:
    new = orjson.loads(orjson.dumps(cassette.difference(before, now)))
    assert cassette.whole(before, new) == now


def test_openais_responses_keep_their_conversation_in_input() -> None:
    before, now = {"model": "m", "input": ["a"]}, {"model": "m", "input": ["a", "b"]}
    new = cassette.difference(before, now)
    assert new == {"keep": 1, "input": ["b"]}
    assert cassette.whole(before, new) == now


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {}, json={"a": None}),
        Answer(500, {"content-type": "text/html"}, text="<p>down"),
        Answer(200, {}, chunks=("data: 1\n\n", "data: 2\n\n")),
        Answer(504, failed="api.x sent nothing", sent=True),
        None,
    ],
)
def test_every_kind_of_answer_is_read_back(path: Path, answer: Answer | None) -> None:
    address = Address("t", 1, "orch", 1)
    call = cassette.call_line(address, cassette.difference(None, request("a")), answer)
    path.write_bytes(cassette.header_line(HEADER) + call + cassette.time_line(address, Timing(1, None, "t__1")))
    assert cassette.read(path).calls[0].answer == answer


def test_a_finished_cassette_has_its_calls_in_order_and_its_times_last(path: Path) -> None:
    one, two = lines("worker-1", request("a"), asked=3), lines("orch", request("b"), request("b", "c"))
    path.write_bytes(upkeep.tidied(cassette.header_line(HEADER) + one + two))
    kinds = [next(iter(orjson.loads(line))) for line in path.read_bytes().splitlines()]
    assert kinds == ["schema", "call", "call", "call", "time", "time", "time"]
    assert [str(call.address) for call in cassette.read(path).calls] == [
        "call 1 of orch in attempt 1 at t",
        "call 2 of orch in attempt 1 at t",
        "call 1 of worker-1 in attempt 1 at t",
    ]


def test_two_recordings_of_the_same_differ_in_their_times_alone() -> None:
    """Whoever was first: the lines of the calls are the same, in the same order."""
    orch, worker = request("a"), request("b")
    first = upkeep.tidied(cassette.header_line(HEADER) + lines("orch", orch) + lines("worker-1", worker, asked=3))
    second = upkeep.tidied(cassette.header_line(HEADER) + lines("worker-1", worker) + lines("orch", orch, asked=3))
    differing = set(first.splitlines()) ^ set(second.splitlines())
    assert differing
    assert all(line.startswith(b'{"time"') for line in differing)


def test_of_a_trial_that_was_run_again_only_the_last_attempt_stays() -> None:
    data = cassette.header_line(HEADER)
    data += lines("orch", request("a"), trial="t__1", attempt=1)
    data += lines("orch", request("b"), trial="t__2", attempt=2)
    data += lines("orch", request("c"), trial="t__1", attempt=3)
    kept = [orjson.loads(line) for line in upkeep.tidied(data).splitlines() if line.startswith(b'{"call"')]
    assert [(k["call"]["attempt"], k["request"]["messages"][0]["content"]) for k in kept] == [(1, "b"), (2, "c")]


def test_a_job_that_goes_on_keeps_what_is_still_a_part_of_it_and_what_a_kill_left_whole() -> None:
    torn = lines("orch", request("d"), trial="t__4", attempt=4)
    data = cassette.header_line(HEADER)
    data += lines("orch", request("a"), trial="t__1", attempt=1)
    data += lines("orch", request("b"), trial="t__2", attempt=2)
    data += lines("orch", request("c"), trial="t__3", attempt=3) + torn[: torn.index(b"\n") + 20]
    kept, counts = upkeep.reopened(data, lambda trial: trial != "t__2")
    assert counts == {"t": 2}
    assert kept == cassette.header_line(HEADER) + lines("orch", request("a"), trial="t__1") + lines(
        "orch", request("c"), trial="t__3", attempt=2
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", ": is no cassette: its first line has no `schema`"),
        (b'{"call": 1}\n', ": is no cassette: its first line has no `schema`"),
        (b"\xff\xfe\n", ": is no cassette: its first line has no `schema`"),
        (
            b'{"schema": "buzzbench-cassette-9"}\n',
            ": is a cassette of another version: buzzbench-cassette-9, not buzzbench-cassette-1; record it anew",
        ),
        (b'{"schema": "buzzbench-cassette-1", "job": "j"}\n', ":1: the cassette's header lacks condition, "),
        (
            cassette.header_line(replace(HEADER, endpoints=[])),  # type: ignore[arg-type]
            ":1: the cassette's header has a wrong endpoints; record it anew",
        ),
        (
            cassette.header_line(HEADER) + b'{"call": {"task": "t", "attempt": 1, "agent": "o", "number": "1"}, '
            b'"request": {}, "answer": null}\n',
            ":2: no line of a cassette: a field of it is missing, unknown or of another kind; record it anew",
        ),
        (cassette.header_line(HEADER) + b"{}\n", ":2: no line of a cassette: it lacks request; record it anew"),
        (cassette.header_line(HEADER) + b'{"call"\n', ":2: no line of a cassette: it is no JSON; "),
        (
            cassette.header_line(HEADER) + lines("orch", request("a")).splitlines()[0],
            ": call 1 of orch in attempt 1 at t has no line with its times",
        ),
        (
            cassette.header_line(HEADER) + b"\n".join(lines("orch", request("a"), request("b")).splitlines()[2:]),
            ": call 2 of orch in attempt 1 at t is there, but not the one before it",
        ),
    ],
)
def test_what_is_wrong_with_a_cassette_is_named_with_its_line(path: Path, data: bytes, told: str) -> None:
    path.write_bytes(data)
    with pytest.raises(InvalidInput) as raised:
        cassette.read(path)
    assert str(raised.value).startswith(f"{path}{told}")
    assert raised.value.exit_code == 2


def test_a_file_that_is_not_there_is_said(path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such cassette"):
        cassette.read(path)
