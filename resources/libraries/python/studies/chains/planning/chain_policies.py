"""Policies of chains: from text to a tree, to conditions on the VNFs of a chain, and to pairs in a fixed order."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import combinations, product
from typing import NamedTuple, NoReturn

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_BRACKETS

Pair = tuple[str, str]
"""The first comes before the second, in a chain that has both."""
_AROUND = 60
"""Characters of a policy that an error shows before its place, and after it."""


class Operator(StrEnum):
    """Condition on the operands; the one that binds least is first."""

    ONE = "|"
    BOTH = "&"
    FOLLOWS = ">"


_BINDING = tuple(Operator)
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|[()|&>]")
_END = "the end"


@dataclass(frozen=True, slots=True)
class Name:
    """A network function."""

    name: str

    @property
    def names(self) -> frozenset[str]:
        """Itself."""
        return frozenset({self.name})


@dataclass(frozen=True, slots=True)
class OperandGroup:
    """Two or more operands of one operator."""

    operator: Operator
    operands: tuple["Expression", ...]

    @property
    def names(self) -> frozenset[str]:
        """Names of all network functions inside."""
        return frozenset().union(*(operand.names for operand in self.operands))


Expression = Name | OperandGroup


class _Token(NamedTuple):
    text: str
    place: int
    """Index of its first character."""


def parse(text: str, names: Sequence[str], where: str) -> Expression:
    """Read a policy.

    `where`: begins the sentence of an error, such as `policies.0`.

    Raises:
        ConfigError: It is no policy. The text has the policy on a second line and a caret below the mistake.
    """
    line = re.sub(r"\s", " ", text)
    return _PolicyReader(line, names, where).read()


class _PolicyReader:
    def __init__(self, text: str, names: Sequence[str], where: str) -> None:
        self._text = text
        self._names = names
        self._where = where
        self._tokens = list(self._split())
        self._next = 0

    def read(self) -> Expression:
        found = self._group(0, 0)
        rest = self._peek()
        if rest.text == ")":
            self._fail(rest.place, "unmatched closing bracket")
        if rest.text != _END:
            self._fail(rest.place, f"an operator (> & |) is missing before '{rest.text}'")
        return found

    def _split(self) -> Iterator[_Token]:
        place = 0
        while place < len(self._text):
            if self._text[place] == " ":
                place += 1
            elif match := _TOKEN.match(self._text, place):
                yield _Token(match[0], place)
                place = match.end()
            else:
                self._fail(place, f"{self._text[place]!r} is neither a name, an operator (> & |) nor a bracket")
        yield _Token(_END, len(self._text.rstrip()))

    def _group(self, level: int, depth: int) -> Expression:
        """Operands of the operator of a level and of those that bind more."""
        if level == len(_BINDING):
            return self._operand(depth)
        operator = _BINDING[level]
        operands = [self._group(level + 1, depth)]
        while self._peek().text == operator:
            self._take()
            place = self._peek().place
            operands.append(self._group(level + 1, depth))
            self._refuse_both_sides(operator, operands, place)
        return operands[0] if len(operands) == 1 else OperandGroup(operator, tuple(operands))

    def _operand(self, depth: int) -> Expression:
        token = self._take()
        if token.text == "(":
            if depth == MAX_BRACKETS:
                self._fail(token.place, f"more than {MAX_BRACKETS} nested brackets")
            inside = self._group(0, depth + 1)
            if self._peek().text != ")":
                self._fail(token.place, "unmatched opening bracket")
            self._take()
            return inside
        if token.text == _END or token.text in {*_BINDING, ")"}:
            self._fail(token.place, f"expected a name or '(', not {_quoted(token.text)}")
        if token.text not in self._names:
            close = get_close_matches(token.text, self._names, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(self._names)}"
            self._fail(token.place, f"no VNF '{token.text}'; {hint}")
        return Name(token.text)

    def _refuse_both_sides(self, operator: Operator, operands: Sequence[Expression], place: int) -> None:
        """`A > A` and `A | A` would only allow chains without A, which is never intended."""
        before = frozenset[str]().union(*(operand.names for operand in operands[:-1]))
        if operator is not Operator.BOTH and (both := before & operands[-1].names):
            self._fail(place, f"{' and '.join(sorted(both))} on both sides of '{operator}'")

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _fail(self, place: int, message: str) -> NoReturn:
        begin = max(0, place - _AROUND)
        excerpt = self._text[begin : place + _AROUND]
        raise ConfigError(f"{self._where}: {message} (column {place + 1}):\n  {excerpt}\n  {' ' * (place - begin)}^")


def _quoted(token: str) -> str:
    return token if token == _END else f"'{token}'"


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
