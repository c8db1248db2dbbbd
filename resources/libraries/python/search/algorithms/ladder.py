"""The loads that a search may try: one fixed ladder for all searches, whatever is known beforehand.

Rung k is the load exp(k x step) in pps, where the step is a hair less than the closest relative width that a goal asks.
Two neighbouring rungs are therefore bounds that are close enough. The ladder hangs on nothing that changes from run to
run (not the highest load, not an earlier result), so equal systems get equal bounds. Its ends are the lowest and the
highest load themselves, which lie between rungs as a rule.
"""

from math import ceil, exp, floor, log

_HAIR = 1e-9
"""The width's share by which the step is smaller: rounding must not push neighbours apart."""


class Ladder:
    """Rungs from the lowest to the highest load.

    Args:
        relative_width: Distance of neighbours, relative to the upper one.
        min_load_pps: Load of the bottom rung, aggregate.
        max_load_pps: Load of the top rung, aggregate.
    """

    def __init__(self, relative_width: float, min_load_pps: float, max_load_pps: float) -> None:
        self._step = -log(1 - relative_width) * (1 - _HAIR)
        self._min_load_pps, self._max_load_pps = min_load_pps, max_load_pps
        self.bottom = floor(log(min_load_pps) / self._step + _HAIR)
        self.top = ceil(log(max_load_pps) / self._step - _HAIR)

    def load_pps(self, rung: int) -> float:
        """The load of a rung."""
        if rung <= self.bottom:
            return self._min_load_pps
        return self._max_load_pps if rung >= self.top else exp(rung * self._step)

    def below(self, load_pps: float) -> int:
        """The highest rung that is not above a load; the bottom where none is."""
        if load_pps >= self._max_load_pps:
            return self.top
        if load_pps <= self._min_load_pps:
            return self.bottom
        return min(max(floor(log(load_pps) / self._step + _HAIR), self.bottom), self.top - 1)
