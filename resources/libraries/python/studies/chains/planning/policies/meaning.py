"""Meaning of policies: conditions on which VNFs it has, and pairs of which one comes before the other."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, product

from resources.libraries.python.studies.chains.planning.policies.syntax import Expression, OperandGroup, Operator, parse

Pair = tuple[str, str]
"""The first comes before the second, in a chain that has both."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy, see the package for its language."""

    text: str
    conditions: tuple[OperandGroup, ...]
    """Its operators `&` and `|` with their operands: on which VNFs there are, in any order."""
    pairs: frozenset[Pair]
    """All that its operators `>` say."""

    def may_meet(self, vnfs: Set[str]) -> bool:
        """Whether a chain may have these VNFs and no others, in whatever order."""
        return all(_holds(condition, vnfs) for condition in self.conditions)

    def obeys(self, order: Sequence[str]) -> bool:
        """Whether a chain, VNFs in order, obeys the policy."""
        place = {name: index for index, name in enumerate(order)}
        return self.may_meet(place.keys()) and all(
            place[first] < place[second] for first, second in self.pairs if first in place and second in place
        )


def policy(text: str, names: Sequence[str], where: str) -> Policy:
    """Read a policy over VNFs.

    Raises:
        ConfigError: It is no policy; see `syntax.parse`.
    """
    groups = tuple(_groups(parse(text, names, where)))
    return Policy(
        " ".join(text.split()),
        tuple(group for group in groups if group.operator is not Operator.FOLLOWS),
        frozenset(pair for group in groups if group.operator is Operator.FOLLOWS for pair in _pairs(group)),
    )


def _groups(expression: Expression) -> Iterator[OperandGroup]:
    if isinstance(expression, OperandGroup):
        yield expression
        for operand in expression.operands:
            yield from _groups(operand)


def _pairs(group: OperandGroup) -> Iterator[Pair]:
    for first, second in combinations(group.operands, 2):
        yield from product(first.names, second.names)


def _holds(group: OperandGroup, vnfs: Set[str]) -> bool:
    there = sum(not operand.names.isdisjoint(vnfs) for operand in group.operands)
    return there <= 1 if group.operator is Operator.ONE else there in {0, len(group.operands)}
