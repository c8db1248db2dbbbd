"""Two bands that values do not show because they are few: the chance, and how many further values settle it.

A band is seen by `fewest` values in it. Values fall into a lower band independently of each other, each with the
probability `share`; so the number in it is binomial, and bands are missed where it is too small on either side. This
assumes that each value shows to which of two distant bands it belongs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb

from resources.libraries.python.quantities import percent

MIN_RUNS = 3
MIN_SHARE = 0.1
SHARE = 0.3
"""Share of the lower band that the chance is stated for: a few values apart fit any share up to about as much."""
SETTLED = 0.05
"""Chance of missing bands at which they are settled."""
_MAX_FURTHER = 200


def fewest(count: int) -> int:
    """Return how many of so many values a band has at least."""
    return max(MIN_RUNS, round(MIN_SHARE * count))


@dataclass(frozen=True, slots=True)
class UnseenBands:
    """What few values can say about two bands."""

    count: int
    """Values."""
    low: int
    """Values far from all others, too few for a band."""
    share: float
    """Of the lower band for which the rest holds: `SHARE`, or that of these values where it is larger."""
    chance: float
    """Probability that so many values miss such bands."""
    further: int | None
    """Further values, together with these, that miss them with a probability of at most `SETTLED`; None for more than
    200."""

    def text(self, one: str, many: str) -> str:
        """Return it in a sentence.

        `one`: Name of a value, such as `run`.
        """
        more = f"more than {_MAX_FURTHER}" if self.further is None else str(self.further)
        further = f"{more} further {one if self.further == 1 else many} settle it ({percent(1 - SETTLED)})"
        if self.low:
            lie = "lies" if self.low == 1 else "lie"
            return (
                f"{self.low} of {self.count} {many} {lie} apart, too few to call it two bands; {further} if the band "
                f"has {percent(self.share)} of the {many}"
            )
        return (
            f"no two bands seen in {self.count} {many}; a lower band with {percent(self.share)} of them is missed "
            f"with a probability of {percent(self.chance)}; {further}"
        )


def never(_low: int, _high: int) -> float:
    """Chance that bands with enough values are missed, where nothing else is asked of them."""
    return 0.0


@lru_cache(4096)  # thousands of cells of a history have a few numbers of runs
def unseen_bands(count: int, low: int = 0, missed: Callable[[int, int], float] = never) -> UnseenBands:
    """Return what so many values without two bands say about them."""
    share = max(SHARE, low / count if count else 0.0)
    chance = _chance(count, share, _seen(0, count, missed))
    further = range(1, _MAX_FURTHER + 1)
    settles = (more for more in further if _chance(more, share, _seen(low, count + more, missed)) <= SETTLED)
    return UnseenBands(count, low, share, chance, next(settles, None))


def _seen(low: int, count: int, missed: Callable[[int, int], float]) -> Callable[[int], float]:
    """Return the probability that bands are missed of all values, by how many the lower one has beside `low`."""

    def chance(found: int) -> float:
        lower = low + found
        return 1.0 if min(lower, count - lower) < fewest(count) else missed(lower, count - lower)

    return chance


def _chance(count: int, share: float, missed: Callable[[int], float]) -> float:
    """Mean probability over the number of values in the lower band."""
    return sum(comb(count, low) * share**low * (1 - share) ** (count - low) * missed(low) for low in range(count + 1))
