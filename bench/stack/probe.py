"""Whether a stack works, told by using it (public case 38: ready means that one can post and read)."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from bench.errors import MachineLacks
from bench.nostr import Event, Key

TIMEOUT_S = 10.0

CLOCKS_APART_S = 55.0
"""Less than the 60 s that a relay allows, for its `Date` is in whole seconds and of a moment ago."""


class NotWorking(Exception):
    """The service answered otherwise than a working one would. The message says what it did."""


def write_and_read_back(
    port: int, authority: str, key: Key, *, name: str = "owner", auth_tag: Sequence[str] | None = None
) -> None:
    """Post the profile of a key to the relay on this loopback port, and find it there again.

    A profile (kind 0) is replaced by its next version, so the proof leaves one event however often made; of two within
    a second the one with the lower id stays (NIP-01), and proves as much. `authority` is the relay's canonical host and
    port, the only one it answers to; `auth_tag` is the owner's, of any other key. Raises NotWorking.
    """
    event = key.sign(0, json.dumps({"display_name": name, "name": name}), [])
    answer = post(port, authority, "/events", event, key, auth_tag)
    if not (isinstance(answer, dict) and answer.get("accepted")):
        raise NotWorking(f"the relay refused the {name}'s event: {answer}")
    found = post(port, authority, "/query", [{"kinds": [0], "authors": [key.public]}], key, auth_tag)
    if not (isinstance(found, list) and any(entry.get("created_at", 0) >= event["created_at"] for entry in found)):
        raise NotWorking(f"the relay accepted the {name}'s event and does not have it")


def greet_gateway(control: str) -> None:
    """Say hello over the gateway's control socket. Raises NotWorking."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(TIMEOUT_S)
            line.connect(control)
            line.sendall(b'{"id": 1, "op": "hello"}\n')
            with line.makefile("rb") as replies:
                reply = json.loads(replies.readline() or b"{}")
    except (OSError, ValueError) as error:
        raise NotWorking(f"the gateway's control socket does not answer: {error}") from None
    if not reply.get("ok"):
        raise NotWorking(f"the gateway's control socket answered {reply}")


def check_clock(date: str | None, now: float) -> None:
    """Raise MachineLacks where an answer's `Date` is too far from `now` (Unix seconds) for what we sign."""
    try:
        ahead_s = parsedate_to_datetime(date or "").timestamp() - now
    except ValueError:
        return
    if abs(ahead_s) > CLOCKS_APART_S:
        what = f"{abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's, and it refuses 60"
        raise MachineLacks.of("the relay's clock", what, "set both by NTP; `inv doctor` compares them")


def post(
    port: int,
    authority: str,
    path: str,
    content: Event | list[Any],
    signer: Key,
    auth_tag: Sequence[str] | None = None,
) -> Any:
    """The relay's answer to one request signed by NIP-98. Raises NotWorking; MachineLacks where its clock is another.

    A relay takes nothing signed at another time than its own; what it says of that differs from relay to relay.
    """
    body = json.dumps(content).encode()
    authorization = signer.authorize("POST", f"http://{authority}{path}", body)
    headers = {"Host": authority, "Authorization": authorization, "Content-Type": "application/json"}
    if auth_tag:
        headers["x-auth-tag"] = json.dumps(list(auth_tag))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        text, date = response.read().decode(errors="replace"), response.getheader("Date")
    except (OSError, http.client.HTTPException) as error:
        raise NotWorking(f"the relay does not answer on port {port}: {error}") from None
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        check_clock(date, time.time())
        said = " ".join(text.split())[:200]
        raise NotWorking(f"the relay answered {response.status} to POST {path}: {said}")
    return json.loads(text)
