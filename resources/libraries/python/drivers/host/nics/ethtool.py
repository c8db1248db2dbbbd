"""Settings of ports by the ethtool ioctl (include/uapi/linux/ethtool.h).

The socket selects the network namespace of the port. pyroute2's Ethtool has no driver information, opens sockets of its
own in the namespace of the calling thread, and needs 0.8 to 1.1 ms to read two offloads of a port that take 4 us here.
"""

import ctypes
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass, replace

from resources.libraries.python.errors import CommandFailed

_SIOCETHTOOL = 0x8946
_GSET, _GDRVINFO = 0x01, 0x03
_GCHANNELS, _SCHANNELS = 0x3C, 0x3D
_OFFLOADS = {"tso": (0x1E, 0x1F), "gro": (0x2B, 0x2C)}
_GFLAGS, _SFLAGS, _FLAG_LRO = 0x25, 0x26, 1 << 15
_VALUE = struct.Struct("=II")
_CHANNELS = struct.Struct("=9I")
_SETTINGS = struct.Struct("=IIIHBBBBBBIIHBBIII")
_UNKNOWN_MBPS = frozenset({0, 0xFFFF, 0xFFFFFFFF})
_DRIVER_INFO = struct.Struct("=I32s32s32s32s32s12s5I")
_NOT_OFFERED = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL})


@dataclass(frozen=True, slots=True)
class Channels:
    """Queues of a port that have an interrupt, each with a NAPI of its own."""

    rx: int
    tx: int
    combined: int
    """Number of queues that receive and send."""
    most_rx: int
    most_tx: int
    most_combined: int
    other: int

    @property
    def one_of_each(self) -> "Channels":
        """The fewest that can carry packets."""
        if self.combined or not self.rx:
            return self.with_counts(0, 0, min(1, self.combined))
        return self.with_counts(min(1, self.rx), min(1, self.tx), 0)

    def with_counts(self, rx: int, tx: int, combined: int) -> "Channels":
        """The same port with other numbers of queues."""
        return replace(self, rx=rx, tx=tx, combined=combined)


def bus_address(where: socket.socket, interface: str) -> str:
    """Return the bus address of a port, such as a PCI address; empty where its driver gives none.

    Raises:
        CommandFailed: There is no such port, or its driver does not report it.
    """
    answer = _ask(where, interface, _DRIVER_INFO.pack(_GDRVINFO, *[b""] * 6, *[0] * 5), ("ethtool", "-i", interface))
    bus: bytes = _DRIVER_INFO.unpack(answer)[4]
    return bus.split(b"\0")[0].decode(errors="replace")


def speed_bps(where: socket.socket, interface: str) -> float | None:
    """Return the speed of a port's link; None where its driver does not report it."""
    try:
        answer = _ask(where, interface, _SETTINGS.pack(_GSET, *[0] * 17), ("ethtool", interface))
    except CommandFailed:
        return None
    fields = _SETTINGS.unpack(answer)
    mbps = fields[3] | fields[12] << 16
    return None if mbps in _UNKNOWN_MBPS else mbps * 1e6


def offload(where: socket.socket, interface: str, option: str) -> bool:
    """Whether `gro` or `tso` is on.

    Raises:
        CommandFailed: There is no such port.
    """
    answer = _ask(where, interface, _VALUE.pack(_OFFLOADS[option][0], 0), ("ethtool", "-k", interface))
    return bool(_VALUE.unpack(answer)[1])


def set_offload(where: socket.socket, interface: str, option: str, on: bool) -> None:
    """Switch `gro` or `tso`.

    Raises:
        CommandFailed: The kernel refused.
    """
    if offload(where, interface, option) is on:  # this request fails at a port that has no such offload to switch
        return
    argv = ("ethtool", "-K", interface, option, "on" if on else "off")
    _ask(where, interface, _VALUE.pack(_OFFLOADS[option][1], int(on)), argv)


def lro(where: socket.socket, interface: str) -> bool:
    """Return whether large receive offload is on. The kernel disables it where packets are forwarded."""
    answer = _ask(where, interface, _VALUE.pack(_GFLAGS, 0), ("ethtool", "-k", interface))
    return bool(_VALUE.unpack(answer)[1] & _FLAG_LRO)


def set_lro(where: socket.socket, interface: str, on: bool) -> None:
    """Switch large receive offload.

    Raises:
        CommandFailed: The kernel refused.
    """
    argv = ("ethtool", "-K", interface, "lro", "on" if on else "off")
    flags = _VALUE.unpack(_ask(where, interface, _VALUE.pack(_GFLAGS, 0), argv))[1]
    wanted = flags | _FLAG_LRO if on else flags & ~_FLAG_LRO
    if wanted != flags:
        _ask(where, interface, _VALUE.pack(_SFLAGS, wanted), argv)


def channels(where: socket.socket, interface: str) -> Channels | None:
    """Return the queues of a port; None if its driver does not report them.

    Raises:
        CommandFailed: There is no such port.
    """
    try:
        answer = _ask(where, interface, _CHANNELS.pack(_GCHANNELS, *[0] * 8), ("ethtool", "-l", interface))
    except CommandFailed as error:
        if error.status in _NOT_OFFERED:
            return None
        raise
    _, most_rx, most_tx, _, most_combined, rx, tx, other, combined = _CHANNELS.unpack(answer)
    return Channels(rx, tx, combined, most_rx, most_tx, most_combined, other)


def set_channels(where: socket.socket, interface: str, wanted: Channels) -> None:
    """Change the number of queues.

    Raises:
        CommandFailed: The driver refused.
    """
    counts = {"rx": wanted.rx, "tx": wanted.tx, "combined": wanted.combined}
    argv = ("ethtool", "-L", interface, *(f"{name} {count}" for name, count in counts.items()))
    body = _CHANNELS.pack(_SCHANNELS, 0, 0, 0, 0, wanted.rx, wanted.tx, wanted.other, wanted.combined)
    _ask(where, interface, body, argv)


def _ask(where: socket.socket, interface: str, body: bytes, argv: tuple[str, ...]) -> bytes:
    data = ctypes.create_string_buffer(body, len(body))
    request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(data))
    try:
        fcntl.ioctl(where, _SIOCETHTOOL, request)
    except OSError as error:
        raise CommandFailed(argv, error.errno or 1, str(error.strerror)) from error
    return data.raw
