"""From readings at some times to a value for each whole second."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.drivers.probes.sampler.accounts import LEVELS, Amounts
from resources.libraries.python.studies.chains.model.record import Series

Reading = tuple[float, Mapping[str, Amounts]]
"""When, in seconds since the beginning; what, by owner."""
_LATE_S = 0.5
"""A reading that comes later than this after a second's end is not that second's."""


def series_of(readings: Sequence[Reading]) -> tuple[Series, ...]:
    """A value for each whole second: what a counter gained since the reading before, per second; a level as it is.

    If a reading is missing because it was too late, the second has None, and what was counted meanwhile is
    part of the next second's mean.

    Args:
        readings: In order of time; the first one is the beginning.
    """
    if not readings:
        return ()
    seconds = int(readings[-1][0] + 1e-6)
    names = dict.fromkeys((owner, name) for _, row in readings for owner, found in row.items() for name in found)
    return tuple(
        Series(owner=owner, feature=name, values=_values([_one(row, owner, name) for row in readings], name, seconds))
        for owner, name in names
    )


def _one(reading: Reading, owner: str, name: str) -> tuple[float, float | None]:
    return reading[0], reading[1].get(owner, {}).get(name)


def _values(points: Sequence[tuple[float, float | None]], name: str, seconds: int) -> tuple[float | None, ...]:
    values: list[float | None] = [None] * seconds
    before: tuple[float, float] | None = None
    for at_s, amount in points:
        second = int(at_s + 1e-6)
        if amount is None:
            continue
        if before is not None and 1 <= second <= seconds and at_s - second <= _LATE_S and at_s > before[0]:
            values[second - 1] = amount if name in LEVELS else max(0.0, (amount - before[1]) / (at_s - before[0]))
        before = (at_s, amount)
    return tuple(values)
