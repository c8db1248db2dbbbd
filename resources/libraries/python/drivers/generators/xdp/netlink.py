"""Requests to the kernel by netlink, for a process that has no time to import a library for them."""

import os
import socket
import struct

ACKNOWLEDGE, CREATE_NEW = 4, 0x600
_REQUEST, _ERROR = 1, 2
_HEADER_BYTES = 16


def attribute(kind: int, data: bytes) -> bytes:
    """Return an attribute, padded."""
    return struct.pack("=HH", 4 + len(data), kind) + data.ljust(-(-len(data) // 4) * 4, b"\0")


def attributes(data: bytes) -> dict[int, bytes]:
    """Return what attributes in a row have, by their kind."""
    found, place = {}, 0
    while place + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, place)
        found[kind & 0x3FFF] = data[place + 4 : place + size]
        place += max(4, -(-size // 4) * 4)
    return found


def answer(sock: socket.socket, kind: int, body: bytes, flags: int = 0) -> bytes:
    """Send a request and return its answer without header; an acknowledgement has none.

    `flags`: `ACKNOWLEDGE`, `CREATE_NEW`.

    Raises:
        OSError: The kernel refused.
    """
    sock.send(struct.pack("=IHHII", _HEADER_BYTES + len(body), kind, _REQUEST | flags, 1, 0) + body)
    message = sock.recv(1 << 16)
    if struct.unpack_from("=H", message, 4)[0] != _ERROR:
        return message[_HEADER_BYTES:]
    if code := -struct.unpack_from("=i", message, _HEADER_BYTES)[0]:
        raise OSError(code, os.strerror(code))
    return b""
