"""buzz-acp: a relay's mentions become an agent's turns (BUZZ.md sections 3 and 4), in the capture's order."""

from __future__ import annotations

import itertools
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from nip44 import encrypt
from prompt import Shown, thread_of
from relay import Bridge, Refused, Socket

TYPING_S = 3
PRESENCE_S = 60
FIRST_RETRY_S = 5.0
TICK_S = float(os.environ.get("STANDIN_TICK_S", "30"))
"""A failed turn is tried again not when its pause is over, but when something comes, or at the next tick after it."""
RETRIES = 10
MOST_IN_A_PROMPT = 50
BEFORE_S = 5
"""What was said so long before a subscription is shown, too."""
ADDED, REMOVED = 44100, 44101
COUNTED = ("inputTokens", "outputTokens", "cacheReadTokens")
SEEN, AT_WORK = "\N{EYES}", "\N{SPEECH BALLOON}"


def log(text, of="buzz_acp"):
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}  INFO {of}: {text}", flush=True)


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
        self._numbers = itertools.count()
        self.sessions = {}
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
                log(f"tool_call: {update['title']} ({update['kind']})", "acp::tool")
            if update.get("sessionUpdate") == "usage_update":
                self.used = update
        raise BrokenPipeError("the agent has ended")

    def session(self, channel, bridge):
        if channel not in self.sessions:
            bridge.query({"kinds": [40100], "limit": 1, "#h": [channel]})
            told = Path(os.environ["BUZZ_ACP_SYSTEM_PROMPT_FILE"]).read_text(encoding="utf-8")
            system = f"[Workspace]\n{Path.cwd()}\n\n[System]\n{told}"
            names = ("BUZZ_RELAY_URL", "BUZZ_PRIVATE_KEY", "BUZZ_AUTH_TAG", "BUZZ_ACP_DISPLAY_NAME")
            env = [{"name": name, "value": os.environ[name]} for name in names if name in os.environ]
            command = os.environ["BUZZ_ACP_MCP_COMMAND"]
            server = {"name": Path(command).stem, "command": command, "args": [], "env": env}
            params = {"cwd": str(Path.cwd()), "mcpServers": [server], "systemPrompt": system}
            self.sessions[channel] = self.ask("session/new", params)["result"]["sessionId"]
            log(f"created session {self.sessions[channel]} for channel {channel}", "pool::session")
        return self.sessions[channel]


class Queues:
    """What waits to be shown, by channel, and which channels wait after a failure."""

    def __init__(self):
        self._came = threading.Condition()
        self._numbers = itertools.count()
        self._waiting = {}
        self._not_before = {}
        self._failures = {}
        self._began = time.monotonic()

    def put(self, channel, event):
        with self._came:
            self._waiting.setdefault(channel, []).append((next(self._numbers), event))
            self._came.notify()

    def drop(self, channel):
        with self._came:
            for known in (self._waiting, self._not_before, self._failures):
                known.pop(channel, None)

    def next(self):
        """(channel, its events): of that channel which has waited longest."""
        with self._came:
            while True:
                now = time.monotonic()
                free = {c: q for c, q in self._waiting.items() if q and self._not_before.get(c, 0) <= now}
                if free:
                    channel = min(free, key=lambda c: free[c][0][0])
                    batch = self._waiting[channel][:MOST_IN_A_PROMPT]
                    del self._waiting[channel][:MOST_IN_A_PROMPT]
                    return channel, sorted((event for _, event in batch), key=lambda event: event["created_at"])
                self._came.wait(TICK_S - (now - self._began) % TICK_S)

    def succeeded(self, channel):
        self._failures.pop(channel, None)

    def failed(self, channel, batch):
        """Whether the batch is tried again."""
        with self._came:
            failures = self._failures[channel] = self._failures.get(channel, 0) + 1
            if failures > RETRIES:
                self._failures.pop(channel)
                return False
            delay = min(FIRST_RETRY_S * 2 ** (failures - 1), 300) * random.uniform(0.8, 1.2)
            log(
                f"requeueing failed batch with backoff channel_id={channel} attempt={failures} max={RETRIES} "
                f"delay_secs={delay} events={len(batch)}",
                "buzz_acp::queue",
            )
            self._not_before[channel] = time.monotonic() + delay
            self._waiting[channel] = [(-1, event) for event in batch] + self._waiting.get(channel, [])
            return True


