"""Network functions as an IPsec tunnel with both ends in one VPP: ESP with AES-GCM.

Each end is a gateway with a routing table of its own. They are joined by a pipe, an interface pair of VPP, which only
encrypted packets cross. VPP encrypts all packets of a direction in one worker, the first that gets one; others hand
theirs over to it. Keys are generated at each start; they are never in a file, an argument or a message.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resources.libraries.python.drivers.functions.vpp.driver import VppRouters
from resources.libraries.python.drivers.functions.vpp.driver import missing as router_missing
from resources.libraries.python.drivers.vpp import Vpp, show_output
from resources.libraries.python.drivers.vpp.configuration import commands, routing
from resources.libraries.python.drivers.vpp.installation import crypto_engines, program
from resources.libraries.python.drivers.vpp.installation import plugins as installed
from resources.libraries.python.drivers.vpp.member import VppMember
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode

_FOR = "for NFs of kind vpp_ipsec"
_TABLES = (101, 102)
_DEVICES = ("ipsec0", "ipsec1")
_ADDRESSES = ("192.0.2.1", "192.0.2.2")
"""For documentation (RFC 5737): no flow of a plan uses them."""
_FIRST_SPI = 0x1001
_KEY_BYTES, _SALT_BYTES = 16, 4
_ALGORITHM, _HANDLERS = "aes-gcm-128", ("aes-128-gcm-icv16-aad12", "aes-128-gcm")
"""As the commands for associations and for engines call the cipher; the second one in VPP 25.02 and earlier."""
CIPHER = "AES-128-GCM"
_WINDOW = 256
"""Packets that may be late (anti-replay). Sequence numbers are of 64 bits: 32 would end after an hour at 1 Mpps."""
_OVERHEAD = 100
"""Bytes, more than the 57 that ESP in IPv4 adds at the most: 20 of IPv4, 8 of ESP, 8 of IV, 5 of padding, 16 of the
check value."""


@dataclass(frozen=True, slots=True)
class TunnelGateway:
    """One end of a tunnel, with the key of the packets that it encrypts."""

    prefixes: tuple[str, ...]
    """Networks on the side of the other end."""
    key: str = field(repr=False)
    """Hexadecimal."""
    salt: str = field(repr=False)
    """Of the nonce (RFC 4106), hexadecimal."""

    table: int
    address: str
    """Outer address of what it encrypts."""
    pipe: str
    """Its interface to the other end."""
    device: str
    spi: int
    """Number of the security association of packets that it encrypts."""
    outbound: int
    """VPP's number of the association that encrypts here."""
    inbound: int
    """VPP's number of the association that decrypts here."""


def gateways(function: NfPlan) -> tuple[TunnelGateway, TunnelGateway]:
    """The left and the right end of an NF's tunnel, with new keys."""
    left, right = (
        TunnelGateway(
            prefixes=(far.route.prefix, *far.route.also),
            key=secrets.token_hex(_KEY_BYTES),
            salt=secrets.token_hex(_SALT_BYTES),
            table=_TABLES[number],
            address=_ADDRESSES[number],
            pipe=f"pipe0.{number}",
            device=_DEVICES[number],
            spi=_FIRST_SPI + number,
            outbound=10 + number,
            inbound=20 + number,
        )
        for number, far in enumerate((function.right, function.left))
    )
    return left, right


def tunnelling(ends: tuple[TunnelGateway, TunnelGateway], largest_frame_bytes: int) -> tuple[str, ...]:
    """Make the gateways, the tunnel between them, and the routes into it.

    `largest_frame_bytes`: the largest L2 frame that will be sent, FCS included. No packet is fragmented.
    """
    return commands(
        "vpp-ipsec.j2",
        {
            "gateways": ends,
            "algorithm": _ALGORITHM,
            "window": _WINDOW,
            "inner_mtu": largest_frame_bytes,
            "outer_mtu": largest_frame_bytes + _OVERHEAD,
        },
    )


class VppTunnels(VppRouters):
    """A VPP per NF that encrypts packets by IPsec and decrypts them again."""

    def _start(self, member: VppMember, plugins: tuple[str, ...], *, logs_commands: bool = False) -> None:
        engines = crypto_engines(self._site.prefix) & installed(self._site.prefix)
        super()._start(member, (*plugins, *sorted(engines)), logs_commands=logs_commands)

    def _forward(self, member: VppMember) -> None:
        """Make the tunnel, then route both ports into it."""
        function = self._functions[member.owner]
        ends = gateways(function)
        member.instance.do((*tunnelling(ends, self._site.largest_frame_bytes), *routing(function, _TABLES)))
        # The command says nothing, whether it has found the associations or not.
        made = show_output.protected(member.instance.ask("show ipsec protect"))
        for end in ends:
            if (found := made.get(end.device, ())) != (end.outbound, end.inbound):
                raise CsitError(
                    f"VPP of {member.owner}: {end.device} has the security associations {list(found)}, not "
                    f"{[end.outbound, end.inbound]}"
                )

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Packets that each encrypted and decrypted, and that went into its tunnel and did not come out.

        NFs that have ended are left out.
        """
        return {
            name: _passed(show_output.interfaces(member.instance.ask("show interface")))
            for name, member in self._members.items()
            if not member.instance.problem()
        }

    def facts(self) -> Mapping[str, str]:
        """Those of VPP, and its crypto engine."""
        found = super().facts()
        if not found:
            return found
        running = (member.instance for member in self._members.values() if not member.instance.problem())
        shown = next((instance.ask("show crypto handlers") for instance in running), "")
        by = f" by VPP's engine {engine}" if (engine := show_output.crypto_engine(shown, _HANDLERS)) else ""
        does = f"encrypts each packet by ESP with {CIPHER}{by} and decrypts it again, each direction in one worker"
        return {**found, "vpp_ipsec": does}


def _passed(rows: Mapping[str, show_output.InterfaceRow]) -> ProcessedPackets:
    ends = [rows[device] for device in _DEVICES if device in rows]
    came, left = sum(row.count("tx packets") for row in ends), sum(row.count("rx packets") for row in ends)
    return ProcessedPackets(left, max(0, came - left))


def missing(node: DutNode, kind: NfKind) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks: VPP with its plugins, and a crypto engine."""
    yield from router_missing(node, kind)
    prefix = Path(node.settings(Vpp).prefix)
    if program(prefix).exists() and not crypto_engines(prefix):
        fix = "install the package vpp-crypto-engines, or build VPP with one"
        yield PreflightProblem(f"VPP at {prefix} has no crypto engine {_FOR}", fix)
