"""Bound on the samples in a figure over time: beyond it, every k-th one is drawn."""

from math import ceil

MOST_VALUES = 60_000
"""Of the figures of a page that share it; some 400 kB. All samples are in the CSV files."""
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEENS = (11, 12, 13)


def step_of(samples: int, figures: int = 1) -> int:
    """Which samples are drawn, every k-th: 1 where all of them are.

    Args:
        samples: Of the figure.
        figures: With how many, itself included, it shares a page.
    """
    return max(1, ceil(samples * figures / MOST_VALUES))


def thinned_words(step: int, samples: int) -> str:
    """For the title of a figure; empty where all samples are drawn."""
    ending = "th" if step % 100 in _TEENS else _ENDINGS.get(step % 10, "th")
    return f" (every {step}{ending} of {samples:,} samples)" if step > 1 else ""