class Acp:
    def __init__(self):
        self.relay_url = os.environ["BUZZ_RELAY_URL"]
        tag = os.environ.get("BUZZ_AUTH_TAG")
        self.auth_tag = json.loads(tag) if tag else None
        self.bridge = Bridge(self.relay_url, os.environ["BUZZ_PRIVATE_KEY"], self.auth_tag)
        self.key = self.bridge.key
        self.seen = set()
        self.queues = Queues()
        self.marks = queue.SimpleQueue()
        self.typing_in = None
        self.since = int(time.time()) - BEFORE_S
        self.channels = {}
        self.gone = set()
        self.socket = None
        self.reported = {}

    def run(self):
        handling = os.environ.get("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "steer")
        log(f"buzz-acp starting: relay={self.relay_url} meh={handling}")
        self.agent = Agent()
        self.agent.ask(
            "initialize", {"protocolVersion": 2, "clientInfo": {"name": "buzz-acp"}, "clientCapabilities": {}}
        )
        log("agent_pool_ready agents=1")
        self.connect()
        for endless in (self.listen, self.beat, self.mark):
            threading.Thread(target=endless, daemon=True).start()
        while True:
            self.work(*self.queues.next())

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
        self.socket.send(["REQ", "membership-notif", {"kinds": [ADDED, REMOVED], "#p": [me], "since": self.since}])
        log("subscribed to membership notifications")
        rolls = self.bridge.query({"kinds": [39002], "#p": [me]})
        ids = [tag[1] for roll in rolls for tag in roll["tags"] if tag[0] == "d"]
        log(f"discovered {len(ids)} channel(s)")
        for about in self.bridge.query({"kinds": [39000], "#d": ids}) if ids else ():
            found = {tag[0]: tag[1] for tag in about["tags"] if len(tag) > 1}
            if found.get("archived") != "true":
                self.subscribe(found["d"], found.get("name", ""), self.since)
                log(f"subscribed to channel {found['d']}")
        self.presence("online")
        log("presence set to online")

    def subscribe(self, channel, name, since):
        self.channels[channel] = name
        wanted = {"kinds": [9, 46010, 40007], "#h": [channel], "#p": [self.key.public], "since": since}
        self.socket.send(["REQ", f"ch-{channel}", wanted])

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
            elif frame[0] == "CLOSED" and frame[1].startswith("ch-"):
                self.channels.pop(frame[1].removeprefix("ch-"), None)

    def take(self, event):
        if event["id"] in self.seen:
            return
        self.seen.add(event["id"])
        channel = channel_of(event)
        if event["kind"] == ADDED:
            self.gone.discard(channel)
            if channel not in self.channels:
                log(f"membership notification: subscribing to new channel channel_id={channel}")
                # From its own time on: a mention may have come before the subscription.
                self.subscribe(channel, None, event["created_at"] - BEFORE_S)
        elif event["kind"] == REMOVED:
            log(f"membership notification: unsubscribing from channel channel_id={channel}")
            self.gone.add(channel)
            if self.channels.pop(channel, None) is not None:
                self.socket.send(["CLOSE", f"ch-{channel}"])
            self.queues.drop(channel)
            if channel != self.typing_in:
                self.agent.sessions.pop(channel, None)
        elif event["kind"] == 9 and event["pubkey"] != self.key.public:
            if self.typing_in and os.environ.get("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "steer") == "steer":
                # Handed to the running turn, which looks at it before its next call: in its last one it is lost.
                log("steered into the running turn")
                return
            self.queues.put(channel, event)
            self.marks.put((self.react, event["id"], SEEN))

    def mark(self):
        """Reactions are given and taken back beside the turns, and what fails there stops nothing."""
        while True:
            do, *given = self.marks.get()
            try:
                do(*given)
            except (OSError, Refused) as error:
                log(f"reaction: {error}")

    def react(self, target, emoji):
        self.bridge.publish(7, emoji, [["e", target]])

    def take_back(self, target, emoji):
        for event in self.bridge.query({"authors": [self.key.public], "kinds": [7], "#e": [target]}):
            if event["content"] == emoji:
                self.bridge.publish(5, "", [["e", event["id"]]])
                return

    def work(self, channel, batch):
        answer = self.turn(channel, batch)
        if channel in self.gone:
            self.agent.sessions.pop(channel, None)
        if "error" not in answer:
            self.queues.succeeded(channel)
            log(f"turn complete for channel {channel}: {answer['result']['stopReason']}", "pool::prompt")
            return
        said = f"Agent reported error (code {answer['error']['code']}): {answer['error']['message']}"
        log(f"session_prompt error: {said}", "pool::prompt")
        if channel not in self.gone and not self.queues.failed(channel, batch):
            notice = f"I couldn't process the last request after multiple retries ({said})."
            self.bridge.publish(9, notice, [["h", channel]])

    def turn(self, channel, batch):
        session = self.agent.session(channel, self.bridge)
        if self.channels.get(channel) is None and channel not in self.gone:
            for about in self.bridge.query({"kinds": [39000], "#d": [channel]}):
                self.channels[channel] = next(tag[1] for tag in about["tags"] if tag[0] == "name")
        thread = self.thread(channel, thread_of(batch[-1])["root"])
        people = {event["pubkey"] for event in batch + thread}
        people |= {tag[1] for event in batch for tag in event["tags"] if tag[0] == "p"}
        profiles = {event["pubkey"]: event for event in self.bridge.query({"authors": sorted(people), "kinds": [0]})}
        shown = Shown(channel, self.channels.get(channel), profiles)
        for event in batch:
            self.marks.put((self.react, event["id"], AT_WORK))
        log(f"turn starting for channel {channel}", "pool::prompt")
        self.typing_in, self.agent.used = channel, None
        try:
            prompt = [{"type": "text", "text": text} for text in shown.prompt(batch, thread)]
            answer = self.agent.ask("session/prompt", {"sessionId": session, "prompt": prompt})
            self.report(channel, session, answer)
            return answer
        finally:
            self.typing_in = None
            for event in batch:
                for emoji in (SEEN, AT_WORK):
                    self.marks.put((self.take_back, event["id"], emoji))

    def thread(self, channel, root):
        """The messages of a thread, in order."""
        if root is None:
            return []
        replies = {"kinds": [9, 40002], "#e": [root], "#h": [channel], "limit": 13}
        own = {**replies, "authors": [self.key.public], "limit": 1}
        found = {event["id"]: event for event in self.bridge.query({"ids": [root]}, replies, own)}
        return sorted(found.values(), key=lambda event: (event["id"] != root, event["created_at"]))

    def report(self, channel, session, answer):
        """Publish the turn's metrics (kind 44200) for the owner alone, also of one that failed if it used anything."""
        used = self.agent.used
        if used is None or self.auth_tag is None:
            return
        number, before = self.reported.get(session, (0, None))
        cumulative = counts(*(used[f"accumulated{kind}Tokens"] for kind in ("Input", "Output", "CachedInput")))
        turn = before and counts(*(cumulative[key] - before[key] for key in COUNTED))
        self.reported[session] = number + 1, cumulative
        metrics = {
            "harness": Path(os.environ["BUZZ_ACP_AGENT_COMMAND"]).name,
            "model": used["model"],
            "channelId": channel,
            "sessionId": session,
            "turnId": os.urandom(16).hex(),
            "turnSeq": number + 1,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "turn": turn,
            "cumulative": cumulative,
            "deltaReliable": turn is not None,
            "stopReason": answer.get("result", {}).get("stopReason", "error"),
        }
        owner = self.auth_tag[1]
        sealed = encrypt(self.key.shared_x(owner), json.dumps(metrics))
        try:
            self.bridge.publish(44200, sealed, [["p", owner], ["agent", self.key.public]])
        except (OSError, Refused) as error:
            log(f"NIP-AM: publish failed: {error}", "pool::metrics")


def counts(shown, said, cached):
    return dict(zip(COUNTED, (shown, said, cached), strict=True)) | {"totalTokens": None, "costUsd": None}


def channel_of(event):
    return next(tag[1] for tag in event["tags"] if tag[0] == "h")


def main() -> int:
    try:
        Acp().run()
    except (OSError, Refused, KeyError) as error:
        log(f"error: {error!r}")
        return 1
    finally:
        sys.stdout.flush()
    return 0
