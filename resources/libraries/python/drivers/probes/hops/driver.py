"""Probe packets of the generator, seen and time-stamped by the kernel at every port of their path.

A port that the kernel does not serve (shared memory, AF_XDP, DPDK) sees none: the part between its neighbours is then
reported as one. A packet that leaves is stamped behind the queueing discipline, when the driver of the port takes it;
one that arrives when the data thread of the port takes it from its queue.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.parallel_calls import together
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.sockets.packet_ring import OUTGOING, PacketRing
from resources.libraries.python.drivers.probes.hops.matching import Stamps, hop_delays, visible
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.delays import HopDelay
from resources.libraries.python.model.plan import Hop, Plan

MOST_FRAMES = 1024
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
_NAMED = 3
"""Ports that a sentence names."""


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


class KernelHopTimer:
    """Fulfils `roles.watching.HopTimer` on this machine: one clock, and no time between machines.

    Args:
        plan: Has the paths of flows.
        fabric: Has the ports; started before `start`.
    """

    def __init__(self, plan: Plan, fabric: Fabric) -> None:
        self._plan = plan
        self._fabric = fabric
        self._rings: dict[str, PacketRing] = {}
        self._facts: dict[str, str] = {}

    def start(self) -> None:
        self._close()
        self._facts = {}
        owners = {hop.interface: hop.owner for path in self._plan.paths for hop in path.hops if self._is_here(hop)}
        if not owners:
            raise Unsupported("no port on the paths of the packets is an interface of the kernel")
        try:  # at the same time: the kernel takes 10 ms for each
            together(
                [
                    partial(self._fabric.run_inside, owner, partial(self._open, interface))
                    for interface, owner in owners.items()
                ]
            )
        except CsitError:
            self._close()
            raise

    def _open(self, interface: str) -> None:
        self._rings[interface] = PacketRing(interface, MOST_FRAMES, kernel.ETH_P_ALL, _SLOT_BYTES, probe_filter())

    def _is_here(self, hop: Hop) -> bool:
        """Whether a hop is at an interface of this machine's kernel, and of one flow in its direction."""
        with suppress(KeyError):  # one that a program of user space has taken from the kernel
            self._fabric.index(hop.interface)
            return hop.owner in self._fabric.owners and not hop.shared
        return False

    def stop(self) -> tuple[HopDelay, ...]:
        rings = self._rings
        if not rings:
            return ()
        try:
            stamps = {key: row for interface, ring in rings.items() for key, row in stamps_at(interface, ring).items()}
            missed = sum(ring.counts()[1] for ring in rings.values())
        finally:
            self._close()
        if not any(stamps.values()):
            why = "the generator sends none, or the kernel does not serve these ports"
            self._facts["delays by part"] = f"no numbered probe was seen at any port: {why}"
            return ()
        seen = [
            (path, [stamps.get((hop.interface, hop.counter), {}) for hop in path.hops]) for path in self._plan.paths
        ]
        hidden = [
            f"{hop.interface} {hop.counter}"
            for path, rows in seen
            for index, hop in enumerate(path.hops)
            if hop.owner in self._fabric.owners and index not in visible(rows)
        ]
        self._facts["delays by part"] = f"time stamps of probes at {len(rings)} ports{_but(hidden, missed)}"
        return hop_delays(seen)

    def facts(self) -> Mapping[str, str]:
        return dict(self._facts)

    def _close(self) -> None:
        rings, self._rings = self._rings, {}
        together([ring.close for ring in rings.values()])


def stamps_at(interface: str, ring: PacketRing) -> dict[tuple[str, str], Stamps]:
    """When packets passed a port, by the counter of its interface that counts them. Of duplicates the first counts."""
    found: dict[tuple[str, str], dict[tuple[int, int], int]] = {(interface, "rx"): {}, (interface, "tx"): {}}
    came = ring.read(_TYPE_OFFSET, _PROBE.itemsize)
    probes = came.parts.copy().view(_PROBE)[:, 0]
    ipv6 = probes["type"] == kernel.ETH_P_IPV6
    numbers = np.where(ipv6, probes["number_6"], probes["number"]).tolist()
    sent_ns = np.where(ipv6, probes["stamp_6"], probes["stamp"]).tolist()
    for number, sent, kind, stamp in zip(numbers, sent_ns, came.kinds.tolist(), came.stamps_ns.tolist(), strict=True):
        found[interface, "tx" if kind == OUTGOING else "rx"].setdefault((number, sent), stamp)
    return dict(found)


def _but(hidden: list[str], missed: int) -> str:
    more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
    unseen = f"; none was seen at {', '.join(hidden[:_NAMED])}{more}" if hidden else ""
    return unseen + (f"; {missed} came when {MOST_FRAMES} had been kept at their port" if missed else "")
