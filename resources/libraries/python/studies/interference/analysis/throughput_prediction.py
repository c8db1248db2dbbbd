"""Normalized throughput of any set of co-located network functions: measured, or predicted from pairs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from math import sqrt
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.analysis.estimates import SampledEstimate, exact, function
from resources.libraries.python.studies.interference.model import Group

_EXPONENTS = tuple(2 ** (step / 8) for step in range(-8, 19))
"""From 0.5, where neighbours harm more together than one by one, to 4.8, where hardly more than the worst of them."""

_PARTS, _FEW = 10, 100
"""Parts of cross-validation, for so many groups; more of them have two parts, to bound the time."""


class ColocatedThroughputs:
    """Normalized throughputs by target and group.

    A group that was not measured is predicted. Each neighbour adds some time to a packet, and the times of all are
    combined by a norm:

        1 / N(i | j, k, ...) - 1 = (sum over j, k, ... of (1 / N(i | j) - 1)^e_i)^(1 / e_i)

    With e = 1 times add up, above it contention saturates. It is fitted, by least squares, to the groups of three and
    more that were measured: to those of the target or, if it has none, to those of all. Without any it is 1. That is a
    model, not a law; `prediction_error` says how far it is from what was measured.
    """

    def __init__(self, normalized: Mapping[Group, SampledEstimate]) -> None:
        self._rows = {(target, tuple(sorted(against))): each for (target, against), each in normalized.items()}

    def is_measured(self, target: str, against: Iterable[str]) -> bool:
        """Whether it is known without a prediction."""
        others = tuple(sorted(against))
        return not others or (target, others) in self._rows

    def normalized(self, target: str, against: Iterable[str]) -> float:
        """Throughput of a target in a group over its throughput alone.

        Raises:
            ConfigError: Neither the group nor one of its pairs was measured.
        """
        others = tuple(sorted(against))
        if not others:
            return 1.0
        whole = self._rows.get((target, others))
        return whole.value if whole else _together(self._pair_values(target, others), self._exponent(target))

    def estimate(self, target: str, against: Iterable[str]) -> SampledEstimate:
        """The same with the errors of measurements; that of the prediction is not in it."""
        others = tuple(sorted(against))
        if not others:
            return exact(1.0)
        whole = self._rows.get((target, others))
        if whole:
            return whole
        pairs, exponent = [self._pair(target, other) for other in others], self._exponent(target)
        value = _together([pair.value for pair in pairs], exponent)
        if not 0 < value < 1:
            return exact(value)
        added = 1 / value - 1
        return function(
            value,
            [
                (value**2 * ((1 / pair.value - 1) / added) ** (exponent - 1) / pair.value**2, pair)
                for pair in pairs
                if pair.value < 1
            ],
        )

    @cached_property
    def prediction_error(self) -> float | None:
        """Root mean square of predicted - measured over the groups of three and more that were measured.

        Each part of them is predicted with exponents that are fitted to the other parts. None without such groups.
        """
        count = _PARTS if len(self._larger) <= _FEW else 2
        squares = [
            (self._predicted(group, exponents) - self._rows[group].value) ** 2
            for part in range(count)
            for exponents in [self._fitted([each for at, each in enumerate(self._larger) if at % count != part])]
            for group in self._larger[part::count]
        ]
        return sqrt(fmean(squares)) if squares else None

    @cached_property
    def _larger(self) -> list[Group]:
        return [
            (target, against)
            for target, against in self._rows
            if len(against) > 1 and all((target, (other,)) in self._rows for other in against)
        ]

    @cached_property
    def _exponents(self) -> Mapping[str | None, float]:
        return self._fitted(self._larger)

    def _exponent(self, target: str) -> float:
        return self._exponents.get(target, self._exponents[None])

    def _fitted(self, groups: Collection[Group]) -> dict[str | None, float]:
        """Exponents by target, and of all as None."""
        found: dict[str | None, float] = {None: self._fit(groups)}
        for target in dict.fromkeys(target for target, _ in groups):
            found[target] = self._fit([group for group in groups if group[0] == target])
        return found

    def _fit(self, groups: Collection[Group]) -> float:
        if not groups:
            return 1.0
        known = [(self._pair_values(*group), self._rows[group].value) for group in groups]
        return min(_EXPONENTS, key=lambda each: sum((_together(pairs, each) - value) ** 2 for pairs, value in known))

    def _predicted(self, group: Group, exponents: Mapping[str | None, float]) -> float:
        return _together(self._pair_values(*group), exponents.get(group[0], exponents[None]))

    def _pair_values(self, target: str, against: Iterable[str]) -> list[float]:
        return [self._pair(target, other).value for other in against]

    def _pair(self, target: str, other: str) -> SampledEstimate:
        row = self._rows.get((target, (other,)))
        if row is None:
            raise ConfigError(f"{target} was not measured beside {other}, so their interference is unknown")
        return row


def _together(normalized: Sequence[float], exponent: float) -> float:
    """Normalized throughput beside several, from that beside each of them; what is faster beside another is noise."""
    if min(normalized) <= 0:
        return 0.0
    added = [max(0.0, 1 / each - 1) for each in normalized]
    return float(1 / (1 + sum(each**exponent for each in added) ** (1 / exponent)))
