"""Endpoint files: where models are reached, without a key ever standing in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.endpoints import Endpoint, for_team, load
from bench.errors import InvalidInput
from bench.settings import ROOT
from tests.planning.kit import project

FOLDER = ROOT / "manifests/endpoints"


def written(tmp_path: Path, data: Any) -> Path:
    path = tmp_path / "endpoints.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def message(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(path)
    return str(caught.value)


def test_the_shipped_files_reach_anthropic_openai_and_a_local_server() -> None:
    assert load(FOLDER / "anthropic-live.json")["claude-haiku-4-5"] == Endpoint(
        "claude-haiku-4-5", "anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"
    )
    assert {e.base_url for e in load(FOLDER / "openai-live.json").values()} == {"https://api.openai.com/v1"}
    assert load(FOLDER / "local.json")["local"] == Endpoint(
        "local", "openai", "openai", "http://localhost:11434/v1", None
    )


def test_upstreams_form_loads_unchanged(tmp_path: Path) -> None:
    entry = {"provider": "openai", "env": {"OPENAI_COMPAT_BASE_URL": "http://127.0.0.1:8091/v1/"}}
    assert load(written(tmp_path, {"local/x": entry}))["local/x"].base_url == "http://127.0.0.1:8091/v1"


def test_a_team_gets_the_endpoints_that_it_names() -> None:
    assert list(for_team(["claude-haiku-4-5"], FOLDER / "anthropic-live.json", rehearsal=False)) == ["claude-haiku-4-5"]


def test_a_rehearsal_replaces_them_by_scripted_ones_of_the_same_dialect(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": {"provider": "anthropic"}, "o": {"provider": "openai", "api_key_env": "K"}})
    team = for_team(["a", "o"], path, rehearsal=True)
    assert [(e.provider, e.dialect, e.api_key_env) for e in team.values()] == [
        ("scripted", "anthropic", None),
        ("scripted", "openai", None),
    ]


def test_a_rehearsal_of_the_scripted_model_needs_no_file(tmp_path: Path) -> None:
    assert list(for_team(["scripted"], tmp_path / "nope.json", rehearsal=True)) == ["scripted"]


def test_a_file_that_nobody_would_read_is_refused(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("a")
    with pytest.raises(InvalidInput) as caught:
        home.plan(endpoint_config=tmp_path / "nope.json")
    assert str(caught.value) == (
        "--endpoint-config: rehearsal asks no endpoint of a file in a rehearsal, so that it has no effect; leave it out"
    )


def test_an_unknown_endpoint_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        for_team(["claude-haiku-4-6"], FOLDER / "anthropic-live.json", rehearsal=False)
    assert str(caught.value).endswith(
        "anthropic-live.json: no endpoint claude-haiku-4-6, which the manifest names; "
        "it has claude-haiku-4-5, claude-sonnet-4-6; did you mean claude-haiku-4-5"
    )


def test_the_scripted_endpoint_answers_only_in_a_rehearsal() -> None:
    with pytest.raises(InvalidInput, match="the endpoint scripted answers only in a rehearsal; add --rehearsal"):
        for_team(["scripted"], FOLDER / "anthropic-live.json", rehearsal=False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", ":1: not valid JSON: "),
        ("[]", ": this endpoint file is no object of fields and values"),
        ('{"a": {"provider": "openai"},\n "a": {"provider": "openai"}}', ":2: a: given twice, first on line 1"),
        ({"a": "openai"}, "a: an endpoint is an object with a provider"),
        ('{\n\t"a": {\n\t\t"provider": "openrouter"}}', ":3: a.provider: 'openrouter' is not supported"),
        ({"a": {"provider": []}}, ":1: a.provider: a list of 0 is not supported"),
        ({"a": {}}, "a.provider: is missing; it is anthropic or openai"),
        ({"a": {"provider": "openrouter"}}, "a.provider: 'openrouter' is not supported; it is anthropic or openai"),
        ({"a": {"provider": "openai", "base_uri": "x"}}, "a.base_uri: unknown field; did you mean base_url"),
        ({"a": {"provider": "openai", "base_url": "localhost:1"}}, "a.base_url: 'localhost:1' is no http or https"),
        ({"a": {"provider": "openai", "base_url": "http://h:x"}}, "a.base_url: 'http://h:x' is no http or https"),
        ({"a": {"provider": "openai", "base_url": 1}}, "a.base_url: 1 is no http or https address"),
        (
            {"a": {"provider": "openai", "base_url": "http://h/v1/chat/completions/"}},
            "a.base_url: 'http://h/v1/chat/completions/' is where one kind of call goes; give what comes before /chat",
        ),
        ({"a": {"provider": "openai", "base_url": "http://u:p@h"}}, "a.base_url: holds a user or a password"),
        ({"a": {"provider": "openai", "env": {"X": "y"}}}, "a.env.X: has no effect here; give base_url"),
        ({"a": {"provider": "openai", "env": ["X"]}}, "a.env: is not an object of variables"),
    ],
)
def test_a_fault_is_said_with_its_field(tmp_path: Path, data: Any, said: str) -> None:
    assert said in message(written(tmp_path, data))


def test_a_key_in_place_of_its_variables_name_is_not_repeated(tmp_path: Path) -> None:
    said = message(written(tmp_path, {"a": {"provider": "openai", "api_key_env": "sk-live-1234"}}))
    assert "a.api_key_env: is not a variable's name; name the variable, not its value" in said
    assert "sk-live" not in said


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert message(tmp_path / "nope.json") == f"{tmp_path}/nope.json: no such endpoint file"
    assert message(tmp_path) == f"{tmp_path}: is a directory, no endpoint file"
    (tmp_path / "latin.json").write_bytes(b'{"\xff": 1}')
    assert message(tmp_path / "latin.json") == f"{tmp_path}/latin.json:1: this endpoint file is not UTF-8 text"


@pytest.mark.parametrize(("given", "shown"), [("true", "true"), ("null", "anthropic"), ('{"a": "b"}', "a mapping")])
def test_a_provider_is_named_as_it_is_written(tmp_path: Path, given: str, shown: str) -> None:
    (tmp_path / "e.json").write_text(f'{{"a": {{"provider": {given}}}}}')
    assert shown in message(tmp_path / "e.json").partition("provider: ")[2]
