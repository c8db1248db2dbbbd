"""Bound on the samples in a figure over time: beyond it, every k-th one is drawn."""

from math import ceil

MOST_VALUES = 60_000
"""Upper bound of the values in the figures of a page, about 400 kB. CSV files have all samples."""
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEENS = (11, 12, 13)


def step_of(samples: int, figures: int = 1) -> int:
    """Return k, if every k-th sample is drawn: 1 for all.

    Args:
        samples: Number of samples of the figure.
        figures: Number of figures on the page.
    """
    return max(1, ceil(samples * figures / MOST_VALUES))


def thinned_words(step: int, samples: int) -> str:
    """Return a note for the title of a figure; empty if all samples are drawn."""
    ending = "th" if step % 100 in _TEENS else _ENDINGS.get(step % 10, "th")
    return f" (every {step}{ending} of {samples:,} samples)" if step > 1 else ""
