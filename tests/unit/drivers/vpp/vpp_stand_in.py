"""A stand-in for VPP's CLI socket, for the dialogue alone: telnet options first, then a command and a reply in turns.

It is written from what a real VPP sends, byte by byte. It proves what our client does with these bytes, and nothing
about VPP, which the integration tests start.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OPTIONS = bytes.fromhex("fffc22 fffe22 fffb03 fffd03 fffb01 fffe01 fffd18 fffa1801fff0 fffd1f fffa1f01fff0")
"""As VPP 26.10 begins: it asks for the terminal's type (fffa1801fff0), and for its size."""
TERMINAL = b"\xff\xfa\x18\x00vppctl\xff\xf0"
Answer = Callable[[bytes], list[bytes]]
"""Chunks that answer a line; after an empty chunk the connection is closed."""


@contextmanager
def stand_in(
    path: Path, answer: Answer, options: tuple[bytes, ...] = (OPTIONS,), *, relay: bool = False
) -> Iterator[list[bytes]]:
    """Serve connections one after the other; gives all lines that were read, the terminal's type among them."""
    read: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):  # a client that has gone
                    connection.settimeout(60.0)
                    if relay and connection.recv(1) != b"\n":
                        continue
                    _talk(connection, answer, options, read)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield read
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60.0)


def _talk(connection: socket.socket, answer: Answer, options: tuple[bytes, ...], read: list[bytes]) -> None:
    for chunk in options:
        connection.sendall(chunk)
    left = b""
    while True:
        part = connection.recv(4096)
        if not part:
            return
        left += part
        if TERMINAL in left:
            read.append(TERMINAL)
            left = left.replace(TERMINAL, b"", 1)
        while b"\n" in left:
            line, _, left = left.partition(b"\n")
            read.append(line)
            for chunk in answer(line) if line else [b"\0"]:
                if not chunk:
                    return
                connection.sendall(chunk)
