"""The chains of a study (all orders of VNFs that policies allow, with all resources they may have), and their cost.

A VNF alone is the ground truth of what it does in a chain. So chains of one VNF are always there, whatever lengths are
asked for, and policies judge chains of two and more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, islice, product
from math import comb, prod
from typing import NamedTuple, NoReturn

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_BRACKETS, MAX_SETS, refuse_endless
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.chains.model import DroppedChains
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Member
from resources.libraries.python.studies.density.planning.extras import READ_STACKS_S

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
            found = token.text if token.text == _END else f"'{token.text}'"
            self._fail(token.place, f"expected a name or '(', not {found}")
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


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy."""

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
        ConfigError: It is no policy; see `parse`.
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


EXAMPLES = 3
"""Of chains that a policy forbids."""


def orders(vnfs: Sequence[str], pairs: Set[Pair]) -> Iterator[tuple[str, ...]]:
    """Yield all orders of the VNFs that keep the pairs, in the order of `vnfs` where they leave it open.

    Nothing where pairs contradict each other: two VNFs before each other cannot be in one chain.
    """
    inside = set(vnfs)
    first = {vnf: {a for a, b in pairs if b == vnf and a in inside} for vnf in vnfs}
    try:
        TopologicalSorter(first).prepare()
    except CycleError:
        return
    yield from _continued((), vnfs, first)


def _continued(begun: tuple[str, ...], left: Sequence[str], first: Mapping[str, Set[str]]) -> Iterator[tuple[str, ...]]:
    # Without a cycle every beginning has an end, so that nothing is tried in vain.
    if not left:
        yield begun
    for index, vnf in enumerate(left):
        if first[vnf].isdisjoint(left):
            yield from _continued((*begun, vnf), (*left[:index], *left[index + 1 :]), first)


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


@dataclass(frozen=True, slots=True)
class Chains:
    """Chains of a specification. Chains are made while it is iterated, shortest first, each time anew."""

    spec: ChainStudySpec
    lengths: tuple[int, ...]
    """Lengths of chains, ascending, 1 always among them."""
    policies: tuple[Policy, ...]
    orders: Mapping[int, int]
    """Orders by length, resources not counted."""
    count: int
    """Chains, resource combinations included."""
    dropped: tuple[DroppedChains, ...]
    """Orders that a policy forbids. An order that several forbid counts for the first of them."""

    @property
    def with_path(self) -> bool:
        """Whether the path without VNFs is measured as well: chains of two and more are compared with their VNFs."""
        return self.lengths[-1] > 1

    def __iter__(self) -> Iterator[Chain]:
        """All chains: by length, then by VNFs and order as the specification names them, then by resources."""
        for order in self.each_order():
            yield from _with_resources(self.spec, order)

    def each_order(self) -> Iterator[tuple[str, ...]]:
        """The names alone, in order."""
        names = [vnf.name for vnf in self.spec.vnfs]
        before = frozenset(pair for judge in self.policies for pair in judge.pairs)
        for length in self.lengths:
            for vnfs in combinations(names, length):
                if _may_meet(frozenset(vnfs), self.policies):
                    yield from orders(vnfs, before)


def generate(spec: ChainStudySpec) -> Chains:
    """Find the chains of a study and count them, without making any.

    Raises:
        ConfigError: A policy is wrong, the policies leave no chain of two or more VNFs, or there are too many VNFs or
            chains.
    """
    names = [vnf.name for vnf in spec.vnfs]
    lengths = _lengths(spec)
    policies = tuple(policy(text, names, f"{spec.name}: policies.{n}") for n, text in enumerate(spec.policies))
    resources = {vnf.name: len(vnf.sizes) * max(1, len(vnf.memory_mib)) for vnf in spec.vnfs}
    allowed = _numbers(names, lengths, policies)
    count = sum(number * prod(resources[vnf] for vnf in vnfs) for vnfs, number in allowed.items())
    # First: what each policy forbids takes far longer to count.
    refuse_endless(spec.name, count * len(spec.workloads), "measurements of chains under workloads")
    counted = [*(_numbers(names, lengths, policies[:number]) for number in range(len(policies))), allowed]
    by_length = {length: sum(number for vnfs, number in allowed.items() if len(vnfs) == length) for length in lengths}
    dropped = tuple(
        DroppedChains(
            policy=judge.text,
            count=sum(counted[number].values()) - sum(counted[number + 1].values()),
            examples=tuple(islice(_forbidden(names, lengths, policies[:number], judge), EXAMPLES)),
        )
        for number, judge in enumerate(policies)
    )
    if len(lengths) > 1 and not any(by_length[length] for length in lengths if length > 1):
        culprits = ", ".join(f"'{row.policy}' {row.count}" for row in dropped if row.count)
        raise ConfigError(
            f"{spec.name}: policies: they leave no chain of {_or(lengths[1:])} VNFs; forbidden are: {culprits}"
        )
    for number, fault in enumerate(spec.faults):
        if fault.chain is None:
            if not any(fault.vnf in vnfs for vnfs in allowed if len(vnfs) > 1):
                raise ConfigError(f"{spec.name}: faults.{number}: no chain of two or more VNFs has {fault.vnf}")
        else:
            _refuse_absent(f"{spec.name}: faults.{number}", fault.chain, lengths, policies)
    return Chains(spec, lengths, policies, by_length, count, dropped)


