"""buzz-acp: a relay's mentions become an agent's turns (BUZZ.md sections 3 and 4), in the capture's order."""

from __future__ import annotations

import collections
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from nip44 import encrypt
from relay import Bridge, Refused, Socket

TYPING_S = 3
PRESENCE_S = 60
FIRST_RETRY_S = 5.0
DEAD_LETTER = 10


def log(text):
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}  INFO buzz_acp: {text}", flush=True)


class Agent:
    """The child that speaks ACP. Requests one at a time; notifications are told in the log."""

    def __init__(self):
        arguments = [word for word in os.environ.get("BUZZ_ACP_AGENT_ARGS", "acp").split(",") if word]
        self.process = subprocess.Popen(
            [os.environ.get("BUZZ_ACP_AGENT_COMMAND", "goose"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        self._numbers = iter(range(1, 10**9))
        self._sessions = {}
        self.used = None

    def ask(self, method, params):
        number = next(self._numbers)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(frame, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == number and "method" not in answer:
                return answer
            update = answer.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "tool_call":
                log(f"tool_call: {update['title']}")
            if update.get("sessionUpdate") == "usage_update":
                self.used = update
        raise BrokenPipeError("the agent has ended")

    def session(self, channel, bridge):
        if channel not in self._sessions:
            bridge.query({"kinds": [40100], "limit": 1, "#h": [channel]})
            told = Path(os.environ["BUZZ_ACP_SYSTEM_PROMPT_FILE"]).read_text(encoding="utf-8")
            system = f"[Workspace]\n{Path.cwd()}\n\n[System]\n{told}"
            names = ("BUZZ_RELAY_URL", "BUZZ_PRIVATE_KEY", "BUZZ_AUTH_TAG", "BUZZ_ACP_DISPLAY_NAME")
            env = [{"name": name, "value": os.environ[name]} for name in names if name in os.environ]
            server = {"name": "buzz-dev-mcp", "command": os.environ["BUZZ_ACP_MCP_COMMAND"], "args": [], "env": env}
            params = {"cwd": str(Path.cwd()), "mcpServers": [server], "systemPrompt": system}
            self._sessions[channel] = self.ask("session/new", params)["result"]["sessionId"]
            log(f"created session {self._sessions[channel]} for channel {channel}")
        return self._sessions[channel]


class Acp:
    def __init__(self):
        self.relay_url = os.environ["BUZZ_RELAY_URL"]
        tag = os.environ.get("BUZZ_AUTH_TAG")
        self.auth_tag = json.loads(tag) if tag else None
        self.bridge = Bridge(self.relay_url, os.environ["BUZZ_PRIVATE_KEY"], self.auth_tag)
        self.key = self.bridge.key
        self.seen = set()
        self.waiting = collections.deque()
        self.came = threading.Condition()
        self.typing_in = None
        self.since = int(time.time()) - 5
        self.channels = {}
        self.socket = None
        self.turns = 0

    def run(self):
        handling = os.environ.get("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "steer")
        log(f"buzz-acp starting: relay={self.relay_url} multi={handling}")
        self.agent = Agent()
        self.agent.ask(
            "initialize", {"protocolVersion": 2, "clientInfo": {"name": "buzz-acp"}, "clientCapabilities": {}}
        )
        log("agent_pool_ready agents=1")
        self.connect()
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.beat, daemon=True).start()
        self.work()

    def connect(self):
        for pause in (1, 2, 4, 8, 16, None):
            try:
                self.socket = Socket(self.relay_url)
                break
            except OSError:
                if pause is None:
                    raise
                time.sleep(pause)
        _, challenge = self.socket.receive()
        tags = [["relay", self.relay_url], ["challenge", challenge], *([self.auth_tag] if self.auth_tag else [])]
        self.socket.send(["AUTH", self.key.event(22242, "", tags)])
        answer = self.socket.receive()
        if answer[0] != "OK" or not answer[2]:
            raise Refused(str(answer))
        log(f"connected to relay at {self.relay_url}")
        me = self.key.public
        self.socket.send(["REQ", "membership-notif", {"kinds": [44100, 44101], "#p": [me], "since": self.since}])
        log("subscribed to membership notifications")
        rolls = self.bridge.query({"kinds": [39002], "#p": [me]})
        ids = [tag[1] for roll in rolls for tag in roll["tags"] if tag[0] == "d"]
        log(f"discovered {len(ids)} channel(s)")
        for about in self.bridge.query({"kinds": [39000], "#d": ids}) if ids else ():
            found = {tag[0]: tag[1] for tag in about["tags"] if len(tag) > 1}
            if found.get("archived") != "true":
                self.subscribe(found["d"], found.get("name", ""))
        self.presence("online")
        log("presence set to online")

    def subscribe(self, channel, name):
        self.channels[channel] = name
        wanted = {"kinds": [9, 46010, 40007], "#h": [channel], "#p": [self.key.public], "since": self.since}
        self.socket.send(["REQ", f"ch-{channel}", wanted])
        log(f"subscribed to channel {channel}")

    def presence(self, word):
        self.socket.send(["EVENT", self.key.event(20001, word)])

    def beat(self):
        last = time.monotonic()
        while True:
            time.sleep(TYPING_S)
            try:
                if self.typing_in:
                    self.socket.send(["EVENT", self.key.event(20002, "", [["h", self.typing_in]])])
                if time.monotonic() - last > PRESENCE_S:
                    last = time.monotonic()
                    self.presence("online")
            except OSError:
                continue

    def listen(self):
        while True:
            frame = self.socket.receive()
            if frame is None:
                log("connection lost, reconnecting")
                self.connect()
            elif frame[0] == "EVENT":
                self.take(frame[2])

    def take(self, event):
        if event["kind"] == 44100:
            channel = next(tag[1] for tag in event["tags"] if tag[0] == "h")
            if channel not in self.channels:
                self.subscribe(channel, "")
            return
        if event["kind"] != 9 or event["pubkey"] == self.key.public or event["id"] in self.seen:
            return
        self.seen.add(event["id"])
        if self.typing_in and os.environ.get("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "steer") == "steer":
            # Handed to the running turn, which looks at it before its next call: in its last one it is lost.
            log("steered into the running turn")
            return
        with self.came:
            self.waiting.append(event)
            self.came.notify()

    def work(self):
        failures = 0
        while True:
            with self.came:
                self.came.wait_for(lambda: self.waiting)
                channel = channel_of(self.waiting[0])
                batch = [event for event in self.waiting if channel_of(event) == channel]
                self.waiting = collections.deque(event for event in self.waiting if event not in batch)
            answer = self.turn(channel, batch)
            if "error" not in answer:
                failures = 0
                log(f"turn complete for channel {channel}: {answer['result']['stopReason']}")
                continue
            failures += 1
            log(f"session_prompt error: {answer['error']['message']}")
            if failures >= DEAD_LETTER:
                self.bridge.publish(9, "I could not work on this.", [["h", channel]])
                failures = 0
                continue
            delay = FIRST_RETRY_S * 2 ** (failures - 1) * random.uniform(0.8, 1.2)
            log(f"requeueing failed batch with backoff attempt={failures} max={DEAD_LETTER} delay_secs={delay:.1f}")
            time.sleep(delay)
            with self.came:
                self.waiting.extendleft(reversed(batch))

    def turn(self, channel, batch):
        log(f"turn starting for channel {channel}")
        marks = [(event["id"], self.bridge.publish(7, "\N{EYES}", [["e", event["id"]]])) for event in batch]
        session = self.agent.session(channel, self.bridge)
        authors = sorted({event["pubkey"] for event in batch} | {self.key.public})
        found = self.bridge.query({"authors": authors, "kinds": [0]})
        names = {event["pubkey"]: json.loads(event["content"]).get("display_name", "") for event in found}
        marks += [(event["id"], self.bridge.publish(7, "\N{SPEECH BALLOON}", [["e", event["id"]]])) for event in batch]
        context = (
            f"[Context]\nScope: channel\nChannel: {self.channels[channel]} (#{channel})\nHint: answer in the channel"
        )
        texts = [shown(event, self.channels[channel], names) for event in batch]
        if len(batch) == 1:
            events = "[Buzz event: @mention]\n" + texts[0]
        else:
            events = f"[Buzz events - {len(batch)} events]\n" + "\n".join(
                f"--- Event {number} ---\n{text}" for number, text in enumerate(texts, 1)
            )
        self.typing_in = channel
        try:
            prompt = [{"type": "text", "text": context}, {"type": "text", "text": events}]
            answer = self.agent.ask("session/prompt", {"sessionId": session, "prompt": prompt})
            self.report(channel, session, answer)
            return answer
        finally:
            self.typing_in = None
            for target, mark in marks:
                self.bridge.query({"authors": [self.key.public], "kinds": [7], "#e": [target]})
                self.bridge.publish(5, "", [["e", mark]])

    def report(self, channel, session, answer):
        """Publish the turn's metrics (kind 44200) for the owner alone: the sums of the session so far."""
        used, self.agent.used = self.agent.used, None
        if used is None or self.auth_tag is None:
            return
        self.turns += 1
        sums = {
            "inputTokens": used["accumulatedInputTokens"],
            "outputTokens": used["accumulatedOutputTokens"],
            "totalTokens": None,
            "costUsd": None,
        }
        metrics = {
            "harness": "buzz-agent",
            "model": used["model"],
            "channelId": channel,
            "sessionId": session,
            "turnId": f"turn-{self.turns}",
            "turnSeq": self.turns,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "turn": None,
            "cumulative": sums,
            "deltaReliable": False,
            "stopReason": answer.get("result", {}).get("stopReason", "error"),
        }
        owner = self.auth_tag[1]
        sealed = encrypt(self.key.shared_x(owner), json.dumps(metrics))
        self.bridge.publish(44200, sealed, [["p", owner], ["agent", self.key.public]])


def channel_of(event):
    return next(tag[1] for tag in event["tags"] if tag[0] == "h")


def shown(event, channel, names):
    mentions = [tag[1] for tag in event["tags"] if tag[0] == "p"]
    return "\n".join(
        [
            f"Event ID: {event['id']}",
            f"Channel: {channel} (#{channel_of(event)})",
            f"Kind: {event['kind']}",
            f"From: {names.get(event['pubkey'], '?')} (hex: {event['pubkey']})",
            f"Time: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(event['created_at']))}",
            f"Content: {event['content']}",
            f"Tags: {json.dumps(event['tags'])}",
            f"Parsed: mentions={json.dumps(mentions)}",
        ]
    )


def main() -> int:
    try:
        Acp().run()
    except (OSError, Refused, KeyError) as error:
        log(f"error: {error!r}")
        return 1
    finally:
        sys.stdout.flush()
    return 0
