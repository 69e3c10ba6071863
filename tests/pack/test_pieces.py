"""A secret that a model says in deltas is in no line whole; it is found in what they make together (public case 45)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench.nostr import Key
from bench.pack import pieces
from bench.pack.scan import Finding, Scanner

OURS = "canary+key/5f0c1d7e9b==4a"
SHAPED = "sk-" + "ant-api03-" + "a1B2" * 6

type Frame = dict[str, Any]


def found(content: str | bytes, name: str = "a.jsonl", **scanner: Any) -> list[Finding]:
    given: dict[str, Any] = {"secrets": {"the value of KEY": OURS}, "publics": {}} | scanner
    return Scanner(**given).scan(content if isinstance(content, bytes) else content.encode(), name)


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def lines(frames: Sequence[Any]) -> str:
    return "".join(json.dumps(frame) + "\n" for frame in frames)


def anthropic(text: str, index: int = 0) -> Frame:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def openai(text: str, index: int = 0) -> Frame:
    return {"id": "chatcmpl-1", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": None}]}


def responses(text: str) -> Frame:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text}


def acp(text: str, update: str = "agent_message_chunk", session: str = "s1") -> Frame:
    """What an agent that speaks ACP tells of its turn: the frames that real agents leave."""
    content = {"type": "text", "text": text}
    params = {"sessionId": session, "update": {"sessionUpdate": update, "content": content}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def arguments(text: str) -> Frame:
    """A tool's arguments, which are JSON in pieces."""
    return {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]}


def bare(text: str) -> Frame:
    return {"delta": {"text": text}}


FRAMES = [anthropic, openai, responses, acp, arguments, bare]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize(("secret", "what"), [(OURS, "the value of KEY"), (SHAPED, "an API key (sk-…)")])
def test_a_secret_is_found_in_however_many_deltas_it_came(
    frame: Callable[[str], Frame], size: int, secret: str, what: str
) -> None:
    said = lines([frame(word) for word in cut(f"The key is {secret} and nothing else.", size)])
    assert any(one.what.startswith(f"{what}, over ") for one in found(said))
    assert not found(lines([frame(word) for word in cut("The key is not told, and nothing else is 1.", size)]))


def test_it_is_said_where_and_over_how_many_fields_and_never_what() -> None:
    said = "{}\n" + lines([bare(word) for word in cut(SHAPED, 10)])
    (finding,) = found(said)
    assert str(finding) == f"a.jsonl:5, delta.text: holds an API key (sk-…), over 4 fields [{finding.mark}]"
    assert found(said, let_be=[finding.mark]) == []


@pytest.mark.parametrize(
    "both",
    [
        lambda one, other: (openai(one, 0), openai(other, 1)),
        lambda one, other: (acp(one, "agent_thought_chunk"), acp(other)),
        lambda one, other: (acp(one, session="s1"), acp(other, session="s2")),
        lambda one, other: (anthropic(one, 0), anthropic(other, 1)),
        lambda one, other: (bare(one) | {"agent": "worker-1"}, bare(other) | {"agent": "worker-2"}),
        lambda one, other: ({"d": [{"text": one}, {"text": other}]},),
    ],
)
def test_streams_that_run_through_each_other_are_told_apart(both: Callable[[str, str], tuple[Frame, ...]]) -> None:
    pairs = zip(cut(SHAPED, 4), cut("a tale of two streams, which is at least as long as that", 4), strict=False)
    said = lines([frame for one, other in pairs for frame in both(one, other)])
    assert [one.what.partition(",")[0] for one in found(said)] == ["an API key (sk-…)"]


def test_a_stream_is_followed_past_whatever_else_is_said_between_its_pieces() -> None:
    others: list[Frame] = [{"type": "ping"}, {"usage": {"tokens": 5, "note": "none"}}, acp("so", "agent_thought_chunk")]
    assert found(lines([frame for word in cut(SHAPED, 6) for frame in (acp(word), *others)]))
    assert not found(lines(others * 6))


