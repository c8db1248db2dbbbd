"""NFs with limits of their own: others that are put into control groups, with the data threads of their ports."""

from collections.abc import Mapping

from resources.libraries.python.drivers.functions.mixed_kinds import HasProcesses
from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.model.counters import InterfaceCounters, Processed, Throttling
from resources.libraries.python.testbed.roles.function import NetworkFunctions, Processing


class ConfinedFunctions:
    """Fulfils `NetworkFunctions`, `Processing` and `Confined` of the roles by others, within limits."""

    def __init__(self, functions: NetworkFunctions, groups: NfGroups) -> None:
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
        if isinstance(self._functions, HasProcesses):
            self._groups.take_in(self._functions.processes())

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each interface's data thread may really run.

        It is read once all parts are up, that of the vSwitch first. Only then is the CPU weight of containers raised.
        """
        self._groups.favour()
        return self._functions.affinity()

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._functions.counters()

    def processed(self) -> Mapping[str, Processed]:
        """Processed packets by name of the NF, where they report them."""
        return self._functions.processed() if isinstance(self._functions, Processing) else {}

    def throttling(self) -> Mapping[str, Throttling]:
        """How quotas of CPU time held NFs back, by name."""
        return self._groups.throttling()

    def facts(self) -> Mapping[str, str]:
        """What they turned out to be, and what they may use."""
        return {**self._functions.facts(), **self._groups.facts()}

    def problems(self) -> tuple[str, ...]:
        """What is wrong with any of them; memory that was used up comes first, as it explains the rest."""
        return (*self._groups.problems(), *self._functions.problems())

    def stop(self) -> None:
        try:
            self._functions.stop()
        finally:
            self._groups.remove()
