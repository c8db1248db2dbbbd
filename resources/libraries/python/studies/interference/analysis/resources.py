"""Resources that network functions use alone and beside others, and whether that goes with what they lose."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from math import factorial
from random import Random
from statistics import correlation, fmean

from resources.libraries.python.studies.interference.model import ColocationMeasurement, Group, ResourceRelation

_MAX_PERMUTATIONS = 720
"""Of network functions: all of up to six, else as many random ones."""


def _per_packet(amount: float | None, measurement: ColocationMeasurement) -> float | None:
    return None if amount is None or not measurement.throughput_pps else amount / measurement.throughput_pps


QUANTITIES: Mapping[str, Callable[[ColocationMeasurement], float | None]] = {
    "CPU time": lambda each: each.cpu,
    "CPU time per packet": lambda each: _per_packet(each.cpu, each),
    "cache misses per packet": lambda each: _per_packet(each.cache_misses, each),
    "memory": lambda each: None if each.memory_bytes is None else float(each.memory_bytes),
}
"""Of a network function in one measurement. Only ratios to the baseline are used, so seconds cancel out."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """A quantity alone and beside others, means of all repetitions."""

    alone: float
    beside: float

    @property
    def change(self) -> float | None:
        """Relative to alone; None where that is 0."""
        return self.beside / self.alone - 1 if self.alone else None


def comparisons(
    measurements: Iterable[ColocationMeasurement], value: Callable[[ColocationMeasurement], float | None]
) -> dict[Group, BaselineComparison]:
    """A quantity of each target in each set of co-located ones and alone, where both were measured.

    `measurements`: Of one frame size and load, all with one guarantee or none; those alone are the baseline.
    `value`: Of the quantity; None where it is unknown.
    """
    values: dict[Group, list[float]] = defaultdict(list)
    for each in measurements:
        if (number := value(each)) is not None:
            values[each.target, each.against].append(number)
    means = {group: fmean(row) for group, row in values.items()}
    return {
        group: BaselineComparison(means[group[0], ()], mean)
        for group, mean in means.items()
        if group[1] and (group[0], ()) in means
    }


def relations_of(measurements: Sequence[ColocationMeasurement]) -> tuple[ResourceRelation, ...]:
    """Correlate the degradation in pairs with the change of each quantity that was counted, over its baseline.

    Pairs of the same network functions are not independent. So the p-value is that of permutations of the network
    functions, in rows and columns at once (quadratic assignment procedure, Hubert and Schultz 1976). Three network
    functions have six permutations: nothing is significant then.
    """
    free = [each for each in measurements if not each.guaranteed]
    lost = _changes(free, lambda each: each.throughput_pps)
    found = [
        (name, *known)
        for name, value in QUANTITIES.items()
        if (known := _correlated(lost, _changes(free, value))) is not None
    ]
    adjusted: dict[str, float] = {}
    least = 0.0
    for rank, (name, _, _, p_value) in enumerate(sorted(found, key=lambda row: row[3])):
        least = adjusted[name] = max(least, min(1.0, p_value * (len(found) - rank)))
    rows = [
        ResourceRelation(quantity=name, pairs=count, correlation=-rho, p=adjusted[name])
        for name, count, rho, _ in found
    ]
    return tuple(sorted(rows, key=lambda row: (row.p, -abs(row.correlation))))


def _changes(
    measurements: Iterable[ColocationMeasurement], value: Callable[[ColocationMeasurement], float | None]
) -> dict[tuple[str, str], float]:
    found = comparisons(measurements, value)
    return {
        (target, against[0]): each.change
        for (target, against), each in found.items()
        if len(against) == 1 and each.change is not None
    }


def _correlated(
    one: Mapping[tuple[str, str], float], other: Mapping[tuple[str, str], float]
) -> tuple[int, float, float] | None:
    """Pairs, Spearman's correlation, and its p-value on both sides; None where one of them hardly changes."""
    pairs = [pair for pair in one if pair in other]
    if len(pairs) < 3:
        return None
    ranks = [dict(zip(pairs, _ranks([row[pair] for pair in pairs]), strict=True)) for row in (one, other)]
    if any(len(set(row.values())) == 1 for row in ranks):
        return None
    rho = _pearson(pairs, *ranks)
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    orders = list(_orders(names))
    extreme = 0
    for order in orders:
        moved = dict(zip(names, order, strict=True))
        kept = [pair for pair in pairs if (moved[pair[0]], moved[pair[1]]) in ranks[1]]
        shifted = {pair: ranks[1][moved[pair[0]], moved[pair[1]]] for pair in kept}
        extreme += abs(_pearson(kept, ranks[0], shifted)) >= abs(rho) - 1e-9
    return len(pairs), rho, extreme / len(orders)


def _pearson(
    pairs: Sequence[tuple[str, str]],
    one: Mapping[tuple[str, str], float],
    other: Mapping[tuple[str, str], float],
) -> float:
    rows = [one[pair] for pair in pairs], [other[pair] for pair in pairs]
    return correlation(*rows) if len(pairs) > 1 and all(len(set(row)) > 1 for row in rows) else 0.0


def _orders(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Permutations of names, the present one first."""
    if factorial(len(names)) <= _MAX_PERMUTATIONS:
        yield from permutations(names)
        return
    draw = Random(1)  # noqa: S311 (reproducible, not secret)
    yield tuple(names)
    yield from islice(iter(lambda: tuple(draw.sample(names, len(names))), None), _MAX_PERMUTATIONS - 1)


def _ranks(values: Sequence[float]) -> list[float]:
    """Mean ranks of equal values; what differs by less than a thousandth of a percent is equal."""
    rounded = [round(value, 5) for value in values]
    ordered = sorted(rounded)
    first = {value: ordered.index(value) for value in set(ordered)}
    return [first[value] + (ordered.count(value) - 1) / 2 for value in rounded]
