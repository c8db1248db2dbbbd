"""Cables of a testbed that carry a service: from the links of its nodes to paths from the generator and back.

A path of a 2-node testbed is two cables, TG to DUT and DUT to TG; of a 3-node testbed it is three, TG to DUT1, DUT1 to
DUT2, DUT2 to TG. Forward traffic leaves the generator at the first end of a way and comes back at its last end.

Nodes have ports of several NIC models, and a figure is about one of them: only cables whose ends at DUTs are of that
model are looked at. They are taken in the order in which the file has the ports of the node where they begin.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise


@dataclass(frozen=True, slots=True)
class Socket:
    """A port of a node, as the file has it."""

    node: str
    port: str
    link: str
    model: str | None
    at_dut: bool


@dataclass(frozen=True, slots=True)
class Cable:
    """A link in the direction of forward traffic."""

    link: str
    a: Socket
    b: Socket

    @property
    def models(self) -> frozenset[str]:
        """NIC models of its ends at DUTs; empty where the file names none."""
        return frozenset(end.model for end in (self.a, self.b) if end.at_dut and end.model is not None)


Way = tuple[Cable, ...]


def ways(sockets: Sequence[Socket], tg: str, duts: Sequence[str], nic: str | None) -> tuple[Way, ...]:
    """Return all paths of a testbed, the one of instance 1 first.

    `sockets`: Ports of all nodes in the order of the file.
    `duts`: One or two nodes, in the order in which forward traffic visits them.
    `nic`: The NIC model; None for that of the first cable.

    Raises:
        ValueError: There is no way; the text names the links that there are.
    """
    ends: dict[str, list[Socket]] = {}
    for socket in sockets:
        ends.setdefault(socket.link, []).append(socket)
    whole = {link: pair for link, pair in ends.items() if len(pair) == 2 and pair[0].node != pair[1].node}
    of_model = {link: pair for link, pair in whole.items() if _matches(pair, nic)}
    if nic is None:
        of_model = _of_first_model(of_model)
    if not of_model and nic is not None:
        models = sorted({socket.model for pair in whole.values() for socket in pair if socket.at_dut and socket.model})
        raise ValueError(f"no cable ends at a NIC of model '{nic}'; there are {', '.join(models) or 'no models'}")

    def between(one: str, other: str) -> list[Cable]:
        return list(_between(sockets, of_model, one, other))

    found: list[Way]
    if len(duts) == 1:
        row = between(tg, duts[0])
        back = [Cable(cable.link, cable.b, cable.a) for cable in row]
        found = list(zip(row[::2], back[1::2], strict=False))
    else:
        first, second = duts
        found = list(zip(between(tg, first), between(first, second), between(second, tg), strict=False))
    if not found:
        raise ValueError(_sentence(whole, of_model, tg, duts))
    return tuple(found)


def loops(sockets: Sequence[Socket], node: str) -> tuple[Cable, ...]:
    """Return the cables from one port of a node to another one, in the order of the ports."""
    mine = [socket for socket in sockets if socket.node == node]
    return tuple(Cable(a.link, a, b) for a, b in combinations(mine, 2) if a.link == b.link)


def _matches(pair: Sequence[Socket], nic: str | None) -> bool:
    models = {socket.model for socket in pair if socket.at_dut}
    return nic is None or models == {nic}


def _of_first_model(pairs: dict[str, list[Socket]]) -> dict[str, list[Socket]]:
    """Those of the NIC model of the first cable at the DUTs; all where it has none."""
    models = [{socket.model for socket in pair if socket.at_dut} for pair in pairs.values()]
    return {link: pair for (link, pair), model in zip(pairs.items(), models, strict=True) if model == models[0]}


def _between(sockets: Sequence[Socket], pairs: Mapping[str, Sequence[Socket]], one: str, other: str) -> Iterator[Cable]:
    """Cables between two nodes, in the order of the ports of the first."""
    for near in sockets:
        if near.node == one and near.link in pairs:
            far = next(end for end in pairs[near.link] if end.node != one)
            if far.node == other:
                yield Cable(near.link, near, far)


def _sentence(
    whole: Mapping[str, Sequence[Socket]], used: Mapping[str, Sequence[Socket]], tg: str, duts: Sequence[str]
) -> str:
    needed = f"two cables {tg} - {duts[0]}" if len(duts) == 1 else f"a cable for each of {_circle(tg, duts)}"
    there = [f"{link} ({a.node}.{a.port} - {b.node}.{b.port})" for link, (a, b) in used.items()]
    other = f"; {len(whole) - len(used)} links are of other NIC models (nic: chooses)" if len(used) < len(whole) else ""
    return f"no path for a service: it needs {needed}, and there are {', '.join(there) or 'no cables'}{other}"


def _circle(tg: str, duts: Sequence[str]) -> str:
    row = [tg, *duts, tg]
    return ", ".join(f"{one} - {other}" for one, other in pairwise(row))
