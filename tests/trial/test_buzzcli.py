"""The stand-in of the `buzz` CLI held against Buzz's own, where that is given: exit codes, and the form of answers."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.channel import RelayClient
from bench.nostr import Key
from tests.standins.programs import ONLY_WITH_REAL_PROGRAMS, REAL_PROGRAMS
from tests.trial.services import Stack

pytestmark = [pytest.mark.slow, ONLY_WITH_REAL_PROGRAMS]

NOBODY = "ab" * 32


@dataclass
class Person:
    """Somebody who has the CLI."""

    buzz: Path
    key: Key
    tag: list[str]
    relay_url: str

    def run(self, *words: str) -> tuple[int, Any]:
        """(the exit code, what was printed: the answer, or of an error its category and whether to try again)."""
        variables = {"BUZZ_RELAY_URL": self.relay_url, "BUZZ_PRIVATE_KEY": self.key.secret}
        variables["BUZZ_AUTH_TAG"] = json.dumps(self.tag)
        done = subprocess.run(
            [self.buzz, *words],
            env={"PATH": os.environ["PATH"], **variables},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if done.returncode:
            assert done.stderr.startswith("{"), done
            said = json.loads(done.stderr)
            return done.returncode, {key: said[key] for key in ("error", "retryable")}
        return 0, json.loads(done.stdout)


def form(value: Any) -> Any:
    """A JSON value's keys in their order, and its types: what a script may look for with `sed`.

    A list is in no order here: within a second the CLI's is that of the events' ids.
    """
    if isinstance(value, dict):
        return [(key, form(part)) for key, part in value.items()]
    if isinstance(value, list):
        return sorted(map(form, value), key=str)
    return type(value).__name__


async def people(stack: Stack, programs: Path, home: Path) -> list[Person]:
    """A lead and two workers with names, of one owner."""
    home.mkdir()
    (home / "buzz").symlink_to(programs / "buzz-dev-mcp")
    found = []
    for name in ("lead", "help", "more"):
        key = Key.generate()
        tag = stack.state.owner.attest(key.public)
        async with RelayClient(stack.address.relay_url, key, auth_tag=tag) as client:
            await client.publish(key.sign(0, json.dumps({"display_name": name}), [tag]))
        found.append(Person(home / "buzz", key, tag, stack.address.relay_url))
    return found


def said(lead: Person, help_: Person, more: Person) -> list[tuple[str, int, Any]]:
    """A whole conversation, and what can go wrong in it: the command, its exit code, and the form of its answer."""
    told: list[tuple[str, int, Any]] = []

    def do(who: Person, *words: str) -> Any:
        code, answer = who.run(*words)
        told.append((" ".join(words[:2]), code, answer if code else form(answer)))
        return answer

    channel = do(lead, "channels", "create", "--name", "Night Watch", "--type", "stream", "--visibility", "private")[
        "channel_id"
    ]
    in_it, other = ("--channel", channel), ("--channel", "00000000-0000-4000-8000-000000000000")
    for query in (("--exact", "--query", "night watch"), ("--query", "watch"), ("--exact", "--query", "watch")):
        do(lead, "channels", "search", *query)
    do(help_, "channels", "search", "--query", "watch")
    do(lead, "channels", "list")
    do(lead, "messages", "send", *in_it, "--content", "you there?", "--mention", help_.key.public)  # no member yet
    do(lead, "channels", "add-member", *in_it, "--pubkey", help_.key.public)
    do(lead, "channels", "members", *in_it)
    first = do(lead, "messages", "send", *in_it, "--content", "you there?", "--mention", help_.key.public)["event_id"]
    do(lead, "messages", "send", *in_it, "--content", "@help and @HELP: `@nobody`")
    do(lead, "channels", "add-member", *in_it, "--pubkey", more.key.public)
    do(lead, "messages", "send", *in_it, "--content", "@help look", "--mention", more.key.public)  # mentions both
    do(lead, "messages", "send", *in_it, "--content", "look", "--mention", lead.key.public)  # nobody mentions himself
    do(lead, "messages", "send", *in_it, "--content", "- look")
    do(lead, "messages", "send", *in_it, "--content=- look")
    do(lead, "messages", "send", *in_it, "--content", "@nobody there?")
    do(lead, "messages", "send", *in_it, "--content", "@nobody there?", "--mention", help_.key.public)
    do(lead, "messages", "send", *in_it, "--content", "to a stranger", "--mention", NOBODY)
    second = do(help_, "messages", "send", *in_it, "--content", "yes", "--reply-to", first)["event_id"]
    do(lead, "messages", "send", *in_it, "--content", "good", "--reply-to", second)
    do(lead, "messages", "send", *in_it, "--content", "lost", "--reply-to", NOBODY)
    do(lead, "messages", "thread", *in_it, "--event", first)
    do(lead, "messages", "get", *in_it)
    do(lead, "messages", "get", *in_it, "--limit", "100")
    do(lead, "messages", "edit", "--event", first, "--content", "you here?")
    do(help_, "messages", "edit", "--event", first, "--content", "not mine")
    do(lead, "messages", "edit", "--event", NOBODY, "--content", "nothing")
    do(help_, "reactions", "add", "--event", first, "--emoji", "✅")
    do(help_, "reactions", "add", "--event", NOBODY, "--emoji", "✅")
    do(help_, "channels", "remove-member", *in_it, "--pubkey", lead.key.public)
    do(lead, "channels", "remove-member", *in_it, "--pubkey", help_.key.public)
    do(help_, "messages", "send", *in_it, "--content", "and now?")
    do(help_, "messages", "get", *in_it)
    do(help_, "channels", "members", *in_it)
    do(lead, "messages", "get", *other)
    do(lead, "messages", "send", *other, "--content", "nowhere")
    do(lead, "channels", "add-member", *other, "--pubkey", help_.key.public)
    do(lead, "messages", "send", "--content", "without a channel")
    return told


async def test_the_stand_ins_cli_answers_as_buzzs_own(shared_stack: Stack, standins: Path, tmp_path: Path) -> None:
    assert REAL_PROGRAMS is not None
    own = said(*await people(shared_stack, REAL_PROGRAMS, tmp_path / "own"))
    assert said(*await people(shared_stack, standins, tmp_path / "standins")) == own
