"""Settings of ports by the ethtool ioctl (include/uapi/linux/ethtool.h).

The socket selects the network namespace of the port. pyroute2's Ethtool has no driver information, opens sockets of its
own in the namespace of the calling thread, and needs 0.8 to 1.1 ms to read two offloads of a port that take 4 us here.
"""

import ctypes
import errno
import fcntl
import logging
import socket
import struct
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.bounds import MAX_PORT_STATISTICS

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
_OFFLOADS = {"tso": (0x1E, 0x1F), "gro": (0x2B, 0x2C)}
_GFLAGS, _SFLAGS, _FLAG_LRO = 0x25, 0x26, 1 << 15
_VALUE = struct.Struct("=II")
_GSSET_INFO, _GSTRINGS, _GSTATS, _STATISTICS = 0x37, 0x1B, 0x1D, 1
_NAME_BYTES = 32
_DRIVER_INFO = struct.Struct("=I32s32s32s32s32s12s5I")
_NOT_OFFERED = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Numbers that the kernel gives and takes in one structure, all of 32 bits, after the command."""

    get: int
    set: int
    option: str
    """Of ethtool, for messages."""
    count: int
    maxima: int = 0
    """How many of them, at the beginning, are what the driver has at most."""

    def read(self, where: socket.socket, interface: str) -> tuple[int, ...]:
        numbers = struct.Struct(f"={1 + self.count}I")
        body = numbers.pack(self.get, *[0] * self.count)
        return numbers.unpack(_ask(where, interface, body, ("ethtool", self.option.lower(), interface)))[1:]

    def write(self, where: socket.socket, interface: str, values: Sequence[int], *changes: str) -> None:
        """Write all values; a message has the changes, as ethtool takes them."""
        body = struct.pack(f"={1 + self.count}I", self.set, *values)
        _ask(where, interface, body, ("ethtool", self.option, interface, *changes))


@dataclass(frozen=True, slots=True)
class _Offloads:
    """Offloads and other features that can be switched, a bit each; fulfils what `_Parameters` does.

    The bits are those of the running kernel, which is also what has them on record.
    """

    get: int = 0x3A
    set: int = 0x3B
    option: str = "-K"
    maxima: int = 0

    def read(self, where: socket.socket, interface: str) -> tuple[int, ...]:
        return tuple(available & requested for available, requested, _, _ in self._blocks(where, interface))

    def write(self, where: socket.socket, interface: str, values: Sequence[int], *changes: str) -> None:
        """Request what was requested, of all that can be switched; the kernel leaves out what excludes each other."""
        blocks = self._blocks(where, interface)
        words = [word for (available, *_), value in zip(blocks, values, strict=True) for word in (available, value)]
        body = struct.pack(f"={2 + len(words)}I", self.set, len(blocks), *words)
        _ask(where, interface, body, ("ethtool", self.option, interface, *changes))

    def _blocks(self, where: socket.socket, interface: str) -> list[tuple[int, ...]]:
        """Available, requested, active and fixed features, 32 in a block."""
        body = struct.pack(f"={2 + 4 * _MAX_BLOCKS}I", self.get, _MAX_BLOCKS, *[0] * 4 * _MAX_BLOCKS)
        answer = _ask(where, interface, body, ("ethtool", self.option.lower(), interface))
        count = min(struct.unpack_from("=I", answer, 4)[0], _MAX_BLOCKS)
        return [struct.unpack_from("=4I", answer, 8 + 16 * number) for number in range(count)]


_MAX_BLOCKS = 8
"""Of features; today's kernels have two."""
_QUEUES = _Parameters(0x3C, 0x3D, "-L", 8, maxima=4)
_PARAMETERS: Mapping[str, _Parameters | _Offloads] = {
    "queues": _QUEUES,
    "ring sizes": _Parameters(0x10, 0x11, "-G", 8, maxima=4),
    "interrupt coalescing": _Parameters(0x0E, 0x0F, "-C", 22),
    "pause frames": _Parameters(0x12, 0x13, "-A", 3),
    "offloads": _Offloads(),
}
"""In the order in which they are restored: some drivers forget what follows when the number of queues changes."""
CHANGED_WITH_QUEUES = ("ring sizes", "interrupt coalescing")
"""Those that a change of the queues may change as well."""


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
        most_rx, most_tx, _, most_combined, rx, tx, other, combined = _QUEUES.read(where, interface)
    except CommandFailed as error:
        if error.status in _NOT_OFFERED:
            return None
        raise
    return Channels(rx, tx, combined, most_rx, most_tx, most_combined, other)


