"""What tests hear inside of a tunnel and behind it."""

import socket


def listener(interface: str) -> socket.socket:
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))  # ETH_P_ALL
    heard.bind((interface, 0x0003))
    heard.setblocking(False)
    return heard


def heard_by(listening: socket.socket) -> list[bytes]:
    rows = []
    while True:
        try:
            rows.append(listening.recv(1 << 16))
        except BlockingIOError:
            return rows


def arrives(behind: socket.socket, arrived: list[bytes], wanted: bytes) -> str:
    """Look once more for a packet; empty where it came, and no other one did."""
    arrived += [each[14 : 14 + len(wanted)] for each in heard_by(behind)]
    return "" if arrived == [wanted] else f"{len(arrived)} came, {[each[:28].hex() for each in arrived]}"
