"""Interference of network functions as sentences."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from resources.libraries.python.studies.interference.analysis.matrix import degradation, lowest, pairs, sensitivity
from resources.libraries.python.studies.interference.analysis.tables import Spot, spots
from resources.libraries.python.studies.interference.model.record import Interference, Normalized

_NOTHING = 0.0005
"""Less does not show in a tenth of a percent."""


def matrix_in_words(found: Interference) -> tuple[str, ...]:
    """A line for each network function, then the most sensitive, the most aggressive, and the network's share."""
    return (*_rows(found.matrix), *summary_in_words(found), *sweep_in_words(found))


def sweep_in_words(found: Interference) -> tuple[str, ...]:
    """A line for each frame size and load of a sweep; none where there is only one."""
    if len(found.spec.points()) == 1:
        return ()
    return tuple(f"{spot.frame.name}, {spot.load_pps:.0f} pps each: {_lost(spot)}" for spot in spots(found))


def _lost(spot: Spot) -> str:
    rows = pairs(spot.matrix)
    lost = degradation(fmean(row.mean for row in rows)) if rows else 0.0
    if lost < _NOTHING:
        return "nothing is lost in pairs, on average"
    return f"{100 * lost:.1f} % lost in pairs on average, most sensitive is {lowest(sensitivity(rows))}"


def summary_in_words(found: Interference) -> tuple[str, ...]:
    """Most sensitive and most aggressive, means over all pairs; share of the network; what could not be measured."""
    lines = []
    if (name := lowest(found.sensitivity)) is not None:
        lines.append(
            f"most sensitive is {name}: it loses {_percent(found.sensitivity, name)} beside another"
            if found.sensitivity[name] < 1
            else "none loses anything beside another, on average"
        )
    if (name := lowest(found.aggressiveness)) is not None and found.aggressiveness[name] < 1:
        lines.append(f"most aggressive is {name}: others lose {_percent(found.aggressiveness, name)} beside it")
    if found.network_share is not None:
        more = [f"{100 * share:.0f} % with {size} NFs" for size, share in found.network_shares.items() if size > 2]
        beyond = f" ({', '.join(more)})" if more else ""
        lines.append(f"{100 * found.network_share:.0f} % of the degradation comes from network I/O{beyond}")
    return (*lines, *found.notes)


def advice_in_words(found: Interference) -> tuple[str, ...]:
    """Return the placement advice."""
    return tuple(advice.sentence for advice in found.advice)


def cell_in_words(row: Normalized) -> str:
    """`0.615 (0.598 to 0.633)`."""
    if row.low is None or row.high is None:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} ({row.low:.3f} to {row.high:.3f})"


def _rows(matrix: Sequence[Normalized]) -> Iterator[str]:
    for target in dict.fromkeys(row.target for row in matrix):
        beside = [f"{cell_in_words(row)} beside {' and '.join(row.against)}" for row in matrix if row.target == target]
        yield f"{target}: {', '.join(beside)}"


def _percent(means: Mapping[str, float], name: str) -> str:
    return f"{100 * degradation(means[name]):.1f} %"
