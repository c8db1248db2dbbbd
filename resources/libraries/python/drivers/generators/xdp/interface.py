"""Whether an interface takes frames that XDP redirects to it: asked of the kernel, and made so where possible."""

import os
import socket
import struct
from contextlib import ExitStack
from pathlib import Path

from resources.libraries.python.drivers.generators.xdp.bpf import XdpProgram
from resources.libraries.python.errors import Unsupported

_GENERIC, _CONTROL, _REQUEST, _ERROR = 16, 16, 1, 2
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_GET_DEVICE, _DEVICE_INDEX, _DEVICE_FEATURES = 1, 1, 3
_TAKES_REDIRECTED = 1 << 2
"""NETDEV_XDP_ACT_NDO_XMIT."""


class Opened:
    """An interface that takes redirected frames, for as long as this is not closed."""

    def __init__(self, interface: str) -> None:
        """Make sure.

        A veth does when its peer receives by NAPI. Drivers of physical NICs do where they have XDP transmit, most of
        them once some XDP program is attached; so one that lets all packets pass is attached there.

        Raises:
            Unsupported: it does not.
        """
        if Path(f"/proc/self/net/vlan/{interface}").exists():
            raise Unsupported(f"{interface} takes no XDP frames: it is a VLAN device")
        self._stack = ExitStack()
        if takes_redirected(interface):
            return
        if not Path(f"/sys/class/net/{interface}/device").exists():
            raise Unsupported(f"{interface} takes no XDP frames: its peer does not receive by NAPI (GRO is off)")
        with ExitStack() as stack:
            program = XdpProgram("csit_pass")
            stack.callback(program.close)
            try:
                stack.callback(os.close, program.attach(socket.if_nametoindex(interface)))
            except OSError as error:
                raise Unsupported(f"the driver of {interface} takes no XDP program: {error.strerror}") from error
            if not takes_redirected(interface):
                raise Unsupported(f"the driver of {interface} has no XDP transmit")
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Detach what was attached."""
        self._stack.close()


def takes_redirected(interface: str) -> bool:
    """Whether frames can be redirected to an interface of this network namespace.

    Raises:
        Unsupported: The kernel does not report it (before Linux 6.3), or there is no such interface.
    """
    try:
        index = socket.if_nametoindex(interface)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as sock:
            family = _ask(sock, _CONTROL, _GET_FAMILY, _attribute(_FAMILY_NAME, b"netdev\0"))[_FAMILY_ID]
            number = struct.unpack("=H", family[:2])[0]
            answer = _ask(sock, number, _GET_DEVICE, _attribute(_DEVICE_INDEX, struct.pack("=I", index)))
    except OSError as error:
        raise Unsupported(f"the kernel does not report XDP features of {interface}: {error.strerror}") from error
    return bool(struct.unpack("=Q", answer[_DEVICE_FEATURES])[0] & _TAKES_REDIRECTED)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data.ljust(-(-len(data) // 4) * 4, b"\0")


def _ask(sock: socket.socket, family: int, command: int, attributes: bytes) -> dict[int, bytes]:
    """Attributes of the answer to a request of generic netlink, by their kind."""
    body = struct.pack("=BBH", command, 1, 0) + attributes
    sock.send(struct.pack("=IHHII", 16 + len(body), family, _REQUEST, 1, 0) + body)
    answer = sock.recv(1 << 16)
    if struct.unpack_from("=H", answer, 4)[0] == _ERROR:
        code = -struct.unpack_from("=i", answer, 16)[0]
        raise OSError(code, os.strerror(code))
    found, place = {}, 20
    while place + 4 <= len(answer):
        size, kind = struct.unpack_from("=HH", answer, place)
        found[kind & 0x3FFF] = answer[place + 4 : place + size]
        place += -(-size // 4) * 4
    return found
