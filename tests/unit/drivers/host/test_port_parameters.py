"""Ring sizes, interrupt coalescing and other parameters of a port that its driver forgets; the driver is a fake."""

import ctypes
import errno
import fcntl
import socket
import struct
from collections.abc import Iterator

import pytest

from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.ethtool import CHANGED_WITH_QUEUES, parameters, restore_parameters

QUEUES, RINGS, COALESCING, PAUSE, FEATURES = 0x3C, 0x10, 0x0E, 0x12, 0x3A
FRESH = {
    QUEUES: (0, 0, 1, 8, 0, 0, 1, 8),
    RINGS: (4096, 0, 0, 4096, 512, 0, 0, 512),
    COALESCING: (50, *[0] * 8, 1, 1, *[0] * 11),
    PAUSE: (1, 1, 1),
}
TUNED = {
    "queues": (0, 0, 1, 4),
    "ring sizes": (2048, 0, 0, 1024),
    "interrupt coalescing": (8, *[0] * 21),
    "pause frames": (0, 0, 0),
    "offloads": (0b0001, 0),
}


class PortDriver:
    """A driver of a NIC (include/uapi/linux/ethtool.h) whose interrupts are new when the number of queues changes."""

    def __init__(self) -> None:
        self.values = dict(FRESH)
        self.lacks: set[int] = set()
        self.refuses: set[int] = set()
        self.features = [[0b1011, 0b1110, 0b1110, 0b0100], [1, 1, 1, 0]]
        """Blocks of available, requested, active and fixed features."""
        self.negotiates = False
        """Whether it refuses to change autoneg of pause frames, as i40e and ice do."""
        self.set: list[int] = []

    def ioctl(self, _: socket.socket, request: int, argument: bytes) -> None:
        assert request == 0x8946
        name, address = struct.unpack("16sQ16x", argument)
        assert name.rstrip(b"\0") == b"ens1f0"
        (command,) = struct.unpack("=I", ctypes.string_at(address, 4))
        kind = command if command in (*FRESH, FEATURES) else command - 1
        if kind in self.lacks:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        if kind == FEATURES:
            self._features(address, wants=kind != command)
            return
        body = struct.Struct(f"={1 + len(FRESH[kind])}I")
        if kind == command:
            ctypes.memmove(address, body.pack(command, *self.values[kind]), body.size)
            return
        if kind in self.refuses:
            raise OSError(errno.EINVAL, "Invalid argument")
        if (
            kind == PAUSE
            and self.negotiates
            and body.unpack(ctypes.string_at(address, body.size))[1] != FRESH[PAUSE][0]
        ):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        self.set.append(kind)
        self.values[kind] = body.unpack(ctypes.string_at(address, body.size))[1:]
        if kind == QUEUES:
            self.values[COALESCING] = FRESH[COALESCING]

    def _features(self, address: int, *, wants: bool) -> None:
        """Two blocks, of as many as the caller has space for."""
        if not wants:
            words = [word for block in self.features for word in block]
            ctypes.memmove(address, struct.pack("=10I", FEATURES, 2, *words), 40)
            return
        count, *words = struct.unpack("=5I", ctypes.string_at(address + 4, 20))
        assert count == 2, "the kernel takes all of its blocks only"
        self.set.append(FEATURES)
        for block, valid, wanted in zip(self.features, words[::2], words[1::2], strict=True):
            assert not valid & ~block[0], "what cannot be switched is refused"
            block[1] = block[1] & ~valid | wanted & valid


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> PortDriver:
    made = PortDriver()
    monkeypatch.setattr(fcntl, "ioctl", made.ioctl)
    return made


@pytest.fixture
def where() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        yield handle


def test_what_a_driver_forgets_is_set_back_queues_first(driver: PortDriver, where: socket.socket) -> None:
    restore_parameters(where, "ens1f0", dict(reversed(TUNED.items())))
    assert parameters(where, "ens1f0") == TUNED
    assert driver.set == [QUEUES, RINGS, COALESCING, PAUSE, FEATURES]
    assert [block[1] for block in driver.features] == [0b0101, 0], "what cannot be switched stays"
    assert driver.values[RINGS][:4] == FRESH[RINGS][:4], "maxima are the driver's"
    restore_parameters(where, "ens1f0", TUNED)
    assert len(driver.set) == 5, "what is right is not set again: a change of queues may cut the link"


def test_parameters_that_new_queues_change_are_set_back(driver: PortDriver, where: socket.socket) -> None:
    restore_parameters(where, "ens1f0", TUNED)
    before = parameters(where, "ens1f0", CHANGED_WITH_QUEUES)
    assert before == {kind: TUNED[kind] for kind in CHANGED_WITH_QUEUES}
    for count in (1, 4):  # for a run, and back
        now = ethtool.channels(where, "ens1f0")
        assert now is not None
        ethtool.set_channels(where, "ens1f0", now.with_counts(0, 0, count))
    assert driver.values[COALESCING] == FRESH[COALESCING]
    restore_parameters(where, "ens1f0", before)
    assert parameters(where, "ens1f0") == TUNED


def test_pause_frames_are_set_back(driver: PortDriver, where: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    driver.negotiates = True
    restore_parameters(where, "ens1f0", {"pause frames": TUNED["pause frames"]})
    assert driver.values[PAUSE] == (1, 0, 0)
    driver.set.clear()
    restore_parameters(where, "ens1f0", {"pause frames": (0, 0, 0)})
    assert not driver.set, "nothing but the negotiation differs"
    assert not caplog.records


def test_what_a_driver_does_not_have_is_not_on_record(driver: PortDriver, where: socket.socket) -> None:
    driver.lacks = {RINGS, PAUSE, FEATURES}
    assert set(parameters(where, "ens1f0")) == {"queues", "interrupt coalescing"}


def test_what_is_refused_is_named(driver: PortDriver, where: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    driver.refuses = {RINGS}
    restore_parameters(where, "ens1f0", {**TUNED, "pause frames": (0, 0), "offloads": (1,)})
    assert [record.message for record in caplog.records] == [
        "ring sizes of ens1f0 could not be set back to (2048, 0, 0, 1024): ethtool -G ens1f0 ended with 22: "
        "Invalid argument",
        "pause frames of ens1f0 could not be set back to (0, 0): pack expected 4 items for packing (got 3)",
        "offloads of ens1f0 could not be set back to (1,): zip() argument 2 is shorter than argument 1",
    ]
    assert driver.set == [QUEUES, COALESCING]