def set_channels(where: socket.socket, interface: str, wanted: Channels) -> None:
    """Change the number of queues.

    Raises:
        CommandFailed: The driver refused.
    """
    values = (0, 0, 0, 0, wanted.rx, wanted.tx, wanted.other, wanted.combined)
    changes = (f"rx {wanted.rx}", f"tx {wanted.tx}", f"combined {wanted.combined}")
    _QUEUES.write(where, interface, values, *changes)


Parameters = dict[str, tuple[int, ...]]
"""Settings of a port by kind, such as `ring sizes`, as the kernel's structure has them, without maxima."""


def parameters(where: socket.socket, interface: str, kinds: Collection[str] = tuple(_PARAMETERS)) -> Parameters:
    """Return settings of a port, without kinds that its driver does not have.

    `where`: A socket in the port's network namespace.
    `kinds`: Of `_PARAMETERS`.
    """
    found = {}
    for kind in kinds:
        with suppress(CommandFailed):
            found[kind] = _PARAMETERS[kind].read(where, interface)[_PARAMETERS[kind].maxima :]
    return found


def restore_parameters(where: socket.socket, interface: str, before: Mapping[str, tuple[int, ...]]) -> None:
    """Restore changed settings of a port; what its driver refuses is logged.

    A refusal is no reason to keep the port on record: each later run would be refused the same.

    `where`: A socket in the port's network namespace.
    `before`: From `parameters`.
    """
    for kind in (kind for kind in _PARAMETERS if kind in before):
        one = _PARAMETERS[kind]
        try:
            now = one.read(where, interface)
            wanted = (*now[: one.maxima], *before[kind])
            if now != wanted:
                _write(one, where, interface, now, wanted)
        except (CommandFailed, struct.error, ValueError) as error:
            _log.warning("%s of %s could not be set back to %s: %s", kind, interface, before[kind], error)


def statistics(where: socket.socket, interface: str) -> dict[str, int]:
    """The driver's own counters of a port by name, those of each queue among them; none where it has none.

    Raises:
        CommandFailed: There is no such port.
    """
    argv = ("ethtool", "-S", interface)
    try:
        asked = struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _STATISTICS, 0)
        *_, mask, found = struct.unpack("=IIQI", _ask(where, interface, asked, argv))
        if not mask or found > MAX_PORT_STATISTICS:
            return {}
        room = 2 * found  # the kernel writes as many as there are by then, whatever is asked for
        names = _ask(
            where, interface, struct.pack("=III", _GSTRINGS, _STATISTICS, found) + bytes(_NAME_BYTES * room), argv
        )
        values = _ask(where, interface, struct.pack("=II", _GSTATS, found) + bytes(8 * room), argv)
    except CommandFailed as error:
        if error.status in _NOT_OFFERED:
            return {}
        raise
    rows = (names[12 + _NAME_BYTES * index :][:_NAME_BYTES] for index in range(found))
    labels = [row.split(b"\0")[0].decode(errors="replace").strip() for row in rows]
    return dict(zip(labels, struct.unpack_from(f"={found}Q", values, 8), strict=True))


def _write(
    kind: _Parameters | _Offloads, where: socket.socket, interface: str, now: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    """Change settings of a port, all of them, or without whether pause frames are negotiated.

    Some drivers (i40e, ice) report whether they have been negotiated by now, and refuse to change that.
    """
    try:
        kind.write(where, interface, wanted)
    except CommandFailed:
        if kind.option != "-A" or now[0] == wanted[0]:
            raise
        if now[1:] != wanted[1:]:
            kind.write(where, interface, (now[0], *wanted[1:]))


def _ask(where: socket.socket, interface: str, body: bytes, argv: tuple[str, ...]) -> bytes:
    data = ctypes.create_string_buffer(body, len(body))
    request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(data))
    try:
        fcntl.ioctl(where, _SIOCETHTOOL, request)
    except OSError as error:
        raise CommandFailed(argv, error.errno or 1, str(error.strerror)) from error
    return data.raw
