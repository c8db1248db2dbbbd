"""NFs of different kinds in one plan, as one."""

from collections.abc import Iterable, Mapping

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.roles.function import NetworkFunctions


class Several:
    """Fulfils `roles.function.NetworkFunctions` by others, a driver for each kind."""

    def __init__(self, parts: Iterable[NetworkFunctions]) -> None:
        self._parts = tuple(parts)

    def start(self) -> None:
        """Bring all of them up, kind by kind."""
        for part in self._parts:
            part.start()

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each interface's data thread may really run."""
        return {name: cpus for part in self._parts for name, cpus in part.affinity().items()}

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface."""
        return {name: count for part in self._parts for name, count in part.counters().items()}

    def facts(self) -> Mapping[str, str]:
        """What all of them turned out to be."""
        return {name: text for part in self._parts for name, text in part.facts().items()}

    def problems(self) -> tuple[str, ...]:
        """What is wrong with any of them."""
        return tuple(problem for part in self._parts for problem in part.problems())

    def stop(self) -> None:
        """Remove what `start` made; the first failure is raised when all have been stopped."""
        failures: list[Exception] = []
        for part in reversed(self._parts):
            try:
                part.stop()
            except Exception as error:  # a step boundary: the others must be stopped too
                failures.append(error)
        if failures:
            raise failures[0]
