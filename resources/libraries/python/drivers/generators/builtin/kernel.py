"""Parts of the Linux interface that Python's standard library lacks: constants, `setns`, `prctl`, interface facts."""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import time
from pathlib import Path

from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, setns
from resources.libraries.python.errors import CsitError

SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 1, 1
PACKET_TX_RING = 13
PACKET_VNET_HDR = 15
PACKET_TX_TIMESTAMP = 16
PACKET_QDISC_BYPASS = 20
ETH_P_ALL = 0x0003
ETH_P_IPV6 = 0x86DD
ETH_P_IP = 0x0800

SO_ATTACH_FILTER = 26
SO_SNDBUFFORCE = 32
SO_TIMESTAMPING = 37
MSG_ERRQUEUE = 0x2000
TX_SOFTWARE_STAMPS = (1 << 1) | (1 << 4) | (1 << 7) | (1 << 11)
"""SOF_TIMESTAMPING_: TX_SOFTWARE, SOFTWARE (report them), OPT_ID (number them), OPT_TSONLY (without the frame)."""

_PACKET_VERSION, _TPACKET_V2 = 10, 1
_PR_SET_TIMERSLACK = 29
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCGIFMTU = 0x8921
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_SECOND_NS = 1_000_000_000
_MAX_NAMED = 8
"""Ports that a message names."""

_libc = ctypes.CDLL(None, use_errno=True)


# Python's own `send` makes an exception of every frame that a full queue refuses, and lets go of the interpreter's lock
# for a call that never waits: together more than the rest of what Python does for such a frame.
flush = ctypes.PyDLL(None, use_errno=True).send
"""`flush(descriptor, None, 0, MSG_DONTWAIT)` has the kernel send what is armed in a ring; below 0 see `get_errno`."""
flush.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
flush.restype = ctypes.c_ssize_t


def enter_namespace(name: str) -> None:
    """Move the calling thread into a named network namespace.

    Raises:
        CsitError: there is no such namespace or it may not be entered.
    """
    try:
        handle = os.open(Path("/run/netns") / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CsitError(f"network namespace {name} cannot be opened: {error.strerror}") from error
    try:
        setns(handle, CLONE_NEWNET)
    except OSError as error:
        raise CsitError(f"network namespace {name} cannot be entered: {error.strerror}") from error
    finally:
        os.close(handle)


def sharpen_timers() -> None:
    """Let sleeps of this thread end on time instead of up to 50 us late.

    Raises:
        CsitError: the kernel refused.
    """
    if _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) != 0:
        raise CsitError(f"the timer slack cannot be set: {os.strerror(ctypes.get_errno())}")


def classic_bpf(*steps: tuple[int, int, int, int]) -> bytes:
    """Return a program of classic BPF from its instructions: code, jumps if true and if false, operand."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def attach_filter(sock: socket.socket, program: bytes) -> None:
    """Let only packets that a program of classic BPF accepts pass to a socket.

    Raises:
        OSError: the kernel refused.
    """
    code = ctypes.create_string_buffer(program, len(program))
    attach = struct.pack("HL", len(program) // 8, ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attach)


def bind(sock: socket.socket, address: bytes) -> None:
    """Bind a socket of a family that Python has no addresses for.

    Raises:
        OSError: the kernel refused.
    """
    if _libc.bind(sock.fileno(), address, len(address)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def make_ring(sock: socket.socket, option: int, block_bytes: int, slot_bytes: int, slots: int) -> None:
    """Give a packet socket a ring of `TPACKET_V2`.

    The socket module's own call would keep other threads of Python waiting for the 10 ms that the kernel takes.

    `option`: `PACKET_RX_RING` or `PACKET_TX_RING`.
    `block_bytes`: A multiple of the page size; holds whole slots only.
    `slots`: How many, a multiple of those in a block.

    Raises:
        OSError: the kernel refused.
    """
    sock.setsockopt(SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
    blocks = slots // (block_bytes // slot_bytes)
    request = struct.pack("=4I", block_bytes, blocks, slot_bytes, slots)
    if _libc.setsockopt(sock.fileno(), SOL_PACKET, option, request, len(request)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _ioctl(interface: str, request: int, layout: str = "H", flags: int = 0) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, request, struct.pack("16sH22x", interface.encode(), flags))
        except OSError as error:
            names = [name for _, name in socket.if_nameindex()][:_MAX_NAMED]
            there = f"; there are {', '.join(names)}" if error.errno == errno.ENODEV else ""
            raise CsitError(f"generator port {interface}: {error.strerror}{there}") from error
    return int(struct.unpack_from(layout, answer, 16)[0])


def link_is_up(interface: str) -> bool:
    """Whether an interface is up and has a carrier.

    Raises:
        CsitError: there is no such interface.
    """
    wanted = _IFF_UP | _IFF_RUNNING
    return _ioctl(interface, _SIOCGIFFLAGS) & wanted == wanted


def reopen(interface: str) -> None:
    """Take an interface down and up again.

    Raises:
        CsitError: there is no such interface, or it must not be done.
    """
    flags = _ioctl(interface, _SIOCGIFFLAGS)
    for wanted in (flags & ~_IFF_UP, flags | _IFF_UP):
        _ioctl(interface, _SIOCSIFFLAGS, flags=wanted)


def mtu_bytes(interface: str) -> int:
    """The MTU of an interface in bytes (L3).

    Raises:
        CsitError: there is no such interface.
    """
    return _ioctl(interface, _SIOCGIFMTU, "i")


def tai_offset_ns() -> int:
    """TAI minus UTC of this kernel in whole seconds, 0 if it is not set."""
    difference = time.clock_gettime_ns(time.CLOCK_TAI) - time.clock_gettime_ns(time.CLOCK_REALTIME)
    return round(difference / _SECOND_NS) * _SECOND_NS
