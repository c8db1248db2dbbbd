"""Watching a deployed chain while traffic runs: each second from the first whole one, and events of the kernel."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from resources.libraries.python.errors import CsitError
from resources.libraries.python.studies.chains.model.record import (
    HOST,
    VSWITCH,
    FeatureSeries,
    StateGraph,
    Step,
    StepCost,
)
from resources.libraries.python.studies.chains.planning.cost import LEAD_S
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.watching import Tracer

_OTHERS = frozenset({HOST, VSWITCH})


@dataclass
class WatchedChain:
    """Measurements of a watched chain; filled when watching ends."""

    series: tuple[FeatureSeries, ...] = ()
    graphs: tuple[StateGraph, ...] = ()
    notes: list[str] = field(default_factory=list)
    """Reason why something could not be sampled or traced."""
    costs: tuple[StepCost, ...] = ()
    """Of sampler and tracer, if known."""


@contextmanager
def watching(parts: Parts, names: Mapping[str, str], duration_s: int) -> Iterator[WatchedChain]:
    """Watch until the context ends. What cannot be watched is noted, and the rest is watched.

    Args:
        parts: Of the deployed chain.
        names: VNF by its name in the plan; other owners but the machine and the vSwitch are left out.
        duration_s: Whole seconds that are kept after the first `LEAD_S`.
    """
    watched = WatchedChain()
    features, tracer = parts.features, parts.tracer
    began_s = time.monotonic()
    tracing = tracer is not None and _begun(tracer, watched)  # first: it takes a while, and seconds count from the next
    try:
        if features is None:
            watched.notes.append("no features were sampled: not supported on this testbed")
        else:
            features.start()
        yield watched
    finally:
        try:
            series = features.stop() if features is not None else ()
        finally:  # in any case: the kernel traces until it is stopped
            graphs = _ended(tracer, watched) if tracer is not None and tracing else None
        used: dict[Step, float | None] = {}
        if features is not None:
            used["sample features"] = features.cpu_s
        if tracer is not None and graphs is not None:
            used["read kernel events"] = tracer.cpu_s
        lasted_s = time.monotonic() - began_s
        watched.costs = tuple(
            StepCost(step=step, cpu_s=cpu_s, lasted_s=lasted_s) for step, cpu_s in used.items() if cpu_s is not None
        )
        watched.series = tuple(_kept(series, names, duration_s))
        watched.graphs = tuple(
            graph.model_copy(update={"owner": owner}) for graph in graphs or () if (owner := _vnf(graph.owner, names))
        )


def _begun(tracer: Tracer, watched: WatchedChain) -> bool:
    try:
        tracer.start()
    except CsitError as error:
        watched.notes.append(f"nothing was traced: {error}")
        return False
    return True


def _ended(tracer: Tracer, watched: WatchedChain) -> tuple[StateGraph, ...] | None:
    try:
        return tracer.stop()
    except CsitError as error:
        watched.notes.append(f"trace lost: {error}")
        return None


def _kept(series: Sequence[FeatureSeries], names: Mapping[str, str], duration_s: int) -> Iterator[FeatureSeries]:
    for row in series:
        values = row.values[LEAD_S : LEAD_S + duration_s]
        if (owner := _vnf(row.owner, names)) and any(value is not None for value in values):
            yield FeatureSeries(owner=owner, feature=row.feature, values=values)


def _vnf(owner: str, names: Mapping[str, str]) -> str | None:
    return names.get(owner) or (owner if owner in _OTHERS else None)
