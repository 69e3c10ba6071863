"""What an agent can do: the builtin tools, carried out with its own key on the relay and in the environment.

A tool that can't do what was asked says why in its result, and the model decides. Only a dead infrastructure raises
(RelayGone), and the end of the team's work (TeamEnded).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.channel import RelayClient, RelayRefused
from bench.harness import events, shell
from bench.harness.bounds import Conduct
from bench.harness.directory import Channel, Directory
from bench.harness.post import publish
from bench.harness.prompt import block
from bench.harness.talk import Call, Result
from bench.harness.toolspecs import Tool
from bench.nostr import Event, tag_value, tag_values

DEFAULT_READ, MOST_READ = 20, 200
"""BUZZ.md section 3: `messages get` reads 200 at most."""


class CantDo(Exception):
    """A tool can't do what was asked; the model is told why."""


@dataclass(frozen=True)
class Place:
    """Where an agent acts: its identity on the relay, who is who, the environment, and the team's conduct."""

    name: str
    client: RelayClient
    directory: Directory
    environment: shell.Environment
    conduct: Conduct
    user: str
    on_channel: Callable[[Channel, RelayClient], Awaitable[None]]
    """Called with a channel that the agent has made, before anything is said in it."""


class Toolbox:
    """The tools of one agent."""

    def __init__(self, place: Place, offered: Sequence[Tool]) -> None:
        self._place = place
        self._actions: dict[str, Callable[[dict[str, Any]], Awaitable[str]]] = {
            tool.name: getattr(self, f"_do_{tool.name}") for tool in offered
        }
        self._said: set[str] = set()
        self.done = False

    async def call(self, call: Call) -> Result:
        """Carry it out. Raises RelayGone and TeamEnded; everything else becomes a result that says what is wrong."""
        try:
            return Result(call.id, await self._action(call)(dict(call.input)))
        except (CantDo, LookupError, shell.CommandTimeout) as error:
            return Result(call.id, str(error.args[0] if isinstance(error, KeyError) else error), is_error=True)
        except RelayRefused as error:
            return Result(call.id, f"refused: {error.reason}", is_error=True)

    def _action(self, call: Call) -> Callable[[dict[str, Any]], Awaitable[str]]:
        if call.malformed:
            raise CantDo(call.malformed)
        if call.name not in self._actions:
            raise CantDo(f"there is no tool {call.name!r}; there are {', '.join(self._actions)}")
        return self._actions[call.name]

    async def _do_shell(self, given: dict[str, Any]) -> str:
        self._place.conduct.work(self._place.name)
        command = _text(given, "command")
        timeout_s = given.get("timeout_s")
        if timeout_s is not None and (isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float)):
            raise CantDo("timeout_s must be a number of seconds")
        try:
            return await shell.run(self._place.environment, command, timeout_s)
        except (OSError, RuntimeError, ValueError) as error:
            raise CantDo(f"the environment could not run it: {error}") from error

    async def _do_send_message(self, given: dict[str, Any]) -> str:
        channel = self._place.directory.channel(_optional(given, "channel"))
        named = _names(given, "mention")
        mentions = self._place.directory.publics(named)
        answered = _optional(given, "reply_to")
        reply_to = await self._event(answered, channel) if answered else None
        tags = events.message_tags(channel.id, mentions=mentions, reply_to=reply_to)
        event = await self._say(_text(given, "text"), tags)
        woken = [self._place.directory.name(public) for public in tag_values(event, "p")]
        absent = [name for name in woken if name not in channel.members]
        note = f"; not in #{channel.name}, so it won't see this: {', '.join(absent)}" if absent else ""
        return f"sent, Event ID: {event['id']}; mentioned: {', '.join(woken) or 'nobody'}{note}"

    async def _do_done(self, given: dict[str, Any]) -> str:
        text = _text(given, "text")
        text = text if text.startswith("DONE:") else f"DONE: {text}"
        directory = self._place.directory
        tags = events.message_tags(directory.main.id, mentions=[directory.public(self._place.user)])
        # Before it is published: the trial may end the moment the relay has it.
        self.done = True
        try:
            event = await self._say(text, tags)
        except RelayRefused:
            self.done = False
            raise
        return f"posted, Event ID: {event['id']}"

    async def _do_read_messages(self, given: dict[str, Any]) -> str:
        channel = self._place.directory.channel(_optional(given, "channel"))
        limit = given.get("limit", DEFAULT_READ)
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise CantDo("limit must be a whole number from 1")
        thread = _optional(given, "thread")
        kinds = [*events.MESSAGE_KINDS, events.EDIT]
        wanted: list[dict[str, Any]] = [{"#h": [channel.id], "kinds": kinds, "limit": MOST_READ}]
        if thread:
            wanted = [{"ids": [thread]}, {**wanted[0], "#e": [thread]}]
        found = {event["id"]: event for event in await self._place.client.query(wanted)}
        if not found:
            return "no messages"
        edits = {tag_value(e, "e"): e for e in self._in_order(found) if e["kind"] == events.EDIT}
        shown = [e for e in self._in_order(found) if e["kind"] != events.EDIT][-min(limit, MOST_READ) :]
        return "\n\n".join(block(_edited(event, edits), self._place.directory) for event in shown)

    async def _do_list_members(self, given: dict[str, Any]) -> str:
        channel = self._place.directory.channel(_optional(given, "channel"))
        lists = await self._place.client.query([{"kinds": [39002], "#d": [channel.id], "limit": 1}])
        if not lists:
            raise CantDo(f"you are not in #{channel.name}")
        names = [self._place.directory.name(public) for public in tag_values(lists[0], "p")]
        return f"members of {self._place.directory.title(channel.id)}: {', '.join(names)}"

    async def _do_list_channels(self, given: dict[str, Any]) -> str:
        mine = [c for c in self._place.directory.channels.values() if self._place.name in c.members]
        return "\n".join(self._place.directory.title(c.id) for c in mine) or "you are in no channel"

    async def _do_create_channel(self, given: dict[str, Any]) -> str:
        name = _text(given, "name").removeprefix("#")
        directory = self._place.directory
        members = _names(given, "members")
        keys = directory.publics(members)
        if any(name == channel.name for channel in directory.channels.values()):
            raise CantDo(f"there is a channel #{name} already")
        channel = Channel(str(uuid.uuid4()), name, self._place.name, {self._place.name})
        tags = [["h", channel.id], ["name", name], ["visibility", "private"], ["channel_type", "stream"]]
        await self._order(events.CREATE_CHANNEL, tags)
        directory.channels[channel.id] = channel
        await self._place.on_channel(channel, self._place.client)
        for member, key in zip(members, keys, strict=True):
            await self._order(events.ADD_MEMBER, [["h", channel.id], ["p", key]])
            channel.members.add(member.removeprefix("@"))
        return f"created {directory.title(channel.id)} with {', '.join(sorted(channel.members))}"

    async def _do_add_member(self, given: dict[str, Any]) -> str:
        return await self._move(given, events.ADD_MEMBER)

    async def _do_remove_member(self, given: dict[str, Any]) -> str:
        return await self._move(given, events.REMOVE_MEMBER)

    async def _move(self, given: dict[str, Any], kind: int) -> str:
        channel = self._place.directory.channel(_optional(given, "channel"))
        name = _text(given, "name").removeprefix("@")
        await self._order(kind, [["h", channel.id], ["p", self._place.directory.public(name)]])
        if kind == events.ADD_MEMBER:
            channel.members.add(name)
            return f"added {name} to #{channel.name}"
        channel.members.discard(name)
        return f"removed {name} from #{channel.name}"

    async def _do_react(self, given: dict[str, Any]) -> str:
        target = await self._event(_text(given, "event_id"), None)
        await self._order(events.REACTION, [["e", target["id"]]], _text(given, "emoji"))
        return "reacted"

    async def _do_edit_message(self, given: dict[str, Any]) -> str:
        target = await self._event(_text(given, "event_id"), None)
        if target["pubkey"] != self._place.client.key.public:
            author = self._place.directory.name(target["pubkey"])
            raise CantDo(f"only its author, {author}, can edit that message")
        tags = [["h", tag_value(target, "h") or ""], ["e", target["id"]]]
        await self._order(events.EDIT, tags, _text(given, "text"))
        return "edited"

    async def _say(self, text: str, tags: list[list[str]]) -> Event:
        self._place.conduct.message(self._place.name, len(text))
        event = self._place.client.key.sign(events.MESSAGE, text, tags)
        while event["id"] in self._said:
            # The same words within one second would be the same event, and reach nobody a second time.
            event = self._place.client.key.sign(events.MESSAGE, text, tags, event["created_at"] + 1)
        self._said.add(event["id"])
        await publish(self._place.client, event)
        return event

    async def _order(self, kind: int, tags: list[list[str]], content: str = "") -> None:
        await publish(self._place.client, self._place.client.key.sign(kind, content, tags))
        self._place.conduct.publish(self._place.name)
        if kind in events.CHANNEL_ORDERS:
            self._place.conduct.work(self._place.name)

    async def _event(self, event_id: str, channel: Channel | None) -> Event:
        """A message by its id. Raises CantDo where the agent sees none such."""
        found = self._place.directory.arrived.get(event_id)
        if found is None and len(event_id) == 64:
            stored = await self._place.client.query([{"ids": [event_id]}])
            found = stored[0] if stored else None
        if found is None:
            raise CantDo(f"there is no message with the Event ID {event_id!r}")
        if channel is not None and tag_value(found, "h") != channel.id:
            raise CantDo(f"that message is not in #{channel.name}: give its `channel`")
        return found

    def _in_order(self, found: Mapping[str, Event]) -> list[Event]:
        """In order of arrival where it is known; the relay orders within one second by id (BUZZ.md section 3)."""
        arrival = {event_id: number for number, event_id in enumerate(self._place.directory.arrived)}
        return sorted(found.values(), key=lambda e: (arrival.get(e["id"], len(arrival)), e["created_at"]))


def _edited(event: Event, edits: Mapping[str | None, Event]) -> Event:
    edit = edits.get(event["id"])
    if edit is None or edit["pubkey"] != event["pubkey"]:
        return event
    return {**event, "content": edit["content"]}


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise CantDo(f"{name} must be a text")
    return value


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise CantDo(f"{name} must be a text")
    return value or None


def _names(given: Mapping[str, Any], name: str) -> list[str]:
    value = given.get(name) or []
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CantDo(f"{name} must be a list of names")
    return list(dict.fromkeys(value))
