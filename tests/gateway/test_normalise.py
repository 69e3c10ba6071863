"""What differs between two runs has names, the same in both; and the names lead back to each run's own values."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.gateway.normalise import Names, mapped, replaced_in_pieces
from bench.nostr import Key

EVENT, OTHER = "ab" * 32, "c4" * 32
CHANNEL = "6f1c0f3e-1111-4222-8333-944444444444"
NPUB = Key.generate().npub


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"Event ID: {EVENT}", "Event ID: ⟨id 1⟩"),
        (f"{EVENT} {OTHER} {EVENT}", "⟨id 1⟩ ⟨id 2⟩ ⟨id 1⟩"),
        (f"sig {EVENT}{OTHER}", "sig ⟨sig 1⟩"),
        (f"#{CHANNEL}", "#⟨uuid 1⟩"),
        (f"{NPUB}.", "⟨npub 1⟩."),
        (Key.generate().nsec, "⟨nsec 1⟩"),
        (f'{{"text":"line\\n{EVENT}"}}', '{"text":"line\\n⟨id 1⟩"}'),
        ("/tmp/tmpab12cd_3/out and tmpab12cd_3", "/tmp/⟨tmp 1⟩/out and ⟨tmp 1⟩"),
        ("/tmp/tmp.Xy12345678 tmp tmpfs", "/tmp/⟨tmp 1⟩ tmp tmpfs"),
        ("[main (root-commit) 1a2b3c4] first", "[main (root-commit) ⟨hex 1⟩] first"),
        ("commit " + "1a" * 20, "commit ⟨hash 1⟩"),
        ("<f at 0x7f3a5c0d1e20>", "<f at ⟨address 1⟩>"),
        ("2026-01-31T10:00:00.123Z and 2026-01-31", "⟨time⟩ and ⟨time⟩"),
        ("Sat Jan 31 23:59:59 UTC 2026", "⟨time⟩"),
        ("Date: Sat, 31 Jan 2026 23:59:59 GMT", "Date: ⟨time⟩"),
        ("-rw-r--r-- 1 root root 5 Jan 31 12:30 a", "-rw-r--r-- 1 root root 5 ⟨time⟩ a"),
        ("at 23:59:59,123 INFO", "at ⟨time⟩ INFO"),
        ("created_at 1769900000", "created_at ⟨time⟩"),
        ("3 passed in 0.03s", "3 passed in ⟨duration⟩"),
        ("real\t0m0.003s", "real\t⟨duration⟩"),
        ("took 209 ms", "took ⟨duration⟩"),
        ('{"exit_code":0,"duration_ms":209}', '{"exit_code":0,"duration_ms":⟨duration⟩}'),
    ],
)
def test_what_differs_between_runs_has_a_name(text: str, named: str) -> None:
    assert Names({}).shown(text) == named


@pytest.mark.parametrize(
    "text",
    [
        "12 passed, 3 failed",
        "version 1.2.3",
        "port 8080, 12345678 bytes",
        "decade facade defaced",
        "part1.txt part2.txt",
        "exit code: 0",
        "user@example.org",
    ],
)
def test_ordinary_words_and_numbers_stay(text: str) -> None:
    assert Names({}).shown(text) == text


def test_what_is_known_has_its_own_name() -> None:
    names = Names({EVENT: "key worker-1", CHANNEL: "channel"})
    assert names.shown(f"{EVENT} in #{CHANNEL}") == "⟨key worker-1⟩ in #⟨channel⟩"


def test_an_answer_has_names_for_what_was_shown_and_keeps_what_was_made_up() -> None:
    names = Names({})
    names.shown(f"Event ID: {EVENT}, took 0.31 s, at 10:00:01")
    assert names.said(f"re {EVENT} not {OTHER}: 0.31 s at 10:00:01, not 0.99 s") == (
        f"re ⟨id 1⟩ not {OTHER}: ⟨duration 1⟩ at ⟨time 1⟩, not 0.99 s"
    )


def test_a_duration_that_a_model_chooses_is_not_taken_for_a_quote() -> None:
    names = Names({})
    names.shown("it slept for 5 s and took 5.0 s")
    assert names.said("sleep 5 s; it took 5.0 s") == "sleep 5 s; it took ⟨duration 2⟩"


def test_the_first_place_of_a_time_is_the_one_that_is_quoted() -> None:
    recorded, now = Names({}), Names({})
    recorded.shown("poll each 0.5 s")
    recorded.shown("took 0.5 s")
    now.shown("poll each 0.5 s")
    now.shown("took 0.7 s")
    assert now.spoken(recorded.said("each 0.5 s")) == "each 0.5 s"


def test_names_lead_to_the_other_runs_values() -> None:
    recorded, now = Names({}), Names({})
    assert recorded.shown(f"{EVENT} at 10:00:00 {NPUB}") == now.shown(f"{OTHER} at 11:30:00 {Key.generate().npub}")
    assert now.spoken(recorded.said(f"re {EVENT}, at 10:00:00")) == f"re {OTHER}, at 11:30:00"


def test_a_name_without_a_value_here_stays_readable() -> None:
    assert Names({}).spoken("re ⟨id 7⟩ at ⟨time 3⟩") == "re ⟨id 7⟩ at ⟨time 3⟩"


def test_text_that_looks_like_a_name_is_just_a_text() -> None:
    names = Names({})
    names.shown(EVENT)
    for text in ("⟨id 1⟩", "⟨bracket⟩", "⟨⟨time⟩", "a⟩b⟨"):
        assert names.spoken(names.said(text)) == text
        assert "⟨id 1⟩" not in names.shown(text)


VALUES = st.sampled_from([EVENT, OTHER, CHANNEL, NPUB, "0.31 s", "10:00:01", "/tmp/tmpab12cd_3", "1a2b3c4", "⟨id 1⟩"])
TEXTS = st.lists(st.one_of(VALUES, st.text(max_size=12)), max_size=8).map(" ".join)


@given(shown=st.lists(TEXTS, max_size=4), said=TEXTS)
def test_in_one_run_what_was_said_comes_back_as_it_was(shown: list[str], said: str) -> None:
    names = Names({})
    for text in shown:
        names.shown(text)
    assert names.spoken(names.said(said)) == said


@given(text=TEXTS, cuts=st.lists(st.integers(min_value=0, max_value=200), max_size=6))
def test_a_text_in_pieces_has_the_names_of_the_whole(text: str, cuts: list[int]) -> None:
    """However it is cut: no name is cut, none is lost."""
    names = Names({})
    names.shown(f"{EVENT} {CHANNEL} {NPUB} 0.31 s 10:00:01")
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(borders)]
    named = names.said_in_pieces(pieces)
    assert len(named) == len(pieces)
    assert "".join(named) == names.said(text)
    assert "".join(map(names.spoken, named)) == text


def test_a_value_that_is_cut_is_whole_where_it_ends() -> None:
    pieces = ["x1", "23", "4 y", "5"]
    assert replaced_in_pieces(pieces, re.compile(r"\d{4}"), lambda _: "N") == ["x", "", "N y", "5"]


ANSWER = {
    "id": "msg_01XyZ",
    "content": [
        {"type": "tool_use", "id": "toolu_01AbC", "name": "todo", "input": {"id": "3", "re": EVENT}},
        {"type": "text", "text": "done"},
    ],
    "usage": {"input_tokens": 3},
}


def recorded_and_replayed() -> tuple[Any, Any, Names]:
    recorded, now = Names({}), Names({})
    recorded.shown(EVENT)
    now.shown(OTHER)
    named = mapped(ANSWER, recorded.said, recorded.reference_shown)
    return named, mapped(named, now.spoken, now.reference_spoken), now


def test_ids_that_an_upstream_made_have_names_and_an_id_in_a_tools_input_is_the_tools_own() -> None:
    named, _, _ = recorded_and_replayed()
    assert named["id"] == "⟨msg 1⟩"
    assert named["content"][0] == {
        "type": "tool_use",
        "id": "⟨toolu 1⟩",
        "name": "todo",
        "input": {"id": "3", "re": "⟨id 1⟩"},
    }
    assert named["usage"] == {"input_tokens": 3}


def test_a_replay_makes_ids_of_the_same_kind_and_knows_them_again() -> None:
    _, answer, now = recorded_and_replayed()
    assert answer["content"][0]["id"] == "toolu_1"
    assert answer["content"][0]["input"] == {"id": "3", "re": OTHER}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": []}
    assert mapped(result, now.shown, now.reference_shown)["tool_use_id"] == "⟨toolu 1⟩"
    assert now.reference_shown("toolu_of_somebody") == "⟨toolu 2⟩"


@pytest.mark.parametrize("value", ["deadbeef-0000", "aZ3_x", "550e8400-e29b-41d4-a716-446655440000", "7"])
def test_an_id_of_no_known_kind_has_a_name_that_tells_nothing_of_it(value: str) -> None:
    assert Names({}).reference_shown(value) == "⟨ref 1⟩"


def test_mapping_keeps_everything_that_is_no_text() -> None:
    value = json.loads('{"a": [1, 2.5, null, true], "b": {"c": {}}}')
    assert mapped(value, str.upper, str.upper) == value
