"""`buzz messages send` and `buzz messages get`, as they are on the wire (BUZZ.md section 3, "CLI on the wire")."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys

from relay import Bridge, Refused


def main() -> int:
    parser = argparse.ArgumentParser("buzz")
    room = (
        parser.add_subparsers(dest="room", required=True)
        .add_parser("messages")
        .add_subparsers(dest="do", required=True)
    )
    send, get = room.add_parser("send"), room.add_parser("get")
    for command in (send, get):
        command.add_argument("--channel", required=True)
    send.add_argument("--content", required=True)
    send.add_argument("--mention", action="append", default=[])
    send.add_argument("--reply-to")
    get.add_argument("--limit", type=int, default=50)
    given = parser.parse_args()
    tag = os.environ.get("BUZZ_AUTH_TAG")
    bridge = Bridge(os.environ["BUZZ_RELAY_URL"], os.environ["BUZZ_PRIVATE_KEY"], json.loads(tag) if tag else None)
    try:
        answer = _send(bridge, given) if given.do == "send" else _get(bridge, given)
    except (Refused, OSError) as error:
        print(json.dumps({"error": "relay_error", "message": str(error), "retryable": False}), file=sys.stderr)
        return 2
    if answer is None:
        return 1
    print(json.dumps(answer))
    return 0


def _send(bridge, given):
    channel = given.channel
    mentions, text = list(given.mention), given.content
    if mentions or "@" in text:
        (roll,) = bridge.query({"#d": [channel], "kinds": [39002], "limit": 1})
        members = [tag[1] for tag in roll["tags"] if tag[0] == "p"]
        profiles = bridge.query({"authors": members, "kinds": [0], "limit": len(members)})
        names = {json.loads(event["content"]).get("display_name", ""): event["pubkey"] for event in profiles}
        for word in re.findall(r"(?:^|\s)@([A-Za-z0-9._-]+)", re.sub(r"`[^`]*`", "", text)):
            if word in names:
                mentions.append(names[word])
            elif not given.mention:
                what = f"mention '@{word}' does not match a current channel member"
                print(json.dumps({"error": "usage", "message": what, "retryable": False}), file=sys.stderr)
                return None
    tags = [["h", channel]]
    if given.reply_to:
        (parent,) = bridge.query({"ids": [given.reply_to], "limit": 1})
        marked = {tag[3]: tag[1] for tag in parent["tags"] if len(tag) > 3 and tag[0] == "e"}
        if root := marked.get("root") or marked.get("reply"):
            tags.append(["e", root, "", "root"])
        tags.append(["e", given.reply_to, "", "reply"])
    bridge.query({"#d": [channel], "kinds": [39000], "limit": 1})
    tags += [["p", public] for public in dict.fromkeys(mentions)]
    if bridge.auth_tag:
        tags.append(bridge.auth_tag)
    event = bridge.publish(9, text, tags)
    return {"accepted": True, "event_id": event, "mention_pubkeys": mentions, "message": ""}


def _get(bridge, given):
    kinds = [9, 40002, 40008, 45001, 45003]
    return bridge.query({"#h": [given.channel], "kinds": kinds, "limit": min(given.limit, 200)})[::-1]
