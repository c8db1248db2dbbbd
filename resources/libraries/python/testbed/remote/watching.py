"""Feature samplers, tracers and cost meters on nodes, by calls to their agents; those of several nodes as one."""

from collections.abc import Iterable, Mapping, Sequence

from resources.libraries.python.model.counters import Cost
from resources.libraries.python.studies.chains.model.record import HOST, VSWITCH, Series, StateGraph
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import Seen, Watcher
from resources.libraries.python.testbed.remote.link import Link
from resources.libraries.python.testbed.roles.watching import CostMeter, FeatureSampler, Tracer


class _Remote:
    """A watcher on a node. It ends with its agent, and with what it watches."""

    def __init__(self, link: Link, who: Watcher) -> None:
        self._link = link
        self._who = who
        self.cpu_s: float | None = None
        """Of the watcher on its node; after `stop`."""

    def start(self) -> None:
        """Begin."""
        self._link.call(calls.WATCH, self._who)

    def facts(self) -> Mapping[str, str]:
        """What it can see there."""
        return self._link.call(calls.WATCHER_FACTS, self._who)

    def seen(self) -> Seen:
        """End; what it saw. Nothing where there is no agent any more."""
        seen = Seen() if self._link.lost else self._link.call(calls.WATCHED, self._who)
        self.cpu_s = seen.cpu_s
        return seen


class RemoteFeatures(_Remote):
    """Fulfils `roles.watching.FeatureSampler`."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, Watcher.FEATURES)

    def stop(self) -> tuple[Series, ...]:
        """End; a value for each whole second."""
        return self.seen().series


class RemoteTracer(_Remote):
    """Fulfils `roles.watching.Tracer`."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, Watcher.TRACER)

    def stop(self) -> tuple[StateGraph, ...]:
        """End; a graph for each VNF."""
        return self.seen().graphs


class RemoteCosts(_Remote):
    """Fulfils `roles.watching.CostMeter`."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, Watcher.COSTS)

    def stop(self) -> Mapping[str, Cost]:
        """End; what each NF used."""
        return self.seen().costs


class _Together:
    """Watchers of several nodes. The machine and the vSwitch of a result are those of the first one."""

    def __init__(self, watchers: Sequence[FeatureSampler | Tracer | CostMeter]) -> None:
        self._all = watchers

    def start(self) -> None:
        """Begin, one after the other."""
        for each in self._all:
            each.start()

    def facts(self) -> Mapping[str, str]:
        """What all of them say; where they differ, the first."""
        return {name: text for each in reversed(self._all) for name, text in each.facts().items()}


class _Features(_Together):
    def __init__(self, samplers: Sequence[FeatureSampler]) -> None:
        super().__init__(samplers)
        self._samplers = samplers

    @property
    def cpu_s(self) -> float | None:
        """Of all of them."""
        return _sum(each.cpu_s for each in self._samplers)

    def stop(self) -> tuple[Series, ...]:
        """End all."""
        rows = [each.stop() for each in self._samplers]
        others = (one for row in rows[1:] for one in row if one.owner not in (HOST, VSWITCH))
        return (*rows[0], *others)


class _Tracers(_Together):
    def __init__(self, tracers: Sequence[Tracer]) -> None:
        super().__init__(tracers)
        self._tracers = tracers

    @property
    def cpu_s(self) -> float | None:
        """Of all of them."""
        return _sum(each.cpu_s for each in self._tracers)

    def stop(self) -> tuple[StateGraph, ...]:
        """End all."""
        return tuple(graph for each in self._tracers for graph in each.stop())


class _Costs(_Together):
    def __init__(self, meters: Sequence[CostMeter]) -> None:
        super().__init__(meters)
        self._meters = meters

    def stop(self) -> Mapping[str, Cost]:
        """End all."""
        return {name: cost for each in self._meters for name, cost in each.stop().items()}


def _sum(times_s: Iterable[float | None]) -> float | None:
    known = [value for value in times_s if value is not None]
    return sum(known) if known else None


def features_together(samplers: Sequence[FeatureSampler]) -> FeatureSampler | None:
    """One for all DUTs; None where none has one."""
    return _Features(samplers) if samplers else None


def tracers_together(tracers: Sequence[Tracer]) -> Tracer | None:
    """One for all DUTs; None where none has one."""
    return _Tracers(tracers) if tracers else None


def costs_together(meters: Sequence[CostMeter]) -> CostMeter | None:
    """One for all DUTs; None where none has one."""
    return _Costs(meters) if meters else None
