"""Our relay in the place of Buzz's, with Buzz's variables. It refuses to start where a service is not as said.

The main port serves all; the health port says ready once it does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

READY = Path("/tmp/relay.ready")
TRUE = ["REQUIRE_AUTH_TOKEN", "REQUIRE_RELAY_MEMBERSHIP", "ALLOW_NIP_OA_AUTH", "AUTO_MIGRATE"]


def main() -> None:
    given = os.environ
    for name in TRUE:
        if given[f"BUZZ_{name}"] != "true":
            sys.exit(f"BUZZ_{name} is not true")
    if len(given["BUZZ_GIT_HOOK_HMAC_SECRET"]) < 32:
        sys.exit("BUZZ_GIT_HOOK_HMAC_SECRET is too short")
    if int(given["BUZZ_RATE_LIMIT_HUMAN_API_CALLS_PER_MIN"]) < 100_000:
        sys.exit("the rate limits are those of one person")
    (Path(given["BUZZ_GIT_REPO_PATH"]) / "written").write_text("here")
    check_redis(given["REDIS_URL"])
    check_bucket(given["BUZZ_S3_ENDPOINT"], given["BUZZ_S3_BUCKET"])
    host, _, port = given["BUZZ_BIND_ADDR"].rpartition(":")
    config = {
        "host": host,
        "port": int(port),
        "relay_url": given["RELAY_URL"],
        "dsn": given["DATABASE_URL"],
        "relay_private_key": given["BUZZ_RELAY_PRIVATE_KEY"],
        "owner_public": given["RELAY_OWNER_PUBKEY"],
        "ready_file": str(READY),
    }
    READY.unlink(missing_ok=True)
    relay = subprocess.Popen([sys.executable, "-m", "bench.relay"], stdin=subprocess.PIPE, text=True)
    assert relay.stdin
    relay.stdin.write(json.dumps(config))
    relay.stdin.close()
    threading.Thread(target=serve_health, args=(int(given["BUZZ_HEALTH_PORT"]),), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: relay.terminate())
    sys.exit(relay.wait())


def check_redis(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as line:
        line.sendall(f"AUTH {parts.password}\r\nPING\r\n".encode())
        time.sleep(0.05)
        if (answer := line.recv(200)) != b"+OK\r\n+PONG\r\n":
            sys.exit(f"redis: {answer!r}")


def check_bucket(endpoint: str, bucket: str) -> None:
    keys = f"{os.environ['BUZZ_S3_ACCESS_KEY']}:{os.environ['BUZZ_S3_SECRET_KEY']}"
    request = urllib.request.Request(f"{endpoint}/{bucket}", method="HEAD", headers={"X-Keys": keys})
    urllib.request.urlopen(request, timeout=5).close()


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 200 if READY.exists() and self.path in ("/_readiness", "/_liveness") else 503
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked every few seconds."""


def serve_health(port: int) -> None:
    HTTPServer(("0.0.0.0", port), Health).serve_forever()


main()
