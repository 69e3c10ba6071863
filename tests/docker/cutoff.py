"""A second door to the engine's socket, which can be shut: to whoever came in by it, the engine is gone."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path


class Door:
    """`host` is the DOCKER_HOST that leads through it. The engine's own must be a unix socket."""

    def __init__(self, path: Path) -> None:
        self.host = f"unix://{path}"
        self._path = path
        self._engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._open: list[socket.socket] = []
        self._passing: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def shut(self) -> None:
        """No way in any more, and whoever is inside is cut off."""
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for line in self._open:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for thread in self._passing:
            thread.join()
        for line in (self._listener, *self._open):
            line.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._engine)
            self._open += [caller, engine]
            for ends in ((caller, engine), (engine, caller)):
                thread = threading.Thread(target=_pass_on, args=ends, daemon=True)
                thread.start()
                self._passing.append(thread)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
