"""NFs of several kinds in one plan as one driver, and NFs in control groups of their own limits."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps, refused
from resources.libraries.python.model.measurements.connections import ConnectionTable, Deletion
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets, Throttling
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.testbed.roles.part import (
    Accounting,
    NetworkFunctions,
    Processing,
    Stateful,
)


@runtime_checkable
class HasProcesses(Protocol):
    """NFs whose programs do not enter control groups by themselves."""

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Ids of their running programs by name of the NF."""


class MixedKinds(Disturbed):
    """Fulfils `NetworkFunctions`, `Processing`, `Disturbable`, `Accounting` and `Stateful`, a driver for each kind."""

    def __init__(self, parts: Iterable[NetworkFunctions], owners: Mapping[str, str] = MappingProxyType({})) -> None:
        """Prepare.

        Args:
            parts: The others.
            owners: NFs by the names of their interfaces: what those forward that are there to forward.
        """
        self._parts = tuple(parts)
        self._owners = owners

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return {name: cpus for part in self._parts for name, cpus in part.affinity().items()}

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return {name: count for part in self._parts for name, count in part.counters().items()}

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        found = (part.steps(target, event) for part in self._parts if isinstance(part, Disturbed))
        steps = next(filter(None, found), None)
        if steps is None and target in self._owners.values():
            raise refused(event, target)
        return steps

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Processed packets by name of the NF: as they report, and of all others the packets sent."""
        found: dict[str, ProcessedPackets] = {}
        for part in self._parts:
            found |= part.processed() if isinstance(part, Processing) else self._forwarded(part)
        return found

    def begin_accounts(self) -> None:
        for part in self._accounting:
            part.begin_accounts()

    def accounts(self) -> Mapping[str, str]:
        """Accounts of all NFs that keep some."""
        return {name: text for part in self._accounting for name, text in part.accounts().items()}

    @property
    def _accounting(self) -> list[Accounting]:
        return [part for part in self._parts if isinstance(part, Accounting)]

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        """Tables of all NFs that have one."""
        return {name: found for part in self._stateful for name, found in part.connection_tables().items()}

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        """Let entries of all tables expire after some time."""
        return {name: found for part in self._stateful for name, found in part.hold_connections(timeout_s).items()}

    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete the entries of all tables, one kind after the other."""
        return {name: found for part in self._stateful for name, found in part.delete_connections().items()}

    @property
    def _stateful(self) -> list[Stateful]:
        return [part for part in self._parts if isinstance(part, Stateful)]

    def _forwarded(self, part: NetworkFunctions) -> dict[str, ProcessedPackets]:
        sent: dict[str, int] = {}
        for interface, row in part.counters().items():
            if owner := self._owners.get(interface):
                sent[owner] = sent.get(owner, 0) + row.tx_packets
        return {owner: ProcessedPackets(packets) for owner, packets in sent.items()}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Ids of programs that run already and entered no control group by themselves, by name of the NF."""
        return {
            name: pids
            for part in self._parts
            if isinstance(part, HasProcesses)
            for name, pids in part.processes().items()
        }

    def facts(self) -> Mapping[str, str]:
        return {name: text for part in self._parts for name, text in part.facts().items()}

    def problems(self) -> tuple[str, ...]:
        return tuple(problem for part in self._parts for problem in part.problems())

    def stop(self) -> None:
        take_all(part.stop for part in reversed(self._parts))


class ConfinedFunctions:
    """Fulfils all roles of `MixedKinds`, and `CpuLimited`, within limits.

    What a role does where no NF has it, such as refusing an event, is said there alone.
    """

    def __init__(self, functions: MixedKinds, groups: NfGroups) -> None:
        """Prepare.

        Args:
            functions: Their programs enter the groups when they start, or are listed by `HasProcesses`.
            groups: Not made.
        """
        self._functions = functions
        self._groups = groups

    def start(self) -> None:
        """Make the groups, then bring the NFs up in them.

        Raises:
            Unsupported: This machine cannot limit them.
        """
        self._groups.make()
        self._functions.start()
        self._groups.take_in(self._functions.processes())

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each interface's data thread may really run.

        It is read once all parts are up, that of the vSwitch first. Only then is the CPU weight of containers raised.
        """
        self._groups.favour()
        return self._functions.affinity()

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._functions.counters()

    def processed(self) -> Mapping[str, ProcessedPackets]:
        return self._functions.processed()

    def disturb(self, coming: Disturbance) -> None:
        self._functions.disturb(coming)

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        return self._functions.disturbed()

    def begin_accounts(self) -> None:
        self._functions.begin_accounts()

    def accounts(self) -> Mapping[str, str]:
        return self._functions.accounts()

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        return self._functions.connection_tables()

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        return self._functions.hold_connections(timeout_s)

    def delete_connections(self) -> Mapping[str, Deletion]:
        return self._functions.delete_connections()

    def throttling(self) -> Mapping[str, Throttling]:
        return self._groups.throttling()

    def facts(self) -> Mapping[str, str]:
        """Facts of the NFs, and their limits."""
        return {**self._functions.facts(), **self._groups.facts()}

    def problems(self) -> tuple[str, ...]:
        """Faults of the NFs; memory that was used up comes first, as it explains the rest."""
        return (*self._groups.problems(), *self._functions.problems())

    def stop(self) -> None:
        try:
            self._functions.stop()
        finally:
            self._groups.remove()
