"""A study of interference from its measurements to its advice."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.quantities import rates
from resources.libraries.python.studies.interference.analysis.findings import Throughputs, findings_of, in_order
from resources.libraries.python.studies.interference.analysis.placement import ColocatedThroughputs, advise
from resources.libraries.python.studies.interference.analysis.resources import relations_of
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    Group,
    Interference,
    InterferenceSpec,
    Resource,
)

SERVERS = 2
"""On which all network functions are placed, by default."""
_HELD = 1.02
"""Use of CPUs relative to the limit beyond which the limit holds an NF back; clocks of CPU time are that coarse."""


def analyse(
    spec: InterferenceSpec,
    measurements: Sequence[ColocationMeasurement],
    notes: Sequence[str] = (),
    places: int | None = None,
) -> Interference:
    """Compare what network functions did beside others with what they did alone.

    `measurements`: What was measured, in any order; matrix and what follows are of the reference point of a sweep.
    `notes`: What could not be measured, and why.
    `places`: Network functions that fit on one server, where that was found out.

    Returns:
        With advice on the placement of those that are on no server yet, where all pairs were measured.
    """
    reference = [each for each in measurements if not each.point]
    throughputs = Throughputs(reference)
    network = _held(
        reference, lambda each: None if each.guaranteed else each.throughput_pps, attrgetter("limit_pps"), 1.0
    )
    cpu = _held(reference, attrgetter("cpu"), attrgetter("limit_cpus"), _HELD)
    names = [contender.name for contender in spec.contenders]
    found = Interference(
        spec=spec,
        measurements=tuple(measurements),
        matrix=in_order(spec, throughputs.rows()),
        guaranteed=in_order(spec, throughputs.rows(Resource.NETWORK)),
        guaranteed_cpu=in_order(spec, throughputs.rows(Resource.CPU)),
        findings=findings_of(throughputs, names, {Resource.NETWORK: network, Resource.CPU: cpu}),
        relations=relations_of(reference),
        places=places,
        asked=len(measurements),
        notes=(
            *notes,
            *_stand_ins(spec),
            *_excluded(network, "network I/O", _network_words),
            *_excluded(cpu, "CPU", _cpu_words),
        ),
    )
    if len(_measured(found)) <= len(spec.servers):
        return found
    try:
        return advised(found, spec.servers)
    except ConfigError as error:
        return found.model_copy(update={"notes": (*found.notes, f"no placement is advised: {error}")})


def advised(found: Interference, servers: Sequence[Sequence[str]], more: Sequence[str] = ()) -> Interference:
    """The same with advice where to put network functions.

    `servers`: What is on each server already, by name; nothing on an empty one.
    `more`: What to put there; empty for all that were measured and are on no server.

    Raises:
        ConfigError: A name is none of the study, all are on servers already, or a pair was not measured.
    """
    left = to_place(found, servers, more)
    advice = advise(colocated(found), servers, left, found.spec.verify, found.places)
    return found.model_copy(update={"advice": (advice,)})


def to_place(found: Interference, servers: Sequence[Sequence[str]], more: Sequence[str] = ()) -> tuple[str, ...]:
    """What to put on servers; see `advised`.

    Raises:
        ConfigError: A name is none of the study, all are on servers already, or there is no server.
    """
    names = [contender.name for contender in found.spec.contenders]
    there = [name for server in servers for name in server]
    if unknown := sorted({*there, *more} - set(names)):
        raise ConfigError(f"{', '.join(unknown)}: not a network function of this study; choose from {', '.join(names)}")
    left = tuple(more) or tuple(name for name in _measured(found) if name not in there)
    if not left:
        raise ConfigError("all network functions of the study are on servers; choose one to add")
    if not servers:
        raise ConfigError(f"no server for {', '.join(left)}")
    return left


def colocated(found: Interference) -> ColocatedThroughputs:
    """Normalized throughputs of the reference point, measured or predicted."""
    return ColocatedThroughputs(Throughputs(each for each in found.measurements if not each.point).normalized())


def _measured(found: Interference) -> list[str]:
    """Network functions that were measured at all."""
    there = {measurement.target for measurement in found.measurements}
    return [contender.name for contender in found.spec.contenders if contender.name in there]


def _stand_ins(spec: InterferenceSpec) -> list[str]:
    return [
        f"{each.name} ({each.kind}) is a stand-in for {each.stand_in_for}"
        for each in spec.contenders
        if each.stand_in_for is not None
    ]


Held = Mapping[Group, tuple[float, float]]
"""Groups in which the target was guaranteed less than it uses alone: that share, and its use alone.

What it lacks there its limit took, whatever the others do, so it says nothing of where degradation comes from.
"""


def _held(
    measurements: Iterable[ColocationMeasurement],
    used_of: Callable[[ColocationMeasurement], float | None],
    limit_of: Callable[[ColocationMeasurement], float | None],
    factor: float,
) -> Held:
    """`factor`: use relative to the limit up to which the limit may not have been felt."""
    alone: dict[str, list[float]] = defaultdict(list)
    limits: dict[Group, float] = {}
    for each in measurements:
        if not each.against and (amount := used_of(each)) is not None:
            alone[each.target].append(amount)
        elif (limit := limit_of(each)) is not None:
            limits[each.target, each.against] = limit
    return {
        group: (limit, used)
        for group, limit in limits.items()
        if (row := alone.get(group[0])) and factor * limit < (used := fmean(row))
    }


def _excluded(held: Held, share: str, words: Callable[[float, float], str]) -> list[str]:
    """`words`: of a guaranteed share, and of the use alone."""
    by_size = {(target, 1 + len(against)): words(*row) for (target, against), row in sorted(held.items())}
    return [
        f"{target} is excluded from the share of {share} of {size} co-located NFs: it {text}"
        for (target, size), text in by_size.items()
    ]


def _network_words(limit_pps: float, used_pps: float) -> str:
    limit, carried = rates(limit_pps, used_pps)
    return f"has {carried} alone, and each is guaranteed {limit}"


def _cpu_words(limit: float, used: float) -> str:
    return f"uses {used:.2f} CPUs alone, and each is guaranteed {limit:.2f}"
