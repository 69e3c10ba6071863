"""Actions become calls of the tools that a request offers, quoted so that a shell can't misread them."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.endpoints import Dialect
from bench.gateway import conversation
from bench.gateway.buzzcli import CannotRender
from bench.gateway.dialects import WIRES
from bench.gateway.protocol import Context
from bench.gateway.render import ToolCall, Usage, answer, tool_calls, usage
from bench.gateway.scripted import Action, Call, Done, Post, Run, Say, Shown
from bench.prices import Tokens

CONTEXT = Context(channel="chan", user="user", members={"user": "00" * 32, "worker-1": "bb" * 32})
BUILTIN = ("shell", "send_message", "read_messages", "done")
BUZZ = ("buzz-dev-mcp__str_replace", "buzz-dev-mcp__shell")


def test_builtin_tools_are_called_by_name() -> None:
    actions = (
        Say("hi"),
        Run("ls"),
        Post("go", ("worker-1",), "ee" * 32, "side"),
        Post("bare"),
        Done("DONE: x"),
        Call("read_messages", {"limit": 3}),
    )
    assert tool_calls(actions, BUILTIN, CONTEXT) == (
        ToolCall("shell", {"command": "ls"}),
        ToolCall("send_message", {"text": "go", "mention": ["worker-1"], "reply_to": "ee" * 32, "channel": "side"}),
        ToolCall("send_message", {"text": "bare"}),
        ToolCall("done", {"text": "DONE: x"}),
        ToolCall("read_messages", {"limit": 3}),
    )


def test_a_shell_alone_gets_the_buzz_cli() -> None:
    (run,) = tool_calls((Say("hi"), Run("ls -l")), BUZZ, CONTEXT)
    assert run == ToolCall("buzz-dev-mcp__shell", {"command": "ls -l"})
    nasty = 'it\'s $HOME `x`\n"two" lines'
    (send,) = tool_calls((Post(nasty, ("worker-1",), "ee" * 32),), BUZZ, CONTEXT)
    assert shlex.split(send.input["command"]) == [
        *("buzz", "messages", "send", "--channel", "chan", f"--content={nasty}"),
        *("--mention", "bb" * 32, "--reply-to", "ee" * 32),
    ]
    (done,) = tool_calls((Done("DONE: x"),), BUZZ, CONTEXT)
    assert shlex.split(done.input["command"])[-3:] == ["--content=DONE: x", "--mention", "00" * 32]


def test_a_reply_wakes_the_author_as_the_builtin_tool_does() -> None:
    for mention, author, woken in (
        ((), "worker-1", ["bb" * 32]),
        (("worker-1",), "worker-1", ["bb" * 32]),
        (("user",), "worker-1", ["00" * 32, "bb" * 32]),
        ((), "stranger", []),
    ):
        (call,) = tool_calls((Post("x", mention, "ee" * 32, author=author),), BUZZ, CONTEXT)
        words = shlex.split(call.input["command"])
        assert [key for flag, key in itertools.pairwise(words) if flag == "--mention"] == woken


def test_a_shell_has_several_commands_in_their_order_each_in_a_shell_of_its_own(tmp_path: Path) -> None:
    """buzz-agent carries several calls out in any order."""
    actions = (Run("cd /; echo first; exit 3"), Run("cat <<E\nsecond\nE"), Run('[ "$PWD" = / ] || echo third'))
    (call,) = tool_calls(actions, BUZZ, CONTEXT)
    done = subprocess.run(
        ["bash", "-c", call.input["command"]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["first", "second", "third"]
    assert call.input["timeout_ms"] == 3 * 120_000
    (call,) = tool_calls([Run("ls")] * 9, BUZZ, CONTEXT)
    assert call.input["timeout_ms"] == 600_000


CLI = """#!/bin/sh
printf '%s\n' "$@" >> "$SEEN"; echo -- >> "$SEEN"
[ "$2" = search ] && echo '[{"channel_id":"the-id","name":"night"}]' || true
"""


@pytest.mark.parametrize(
    ("action", "commands"),
    [
        (Call("react", {"event_id": "ee", "emoji": "✅"}), [["reactions", "add", "--event", "ee", "--emoji=✅"]]),
        (
            Call("edit_message", {"event_id": "ee", "text": "it's so"}),
            [["messages", "edit", "--event", "ee", "--content=it's so"]],
        ),
        (
            Call("create_channel", {"name": "night", "members": ["worker-1"]}),
            [
                ["channels", "create", "--name=night", "--type", "stream", "--visibility", "private"],
                ["channels", "search", "--exact", "--query=night"],
                ["channels", "add-member", "--channel", "the-id", "--pubkey", "bb" * 32],
            ],
        ),
        (
            Call("remove_member", {"name": "worker-1", "channel": "night"}),
            [
                ["channels", "search", "--exact", "--query=night"],
                ["channels", "remove-member", "--channel", "the-id", "--pubkey", "bb" * 32],
            ],
        ),
        (Call("list_members", {}), [["channels", "members", "--channel", "chan"]]),
        (Call("list_channels", {}), [["channels", "list"]]),
        (Call("read_messages", {"limit": 3}), [["messages", "get", "--channel", "chan", "--limit", "3"]]),
        (Call("read_messages", {"thread": "ee"}), [["messages", "thread", "--channel", "chan", "--event", "ee"]]),
        (
            Post("go", channel="night"),
            [
                ["channels", "search", "--exact", "--query=night"],
                ["messages", "send", "--channel", "the-id", "--content=go"],
            ],
        ),
    ],
)
def test_what_the_builtin_tools_do_a_shell_does_by_the_buzz_cli(
    tmp_path: Path, action: Action, commands: list[list[str]]
) -> None:
    (tmp_path / "buzz").write_text(CLI)
    (tmp_path / "buzz").chmod(0o755)
    (call,) = tool_calls((action,), BUZZ, CONTEXT)
    seen = tmp_path / "seen"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(seen)}
    subprocess.run(["sh", "-c", call.input["command"]], env=environment, check=True)
    assert [part.split("\n")[:-1] for part in seen.read_text().split("--\n")[:-1]] == commands


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("see @pytest.fixture", "@pytest.fixture"),
        ("@nobody", "@nobody"),
        ("`@a` @b", "@b"),
        ("```\n@a\n```\nthen @worker-12", "@worker-12"),
    ],
)
def test_a_word_that_the_buzz_cli_would_refuse_is_told_before(text: str, word: str) -> None:
    with pytest.raises(CannotRender, match=rf"^the buzz CLI sends no message with '{re.escape(word)}', .* backticks$"):
        tool_calls((Post(text),), BUZZ, CONTEXT)
    tool_calls((Post(text, ("worker-1",)),), BUZZ, CONTEXT)


@pytest.mark.parametrize(
    "text", ["@Worker-1, look", "mail a@b.example", "`@x`", "```py\n@x\n```", "@ home", "for @user."]
)
def test_other_words_need_no_mention(text: str) -> None:
    tool_calls((Post(text),), BUZZ, CONTEXT)


def test_a_text_that_is_a_dash_is_no_option_and_no_standard_input(tmp_path: Path) -> None:
    (tmp_path / "buzz").write_text('#!/bin/sh\n[ "$5" = --content=- ] && cat || echo "$5"\n')
    (tmp_path / "buzz").chmod(0o755)
    (call,) = tool_calls((Post("-"), Post("- one\n- two")), BUZZ, CONTEXT)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", call.input["command"]], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout == "---content=- one\n- two\n"


def test_a_shell_says_done_with_the_words_that_end_the_work() -> None:
    (done,) = tool_calls((Done("merged"),), BUZZ, CONTEXT)
    assert shlex.split(done.input["command"])[-3] == "--content=DONE: merged"


@pytest.mark.parametrize(
    ("action", "tools", "message"),
    [
        (Run("ls"), ("done",), "the tool 'shell' is not offered: done"),
        (Post("x"), (), "the tool 'send_message' is not offered: none"),
        (Post("x"), ("shell",), "the tool 'send_message' is not offered: shell"),
        (Done("x"), ("shell", "send_message"), "the tool 'done' is not offered: shell, send_message"),
        (Call("react", {}), ("shell",), "the tool 'react' is not offered: shell"),
        (Call("view_image", {}), BUZZ, "a shell with the buzz CLI has nothing for the tool 'view_image'"),
        (Call("react", {"emoji": "x"}), BUZZ, "the tool 'react' is given no 'event_id'"),
        (Post("x", ("ghost",)), BUZZ, "nobody is called 'ghost'; members are user, worker-1"),
    ],
)
def test_what_the_tools_cannot_do_is_said(action: Action, tools: tuple[str, ...], message: str) -> None:
    with pytest.raises(CannotRender) as raised:
        tool_calls((action,), tools, CONTEXT)
    assert str(raised.value) == message


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
def test_an_answers_usage_reads_back_as_it_was_told(dialect: Dialect) -> None:
    written = 3 if dialect == "anthropic" else 0
    data = answer(dialect, model="m", number=1, text="t", calls=(), usage=Usage(4, 2, written, 9))
    assert WIRES[dialect].tokens(orjson.loads(data)["usage"]) == Tokens(4, 2, written, 9)


def test_an_anthropic_answer_has_its_form() -> None:
    made: Any = orjson.loads(
        answer("anthropic", model="m", number=2, text="t", calls=(ToolCall("x", {"a": 1}),), usage=Usage(1, 0, 0, 1))
    )
    assert made["stop_reason"] == "tool_use"
    assert made["content"] == [
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "toolu_script_2_0", "name": "x", "input": {"a": 1}},
    ]
    ended: Any = orjson.loads(answer("anthropic", model="m", number=3, text="t", calls=(), usage=Usage(1, 0, 0, 1)))
    assert ended["stop_reason"] == "end_turn"


def test_an_openai_answer_has_its_form() -> None:
    made: Any = orjson.loads(
        answer("openai", model="m", number=2, text="", calls=(ToolCall("x", {"a": 1}),), usage=Usage(1, 2, 0, 3))
    )
    (choice,) = made["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {"id": "call_script_2_0", "type": "function", "function": {"name": "x", "arguments": '{"a":1}'}}
    ]
    assert made["usage"]["total_tokens"] == 6


def test_what_is_newly_shown_begins_after_the_models_last_message() -> None:
    anthropic: Any = {
        "messages": [
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "shell", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "ran"}]},
                    {"type": "tool_result", "tool_use_id": "2", "content": "sent"},
                    {"type": "text", "text": "new"},
                ],
            },
            {"role": "user", "content": "newer"},
        ],
        "tools": [{"name": "shell"}],
    }
    read = conversation.read("anthropic", anthropic)
    assert (read.shown, read.tools) == (Shown(("new", "newer"), ("ran", "sent")), ("shell",))
    openai: Any = {
        "messages": [
            {"role": "system", "content": "you are"},
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "tool", "tool_call_id": "1", "content": "ran"},
            {"role": "user", "content": [{"type": "text", "text": "new"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "x__shell"}}],
    }
    read = conversation.read("openai", openai)
    assert (read.shown, read.tools) == (Shown(("new",), ("ran",)), ("x__shell",))


def test_usage_counts_the_text_and_caches_what_was_there() -> None:
    asked: Any = {"messages": [{"role": "user", "content": "x" * 400}]}
    plain = conversation.read("anthropic", asked)
    caching = conversation.read("anthropic", {**asked, "system": [{"text": "s", "cache_control": {}}]})
    assert usage("anthropic", plain, known_characters=80, answer_characters=9) == Usage(
        -(-plain.prompt_characters // 4), 0, 0, 3
    )
    told = usage("anthropic", caching, known_characters=80, answer_characters=9)
    assert (told.fresh, told.cache_read) == (0, 20)
    assert told.cache_read + told.cache_write == -(-caching.prompt_characters // 4)
    assert (
        usage("openai", conversation.read("openai", asked), known_characters=80, answer_characters=1).cache_read == 20
    )
