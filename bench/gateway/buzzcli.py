"""What the builtin tools do, as commands of the `buzz` CLI, for agents that have a shell alone (BUZZ.md section 3).

The CLI knows people by public key and channels by id: a channel that an agent made is found by its name when the
command runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.gateway.protocol import Context

_CODE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_AT = re.compile(r"(?<!\S)@([A-Za-z0-9._-]+)")


class CannotRender(ValueError):
    """An action that the tools offered can't do. The message names both."""


def send(context: Context, text: str, *, mention: Sequence[str], reply_to: str | None, channel: str | None) -> str:
    """The command that sends a message and wakes whom it mentions. Raises CannotRender."""
    people = [word for name in mention for word in ("--mention", _key(context, name))]
    if not people and (stranger := _stranger(context, text)):
        raise CannotRender(
            f"the buzz CLI sends no message with {stranger!r}, which names no member, unless it has a mention, too: "
            "mention somebody, or put the word between backticks"
        )
    answered = () if reply_to is None else ("--reply-to", reply_to)
    command = _command("messages", "send", *_in(context, channel), _set("--content", text), *people, *answered)
    return f"printf %s - | {command}" if text == "-" else command  # for it that stands for the standard input


def _stranger(context: Context, text: str) -> str | None:
    """The first `@word` outside of code that is no member's name, in whatever case."""
    names = {name.lower() for name in context.members}
    for found in _AT.finditer(_CODE.sub("", text)):
        if not {found[1].lower(), found[1].lower().rstrip(".")} & names:
            return f"@{found[1]}"
    return None


def tool(context: Context, name: str, given: Mapping[str, Any]) -> str | None:
    """The commands, a line each, that do what a builtin tool does; None for one that the CLI has nothing for.

    Raises CannotRender.
    """
    lines = _LINES.get(name)
    try:
        return None if lines is None else "\n".join(lines(context, given))
    except KeyError as missing:
        raise CannotRender(f"the tool {name!r} is given no {missing.args[0]!r}") from None


def script(commands: Sequence[str]) -> str:
    """Several commands as one, in their order, each in a shell of its own.

    As calls of their own, buzz-agent would carry them out in any order, also when it is told to run one at a time.
    """
    return commands[0] if len(commands) == 1 else "\n".join(f"(\n{command}\n)" for command in commands)


def _create(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    named = _set("--name", given["name"])
    yield _command("channels", "create", named, "--type", "stream", "--visibility", "private")
    for name in given.get("members", ()):
        yield from _add(context, {"name": name, "channel": given["name"]})


def _add(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("channels", "add-member", *_in(context, given.get("channel")), *_whom(context, given))


def _remove(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("channels", "remove-member", *_in(context, given.get("channel")), *_whom(context, given))


def _members(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("channels", "members", *_in(context, given.get("channel")))


def _channels(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("channels", "list")


def _read(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    limit = ("--limit", str(given["limit"])) if "limit" in given else ()
    if "thread" in given:
        yield _command("messages", "thread", *_in(context, given.get("channel")), "--event", given["thread"], *limit)
    else:
        yield _command("messages", "get", *_in(context, given.get("channel")), *limit)


def _react(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("reactions", "add", "--event", given["event_id"], _set("--emoji", given["emoji"]))


def _edit(context: Context, given: Mapping[str, Any]) -> Iterator[str]:
    yield _command("messages", "edit", "--event", given["event_id"], _set("--content", given["text"]))


_LINES = {
    "create_channel": _create,
    "add_member": _add,
    "remove_member": _remove,
    "list_members": _members,
    "list_channels": _channels,
    "read_messages": _read,
    "react": _react,
    "edit_message": _edit,
}


class _Found(str):
    """What the shell finds out when the command runs: not to be quoted."""


def _in(context: Context, channel: str | None) -> tuple[str, str]:
    if channel is None:
        return "--channel", context.channel
    search = shlex.join(["buzz", "channels", "search", "--exact", _set("--query", channel)])
    return "--channel", _Found(f'"$({search} | sed -n \'s/.*"channel_id":"\\([^"]*\\)".*/\\1/p\')"')


def _set(flag: str, text: str) -> str:
    """An option with its text in one word: a text that begins with a dash would be taken for an option itself."""
    return f"{flag}={text}"


def _whom(context: Context, given: Mapping[str, Any]) -> tuple[str, str]:
    return "--pubkey", _key(context, given["name"])


def _key(context: Context, name: str) -> str:
    if name not in context.members:
        raise CannotRender(f"nobody is called {name!r}; members are {', '.join(sorted(context.members)) or 'none'}")
    return context.members[name]


def _command(*words: str) -> str:
    return " ".join(["buzz", *(word if isinstance(word, _Found) else shlex.quote(str(word)) for word in words)])
