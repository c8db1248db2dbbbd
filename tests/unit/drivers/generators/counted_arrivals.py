"""A model of the program that counts numbered packets."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from resources.libraries.python.drivers.generators.losses import NumberedArrivals

NONE = np.zeros(0, dtype=np.int64)


def counted(sequence: Sequence[int] | npt.NDArray[np.int64], sent: int, *, kept: int = 1000) -> NumberedArrivals:
    """What the XDP program counts of arrivals, as a model in Python."""
    numbers = np.asarray(sequence, dtype=np.int64)
    came = np.zeros(sent, dtype=np.bool_)
    came[numbers] = True
    _, first = np.unique(numbers, return_index=True)
    new = numbers[np.sort(first)]
    orders = np.flatnonzero(new < np.maximum.accumulate(new))
    return NumberedArrivals(came, NONE, NONE, len(numbers) - len(new), new[orders][:kept], orders[:kept], len(orders))
