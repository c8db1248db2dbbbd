"""Orders of VNFs in which some come before others: all of them, and how many there are without making any."""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations

from resources.libraries.python.studies.chains.planning.policies.meaning import Pair


def orders(vnfs: Sequence[str], pairs: Set[Pair]) -> Iterator[tuple[str, ...]]:
    """All orders of the VNFs that keep the pairs, in the order of `vnfs` where they leave it open.

    None where pairs contradict each other: two VNFs before each other cannot be in one chain.
    """
    inside = set(vnfs)
    first = {vnf: {a for a, b in pairs if b == vnf and a in inside} for vnf in vnfs}
    if not _has_order(first):
        return
    yield from _continued((), vnfs, first)


def _continued(begun: tuple[str, ...], left: Sequence[str], first: Mapping[str, Set[str]]) -> Iterator[tuple[str, ...]]:
    # Without a cycle every beginning has an end, so that nothing is tried in vain.
    if not left:
        yield begun
    for index, vnf in enumerate(left):
        if first[vnf].isdisjoint(left):
            yield from _continued((*begun, vnf), (*left[:index], *left[index + 1 :]), first)


def _has_order(first: Mapping[str, Set[str]]) -> bool:
    left = set(first)
    while free := {vnf for vnf in left if first[vnf].isdisjoint(left)}:
        left -= free
    return not left


def numbers_of_orders(vnfs: Sequence[str], longest: int, pairs: Set[Pair]) -> dict[frozenset[str], int]:
    """Return the number of orders of each set of at most `longest` VNFs.

    The orders of a set are those in which one of it is last, summed over all that may be: linear extensions of a
    partial order, counted over its subsets. Without pairs the number is k! for k VNFs.
    """
    after = {vnf: frozenset(b for a, b in pairs if a == vnf) for vnf in vnfs}
    numbers = {frozenset[str](): 1}
    for length in range(1, longest + 1):
        for some in combinations(vnfs, length):
            members = frozenset(some)
            numbers[members] = sum(
                numbers[members - {last}] for last in some if after[last].isdisjoint(members - {last})
            )
    return numbers
