"""A study of interference from its measurements to its advice."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.quantities import rates
from resources.libraries.python.studies.interference.analysis.matrix import (
    aggressiveness,
    in_order,
    network_share,
    normalized,
    sensitivity,
)
from resources.libraries.python.studies.interference.analysis.placement import ColocatedThroughputs, advise
from resources.libraries.python.studies.interference.model.record import (
    ColocationMeasurement,
    Interference,
    InterferenceSpec,
)

SERVERS = 2
"""On which all network functions are placed, by default."""

Group = tuple[str, tuple[str, ...]]
"""A target and what is beside it."""


def analyse(
    spec: InterferenceSpec, measurements: Sequence[ColocationMeasurement], notes: Sequence[str] = ()
) -> Interference:
    """Compare what network functions did beside others with what they did alone.

    Args:
        spec: What was asked.
        measurements: What was measured, in any order; matrix and what follows are of the reference point of a sweep.
        notes: What could not be measured, and why.

    Returns:
        With the placement of all of them on two servers as advice, where all pairs were measured.
    """
    reference = [each for each in measurements if not each.point]
    matrix, guaranteed = (
        # Alone there is nothing to share: that is the baseline with a guarantee, too.
        in_order(spec, normalized(each for each in reference if each.guaranteed is (wanted and bool(each.against))))
        for wanted in (False, True)
    )
    capped = _capped(reference)
    uncapped = [row for row in guaranteed if (row.target, row.against) not in capped]
    shares = {size: network_share(matrix, uncapped, size) for size in range(2, spec.together + 1)}
    found = Interference(
        spec=spec,
        measurements=tuple(measurements),
        matrix=matrix,
        guaranteed=guaranteed,
        sensitivity=sensitivity(matrix),
        aggressiveness=aggressiveness(matrix),
        network_share=shares[2],
        network_shares={size: share for size, share in shares.items() if share is not None and spec.together > 2},
        notes=(*notes, *_stand_ins(spec), *_of_capped(capped), *_of_prediction(ColocatedThroughputs(matrix))),
    )
    if len(_measured(found)) <= SERVERS:
        return found
    try:
        return advised(found, ((),) * SERVERS)
    except ConfigError as error:
        return found.model_copy(update={"notes": (*found.notes, f"no placement is advised: {error}")})


def advised(found: Interference, servers: Sequence[Sequence[str]], more: Sequence[str] = ()) -> Interference:
    """The same with advice where to put network functions.

    Args:
        found: What was measured.
        servers: What is on each server already, by name; nothing on an empty one.
        more: What to put there; empty for all that were measured and are on no server.

    Raises:
        ConfigError: A name is none of the study, all are on servers already, or a pair was not measured.
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
    return found.model_copy(update={"advice": (advise(ColocatedThroughputs(found.matrix), servers, left),)})


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


def _capped(measurements: Iterable[ColocationMeasurement]) -> dict[Group, tuple[float, float]]:
    """Groups in which the target was guaranteed less than it carries alone: that share, and its throughput alone.

    What it lacks there its limit took, whatever the others do, so it says nothing of where degradation comes from.
    """
    alone: dict[str, list[float]] = defaultdict(list)
    limits: dict[Group, float] = {}
    for each in measurements:
        if not each.against:
            alone[each.target].append(each.throughput_pps)
        elif each.limit_pps is not None:
            limits[each.target, each.against] = each.limit_pps
    return {
        group: (limit_pps, carried_pps)
        for group, limit_pps in limits.items()
        if (row := alone.get(group[0])) and limit_pps < (carried_pps := fmean(row))
    }


def _of_capped(capped: Mapping[Group, tuple[float, float]]) -> list[str]:
    by_size = {(target, 1 + len(against)): rates(*row) for (target, against), row in sorted(capped.items())}
    return [
        f"{target} is excluded from the share of network I/O of {size} co-located NFs: it has {carried} alone, and "
        f"each is guaranteed {limit}"
        for (target, size), (limit, carried) in by_size.items()
    ]


def _of_prediction(throughputs: ColocatedThroughputs) -> list[str]:
    error = throughputs.prediction_error()
    if error is None:
        return []
    return [f"mean error of the prediction from pairs for three and more co-located NFs: {error:.3f}"]
