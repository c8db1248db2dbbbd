"""A place in the kernel's XDP dispatcher, so that runs of a program begin and end at once.

The kernel enters a program that runs into its dispatcher for XDP, a list of direct calls, and removes it when the run
ends. Each change of the list waits for an RCU grace period: 10 to 15 ms. A program that is attached to an interface is
in the list already. So it is attached to one that receives no packets, in a network namespace that only this process
has.
"""

import os
import socket
import struct
from contextlib import ExitStack

from resources.libraries.python.drivers.generators.xdp import netlink
from resources.libraries.python.drivers.generators.xdp.bpf import XdpProgram
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare

_ROUTE, _NEW_LINK = 0, 16
_NAME, _LINK_INFO, _INFO_KIND = 3, 18, 1
_INTERFACE = "csit-dispatch"


class Registration:
    """Keeps a program in the dispatcher until it is closed."""

    def __init__(self, program: XdpProgram) -> None:
        """Attach the program to a port of a veth pair that is down. Where that cannot be done, runs take longer."""
        self._stack = ExitStack()
        try:
            aside(lambda: self._attach(program))
        except OSError:
            self.close()

    def _attach(self, program: XdpProgram) -> None:
        unshare(CLONE_NEWNET)
        self._stack.callback(os.close, os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE) as sock:
            body = struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, 0, 0, 0)
            body += netlink.attribute(_NAME, f"{_INTERFACE}\0".encode())
            body += netlink.attribute(_LINK_INFO, netlink.attribute(_INFO_KIND, b"veth"))
            netlink.answer(sock, _NEW_LINK, body, netlink.ACKNOWLEDGE | netlink.CREATE_NEW)
        self._stack.callback(os.close, program.attach(socket.if_nametoindex(_INTERFACE)))

    def close(self) -> None:
        """Detach the program; the interface and its namespace are gone with it."""
        self._stack.close()
