"""Probe packets of the generator, seen and time-stamped by the kernel at every port of their path.

A port that the kernel does not serve (shared memory, AF_XDP, DPDK) sees none: the part between its neighbours is then
reported as one. A packet that leaves is stamped behind the queueing discipline, when the driver of the port takes it;
one that arrives when the data thread of the port takes it from its queue.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.parallel_calls import together
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.sockets.packet_ring import OUTGOING, PacketRing, RingFrames
from resources.libraries.python.drivers.probes.hops.packet_delays import Packet, Stamps, hop_delays, visible
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.delays import HopDelay
from resources.libraries.python.model.plan import Hop, Path, Plan

MAX_FRAMES = 1024
"""Frames that a port keeps, both directions together: 256 KiB."""
_SLOT_BYTES = 256
_TYPE_OFFSET = frames.ETHERNET_BYTES - 2
_NUMBER, _STAMP = frames.NUMBER_OFFSET - _TYPE_OFFSET, frames.STAMP_OFFSET - _TYPE_OFFSET
_PROBE = np.dtype(
    {
        "names": ["type", "number", "stamp", "number_6", "stamp_6"],
        "formats": [">u2", ">u4", ">u8", ">u4", ">u8"],
        "offsets": [0, _NUMBER, _STAMP, _NUMBER + frames.IPV6_MORE, _STAMP + frames.IPV6_MORE],
    }
)


def probe_filter() -> bytes:
    """Return the program that lets numbered probes of the built-in generator pass, whatever their addresses and ports.

    They are UDP datagrams over IPv4 or IPv6 whose contents begin with the mark of probes.
    """
    mark = int.from_bytes(frames.PROBE_MARK)
    # 0: ldh type; jne IPv4, 6; ldb protocol; jne UDP, 12; ld contents; ja 10
    # 6: jne IPv6, 12; ldb next header; jne UDP, 12; ld contents; 10: jne mark, 12; ret snap; 12: ret 0
    return kernel.classic_bpf(
        (0x28, 0, 0, _TYPE_OFFSET),
        (0x15, 0, 4, kernel.ETH_P_IP),
        (0x30, 0, 0, 23),
        (0x15, 0, 8, frames.PROBE_PROTOCOL),
        (0x20, 0, 0, frames.MARK_OFFSET),
        (0x05, 0, 0, 4),
        (0x15, 0, 5, kernel.ETH_P_IPV6),
        (0x30, 0, 0, 20),
        (0x15, 0, 3, frames.PROBE_PROTOCOL),
        (0x20, 0, 0, frames.MARK_OFFSET + frames.IPV6_MORE),
        (0x15, 0, 1, mark),
        (0x06, 0, 0, frames.PROBE_BYTES + frames.IPV6_MORE),
        (0x06, 0, 0, 0),
    )


class PortStamps(PacketRing):
    """Keeps the probes that pass a port, both those that arrive and those that it sends.

    `interface`: The port, in the network namespace of the calling thread.

    Raises:
        CsitError: The kernel refused.
    """

    def __init__(self, interface: str) -> None:
        super().__init__(interface, MAX_FRAMES, kernel.ETH_P_ALL, _SLOT_BYTES, probe_filter())

    def by_counter(self) -> dict[str, dict[Packet, int]]:
        """When probes passed so far, in nanoseconds since the epoch, by the counter of the port that counts them."""
        return stamps_of(self.read(_TYPE_OFFSET, _PROBE.itemsize))


def stamps_of(came: RingFrames) -> dict[str, dict[Packet, int]]:
    """When probes passed, by the counter of the port that counts them, `rx` or `tx`. Of duplicates the first counts.

    `came`: Bytes of each from its EtherType on.
    """
    found: dict[str, dict[Packet, int]] = {"rx": {}, "tx": {}}
    probes = came.parts.copy().view(_PROBE)[:, 0]
    ipv6 = probes["type"] == kernel.ETH_P_IPV6
    numbers = np.where(ipv6, probes["number_6"], probes["number"]).tolist()
    sent_ns = np.where(ipv6, probes["stamp_6"], probes["stamp"]).tolist()
    for number, sent, kind, stamp in zip(numbers, sent_ns, came.kinds.tolist(), came.stamps_ns.tolist(), strict=True):
        found["tx" if kind == OUTGOING else "rx"].setdefault((number, sent), stamp)
    return found


if TYPE_CHECKING:
    pass

_FACT = "delays by part"
_NAMED = 3
"""Hops that a sentence names."""


class KernelHopTimer:
    """Fulfils `roles.watching.HopTimer` on this machine: one clock, and no time between machines.

    `fabric`: Has the ports; started before `start`.
    """

    def __init__(self, plan: Plan, fabric: Fabric) -> None:
        self._plan = plan
        self._fabric = fabric
        self._ports: dict[str, PortStamps] = {}
        self._facts: dict[str, str] = {}

    def start(self) -> None:
        self._close()
        self._facts = {}
        owners = {hop.interface: hop.owner for path in self._plan.paths for hop in path.hops if self._is_here(hop)}
        if not owners:
            raise Unsupported("no port on the paths of the packets is an interface of the kernel")
        pass

        def open_port(interface: str) -> None:
            self._ports[interface] = PortStamps(interface)

        inside = self._fabric.run_inside
        try:  # at the same time: the kernel takes 10 ms for each
            together([partial(inside, owner, partial(open_port, interface)) for interface, owner in owners.items()])
        except CsitError:
            self._close()
            raise

    def _is_here(self, hop: Hop) -> bool:
        """Whether a hop is at an interface of this machine's kernel, and of one flow in its direction."""
        with suppress(KeyError):  # one that a program of user space has taken from the kernel
            self._fabric.index(hop.interface)
            return hop.owner in self._fabric.owners and not hop.shared
        return False

    def stop(self) -> tuple[HopDelay, ...]:
        if not self._ports:
            return ()
        try:
            stamps = {interface: port.by_counter() for interface, port in self._ports.items()}
            missed = sum(port.counts()[1] for port in self._ports.values())
        finally:
            self._close()
        seen: list[tuple[Path, list[Stamps]]] = [
            (path, [stamps.get(hop.interface, {}).get(hop.counter, {}) for hop in path.hops])
            for path in self._plan.paths
        ]
        self._facts[_FACT] = self._seen_where(seen, missed)
        return hop_delays(seen)

    def facts(self) -> Mapping[str, str]:
        return dict(self._facts)

    def _seen_where(self, seen: list[tuple[Path, list[Stamps]]], missed: int) -> str:
        if not any(row for _, rows in seen for row in rows):
            return "no numbered probe was seen at any port: the generator sends none, or the kernel serves no port"
        here = [
            (f"{hop.interface} {hop.counter}", index in visible(rows))
            for path, rows in seen
            for index, hop in enumerate(path.hops)
            if hop.owner in self._fabric.owners
        ]
        text = f"time stamps of probes at {sum(is_seen for _, is_seen in here)} of {len(here)} hops"
        if hidden := [name for name, is_seen in here if not is_seen]:
            more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
            text += f", not at {', '.join(hidden[:_NAMED])}{more}"
        return text + (f"; {missed} more found no room" if missed else "")

    def _close(self) -> None:
        ports, self._ports = self._ports, {}
        together([port.close for port in ports.values()])
