"""Probe packets of the generator, seen and time-stamped by the kernel at every port of their path.

A port that the kernel does not serve (shared memory, AF_XDP, DPDK) sees none: the part between its neighbours is then
reported as one. A packet that leaves is stamped behind the queueing discipline, when the driver of the port takes it;
one that arrives when the data thread of the port takes it from its queue.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from resources.libraries.python.drivers.generators.builtin.parallel_calls import together
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.probes.hops.packet_delays import Stamps, hop_delays, visible
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.features import HopDelay
from resources.libraries.python.model.plan import Hop, Path, Plan

if TYPE_CHECKING:
    from resources.libraries.python.drivers.probes.hops.port_stamps import PortStamps

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
        from resources.libraries.python.drivers.probes.hops.port_stamps import (  # noqa: PLC0415 - numpy costs time
            PortStamps,
        )

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
