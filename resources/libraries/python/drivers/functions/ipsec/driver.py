"""Network functions as an IPsec tunnel with both ends in one network namespace: ESP with AES-GCM, in the kernel.

Each port has an XFRM interface that packets are routed into. The security association of that interface encrypts them,
sends them over loopback, and decrypts them where they arrive; they then come out of the same interface. Keys are
generated at each start; they are never in a file or an argument.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from functools import partial

from resources.libraries.python.drivers.functions.tunnels import (
    WITHIN_S,
    TunnelEnd,
    Tunnels,
    kernel_makes,
    tunnel_device,
)
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.model.findings import PreflightProblem

_FOR = "for NFs of kind ipsec"
_LEFT, _RIGHT = TunnelEnd("ipsec-left", "initiator", 0, 101), TunnelEnd("ipsec-right", "responder", 0, 102)
_ADDRESSES = ("127.0.0.1", "127.0.0.2")
_FIRST_SPI = 0x1001
_KEY_BYTES = 20
"""AES-128 and the salt of RFC 4106."""
_WINDOW = 256
"""Packets that may be late (anti-replay). Sequence numbers are of 64 bits: 32 would end after an hour at 1 Mpps."""
_LOOPBACK = 1
CIPHER = "AES-128-GCM"


def batch(keys: Sequence[str]) -> str:
    """Lines of `ip -batch` that make security associations and policies.

    `keys`: Of the left end and of the right end, in hexadecimal.
    """
    lines = []
    for number, key in enumerate(keys, 1):
        source, destination = _ADDRESSES if number == 1 else _ADDRESSES[::-1]
        ends = f"src {source} dst {destination} proto esp"
        spi = _FIRST_SPI + number - 1
        lines.append(
            f"xfrm state add {ends} spi {spi:#x} reqid {number} mode tunnel replay-window {_WINDOW} flag esn "
            f"aead rfc4106(gcm(aes)) 0x{key} 128 if_id {number}"
        )
        lines += [
            f"xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 dir {way} if_id {number} "
            f"tmpl {ends} reqid {number} mode tunnel"
            for way in ("out", "fwd", "in")
        ]
    return "".join(f"{line}\n" for line in lines)


def devices() -> list[Request]:
    """The two XFRM interfaces, each with the number of its policies."""
    return [
        tunnel_device(end.device, "xfrm", [("IFLA_XFRM_LINK", _LOOPBACK), ("IFLA_XFRM_IF_ID", number)])
        for number, end in enumerate((_LEFT, _RIGHT), 1)
    ]


class Ipsecs(Tunnels):
    """NFs that encrypt packets and decrypt them again in the kernel."""

    _does = f"encrypts each packet by ESP with {CIPHER} and decrypts it again, in the threads that forward"

    def ends(self, name: str) -> tuple[TunnelEnd, TunnelEnd]:  # noqa: ARG002
        """The same in every NF, as each has a network namespace of its own."""
        return _LEFT, _RIGHT

    def make(self) -> str:
        """Make devices, security associations and policies."""
        argv = [path_of("ip") or "ip", "-batch", "-"]
        for function in self._functions:
            self._fabric.change(function.name, devices())
            lines = batch([secrets.token_hex(_KEY_BYTES) for _ in range(2)])
            self._fabric.run_inside(function.name, partial(completed, argv, WITHIN_S, stdin=lines, what="ip xfrm"))
            for side in (0, 1):
                self._route_into(function, side)
        return f"Linux {os.uname().release} in the kernel"


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    if (ip := path_of("ip")) is None:
        yield PreflightProblem(f"ip missing {_FOR}", "install it: apt-get install iproute2")
        return
    if not kernel_makes(*devices()):
        fix = "boot a kernel with CONFIG_XFRM_INTERFACE"
        yield PreflightProblem(f"the kernel makes no XFRM interfaces {_FOR}", fix)
        return
    lines = batch(["00" * _KEY_BYTES] * 2)
    if not kernel_makes(work=partial(completed, [ip, "-batch", "-"], WITHIN_S, stdin=lines)):
        yield PreflightProblem(f"the kernel has no ESP with {CIPHER} {_FOR}", "boot a kernel with CONFIG_INET_ESP")
