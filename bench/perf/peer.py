"""`python -m bench.perf.peer`: what a measured connection leads to, in a process of its own. It prints its port.

The first byte of a connection says what it is for: `E` echoes, `S` swallows until the end and answers with the count.
It serves until standard input ends.
"""

from __future__ import annotations

import socket
import sys
import threading

BUFFER_BYTES = 1 << 18


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


def _accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(BUFFER_BYTES))
    swallowed = 0
    with connection:
        kind = connection.recv(1)
        while filled := connection.recv_into(buffer):
            if kind == b"E":
                connection.sendall(buffer[:filled])
            swallowed += filled
        if kind == b"S":
            connection.sendall(str(swallowed).encode())


if __name__ == "__main__":
    main()