@pytest.mark.parametrize(
    "written",
    [
        lambda frames: "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames),
        lambda frames: "".join(f"event: delta\r\ndata: {json.dumps(frame)}\r\n\r\n" for frame in frames),
        lambda frames: "".join(f"12:00:01 [INFO] {{x}} <- {json.dumps(frame)} ok\n" for frame in frames),
        lambda frames: "".join(map(json.dumps, frames)),
        lambda frames: json.dumps(frames),
        lambda frames: json.dumps({"events": frames}, indent=2),
        lambda frames: "".join(json.dumps({"line": json.dumps(frame)}) + "\n" for frame in frames),
        lambda frames: json.dumps({"output": "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)}),
        lambda frames: "".join(json.dumps(frame)[:-1] + f', "n": {"7" * 5000}}}\n' for frame in frames),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "agent/stdout.txt"])
def test_a_stream_is_found_however_its_frames_are_written(written: Callable[[list[Frame]], str], name: str) -> None:
    frames = [anthropic(word) for word in cut(SHAPED, 5)]
    assert {one.mark for one in found(written(frames), name)} == {one.mark for one in found(SHAPED)}


def test_a_secret_over_many_fields_of_one_object_is_found() -> None:
    text = json.dumps({"a": {f"part{number}": word for number, word in enumerate(cut(SHAPED, 5))}})
    assert [one.place for one in found(text, "a.json")] == ["a.json, a.part7"]
    (finding,) = found(json.dumps({"parts": cut(OURS, 3)}), "a.json")
    assert (finding.place, finding.what) == ("a.json, parts.8", "the value of KEY, over 9 fields")


def test_a_name_that_an_object_has_twice_hides_nothing() -> None:
    words = cut(SHAPED, 5)
    assert found("".join(f'{{"text": {json.dumps(word)}, "text": 5}}\n' for word in words))
    assert found("{" + ", ".join(f'"text": {json.dumps(word)}' for word in words) + "}")


def test_encodings_and_an_agents_own_key_are_found_in_pieces_too() -> None:
    encoded = base64.b64encode(f"x {SHAPED} y".encode()).decode()
    (finding,) = found(lines([bare(word) for word in cut(encoded, 7)]))
    assert finding.what.startswith("an API key (sk-…), in Base64, over ")
    key = Key("07" * 32)
    said = lines([bare(word) for word in cut(f"it is {key.secret}.", 9)])
    (finding,) = found(said, publics={key.public: "worker-1 in alpha__1"})
    assert finding.what.startswith("the secret key of worker-1 in alpha__1, over ")


def test_what_is_whole_in_one_field_is_found_there_and_not_once_more() -> None:
    (finding,) = found(lines([bare(word) for word in ("one ", f"key={SHAPED}", "-more", " two")]))
    assert finding.place == "a.jsonl:2"


def test_ordinary_streams_and_records_hold_nothing() -> None:
    text = "Ask the risk-taker, then task-force members: the desk-1 and the disk-usage-of-the-whole-partition. "
    for frame in FRAMES:
        assert not found(lines([frame(word) for word in cut(text * 3, 3)]))
    roster = [{"name": f"worker-{number}", "public": f"{number:064x}", "role": "sk"} for number in range(50)]
    assert not found(json.dumps({"roster": roster}), "a.json")


@pytest.mark.parametrize(
    "content",
    [
        "[" * 5000 + '"a","b"' + "]" * 5000,
        "[" * 200_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        "{" * 100_000 + '"a": "b"}',
        '{"a": "\\ud800", "b": "x"}',
        "\n".join(["{[" * 50] * 200),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_that_is_made_to_break_a_parser_breaks_nothing(content: str, name: str) -> None:
    assert found(content, name) == []
    assert found(f"{content}\n{OURS}", name)


def test_a_stream_in_wide_letters_is_found() -> None:
    (finding,) = found(lines([bare(word) for word in cut(SHAPED, 5)]).encode("utf-16"))
    assert finding.what.startswith("an API key (sk-…), over ")


def test_of_fields_without_end_those_are_followed_that_had_a_piece_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_FIELDS", 10)
    noise = [{f"field{number}": "x"} for number in range(200)]
    stream = [bare(word) for word in cut(SHAPED, 5)]
    assert found(lines([*noise[:50], *stream, *noise[50:]]))
    assert found(lines([one for frame in stream for one in (frame, *noise[:3])]))


def test_what_only_looks_like_json_without_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_BROKEN", 20)
    assert not found('[\n["\n' * 20)
    (finding,) = found('["\n' * 30)
    assert finding.what == "more than 20 lines that look like JSON and are none, which can't be looked into"
    assert not found('["\n' * 30, let_be=[finding.mark])
