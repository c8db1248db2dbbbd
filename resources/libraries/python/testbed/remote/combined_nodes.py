"""Parts of several nodes as one: they come and go side by side, and say what all of them have to say."""

from collections.abc import Mapping, Sequence
from typing import Any

from resources.libraries.python.model.counters import InterfaceCounters, Processed, Sample
from resources.libraries.python.testbed.remote.link import Pending
from resources.libraries.python.testbed.remote.parts import RemoteFunctions, RemotePart, RemoteSampler, RemoteSystem


class Together:
    """Parts of different nodes, between which the order does not matter."""

    def __init__(self, parts: Sequence[RemotePart]) -> None:
        self._parts = tuple(parts)

    def start(self) -> None:
        """Bring all up; the first failure is raised when all have answered."""
        _settle([part.begin_start() for part in self._parts])

    def stop(self) -> None:
        """Remove all; the first failure is raised when all have answered."""
        _settle([pending for part in self._parts if (pending := part.begin_stop()) is not None])

    def facts(self) -> Mapping[str, str]:
        """What all of them turned out to be; a fact in which nodes differ has a row for each."""
        rows = [(part.node, part.facts()) for part in self._parts]
        names = dict.fromkeys(name for _, row in rows for name in row)
        facts: dict[str, str] = {}
        for name in names:
            told = {node: row[name] for node, row in rows if name in row}
            if len(set(told.values())) == 1:
                facts[name] = next(iter(told.values()))
            else:
                facts |= {f"{name} of {node}": text for node, text in told.items()}
        return facts

    def problems(self) -> tuple[str, ...]:
        """What is wrong with any of them."""
        return tuple(problem for part in self._parts for problem in part.problems())


class SystemsTogether(Together):
    """The vSwitches, or the NFs, of all nodes. Fulfils `VSwitch` and `NetworkFunctions` of the roles."""

    def __init__(self, systems: Sequence[RemoteSystem]) -> None:
        super().__init__(systems)
        self._systems = tuple(systems)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """By interface; names are unique on a testbed."""
        return {name: cpus for system in self._systems for name, cpus in system.affinity().items()}

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """By interface."""
        return {name: count for system in self._systems for name, count in system.counters().items()}


class FunctionsTogether(SystemsTogether):
    """The NFs of all nodes. Fulfils `Processing` of the roles too."""

    def __init__(self, functions: Sequence[RemoteFunctions]) -> None:
        super().__init__(functions)
        self._functions = tuple(functions)

    def processed(self) -> Mapping[str, Processed]:
        """By name of the NF; names are unique on a testbed."""
        return {name: done for each in self._functions for name, done in each.processed().items()}


class SamplersTogether:
    """Fulfils `roles.sampler.Sampler`: data threads of all nodes, and CPUs of the first, whose numbers they have."""

    def __init__(self, samplers: Sequence[RemoteSampler]) -> None:
        self._samplers = tuple(samplers)

    def read(self) -> Sample:
        """One reading of each."""
        samples = [sampler.read() for sampler in self._samplers]
        return Sample(
            threads={name: time for sample in samples for name, time in sample.threads.items()},
            tasks={owner: tasks for sample in samples for owner, tasks in sample.tasks.items()},
            cpus=samples[0].cpus if samples else {},
            backlog_dropped=sum(sample.backlog_dropped for sample in samples),
            squeezed=sum(sample.squeezed for sample in samples),
        )


def _settle(pending: Sequence[Pending[Any]]) -> None:
    failures: list[Exception] = []
    for each in pending:
        try:
            each.result()
        except Exception as error:  # a step boundary: the others go on meanwhile, and are waited for
            failures.append(error)
    if failures:
        raise failures[0]
