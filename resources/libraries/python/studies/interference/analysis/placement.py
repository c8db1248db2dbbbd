"""Placement of network functions: the servers on which they do each other the least harm.

The capacity of a placement is the sum of the normalized throughputs of all network functions, each in the group that
it has on its server: at most their number. That is the example of Figure 1 of Zeng et al. with normalized units.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_ROUNDS
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.interference.analysis.estimates import ALPHA, SampledEstimate, difference, total
from resources.libraries.python.studies.interference.analysis.throughput_prediction import ColocatedThroughputs
from resources.libraries.python.studies.interference.model import Advice, Group, Placement

MAX_TRIED = 50_000
"""Largest number of placements that are all compared; beyond it, a heuristic search finds a good one."""
OTHERS = 4
"""Worse placements that an advice names."""
_MAX_TIES = 32
"""Placements that are compared with the best one, error for error."""
_SAME = 1e-9
_SHOWN = 0.005
"""Less does not show in two digits."""

Servers = tuple[tuple[str, ...], ...]


def capacity(throughputs: ColocatedThroughputs, servers: Sequence[Sequence[str]]) -> float:
    """Sum of the normalized throughputs of all network functions on servers.

    Raises:
        ConfigError: Two of them on one server were not measured beside each other.
    """
    return sum(throughputs.normalized(*group) for group in groups_of(servers))


def groups_of(servers: Sequence[Sequence[str]]) -> list[Group]:
    """Each network function with those on its server."""
    return [(name, _others(server, place)) for server in servers for place, name in enumerate(server)]


def predicted_groups(throughputs: ColocatedThroughputs, servers: Sequence[Sequence[str]]) -> list[Group]:
    """Those of a placement that were not measured as they are."""
    return [group for group in groups_of(servers) if not throughputs.is_measured(*group)]


def advise(
    throughputs: ColocatedThroughputs,
    servers: Sequence[Sequence[str]],
    more: Sequence[str],
    verified: int = 0,
    most: int | None = None,
) -> Advice:
    """Return the ranked placements of network functions on servers that may have some already.

    Args:
        throughputs: Of all pairs at least.
        servers: What is there.
        more: What to put there.
        verified: Placements to be measured as they are; where so many were, the best one of these is advised.
        most: Network functions that fit on one server; None where that is unknown.

    Raises:
        ConfigError: Two of them were not measured beside each other.
        ValueError: There is no server, or nothing to put there.
    """
    begun: Servers = tuple(tuple(server) for server in servers)
    found = ranked(throughputs, begun, more, most)
    known = [each for each in found if not predicted_groups(throughputs, each)]
    if verified and len(known) >= min(verified, len(found)):
        found = [known[0], *(each for each in found if each is not known[0])]
    ties = _ties(throughputs, found)
    best, *others = (_placement(throughputs, each) for each in found[: 1 + OTHERS])
    advice = Advice(
        sentence="",
        best=best,
        others=tuple(others),
        ties=tuple(_placement(throughputs, each) for each in ties),
        prediction_error=throughputs.prediction_error,
    )
    if len(more) == 1:
        sentence = _one(advice, len(found), begun, more[0])
    else:
        sentence = _several(advice, len(found), capacity(throughputs, found[-1]))
    return advice.model_copy(update={"sentence": sentence})


def ranked(
    throughputs: ColocatedThroughputs, servers: Sequence[Sequence[str]], more: Sequence[str], most: int | None = None
) -> list[Servers]:
    """Placements, best first; those with more on a server than fit are left out.

    All are compared where there are few enough. Otherwise the network functions are put one after the other where they
    do the least harm, and then moved, or two of them exchanged, for as long as that helps.

    Raises:
        ConfigError: Two of them were not measured beside each other, or no placement fits.
        ValueError: There is no server, or nothing to put there.
    """
    if not servers or not more:
        raise ValueError("a placement needs a server and a network function")
    begun: Servers = tuple(tuple(server) for server in servers)
    if len(begun) ** len(more) <= MAX_TRIED:
        found = list(_all(begun, tuple(more)))
    else:
        found = [_moved(throughputs, begun, _greedy(throughputs, begun, more))]
    found = [each for each in found if most is None or max(map(len, each)) <= most]
    if not found:
        count = len(more) + sum(map(len, servers))
        raise ConfigError(f"{count} network functions do not fit on {len(servers)} servers, {most} on each at most")
    # The first of equals is kept, so that the advice for a matrix is always the same one.
    return sorted(found, key=lambda each: -capacity(throughputs, each))


def not_told_apart(throughputs: ColocatedThroughputs, best: Servers, other: Servers, compared: int) -> bool:
    """Whether another placement may be as good as the best one.

    A test at `ALPHA` over the number of placements compared, so that the truly best one is among those that
    pass. What is predicted on either side may be wrong by the error of predictions, all in the same direction.
    """
    one, two = (Counter(predicted_groups(throughputs, each)) for each in (best, other))
    allowed = ((one - two) + (two - one)).total() * (throughputs.prediction_error or 0.0)
    apart = capacity_difference(throughputs, best, other)
    p_value = apart.p_value(allowed)
    return p_value is None or apart.value <= allowed or p_value > ALPHA / max(1, compared - 1)


def capacity_difference(throughputs: ColocatedThroughputs, best: Servers, other: Servers) -> SampledEstimate:
    """How much more capacity the best placement has, with the errors of measurements."""
    return difference(_capacity(throughputs, best), _capacity(throughputs, other))


def _ties(throughputs: ColocatedThroughputs, found: Sequence[Servers]) -> list[Servers]:
    if _capacity(throughputs, found[0]).interval() is None:
        return []  # one repetition: nothing can be tested
    return [each for each in found[1:_MAX_TIES] if not_told_apart(throughputs, found[0], each, len(found))]


def _capacity(throughputs: ColocatedThroughputs, servers: Servers) -> SampledEstimate:
    return total([throughputs.estimate(*group) for group in groups_of(servers)])


def _placement(throughputs: ColocatedThroughputs, servers: Servers) -> Placement:
    low, high = _capacity(throughputs, servers).interval() or (None, None)
    return Placement(
        servers=servers,
        capacity=capacity(throughputs, servers),
        low=low,
        high=high,
        predicted=len(predicted_groups(throughputs, servers)),
    )


def _all(servers: Servers, more: tuple[str, ...]) -> Iterator[Servers]:
    """Every placement once: servers with the same load are one choice, and so are equal network functions."""
    if not more:
        yield servers
        return
    name, rest = more[0], more[1:]
    tried = set()
    for index, server in enumerate(servers):
        if tuple(sorted(server)) not in tried:
            tried.add(tuple(sorted(server)))
            yield from _all(_with(servers, index, name), rest)


def _greedy(throughputs: ColocatedThroughputs, servers: Servers, more: Sequence[str]) -> Servers:
    for name in more:
        servers = max(
            (_with(servers, index, name) for index in range(len(servers))), key=lambda each: capacity(throughputs, each)
        )
    return servers


def _moved(throughputs: ColocatedThroughputs, begun: Servers, servers: Servers) -> Servers:
    """Move or exchange network functions, never those that were there, while there is something to gain."""
    best = capacity(throughputs, servers)
    while True:
        steps = _steps(begun, servers)
        better = max(steps, key=lambda each: capacity(throughputs, each), default=servers)
        if (now := capacity(throughputs, better)) <= best + _SAME:
            return servers
        servers, best = better, now


def _steps(begun: Servers, servers: Servers) -> Iterator[Servers]:
    """All placements that are one move or one exchange away."""
    places = [
        (source, place) for source in range(len(servers)) for place in range(len(begun[source]), len(servers[source]))
    ]
    for source, place in places:
        for target in range(len(servers)):
            if target != source:
                yield _with(_without(servers, source, place), target, servers[source][place])
    for (one, first), (other, second) in combinations(places, 2):
        if one != other and servers[one][first] != servers[other][second]:
            less = _without(_without(servers, one, first), other, second)
            yield _with(_with(less, one, servers[other][second]), other, servers[one][first])


def _with(servers: Servers, index: int, name: str) -> Servers:
    return (*servers[:index], (*servers[index], name), *servers[index + 1 :])


def _without(servers: Servers, index: int, place: int) -> Servers:
    left = (*servers[index][:place], *servers[index][place + 1 :])
    return (*servers[:index], left, *servers[index + 1 :])


def _others(server: Sequence[str], place: int) -> tuple[str, ...]:
    return (*server[:place], *server[place + 1 :])


def _one(advice: Advice, count: int, begun: Servers, name: str) -> str:
    number = _server_of(advice.best, begun)
    beside = f" ({' + '.join(begun[number - 1]) or 'empty'})"
    sentence = f"put {name} on server {number}{beside}: total capacity {_text(advice.best)}"
    if count == 1:
        return f"{sentence}; all servers are equal" if len(begun) > 1 else f"{sentence}{_model(advice)}"
    rest = " and ".join(f"{_text(each)} on server {_server_of(each, begun)}" for each in advice.others)
    return f"{sentence} against {rest}{_doubt(advice)}{_model(advice)}"


def _server_of(placement: Placement, begun: Servers) -> int:
    return next(
        number
        for number, (now, before) in enumerate(zip(placement.servers, begun, strict=True), 1)
        if len(now) > len(before)
    )


def _several(advice: Advice, count: int, worst: float) -> str:
    sentence = f"put {where(advice.best)}: total capacity {_text(advice.best)}"
    if count == 1:
        return f"{sentence}{_model(advice)}"
    last = f", {worst:.2f} in the worst of {count} placements" if count > 2 else ""
    following = advice.others[0]
    other = "one that was not measured" if following.capacity > advice.best.capacity else "the next best one"
    return f"{sentence} against {_text(following)} in {other}{last}{_doubt(advice)}{_model(advice)}"


def where(placement: Placement) -> str:
    """`A + B on server 1, C on server 2`."""
    return ", ".join(
        f"{' + '.join(server) or 'nothing'} on server {number}" for number, server in enumerate(placement.servers, 1)
    )


def _text(placement: Placement) -> str:
    ends = "" if placement.low is None or placement.high is None else f" ({placement.low:.2f} to {placement.high:.2f})"
    return f"{placement.capacity:.2f}{ends}{' predicted' if placement.predicted else ''}"


def _doubt(advice: Advice) -> str:
    """Remark if other placements may be as good."""
    if advice.best.low is None:
        return "; not tested, with one repetition"
    count = len(advice.ties)
    if not count:
        return "; the next best is as good" if advice.best.capacity - advice.others[0].capacity < _SHOWN else ""
    if count == 1 and advice.ties[0].servers == advice.others[0].servers:
        return "; the two cannot be told apart"
    return f"; {counted(count, 'other')} cannot be told apart from it"


def _model(advice: Advice) -> str:
    """The error of the prediction, where a placement that the sentence names is predicted."""
    if not any(each.predicted for each in (advice.best, *advice.others[:1])):
        return ""
    if advice.prediction_error is None:
        return (
            "; predicted from pairs with an unknown error, as no three were measured together; verify: 3 in the "
            "specification measures the best placements"
        )
    return (
        f"; each normalized throughput predicted from pairs is off by {advice.prediction_error:.3f} (root mean square)"
    )


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
