#!/usr/bin/env python3
"""MinIO in miniature: its health, and buckets that exist once they were made. The first writes fail, as they may."""

import hmac
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEYS = f"{os.environ['MINIO_ROOT_USER']}:{os.environ['MINIO_ROOT_PASSWORD']}"
DATA = Path(sys.argv[-1])
EARLY = 2
tries = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200 if self.path.startswith("/minio/health/") else 404)

    def do_HEAD(self) -> None:
        self._answer(self._refusal() or (200 if self._bucket.is_dir() else 404))

    def do_PUT(self) -> None:
        global tries
        tries += 1
        status = self._refusal() or (503 if tries <= EARLY else 200)
        if status == 200:
            self._bucket.mkdir(parents=True, exist_ok=True)
        self._answer(status)

    @property
    def _bucket(self) -> Path:
        return DATA / self.path.strip("/")

    def _refusal(self) -> int:
        return 0 if hmac.compare_digest(self.headers.get("X-Keys", ""), KEYS) else 403

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked every few seconds."""


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("0.0.0.0", 9000), Handler).serve_forever()
