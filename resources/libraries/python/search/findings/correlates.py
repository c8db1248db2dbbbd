"""What changes together with the rate that a system forwards, when the same load is offered again and again.

Packets counted by interfaces are the effect, and left out; what parts drop is kept, as it says where. A reading goes
along with a decay where it rises from trial to trial by Kendall's S, as the rate falls (see `decay`), and with two
bands where no trial of one band has a value between those of the other: with k of n trials in one band that happens by
chance with a probability of 2 / C(n, k). All readings together raise a false one in at most `FALSE_ALARM` of the tests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from statistics import median, multimode

from resources.libraries.python.search.findings.decay import Point, chance_of_fall
from resources.libraries.python.search.throughput import SearchOutcome

FALSE_ALARM = 0.01
MIN_CHANGE = 0.02
"""Least change of a reading that is worth a word, relative to the larger of its two values."""
MIN_GAP = 0.02
"""Least distance of two bands, relative to the best trial."""
MIN_IN_BAND = 3
_MAX_NAMED = 5
DECAYED_TRIALS = 12
BAND_TRIALS = 24
"""So many that hardly ever fewer than three are in a band with 30 % of the trials (1 in 100)."""


Quantity = tuple[str, str]
"""A name and its unit."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A trial at a load that is repeated, with everything that was read around it."""

    at_s: float
    forwarded_pps: float
    readings: Mapping[Quantity, float]
    """What was counted, per second of sending, and levels at its end."""


@dataclass(frozen=True, slots=True)
class Correlate:
    """A reading that changes together with the rate."""

    of: Quantity
    before: float
    """Of the first trials, or those in the upper band."""
    after: float
    """Of the last trials, or those in the lower band."""

    def __str__(self) -> str:
        name, unit = self.of
        return f"{name} from {self.before:.3g} to {self.after:.3g} {unit}"


def rising(repeats: Sequence[Repeat]) -> tuple[Correlate, ...]:
    """Return what rises from trial to trial of a system that forwards less and less, most first."""
    found = []
    third = max(1, len(repeats) // 3)
    rows = list(_rows(repeats))
    for of, values in rows:
        points = [Point(each.at_s, -value) for each, value in zip(repeats, values, strict=True)]
        if chance_of_fall([points]) * len(rows) <= FALSE_ALARM:
            found.append(Correlate(of, median(values[:third]), median(values[-third:])))
    return _largest(found)


def differing(repeats: Sequence[Repeat]) -> tuple[Correlate, ...] | None:
    """Return what differs between trials of two bands, most first; None where there are no two bands."""
    ordered = sorted(repeats, key=lambda each: -each.forwarded_pps)
    gaps = [one.forwarded_pps - other.forwarded_pps for one, other in pairwise(ordered)]
    split = max(range(len(gaps)), key=gaps.__getitem__, default=0) + 1
    few = min(split, len(ordered) - split)
    if few < MIN_IN_BAND or gaps[split - 1] < MIN_GAP * ordered[0].forwarded_pps:
        return None
    rows = list(_rows(ordered))
    if 2 / comb(len(ordered), few) * len(rows) > FALSE_ALARM:
        return ()
    found = [
        Correlate(of, median(values[:split]), median(values[split:]))
        for of, values in rows
        if max(values[:split]) < min(values[split:]) or min(values[:split]) > max(values[split:])
    ]
    return _largest(found)


def _rows(repeats: Sequence[Repeat]) -> Iterator[tuple[Quantity, list[float]]]:
    """Readings that all trials have, and that are not always the same."""
    common = set.intersection(*(set(each.readings) for each in repeats)) if repeats else set[Quantity]()
    for of in sorted(common):
        values = [each.readings[of] for each in repeats]
        if min(values) < max(values):
            yield of, values


def _largest(found: Iterable[Correlate]) -> tuple[Correlate, ...]:
    """Those that change most, relatively."""
    changes = [(abs(each.after - each.before) / max(abs(each.before), abs(each.after)), each) for each in found]
    worth = [(change, each) for change, each in changes if change >= MIN_CHANGE]
    return tuple(each for _, each in sorted(worth, key=lambda row: (-row[0], row[1].of))[:_MAX_NAMED])


def telling_load_pps(outcome: SearchOutcome) -> float:
    """Return the load that shows most: of a decay the one that was repeated most often, of two bands the highest bound.

    Below its bounds a system in two bands forwards the same in both.
    """
    if outcome.decays:
        return min(multimode(result.trial.load_pps for result in outcome.trials))
    bounds = [load for goal in outcome.goals for load in (goal.lower_pps, goal.upper_pps) if load is not None]
    return max(bounds)


def rose_in_words(load: str, repeats: Sequence[Repeat]) -> str:
    """Return what rose with a decay, in a sentence."""
    where = f"in {len(repeats)} further trials at {load}"
    found = rising(repeats)
    return (
        f"{where} rose with it: {'; '.join(map(str, found))}" if found else f"{where} nothing that is read rose with it"
    )


def bands_in_words(load: str, repeats: Sequence[Repeat]) -> str:
    """Return what tells two bands apart, in a sentence."""
    where = f"in {len(repeats)} further trials at {load}"
    found = differing(repeats)
    if found is None:
        return f"{where} the two bands did not show again"
    if not found:
        return f"{where} nothing that is read tells the two bands apart"
    return f"{where} the lower band differs from the upper one: {'; '.join(map(str, found))}"
