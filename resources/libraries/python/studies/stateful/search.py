"""Search of the most entries that a table takes: steps of growing size from a guess, then bisection (RFC 9693)."""

from collections.abc import Callable


def search_capacity(passes: Callable[[int], bool], guess: int, most: int, width: float) -> tuple[int, int | None]:
    """Search the most entries of which all can be made.

    The guess, such as the configured limit of a table, only decides where to begin: both bounds are tried.

    Args:
        passes: Tries so many entries, at least 1; returns whether all were made.
        guess: First number.
        most: Highest number.
        width: Relative width of the bounds at which the search ends.

    Returns:
        The most that passed, 0 if none did, and the fewest that did not; None where `most` passed.
    """
    low, high = 0, most + 1
    entries = max(1, min(guess, most))
    step = max(1, int(width * entries))
    while low == 0 or high > most:
        if passes(entries):
            low = entries
            if low == most:
                return low, None
            entries = min(entries + step, high - 1) if high > most else entries
        else:
            high = entries
            if high == 1:
                return 0, 1
            entries = max(1, entries - step)
        step *= 2
    while high - low > max(1, int(width * low)):
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low, high
