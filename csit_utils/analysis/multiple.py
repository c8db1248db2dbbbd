"""Judging many cells at once without finding what is not there."""

from collections.abc import Sequence


def benjamini_hochberg(probabilities: Sequence[float]) -> list[float]:
    """Probabilities adjusted for how many there are, in the same order.

    Of all cells that are called changed because theirs is at most `q`, on average a share of at most `q` is called so
    wrongly; where nothing changed at all, `q` is the chance of any call. Benjamini and Hochberg, Journal of the Royal
    Statistical Society B 57 (1995) 289; valid for independent figures and for positively dependent ones, such as NDR
    and PDR of a cell.

    Args:
        probabilities: One per cell, in any order.
    """
    count = len(probabilities)
    order = sorted(range(count), key=lambda index: probabilities[index], reverse=True)
    adjusted = [1.0] * count
    least = 1.0
    for rank, index in zip(range(count, 0, -1), order, strict=True):
        least = min(least, probabilities[index] * count / rank)
        adjusted[index] = least
    return adjusted
