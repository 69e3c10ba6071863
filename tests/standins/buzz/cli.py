"""The commands of `buzz` that scripts use, as they are on the wire (BUZZ.md section 3, "CLI on the wire")."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import uuid

from relay import Bridge, Refused

SHOWN = ("id", "pubkey", "kind", "content", "created_at", "tags")


class Wrong(Exception):
    """(exit code, category, what is wrong)."""


class Parser(argparse.ArgumentParser):
    """One that tells what is wrong with a command as everything else that is wrong."""

    def error(self, message):
        raise Wrong(1, "user_error", message)


def main() -> int:
    tag = os.environ.get("BUZZ_AUTH_TAG")
    bridge = Bridge(os.environ["BUZZ_RELAY_URL"], os.environ["BUZZ_PRIVATE_KEY"], json.loads(tag) if tag else None)
    try:
        given = _arguments()
        answer = given.run(bridge, given)
    except Wrong as wrong:
        return _failed(*wrong.args)
    except Refused as error:
        denied = error.status in (401, 403)
        return _failed(3 if denied else 2, "auth_error" if denied else "relay_error", str(error))
    except OSError as error:
        return _failed(2, "network_error", f"network error: {error}")
    print(json.dumps(answer, separators=(",", ":"), ensure_ascii=False, sort_keys=given.do != "search"))
    return 0


def _failed(code, category, message):
    print(json.dumps({"error": category, "message": message, "retryable": False}), file=sys.stderr)
    return code


def _arguments():
    parser = Parser("buzz")
    rooms = parser.add_subparsers(dest="room", required=True)
    commands = {}
    for name, run, words in (
        ("messages send", _send, "channel! content! mention* reply-to"),
        ("messages get", _get, "channel! limit"),
        ("messages thread", _thread, "channel! event! limit"),
        ("messages edit", _edit, "event! content!"),
        ("channels create", _create, "name! type! visibility!"),
        ("channels list", _list, "limit"),
        ("channels search", _search, "query! exact?"),
        ("channels members", _members, "channel!"),
        ("channels add-member", _add, "channel! pubkey! role"),
        ("channels remove-member", _remove, "channel! pubkey!"),
        ("reactions add", _react, "event! emoji!"),
    ):
        room, do = name.split()
        if room not in commands:
            commands[room] = rooms.add_parser(room).add_subparsers(dest="do", required=True)
        command = commands[room].add_parser(do)
        command.set_defaults(run=run)
        for word in words.split():
            flag = f"--{word.rstrip('!*?')}"
            if word.endswith("*"):
                command.add_argument(flag, action="append", default=[])
            elif word.endswith("?"):
                command.add_argument(flag, action="store_true")
            else:
                command.add_argument(flag, required=word.endswith("!"), type=int if word == "limit" else str)
    for flag, word in itertools.pairwise(sys.argv[1:]):
        # Not what argparse says: a text with a space in it would be none of its options.
        if flag.startswith("--") and "=" not in flag and flag != "--exact" and word[:1] == "-" != word:
            parser.error(f"unexpected argument '{word}' found")
    return parser.parse_args()


def _write(bridge, kind, content, tags, **more):
    """What all writing commands print, with what one adds. The attestation is on everything that the CLI signs."""
    event = bridge.publish(kind, content, tags + ([bridge.auth_tag] if bridge.auth_tag else []))
    return {"accepted": True, "event_id": event, "message": "", **more}


def _send(bridge, given):
    channel, text = given.channel, sys.stdin.read() if given.content == "-" else given.content
    mentions = list(given.mention)
    bare = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    members = []
    if mentions or "@" in bare:
        (roll,) = bridge.query({"#d": [channel], "kinds": [39002], "limit": 1})
        members = [tag[1] for tag in roll["tags"] if tag[0] == "p"]
    if "@" in bare:
        mentions += _named(bridge, members, bare, may_miss=bool(given.mention))
    mentions = [public for public in dict.fromkeys(mentions) if public != bridge.key.public]
    if missing := [public for public in mentions if public not in members]:
        what = "mentioned pubkeys are not channel members; add them explicitly before retrying"
        raise Wrong(1, "user_error", json.dumps({"message": what, "missing_member_pubkeys": missing}))
    tags = [["h", channel]]
    if given.reply_to:
        parent = _event(bridge, given.reply_to, "parent event")
        marked = {tag[3]: tag[1] for tag in parent["tags"] if len(tag) > 3 and tag[0] == "e"}
        if root := marked.get("root") or marked.get("reply"):
            tags.append(["e", root, "", "root"])
        tags.append(["e", given.reply_to, "", "reply"])
    bridge.query({"#d": [channel], "kinds": [39000], "limit": 1})
    return _write(bridge, 9, text, tags + [["p", public] for public in mentions], mention_pubkeys=mentions)


def _named(bridge, members, text, *, may_miss):
    """The keys of the members whom a text names."""
    profiles = bridge.query({"authors": members, "kinds": [0], "limit": len(members)})
    names = {json.loads(event["content"]).get("display_name", "").lower(): event["pubkey"] for event in profiles}
    found = []
    for word in re.findall(r"(?:^|\s)@([A-Za-z0-9._-]+)", text):
        public = names.get(word.lower()) or names.get(word.lower().rstrip(".-_"))
        if public:
            found.append(public)
        elif not may_miss:
            what = f"mention '@{word}' does not match a current channel member; retry with --mention <pubkey>"
            raise Wrong(1, "user_error", what)
    return found


def _event(bridge, identity, what="event"):
    found = bridge.query({"ids": [identity], "limit": 1} if what != "event" else {"ids": [identity]})
    if not found:
        raise Wrong(4, "error", f"{what} {identity} not found")
    return found[0]


def _get(bridge, given):
    kinds = [9, 40002, 40008, 45001, 45003]
    return _shown(bridge.query({"#h": [given.channel], "kinds": kinds, "limit": min(given.limit or 50, 200)}))


def _thread(bridge, given):
    kinds = [9, 40002, 40003, 40008, 45003]
    replies = {"#e": [given.event], "#h": [given.channel], "kinds": kinds, "limit": min(given.limit or 100, 500)}
    return _shown(bridge.query(replies, {"ids": [given.event], "limit": 1}))


def _shown(events):
    return [{key: event[key] for key in SHOWN} for event in sorted(events, key=lambda event: event["created_at"])]


def _edit(bridge, given):
    channel = next(tag[1] for tag in _event(bridge, given.event)["tags"] if tag[0] == "h")
    return _write(bridge, 40003, given.content, [["h", channel], ["e", given.event]])


def _create(bridge, given):
    channel = str(uuid.uuid4())
    tags = [["h", channel], ["name", given.name], ["visibility", given.visibility], ["channel_type", given.type]]
    return _write(bridge, 9007, "", tags, channel_id=channel)


def _channels(bridge, limit):
    for event in bridge.query({"kinds": [39000], "limit": limit}):
        yield event, {tag[0]: tag[1] if len(tag) > 1 else None for tag in event["tags"]}


def _list(bridge, given):
    return [
        {
            "channel_id": about["d"],
            "created_at": event["created_at"],
            "description": about.get("about", ""),
            "name": about.get("name", ""),
        }
        for event, about in _channels(bridge, given.limit or 500)
    ]


def _search(bridge, given):
    wanted, found = given.query.lower(), []
    for _, about in _channels(bridge, 1000):
        name = about.get("name", "")
        if (wanted == name.lower() if given.exact else wanted in name.lower()) and about.get("archived") != "true":
            one = {"channel_id": about["d"], "name": name, "channel_type": about.get("t")}
            one |= {"visibility": "private" if "private" in about else "public", "archived": False}
            found.append(one | {key: about.get(key) for key in ("about", "topic", "purpose")})
    return sorted(found, key=lambda one: (one["name"], one["channel_id"]))


def _members(bridge, given):
    rolls = bridge.query({"#d": [given.channel], "kinds": [39002], "limit": 1})
    return [
        {"pubkey": tag[1], "role": tag[3] if len(tag) > 3 and tag[3] else "member"}
        for roll in rolls
        for tag in roll["tags"]
        if tag[0] == "p"
    ]


def _add(bridge, given):
    role = [["role", given.role]] if given.role else []
    return _write(bridge, 9000, "", [["h", given.channel], ["p", given.pubkey], *role])


def _remove(bridge, given):
    return _write(bridge, 9001, "", [["h", given.channel], ["p", given.pubkey]])


def _react(bridge, given):
    return _write(bridge, 7, given.emoji, [["e", given.event]])
