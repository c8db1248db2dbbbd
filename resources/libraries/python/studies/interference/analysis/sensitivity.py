"""Sensitivity, aggressiveness, and the share of the network in degradation (Zeng et al., section IV)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from resources.libraries.python.studies.interference.model.record import Normalized


def pairs(matrix: Sequence[Normalized]) -> tuple[Normalized, ...]:
    """Those of two network functions."""
    return tuple(row for row in matrix if len(row.against) == 1)


def sensitivity(matrix: Sequence[Normalized]) -> dict[str, float]:
    """Mean normalized throughput of each target in pairs, a row of the matrix: low is sensitive (Table III)."""
    return _means([(row.target, row.mean) for row in pairs(matrix)])


def aggressiveness(matrix: Sequence[Normalized]) -> dict[str, float]:
    """Mean normalized throughput beside each competitor in pairs, a column of the matrix: low is aggressive."""
    return _means([(row.against[0], row.mean) for row in pairs(matrix)])


def degradation(normalized: float) -> float:
    """Share of the throughput alone that is lost beside others."""
    return 1 - normalized


def network_share(without: Sequence[Normalized], guaranteed: Sequence[Normalized], together: int = 2) -> float | None:
    """Share of the degradation that goes away when each has network I/O guaranteed.

    (N_guaranteed - N_without) / (1 - N_without), of the means over all groups that were measured both ways: one
    that hardly degrades could have any share.

    Args:
        without: Normalized by throughput alone, without a limit.
        guaranteed: Normalized by the same throughput: a limit on the baseline would count as network I/O.
        together: How many share the server.

    Returns:
        Usually in [0, 1]; None where nothing was measured both ways or nothing degraded.
    """
    known = {(row.target, row.against): row.mean for row in guaranteed if len(row.against) == together - 1}
    both = [(row.mean, known[row.target, row.against]) for row in without if (row.target, row.against) in known]
    if not both:
        return None
    plain, better = fmean(one for one, _ in both), fmean(other for _, other in both)
    return (better - plain) / (1 - plain) if plain < 1 else None


def lowest(means: Mapping[str, float]) -> str | None:
    """The most sensitive one of rows, the most aggressive one of columns; None of nothing."""
    return min(means, key=lambda name: means[name]) if means else None


def _means(values: Sequence[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for name, value in values:
        found[name].append(value)
    return {name: fmean(each) for name, each in found.items()}
