"""A relay that calls itself ready and is none: every request is answered by 404."""

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Ready(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked every few seconds."""


class Nothing(Ready):
    status = 404


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=HTTPServer(("0.0.0.0", 8080), Ready).serve_forever, daemon=True).start()
    HTTPServer(("0.0.0.0", 3000), Nothing).serve_forever()
