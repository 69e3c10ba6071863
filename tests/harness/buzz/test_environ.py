"""What a real agent's processes are told by their environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench.harness.buzz.environ import Login, Place, shell_file, variables
from tests.harness.buzz.agents import agent

LOGIN = Login("11" * 32, ["auth", "22" * 32, "", "33" * 64], "token")
PLACE = Place("ws://localhost:3600", "/opt/team", "/opt/bin")


def test_a_mention_that_comes_in_a_turn_is_queued_because_the_default_loses_it() -> None:
    given = variables(agent("orch"), LOGIN, PLACE, dialect="anthropic")
    assert given["BUZZ_ACP_MULTIPLE_EVENT_HANDLING"] == "queue"
    assert given["NO_COLOR"] == "1"
    assert given["BUZZ_ACP_AGENT_ARGS"] == ""
    assert json.loads(given["BUZZ_AUTH_TAG"]) == LOGIN.auth_tag


def test_the_agent_has_its_token_in_the_place_of_a_key_and_its_generation_settings() -> None:
    tuned = agent("orch", max_output_tokens=4096, context_window_tokens=100_000, thinking_effort="high")
    given = variables(tuned, LOGIN, PLACE, dialect="anthropic")
    assert (given["BUZZ_AGENT_PROVIDER"], given["BUZZ_AGENT_MODEL"], given["ANTHROPIC_API_KEY"]) == (
        *("anthropic", "m-1"),
        "token",
    )
    assert given["BUZZ_AGENT_MAX_OUTPUT_TOKENS"] == "4096"
    assert given["BUZZ_AGENT_MAX_CONTEXT_TOKENS"] == "100000"
    assert given["BUZZ_AGENT_THINKING_EFFORT"] == "high"
    plain = variables(agent("orch"), LOGIN, PLACE, dialect="openai")
    assert (plain["OPENAI_COMPAT_API_KEY"], plain["OPENAI_COMPAT_API"]) == ("token", "chat")
    assert not {"ANTHROPIC_API_KEY", "BUZZ_AGENT_THINKING_EFFORT", "BUZZ_AGENT_MAX_OUTPUT_TOKENS"} & plain.keys()


def test_what_the_manifest_sets_of_buzz_agent_itself_comes_last() -> None:
    tuned = agent("orch", extra={"max_rounds": 32, "no_hints": True, "llm_timeout_secs": 300})
    given = variables(tuned, LOGIN, PLACE, dialect="anthropic")
    names = ("MAX_ROUNDS", "NO_HINTS", "LLM_TIMEOUT_SECS")
    assert [given[f"BUZZ_AGENT_{name}"] for name in names] == ["32", "1", "300"]


def test_a_turn_is_not_taken_for_dead_while_it_waits_for_a_model() -> None:
    given = variables(agent("orch"), LOGIN, PLACE, dialect="anthropic")
    assert int(given["BUZZ_ACP_IDLE_TIMEOUT"]) > int(given["BUZZ_AGENT_LLM_TIMEOUT_SECS"])


def test_buzzs_own_guide_is_left_out_where_the_manifest_says_so() -> None:
    for kept, said in ((True, "false"), (False, "true")):
        given = variables(agent("orch", platform_prompt=kept), LOGIN, PLACE, dialect="openai")
        assert given["BUZZ_ACP_NO_BASE_PROMPT"] == said


def test_the_file_gives_a_shell_the_very_values_and_the_gateways_address(tmp_path: Path) -> None:
    nasty = 'it\'s "$HOME" `x` \\ \n two'
    (tmp_path / "env").write_text(shell_file({"A": nasty}, "openai"))
    said = subprocess.run(
        [
            "sh",
            "-c",
            f'bzb_gateway=http://127.0.0.1:5; . {tmp_path}/env; printf "%s|%s" "$A" "$OPENAI_COMPAT_BASE_URL"',
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{nasty}|http://127.0.0.1:5/v1"


def test_no_secret_is_in_a_repr() -> None:
    assert "11" * 32 not in repr(LOGIN)
    assert "token" not in repr(LOGIN)
