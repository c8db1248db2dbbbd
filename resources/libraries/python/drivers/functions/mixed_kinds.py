"""NFs of different kinds in one plan, as one."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from resources.libraries.python.model.counters import InterfaceCounters, Processed
from resources.libraries.python.testbed.roles.function import NetworkFunctions, Processing


@runtime_checkable
class HasProcesses(Protocol):
    """NFs whose programs do not enter control groups by themselves."""

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Ids of their running programs by name of the NF."""


class Several:
    """Fulfils `NetworkFunctions` and `Processing` of the roles by others, a driver for each kind."""

    def __init__(self, parts: Iterable[NetworkFunctions], owners: Mapping[str, str] = MappingProxyType({})) -> None:
        """Prepare.

        Args:
            parts: The others.
            owners: NFs by the names of their interfaces: what those forward that are there to forward.
        """
        self._parts = tuple(parts)
        self._owners = owners

    def start(self) -> None:
        """Bring all of them up, kind by kind."""
        for part in self._parts:
            part.start()

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return {name: cpus for part in self._parts for name, cpus in part.affinity().items()}

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return {name: count for part in self._parts for name, count in part.counters().items()}

    def processed(self) -> Mapping[str, Processed]:
        """Processed packets by name of the NF: as they report, and of all others the packets sent."""
        found: dict[str, Processed] = {}
        for part in self._parts:
            found |= part.processed() if isinstance(part, Processing) else self._forwarded(part)
        return found

    def _forwarded(self, part: NetworkFunctions) -> dict[str, Processed]:
        sent: dict[str, int] = {}
        for interface, row in part.counters().items():
            if owner := self._owners.get(interface):
                sent[owner] = sent.get(owner, 0) + row.tx_packets
        return {owner: Processed(packets) for owner, packets in sent.items()}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Ids of programs that run already and entered no control group by themselves, by name of the NF."""
        return {
            name: pids
            for part in self._parts
            if isinstance(part, HasProcesses)
            for name, pids in part.processes().items()
        }

    def facts(self) -> Mapping[str, str]:
        """What all of them turned out to be."""
        return {name: text for part in self._parts for name, text in part.facts().items()}

    def problems(self) -> tuple[str, ...]:
        return tuple(problem for part in self._parts for problem in part.problems())

    def stop(self) -> None:
        failures: list[Exception] = []
        for part in reversed(self._parts):
            try:
                part.stop()
            except Exception as error:  # a step boundary: the others must be stopped too
                failures.append(error)
        if failures:
            raise failures[0]
