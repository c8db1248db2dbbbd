"""Throughput beside others over throughput alone.

The normalized throughput is that of "Demystifying the Performance Interference of Co-located Virtual Network Functions"
(Zeng et al.), section IV-A: T(i|j) / T(i). The paper gives means only; the intervals here are ours.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import stdev

from resources.libraries.python.studies.interference.analysis.estimates import (
    SampledEstimate,
    mean_of,
    ratio,
    ratio_interval,
)
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    Group,
    InterferenceSpec,
    Normalized,
    Resource,
)


class Throughputs:
    """Mean throughputs at one frame size and load, each with its error.

    `measurements`: All of that point, with and without guarantees.
    """

    def __init__(self, measurements: Iterable[ColocationMeasurement]) -> None:
        self._values: dict[tuple[Resource | None, Group], list[float]] = defaultdict(list)
        for each in measurements:
            # Alone there is nothing to share: that without a limit is the baseline of all.
            if each.against or not each.guaranteed:
                self._values[each.guarantee, (each.target, each.against)].append(each.throughput_pps)
        self._means = {key: mean_of(values) for key, values in self._values.items()}

    def baseline(self, target: str) -> SampledEstimate | None:
        """Packets per second alone; None where that was not measured, or nothing was let through."""
        found = self._means.get((None, (target, ())))
        return found if found and found.value > 0 else None

    def beside(self, group: Group, guarantee: Resource | None = None) -> SampledEstimate:
        """Packets per second beside others; KeyError where that was not measured."""
        return self._means[guarantee, group]

    def normalized(self, guarantee: Resource | None = None) -> dict[Group, SampledEstimate]:
        """Normalized throughput of each target and group that were measured, where there is a baseline.

        They share the errors of their baselines. The order is that of their first measurements.
        """
        return {group: ratio(self.beside(group, guarantee), alone) for group, alone in self._groups(guarantee)}

    def rows(self, guarantee: Resource | None = None) -> tuple[Normalized, ...]:
        """The same with confidence intervals, by Fieller's theorem."""
        return tuple(self._row(group, alone, guarantee) for group, alone in self._groups(guarantee))

    def _groups(self, guarantee: Resource | None) -> Iterator[tuple[Group, SampledEstimate]]:
        for under, group in self._means:
            if under is guarantee and group[1] and (alone := self.baseline(group[0])):
                yield group, alone

    def _row(self, group: Group, alone: SampledEstimate, guarantee: Resource | None) -> Normalized:
        values, beside = self._values[guarantee, group], self.beside(group, guarantee)
        low, high = ratio_interval(beside, alone) or (None, None)
        return Normalized(
            target=group[0],
            against=group[1],
            mean=beside.value / alone.value,
            stdev=stdev(values) / alone.value if len(values) > 1 else None,
            low=low,
            high=high,
            samples=len(values),
        )


def in_order(spec: InterferenceSpec, matrix: Iterable[Normalized]) -> tuple[Normalized, ...]:
    """Rows and columns as the specification names them; they were measured in any order."""
    place = {contender.name: index for index, contender in enumerate(spec.contenders)}
    return tuple(
        sorted(matrix, key=lambda row: (place[row.target], len(row.against), [place[name] for name in row.against]))
    )


def pairs(matrix: Sequence[Normalized]) -> tuple[Normalized, ...]:
    """Those of two network functions."""
    return tuple(row for row in matrix if len(row.against) == 1)
