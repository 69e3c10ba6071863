"""A relay as the stand-ins reach it: the HTTP bridge, and a websocket with NIP-42 (BUZZ.md sections 1 to 3)."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import struct
import threading
from pathlib import Path
from urllib.parse import urlsplit

from nostr import Key


class Refused(Exception):
    """The relay's own words, and the HTTP status where there is one."""

    def __init__(self, words, status=None):
        super().__init__(words)
        self.status = status


def trace(way, value):
    """Note what goes out, where a test asks for it."""
    if path := os.environ.get("STANDIN_TRACE"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"way": way, "sent": value, "by": os.environ["BUZZ_PRIVATE_KEY"]}) + "\n")


class Bridge:
    """`POST /events` and `/query` for one key, each thread on a connection of its own."""

    def __init__(self, relay_url, secret, auth_tag):
        self.url = "http" + relay_url.rstrip("/").removeprefix("ws")
        self.key, self.auth_tag = Key(secret), auth_tag
        self._own = threading.local()

    def post(self, path, value):
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        headers = {"Authorization": self.key.authorization(self.url + path, body), "Content-Type": "application/json"}
        if self.auth_tag:
            headers["x-auth-tag"] = json.dumps(self.auth_tag, separators=(",", ":"))
        trace(path, value)
        answer, text = self._exchange(path, body, headers)
        if answer.status != 200:
            raise Refused(f"relay error {answer.status}: {text.decode(errors='replace')}", answer.status)
        return json.loads(text)

    def _exchange(self, path, body, headers, *, again=True):
        """The answer, over the thread's connection; once more where that was cut meanwhile."""
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self._own.connection = None
            if not again:
                raise
            return self._exchange(path, body, headers, again=False)

    def query(self, *filters):
        return self.post("/query", list(filters))

    def publish(self, kind, content="", tags=()):
        answer = self.post("/events", self.key.event(kind, content, tags))
        if not answer["accepted"]:
            raise Refused(answer["message"])
        return answer["event_id"]


class Socket:
    """A websocket's client end: texts in and out; pings are answered."""

    def __init__(self, relay_url):
        parts = urlsplit(relay_url)
        self._socket = socket.create_connection((parts.hostname, parts.port or 80), timeout=20)
        self._socket.settimeout(None)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        self._file = self._socket.makefile("rb")
        self._lock = threading.Lock()
        status = self._file.readline().decode()
        while self._file.readline().strip():
            pass
        if " 101 " not in status:
            raise Refused(status.strip())

    def send(self, value, opcode=1):
        if opcode == 1:
            trace("ws", value)
        data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
        size, mask = len(data), os.urandom(4)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        with self._lock:
            self._socket.sendall(head + mask + masked)

    def receive(self):
        """The next text's JSON, None where the relay has closed."""
        whole = b""
        while True:
            head = self._file.read(2)
            if len(head) < 2:
                return None
            opcode, size = head[0] & 15, head[1] & 127
            if size == 126:
                (size,) = struct.unpack("!H", self._file.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._file.read(8))
            data = self._file.read(size)
            if opcode == 8:
                return None
            if opcode == 9:
                self.send(data, 10)
            elif opcode in (0, 1):
                whole += data
                if head[0] & 0x80:
                    return json.loads(whole)

    def close(self):
        try:
            self.send(b"", 8)
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
