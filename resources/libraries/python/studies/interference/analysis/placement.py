"""Placement of network functions: the servers on which they do each other the least harm.

The capacity of a placement is the sum of the normalized throughputs of all network functions, each in the group that
it has on its server: at most their number. That is the example of Figure 1 of Zeng et al. with normalized units.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import sqrt
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_ROUNDS
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.interference.analysis.estimates import (
    ALPHA,
    SampledEstimate,
    difference,
    exact,
    function,
    total,
)
from resources.libraries.python.studies.interference.model import Advice, Group, Placement

_EXPONENTS = tuple(2 ** (step / 8) for step in range(-8, 19))
"""From 0.5, where neighbours harm more together than one by one, to 4.8, where hardly more than the worst of them."""

_PARTS, _FEW = 10, 100
"""Parts of cross-validation, for so many groups; more of them have two parts, to bound the time."""


class ColocatedThroughputs:
    """Normalized throughputs by target and group.

    A group that was not measured is predicted. Each neighbour adds some time to a packet, and the times of all are
    combined by a norm:

        1 / N(i | j, k, ...) - 1 = (sum over j, k, ... of (1 / N(i | j) - 1)^e_i)^(1 / e_i)

    With e = 1 times add up, above it contention saturates. It is fitted, by least squares, to the groups of three and
    more that were measured: to those of the target or, if it has none, to those of all. Without any it is 1. That is a
    model, not a law; `prediction_error` says how far it is from what was measured.
    """

    def __init__(self, normalized: Mapping[Group, SampledEstimate]) -> None:
        self._rows = {(target, tuple(sorted(against))): each for (target, against), each in normalized.items()}

    def is_measured(self, target: str, against: Iterable[str]) -> bool:
        """Whether it is known without a prediction."""
        others = tuple(sorted(against))
        return not others or (target, others) in self._rows

    def normalized(self, target: str, against: Iterable[str]) -> float:
        """Throughput of a target in a group over its throughput alone.

        Raises:
            ConfigError: Neither the group nor one of its pairs was measured.
        """
        others = tuple(sorted(against))
        if not others:
            return 1.0
        whole = self._rows.get((target, others))
        return whole.value if whole else _together(self._pair_values(target, others), self._exponent(target))

    def estimate(self, target: str, against: Iterable[str]) -> SampledEstimate:
        """The same with the errors of measurements; that of the prediction is not in it."""
        others = tuple(sorted(against))
        if not others:
            return exact(1.0)
        whole = self._rows.get((target, others))
        if whole:
            return whole
        pairs, exponent = [self._pair(target, other) for other in others], self._exponent(target)
        value = _together([pair.value for pair in pairs], exponent)
        if not 0 < value < 1:
            return exact(value)
        added = 1 / value - 1
        return function(
            value,
            [
                (value**2 * ((1 / pair.value - 1) / added) ** (exponent - 1) / pair.value**2, pair)
                for pair in pairs
                if pair.value < 1
            ],
        )

    @cached_property
    def prediction_error(self) -> float | None:
        """Root mean square of predicted - measured over the groups of three and more that were measured.

        Each part of them is predicted with exponents that are fitted to the other parts. None without such groups.
        """
        count = _PARTS if len(self._larger) <= _FEW else 2
        squares = [
            (self._predicted(group, exponents) - self._rows[group].value) ** 2
            for part in range(count)
            for exponents in [self._fitted([each for at, each in enumerate(self._larger) if at % count != part])]
            for group in self._larger[part::count]
        ]
        return sqrt(fmean(squares)) if squares else None

    @cached_property
    def _larger(self) -> list[Group]:
        return [
            (target, against)
            for target, against in self._rows
            if len(against) > 1 and all((target, (other,)) in self._rows for other in against)
        ]

    @cached_property
    def _exponents(self) -> Mapping[str | None, float]:
        return self._fitted(self._larger)

    def _exponent(self, target: str) -> float:
        return self._exponents.get(target, self._exponents[None])

    def _fitted(self, groups: Collection[Group]) -> dict[str | None, float]:
        """Exponents by target, and of all as None."""
        found: dict[str | None, float] = {None: self._fit(groups)}
        for target in dict.fromkeys(target for target, _ in groups):
            found[target] = self._fit([group for group in groups if group[0] == target])
        return found

    def _fit(self, groups: Collection[Group]) -> float:
        if not groups:
            return 1.0
        known = [(self._pair_values(*group), self._rows[group].value) for group in groups]
        return min(_EXPONENTS, key=lambda each: sum((_together(pairs, each) - value) ** 2 for pairs, value in known))

    def _predicted(self, group: Group, exponents: Mapping[str | None, float]) -> float:
        return _together(self._pair_values(*group), exponents.get(group[0], exponents[None]))

    def _pair_values(self, target: str, against: Iterable[str]) -> list[float]:
        return [self._pair(target, other).value for other in against]

    def _pair(self, target: str, other: str) -> SampledEstimate:
        row = self._rows.get((target, (other,)))
        if row is None:
            raise ConfigError(f"{target} was not measured beside {other}, so their interference is unknown")
        return row


def _together(normalized: Sequence[float], exponent: float) -> float:
    """Normalized throughput beside several, from that beside each of them; what is faster beside another is noise."""
    if min(normalized) <= 0:
        return 0.0
    added = [max(0.0, 1 / each - 1) for each in normalized]
    return float(1 / (1 + sum(each**exponent for each in added) ** (1 / exponent)))


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
    return [(name, (*server[:place], *server[place + 1 :])) for server in servers for place, name in enumerate(server)]


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

    `throughputs`: Of all pairs at least.
    `verified`: Placements to be measured as they are; where so many were, the best one of these is advised.
    `most`: Network functions that fit on one server; None where that is unknown.

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
