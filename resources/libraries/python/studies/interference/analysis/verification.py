"""Which placements to measure as they are, and for how long, before one of them is advised. Pure."""

from collections.abc import Sequence

from resources.libraries.python.model.bounds import MAX_ROUNDS
from resources.libraries.python.studies.interference.analysis.placement import (
    Servers,
    capacity_difference,
    groups_of,
    not_told_apart,
    predicted_groups,
    ranked,
)
from resources.libraries.python.studies.interference.analysis.throughput_prediction import ColocatedThroughputs
from resources.libraries.python.studies.interference.model.record import Group

_NEGLIGIBLE = 0.005
"""Of the largest possible capacity: placements that certainly differ by less are equally good."""


class PlacementVerification:
    """Decides set by set what to measure next, by all that was measured so far.

    First all network functions together where they fit: that says how contention grows beyond pairs. Then the best
    placements by prediction, each of which improves the prediction of the next one. At last the two best ones again,
    while they cannot be told apart.

    `most`: network functions that fit on one server.
    """

    def __init__(self, servers: Sequence[Sequence[str]], more: Sequence[str], count: int, most: int) -> None:
        self._servers, self._more, self._most = servers, more, most
        self._left, self._rounds = count, MAX_ROUNDS
        self._together: Servers | None = ((*(name for server in servers for name in server), *more),)
        self._seen: list[Servers] = []

    def next_groups(self, throughputs: ColocatedThroughputs) -> list[Group]:
        """Groups to measure, with as many repetitions as all others; empty at the end.

        Raises:
            ConfigError: A pair was not measured.
        """
        found = ranked(throughputs, self._servers, self._more, self._most)
        together, self._together = self._together, None
        if together and len(together[0]) <= self._most and any(predicted_groups(throughputs, each) for each in found):
            return predicted_groups(throughputs, together)
        while self._left and (unseen := [each for each in found if each not in self._seen]):
            self._left -= 1
            self._seen.append(unseen[0])
            if groups := predicted_groups(throughputs, unseen[0]):
                return groups
        known = [each for each in found if not predicted_groups(throughputs, each)][:2]
        if len(known) < 2 or not self._rounds or not _is_open(throughputs, known[0], known[1], len(found)):
            return []
        self._rounds -= 1
        return [group for each in known for group in groups_of(each) if group[1]]


def _is_open(throughputs: ColocatedThroughputs, best: Servers, other: Servers, compared: int) -> bool:
    """Whether further repetitions are worth it: two placements that may differ, and that are not told apart."""
    within = capacity_difference(throughputs, best, other).interval()
    if within is None or within[1] < _NEGLIGIBLE * sum(map(len, best)):
        return False
    return not_told_apart(throughputs, best, other, compared)
