"""One curve of the catalogue through points, whether or not another one describes them better."""

from collections.abc import Sequence

import numpy as np

from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.fitting import describe, lay, noise_weights
from resources.libraries.python.studies.sweep.model.profile import Fit


def fit_of(name: str, rates: Sequence[float], values: Sequence[float]) -> Fit:
    """Fit a curve, monotonic or not."""
    r, y = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    coefficients = lay(BY_NAME[name], r, y, noise_weights(r, y))
    assert coefficients is not None
    return describe(BY_NAME[name], coefficients, r, y)
