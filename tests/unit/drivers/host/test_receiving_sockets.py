"""What the kernel tells of a socket that its program was too slow for, decoded and added up."""

import socket
import struct
from typing import cast

from resources.libraries.python.drivers.host.sockets import socket_backlog

MAPS = """\
7f232c2d0000-7f232c2db000 r--p 00000000 fe:00 4711                       /usr/sbin/ovs-vswitchd
7f232c2db000-7f232c2e4000 rw-s 80000000 00:09 10242850                   socket:[10242850]
7f232c2e4000-7f232c2ed000 rw-s 00000000 00:09 10242850                   socket:[10242850]
7f232c2ed000-7f232c2f2000 rw-s 180000000 00:09 10242850                  socket:[10242850]
7ffd1a2b3000-7ffd1a2d4000 rw-p 00000000 00:00 0                          [stack]
"""


class Answering:
    """A socket whose options have known values, of which it gives as many bytes as are asked for, like the kernel."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = iter(answers)

    def getsockopt(self, _level: int, _option: int, length: int) -> bytes:
        """The next answer."""
        return next(self._answers)[:length]


def answering(*answers: bytes) -> socket.socket:
    return cast(socket.socket, Answering(*answers))


def memory(*drops: int) -> list[bytes]:
    """Of packet sockets in which 4608 bytes wait."""
    return [struct.pack("=9I", 4608, 212992, 0, 212992, 3584, 0, 0, 0, dropped) for dropped in drops]


def test_what_a_packet_socket_dropped_is_the_last_of_its_numbers() -> None:
    assert socket_backlog.refused_by_packet_socket(answering(*memory(77))) == 77


def test_a_count_of_32_bits_that_begins_again_goes_on_growing() -> None:
    count = socket_backlog.Count(answering(*memory(2**32 - 5, 3, 3)), socket_backlog.refused_by_packet_socket)
    assert [count.read() for _ in range(3)] == [2**32 - 5, 2**32 + 3, 2**32 + 3]


def test_a_socket_of_af_xdp_drops_where_its_ring_is_full_or_it_has_no_buffer() -> None:
    assert socket_backlog.refused_by_xdp_socket(answering(struct.pack("=6Q", 7, 1, 2, 5000, 9, 4))) == 5007


def test_before_linux_5_9_a_full_ring_is_among_what_was_dropped() -> None:
    assert socket_backlog.refused_by_xdp_socket(answering(struct.pack("=3Q", 5007, 1, 2))) == 5007


def test_rings_are_where_their_socket_is_mapped() -> None:
    places = socket_backlog.mapped(MAPS)
    assert places[10242850, 0] == 0x7F232C2E4000, "packets for the program"
    assert places[10242850, 0x80000000] == 0x7F232C2DB000, "packets for the kernel"
