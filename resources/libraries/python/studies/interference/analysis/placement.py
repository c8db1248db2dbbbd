"""Placement of network functions: the servers on which they do each other the least harm.

The capacity of a placement is the sum of the normalized throughputs of all network functions, each in the group that
it has on its server: at most their number. That is the example of Figure 1 of Zeng et al. with normalized units.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import sqrt
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.model.record import Advice, Normalized, Placement

MOST_TRIED = 50_000
"""Largest number of placements that are all compared; beyond it, a heuristic search finds a good one."""
OTHERS = 4
"""Worse placements that an advice names."""
_SAME = 1e-9
_SHOWN = 0.005
"""Less does not show in two digits."""

Servers = tuple[tuple[str, ...], ...]


_LEAST_TIME = 0.5
"""Of the time of a packet alone: what noise says to be faster beside others is no more than twice as fast."""


class ColocatedThroughputs:
    """Normalized throughputs by target and group.

    A group that was not measured is predicted: each neighbour adds as much time to a packet as in a pair, so that
    1 / N(i | j, k) - 1 = (1 / N(i | j) - 1) + (1 / N(i | k) - 1). That is a model; `prediction_error` says how far it
    is from what was measured. On simulated testbeds whose contention is another function, it lost 1.8 % of the best
    capacity on average of 14 placements, and the product of pairs 4.7 %.

    Args:
        matrix: What was measured.
    """

    def __init__(self, matrix: Sequence[Normalized]) -> None:
        self._rows = {(row.target, tuple(sorted(row.against))): row for row in matrix}

    def normalized(self, target: str, against: Iterable[str]) -> float:
        """Throughput of a target in a group over its throughput alone.

        Raises:
            ConfigError: Neither the group nor one of its pairs was measured.
        """
        return _together([row.mean for row in self._rows_of(target, tuple(sorted(against)))])

    def half_width(self, target: str, against: Iterable[str]) -> float:
        """Half of the confidence interval of `normalized`, to first order; 0 where there is none."""
        rows = self._rows_of(target, tuple(sorted(against)))
        whole = _together([row.mean for row in rows])
        known = [(row.mean, row.low, row.high) for row in rows if row.mean]
        widths = [(high - low) / 2 * (whole / mean) ** 2 for mean, low, high in known if low is not None and high]
        return sqrt(sum(width**2 for width in widths))

    def prediction_error(self) -> float | None:
        """Mean of |predicted - measured| over the groups of three and more that were measured; None of none."""
        errors = [
            abs(_together([self._pair(target, each).mean for each in against]) - row.mean)
            for (target, against), row in self._rows.items()
            if len(against) > 1 and all((target, (each,)) in self._rows for each in against)
        ]
        return fmean(errors) if errors else None

    def _rows_of(self, target: str, against: tuple[str, ...]) -> tuple[Normalized, ...]:
        whole = self._rows.get((target, against))
        return (whole,) if whole else tuple(self._pair(target, each) for each in against)

    def _pair(self, target: str, other: str) -> Normalized:
        row = self._rows.get((target, (other,)))
        if row is None:
            raise ConfigError(f"{target} was not measured beside {other}, so their interference is unknown")
        return row


def _together(normalized: Sequence[float]) -> float:
    """Normalized throughput beside several, from that beside each of them; 1 beside none."""
    if min(normalized, default=1.0) <= 0:
        return 0.0
    return 1 / max(_LEAST_TIME, 1 + sum(1 / each - 1 for each in normalized))


def capacity(throughputs: ColocatedThroughputs, servers: Sequence[Sequence[str]]) -> float:
    """Sum of the normalized throughputs of all network functions on servers.

    Raises:
        ConfigError: Two of them on one server were not measured beside each other.
    """
    return sum(_on_one(throughputs, server) for server in servers)


def advise(throughputs: ColocatedThroughputs, servers: Sequence[Sequence[str]], more: Sequence[str]) -> Advice:
    """Return the ranked placements of network functions on servers that may have some already.

    All placements are compared where there are few enough. Otherwise the network functions are put one after the other
    where they do the least harm, and then moved, or two of them exchanged, for as long as that helps.

    Raises:
        ConfigError: Two of them were not measured beside each other.
        ValueError: There is no server, or nothing to put there.
    """
    if not servers or not more:
        raise ValueError("a placement needs a server and a network function")
    begun: Servers = tuple(tuple(server) for server in servers)
    if len(begun) ** len(more) <= MOST_TRIED:
        found = list(_all(begun, tuple(more)))
    else:
        found = [_moved(throughputs, begun, _greedy(throughputs, begun, more))]
    # The first of equals is kept, so that the advice for a matrix is always the same one.
    ranked = sorted(
        (Placement(servers=each, capacity=capacity(throughputs, each)) for each in found),
        key=lambda each: -each.capacity,
    )
    best, others = ranked[0], tuple(ranked[1 : 1 + OTHERS])
    sentence = _one(throughputs, ranked, begun, more[0]) if len(more) == 1 else _several(throughputs, ranked)
    return Advice(sentence=sentence, best=best, others=others)


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


def _on_one(throughputs: ColocatedThroughputs, server: Sequence[str]) -> float:
    return sum(throughputs.normalized(name, _others(server, place)) for place, name in enumerate(server))


def _others(server: Sequence[str], place: int) -> tuple[str, ...]:
    return (*server[:place], *server[place + 1 :])


def _one(throughputs: ColocatedThroughputs, ranked: Sequence[Placement], begun: Servers, name: str) -> str:
    best = ranked[0]
    advice = f"put {name} on server {_server_of(best, begun)}: total capacity {best.capacity:.2f}"
    if len(ranked) == 1:
        return f"{advice}; all servers are equal" if len(begun) > 1 else advice
    rest = " and ".join(f"{each.capacity:.2f} on server {_server_of(each, begun)}" for each in ranked[1 : 1 + OTHERS])
    return f"{advice} against {rest}{_doubt(throughputs, ranked)}"


def _server_of(placement: Placement, begun: Servers) -> int:
    return next(
        number
        for number, (now, before) in enumerate(zip(placement.servers, begun, strict=True), 1)
        if len(now) > len(before)
    )


def _several(throughputs: ColocatedThroughputs, ranked: Sequence[Placement]) -> str:
    best = ranked[0]
    where = ", ".join(
        f"{' + '.join(server) or 'nothing'} on server {number}" for number, server in enumerate(best.servers, 1)
    )
    advice = f"put {where}: total capacity {best.capacity:.2f}"
    if len(ranked) == 1:
        return advice
    last = f", {ranked[-1].capacity:.2f} in the worst of {len(ranked)} placements" if len(ranked) > 2 else ""
    return f"{advice} against {ranked[1].capacity:.2f} in the next best one{last}{_doubt(throughputs, ranked)}"


def _doubt(throughputs: ColocatedThroughputs, ranked: Sequence[Placement]) -> str:
    """Remark if the best and the next best are equivalent."""
    wide = sqrt(
        sum(
            throughputs.half_width(name, _others(server, place)) ** 2
            for each in ranked[:2]
            for server in each.servers
            for place, name in enumerate(server)
        )
    )
    gain = ranked[0].capacity - ranked[1].capacity
    if gain < _SHOWN:
        return "; the next best is as good"
    return "; the difference is within the confidence intervals" if gain < wide else ""
