"""Bases of NFs that are network namespaces, with or without a program in each."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.mixed_kinds import OneKind
from resources.libraries.python.drivers.host.programs.disturbances import Steps, process_steps, refused
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.testbed.nodes import DutNode

_TAKEN_IN = 0.9
"""Share of the packets received that must have gone through an NF's program, rules or tunnel."""
Nf = TypeVar("Nf", bound=NfPlan | TapPlan)


def passed_by(seen: int, of: int, *, merged: int = 1, few: int = 1000) -> bool:
    """Whether packets of a port did not go where its NF handles them.

    Args:
        seen: Packets there.
        of: Packets of the port.
        merged: Segments of a TCP connection that the kernel merges into one as they come in.
        few: Packets of the port that may be the system's own, or on their way.
    """
    return merged * seen < _TAKEN_IN * of - few


class NamespaceFunctions(OneKind, Generic[Nf]):
    """Affinity, counters and problems of the ports of NFs in network namespaces.

    Args:
        node: Has the settings of the driver.
        context: The machine: its namespaces are there before `start`.
        functions: The NFs of this kind, of which one may have several pairs of ports.
    """

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[Nf]) -> None:
        self._node = node
        self._functions = tuple(functions)
        self._owners = tuple(dict.fromkeys(function.name for function in functions))
        self._fabric = context.fabric

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return self._fabric.affinity(self._owners)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters(self._owners)

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread or their carrier."""
        return self._fabric.problems(self._owners)

    def _received(self, owner: str) -> int:
        """Packets that the ports of an NF received."""
        return sum(port.rx_packets for port in self._fabric.counters([owner]).values())

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        """Refuse all events: kinds that declare some say what they consist of."""
        if target in self._owners:
            raise refused(event, f"an NF of kind {self._functions[0].kind}")
        return None

    def stop(self) -> None:
        """Call off an event: what is in the kernel ends with the namespaces, which `Fabric.stop` removes."""
        self.call_off()


class ProgramFunctions(NamespaceFunctions[Nf]):
    """NFs with a program each in their namespaces. Arguments are those of `NamespaceFunctions`."""

    _takes_turns = True
    """See `Companions`."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[Nf]) -> None:
        super().__init__(node, context, functions)
        self._companions = context.companions(functions[0].kind, takes_turns=self._takes_turns)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        """The program is what is hit."""
        if target not in self._owners:
            return None
        return process_steps(event, target, lambda: self._companions.processes_of(target))

    def problems(self) -> tuple[str, ...]:
        """Programs that have ended or moved, and ports that have lost their data thread or their carrier."""
        return (*self._companions.problems(), *super().problems())

    def stop(self) -> None:
        """End all programs. Safe to call at any time and more than once."""
        super().stop()
        self._companions.stop()
