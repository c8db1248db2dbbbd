"""Packets that tests send through a tunnel, whole, and what they hear inside of it and behind it."""

import socket
import struct

from resources.libraries.python.model.plan import Flow

TTL = 64


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


def packet(flow: Flow, payload: bytes, ttl: int = TTL) -> bytes:
    """An IPv4 packet of a flow with a right checksum and no fragments, by UDP."""
    addresses = socket.inet_aton(flow.source_ip) + socket.inet_aton(flow.destination_ip)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 7, 0x4000, ttl, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    udp = struct.pack("!HHHH", 9, 9, 8 + len(payload), 0)
    return header[:10] + struct.pack("!H", checksum) + header[12:] + udp + payload


def send(flow: Flow, payload: bytes) -> None:
    ethernet = bytes.fromhex((flow.destination_mac + flow.source_mac).replace(":", "")) + b"\x08\x00"
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
        port.bind((flow.tx_interface, 0))
        port.send(ethernet + packet(flow, payload))


def arrives(behind: socket.socket, arrived: list[bytes], wanted: bytes) -> str:
    """Look once more for a packet; empty where it came, and no other one did."""
    arrived += [each[14 : 14 + len(wanted)] for each in heard_by(behind)]
    return "" if arrived == [wanted] else f"{len(arrived)} came, {[each[:28].hex() for each in arrived]}"
