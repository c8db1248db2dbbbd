"""A model of the program that counts numbered packets."""

from collections.abc import Sequence

import numpy as np

from resources.libraries.python.drivers.generators.losses import NumberedArrivals

NONE = np.zeros(0, dtype=np.int64)


def counted(sequence: Sequence[int], sent: int, *, kept: int = 1000) -> NumberedArrivals:
    """What the XDP program counts of arrivals, as a model in Python."""
    came = np.zeros(sent, dtype=np.bool_)
    late: list[tuple[int, int]] = []
    arrived = duplicates = following = 0
    for number in sequence:
        if came[number]:
            duplicates += 1
            continue
        came[number] = True
        if number < following:
            late.append((number, arrived))
        following = max(following, number + 1)
        arrived += 1
    numbers, orders = np.array([*zip(*late[:kept], strict=True)] or [[], []], dtype=np.int64)
    return NumberedArrivals(came, NONE, NONE, duplicates, numbers, orders, len(late))
