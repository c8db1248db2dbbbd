"""NFs of several kinds in one plan as one driver, in control groups where they have limits."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps, refused
from resources.libraries.python.model.measurements.counters import (
    ConnectionTable,
    Deletion,
    InterfaceCounters,
    ProcessedPackets,
    Throttling,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.testbed.roles.part import NetworkFunctions

T = TypeVar("T")


class OneKind(Disturbed, NetworkFunctions):
    """NFs of one kind: base of their drivers, with the hooks that `MixedKinds` needs beside the role."""

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Ids of running programs that entered no control group by themselves, by name of the NF."""
        return {}


class MixedKinds(Disturbed, NetworkFunctions):
    """A driver for each kind, as one.

    `owners`: NFs by the names of their interfaces: what those forward that are there to forward.
    `groups`: Limits of the NFs, not made: programs enter the groups when they start, or are `processes` of a driver.
    """

    def __init__(
        self,
        parts: Iterable[OneKind],
        owners: Mapping[str, str] = MappingProxyType({}),
        groups: NfGroups | None = None,
    ) -> None:
        self._parts = tuple(parts)
        self._owners = owners
        self._groups = groups or None

    def start(self) -> None:
        """Make the groups, then bring the NFs up in them.

        Raises:
            Unsupported: This machine cannot limit them.
        """
        if self._groups:
            self._groups.make()
        for part in self._parts:
            part.start()
        if self._groups:
            self._groups.take_in(_joined(part.processes() for part in self._parts))

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each interface's data thread may really run.

        It is read once all parts are up, that of the vSwitch first. Only then is the CPU weight of containers raised.
        """
        if self._groups:
            self._groups.favour()
        return _joined(part.affinity() for part in self._parts)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return _joined(part.counters() for part in self._parts)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        found = next(filter(None, (part.steps(target, event) for part in self._parts)), None)
        if found is None and target in self._owners.values():
            raise refused(event, target)
        return found

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Processed packets by name of the NF: as they report, and of all others the packets sent."""
        return _joined(part.processed() or self._forwarded(part) for part in self._parts)

    def throttling(self) -> Mapping[str, Throttling]:
        return self._groups.throttling() if self._groups else {}

    def begin_accounts(self) -> tuple[str, ...]:
        return tuple(name for part in self._parts for name in part.begin_accounts())

    def accounts(self) -> tuple[NodeCost, ...]:
        return tuple(row for part in self._parts for row in part.accounts())

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        return _joined(part.connection_tables() for part in self._parts)

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        return _joined(part.hold_connections(timeout_s) for part in self._parts)

    def delete_connections(self) -> Mapping[str, Deletion]:
        return _joined(part.delete_connections() for part in self._parts)

    def facts(self) -> Mapping[str, str]:
        return _joined((*(part.facts() for part in self._parts), self._groups.facts() if self._groups else {}))

    def problems(self) -> tuple[str, ...]:
        """Faults of the NFs; memory that was used up comes first, as it explains the rest."""
        found = (problem for part in self._parts for problem in part.problems())
        return (*(self._groups.problems() if self._groups else ()), *found)

    def stop(self) -> None:
        stops = [self.call_off, *(part.stop for part in reversed(self._parts))]
        take_all((*stops, self._groups.remove) if self._groups else stops)

    def _forwarded(self, part: OneKind) -> dict[str, ProcessedPackets]:
        sent: dict[str, int] = {}
        for interface, row in part.counters().items():
            if owner := self._owners.get(interface):
                sent[owner] = sent.get(owner, 0) + row.tx_packets
        return {owner: ProcessedPackets(packets) for owner, packets in sent.items()}


def _joined(rows: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {name: value for row in rows for name, value in row.items()}