def why_not(chains: Chains, order: Sequence[str]) -> tuple[str, ...]:
    """All policies that forbid a chain, VNFs in order; empty where it may be."""
    return _forbidding(chains.policies, order)


def _lengths(spec: ChainStudySpec) -> tuple[int, ...]:
    there = len(spec.vnfs)
    for number, length in enumerate(spec.lengths):
        if length > there:
            raise ConfigError(f"{spec.name}: lengths.{number}: a chain of {length} VNFs, and there are {there}")
    lengths = tuple(sorted({1, *(spec.lengths or range(1, there + 1))}))
    if sum(comb(there, length) for length in range(lengths[-1] + 1)) > MAX_SETS:
        raise ConfigError(
            f"{spec.name}: lengths: chains of up to {lengths[-1]} of {there} VNFs are too many to measure; "
            "ask for shorter ones"
        )
    return lengths


def _forbidding(policies: Sequence[Policy], order: Sequence[str]) -> tuple[str, ...]:
    return () if len(order) == 1 else tuple(judge.text for judge in policies if not judge.obeys(order))


def _refuse_absent(where: str, order: Sequence[str], lengths: Sequence[int], policies: Sequence[Policy]) -> None:
    """A fault in a chain that is not measured would be planted nowhere."""
    name = " > ".join(order)
    if len(set(order)) < len(order):
        raise ConfigError(f"{where}: chain {name} has a VNF twice")
    if len(order) not in lengths:
        raise ConfigError(f"{where}: chain {name} does not have {_or(lengths)} VNFs, as in lengths")
    if forbidding := _forbidding(policies, order):
        raise ConfigError(f"{where}: chain {name} is forbidden by '{forbidding[0]}'")


def _or(lengths: Sequence[int]) -> str:
    return " or ".join(map(str, lengths))


def _numbers(names: Sequence[str], lengths: Sequence[int], policies: Sequence[Policy]) -> dict[frozenset[str], int]:
    """Orders that policies allow, by their VNFs."""
    before = frozenset(pair for judge in policies for pair in judge.pairs)
    return {
        vnfs: number
        for vnfs, number in numbers_of_orders(names, lengths[-1], before).items()
        if len(vnfs) in lengths and number and _may_meet(vnfs, policies)
    }


def _may_meet(vnfs: frozenset[str], policies: Sequence[Policy]) -> bool:
    return len(vnfs) == 1 or all(judge.may_meet(vnfs) for judge in policies)


def _forbidden(
    names: Sequence[str], lengths: Sequence[int], policies: Sequence[Policy], judge: Policy
) -> Iterator[tuple[str, ...]]:
    """Orders that some policies allow and one forbids."""
    before = frozenset(pair for each in policies for pair in each.pairs)
    seen: set[tuple[str, ...]] = set()
    for length in lengths[1:]:
        for vnfs in combinations(names, length):
            if not _may_meet(frozenset(vnfs), policies):
                continue
            turned = [{(second, first)} for first, second in sorted(judge.pairs) if {first, second} <= set(vnfs)]
            for more in turned if judge.may_meet(frozenset(vnfs)) else [set[tuple[str, str]]()]:
                for order in orders(vnfs, before | more):
                    if order not in seen:
                        seen.add(order)
                        yield order


def _with_resources(spec: ChainStudySpec, order: Sequence[str]) -> Iterator[Chain]:
    choices = [
        [
            Member(name=name, size=size, memory_mib=memory)
            for size in spec.vnf(name).sizes
            for memory in spec.vnf(name).memory_mib or (None,)
        ]
        for name in order
    ]
    for members in product(*choices):
        yield Chain(members=members)


AROUND_S = 4.0
"""Assumed for deploying a chain, a look at its traffic, latency, starting to trace and removing it; virtual machines
take longer."""
LEAD_S = 1
"""Of each workload before its first sample: the generator gets going in that second, which counts for nothing."""


def cost(chains: Chains, around_s: float = AROUND_S) -> StudyCost:
    """Count without making any chain; steps are deployments of chains and of the path without VNFs.

    Chains that deviate and are measured again are not in it: how many these are is not known.

    `around_s`: seconds around the workloads of a deployment.

    Raises:
        ConfigError: It exceeds a bound of `model.bounds`.
    """
    workloads = chains.spec.workloads
    each = chains.count + chains.with_path
    deployments = each * len({workload.sessions for workload in workloads})
    measurements = each * len(workloads)
    seconds = deployments * around_s + measurements * (LEAD_S + chains.spec.duration_s)
    return StudyCost(
        name=chains.spec.name,
        steps=deployments,
        runs=measurements,
        unit="measurements of chains under workloads",
        seconds=seconds,
        counted={"chains": chains.count, "deployments": deployments, "measurements": measurements},
    )


def sampling_s(trial_s: float) -> float:
    """Return the seconds that sampling the call stacks of one chain takes."""
    return AROUND_S + trial_s + READ_STACKS_S
