"""Chains of a study: which there are, how many, and which policy drops the others; what each policy allows."""

from itertools import permutations
from math import perm

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_BRACKETS
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, VnfSpec
from resources.libraries.python.studies.chains.planning.chain_generation import (
    Name,
    OperandGroup,
    Operator,
    Policy,
    generate,
    parse,
    policy,
    why_not,
)
from tests.unit.examples import share
from tests.unit.studies.chains.chain_runs import spec_of

SEVEN = ("firewall", "netsniff", "snort", "suricata", "suricata-ips", "tcpdump", "nat")
"""The VNFs of Probius, and the facts of the policies that its authors published with their code: one IDS or IPS, one
traffic analyzer, the firewall before what looks into packets."""
PUBLISHED = (
    "snort | suricata | suricata-ips", "netsniff | tcpdump", "firewall > snort", "firewall > suricata",
    "firewall > suricata-ips",
)  # fmt: skip


def study(names: tuple[str, ...], *policies: str, lengths: tuple[int, ...] = (), **more: object) -> ChainStudySpec:
    return spec_of(names, policies, lengths).model_copy(update=more)


@pytest.mark.parametrize(("vnfs", "longer"), [(2, 2), (3, 12), (4, 60), (5, 320), (7, 13_692)])
def test_without_policies_there_are_all_orders_and_not_rotations_only(vnfs: int, longer: int) -> None:
    found = generate(study(tuple(f"v{number}" for number in range(vnfs))))
    assert sum(number for length, number in found.orders.items() if length > 1) == longer
    assert found.orders == {length: perm(vnfs, length) for length in range(1, vnfs + 1)}
    if vnfs < 7:
        assert len(set(found.each_order())) == len(list(found.each_order())) == longer + vnfs


def test_the_published_policies_give_the_published_vnfs_178_chains() -> None:
    found = generate(study(SEVEN, *PUBLISHED))
    assert {length: number for length, number in found.orders.items() if number} == {1: 7, 2: 31, 3: 75, 4: 72}
    assert len(list(found)) == found.count == 185


def test_counting_sixteen_vnfs_makes_no_chain_and_those_alone_are_always_there() -> None:
    found = generate(study(tuple(f"v{number}" for number in range(16)), "v0 > v1", lengths=(4, 5)))
    assert found.orders[4] == perm(16, 4) - perm(14, 2) * 6  # of 12 places for v0 and v1 half are forbidden
    assert [each.name for each, _ in zip(found, range(17), strict=False)][-2:] == ["v15", "v0 > v1 > v2 > v3"]
    assert generate(study(("a", "b", "c"), "a & b", lengths=(3,))).orders == {1: 3, 3: 6}


NAMES = ("a", "b", "c", "d")
POLICIES = st.lists(
    st.builds("{0[0]} {1} {0[1]}".format, st.permutations(NAMES).map(lambda row: row[:2]), st.sampled_from(">&|"))
    | st.builds("{0[0]} & ({0[1]} > {0[2]})".format, st.permutations(NAMES))
    | st.builds("({0[0]} | {0[1]}) > {0[2]}".format, st.permutations(NAMES)),
    max_size=4,
)


@settings(max_examples=share(60))
@given(POLICIES, st.sets(st.integers(1, 4)))
@example(["a > b", "b > a"], {3})
def test_counts_and_blame_are_those_of_trying_every_order(policies: list[str], lengths: set[int]) -> None:
    spec = study(NAMES, *policies, lengths=tuple(lengths))
    try:
        found = generate(spec)
    except ConfigError as error:
        assert "they leave no chain" in str(error)
        return
    every = [order for length in found.lengths for order in permutations(NAMES, length)]
    blamed = {
        order: [judge.text for judge in found.policies if len(order) > 1 and not judge.obeys(order)] for order in every
    }
    allowed = [order for order in every if not blamed[order]]
    assert sorted(found.each_order()) == sorted(allowed)
    assert sum(found.orders.values()) == found.count == len(allowed)
    for index, row in enumerate(found.dropped):
        text, before = found.policies[index].text, {policy.text for policy in found.policies[:index]}
        mine = {order for order in every if text in blamed[order] and not before.intersection(blamed[order])}
        assert row.count == len(mine)
        assert set(row.examples) <= mine and bool(row.examples) == bool(mine)
    assert {order: list(why_not(found, order)) for order in every} == blamed


def test_resources_multiply_chains_and_each_chain_is_another_one() -> None:
    sizes = {"sizes": (NfSize.HALF, NfSize.ONE)}
    vnfs = (
        VnfSpec(name="a", kind=NfKind("linux_router"), memory_mib=(64, 128, 256), **sizes),
        VnfSpec(name="b", kind=NfKind("linux_nat"), **sizes),
    )
    found = generate(study(("a",), vnfs=vnfs))
    assert found.count == 6 + 2 + 2 * 12
    assert len(set(found)) == found.count
    assert found.orders == {1: 2, 2: 2}


def faulty(*order: str) -> ChainStudySpec:
    """Of chains of one or two VNFs, with `a` before `b`."""
    fault = Fault(chain=order, vnf="a", limits=Limits(cpu=0.1))
    return study(("a", "b", "c"), "a > b", lengths=(2,), faults=(fault,))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            study(("a", "b"), "a > b", "b > a"),
            "policies: they leave no chain of 2 VNFs; forbidden are: 'a > b' 1, 'b > a' 1",
        ),
        (study(("a", "b", "c"), "a | b | c"), "policies: they leave no chain of 2 or 3 VNFs"),
        (study(("a", "b"), lengths=(2, 3)), "lengths.1: a chain of 3 VNFs, and there are 2"),
        (
            study(tuple(f"v{number}" for number in range(30))),
            "lengths: chains of up to 30 of 30 VNFs are too many to measure",
        ),
        (faulty("b", "a"), "faults.0: chain b > a is forbidden by 'a > b'"),
        (faulty("a", "b", "c"), "faults.0: chain a > b > c does not have 1 or 2 VNFs, as in lengths"),
        (faulty("a", "a"), "faults.0: chain a > a has a VNF twice"),
    ],
)
def test_what_leaves_no_chain_or_cannot_be_measured_is_refused(spec: ChainStudySpec, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        generate(spec)
    assert str(caught.value).startswith(f"study: {message}") and "\n" not in str(caught.value)


LETTERS = ("A", "B", "C", "D")


def told(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, LETTERS, "study: policies.0")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "chains", "obeying"),
    [
        ("A & B", ("AB", "BA", "AC", "BC", "CD", "CABD"), ["AB", "BA", "CD", "CABD"]),
        ("A | B", ("AB", "AC", "CB", "CD", "DBCA"), ["AC", "CB", "CD"]),
        ("A > B", ("AB", "BA", "AC", "CB", "CD", "ACB", "BCA"), ["AB", "AC", "CB", "CD", "ACB"]),
        ("A & B & C", ("AB", "ABC", "CBA", "D", "CD"), ["ABC", "CBA", "D"]),
        ("A | B | C", ("AB", "AC", "BC", "AD", "D", "ABC"), ["AD", "D"]),
        ("A > B > C", ("ABC", "AC", "CA", "BC", "BAC", "DBDC"), ["ABC", "AC", "BC", "DBDC"]),
        ("A & (B > C)", ("AB", "AC", "ABC", "BAC", "ACB", "A", "BC", "D"), ["AB", "AC", "ABC", "BAC", "D"]),
        ("(A | B) > C", ("AC", "BC", "CA", "CB", "ABC", "AB", "CD"), ["AC", "BC", "CD"]),
        ("(A & B) > C", ("ABC", "BAC", "ACB", "AC", "C", "AB"), ["ABC", "BAC", "C", "AB"]),
        ("A & (B | C)", ("AB", "CA", "ABC", "BC", "A", "D"), ["AB", "CA", "D"]),
        ("A | (B & C)", ("A", "BC", "CB", "ABC", "AB", "B", "AD"), ["A", "BC", "CB", "AD"]),
    ],
)
def test_operators_mean_what_the_paper_says(text: str, chains: tuple[str, ...], obeying: list[str]) -> None:
    judge = policy(text, LETTERS, "policies.0")
    assert [each for each in chains if judge.obeys(tuple(each))] == obeying


def test_following_binds_most_and_one_of_binds_least() -> None:
    assert parse("A > B & C > D", LETTERS, "") == parse("(A > B) & (C > D)", LETTERS, "")
    assert parse("A & B | C & D", LETTERS, "") == parse("(A & B) | (C & D)", LETTERS, "")
    assert parse("A | B > C", LETTERS, "") == OperandGroup(
        Operator.ONE, (Name("A"), OperandGroup(Operator.FOLLOWS, (Name("B"), Name("C"))))
    )


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("A > > B", "expected a name or '(', not '>'", 5),
        ("A > (B", "unmatched opening bracket", 5),
        ("A B", "an operator (> & |) is missing before 'B'", 3),
        ("A > B)", "unmatched closing bracket", 6),
        ("A >", "expected a name or '(', not the end", 4),
        ("", "expected a name or '(', not the end", 1),
        ("A $ B", "'$' is neither a name, an operator (> & |) nor a bracket", 3),
        ("A > Bb", "no VNF 'Bb'; did you mean 'B'?", 5),
        ("A & nothing", "no VNF 'nothing'; choose from A, B, C, D", 5),
        ("A > (B | A)", "A on both sides of '>'", 5),
        ("A | A", "A on both sides of '|'", 5),
        ("A\n> > B", "expected a name or '(', not '>'", 5),
    ],
)
def test_a_mistake_is_named_and_marked_with_a_caret(text: str, message: str, column: int) -> None:
    first, shown, caret = told(text).split("\n")
    assert first == f"study: policies.0: {message} (column {column}):"
    assert shown == "  " + text.replace("\n", " ")
    assert caret.index("^") == column + 1


def test_brackets_have_a_bottom() -> None:
    deep = "(" * MAX_BRACKETS + "A > B" + ")" * MAX_BRACKETS
    assert parse(deep, LETTERS, "") == parse("A > B", LETTERS, "")
    assert f"more than {MAX_BRACKETS} nested brackets" in told(f"({deep})")
    assert "brackets" in told("(" * 100_000)


EXPRESSIONS = st.recursive(
    st.sampled_from(LETTERS), lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(">&|"), inner)
)


def obeys_by_definition(text: str, order: tuple[str, ...]) -> bool:
    """The two sentences of the package's docstring, evaluated on the text itself."""
    stack: list[list[str]] = []
    holds = True
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == ")":
            right, operator, left = stack.pop(), stack.pop()[0], stack.pop()
            there = [{name for name in side if name in order} for side in (left, right)]
            if operator == "&":
                holds &= bool(there[0]) == bool(there[1])
            elif operator == "|":
                holds &= not (there[0] and there[1])
            else:
                holds &= all(order.index(a) < order.index(b) for a in there[0] for b in there[1])
            stack.append(left + right)
        elif word != "(":
            stack.append([word])
    return holds


@given(EXPRESSIONS)
def test_any_expression_means_what_its_definition_says(text: str) -> None:
    try:
        judge: Policy = policy(text, LETTERS, "")
    except ConfigError as error:
        assert "on both sides of" in str(error)
        return
    for length in range(1, len(LETTERS) + 1):
        for order in permutations(LETTERS, length):
            assert judge.obeys(order) == obeys_by_definition(text, order), (text, order)


@given(st.text(alphabet="AB()>&| x$\n", max_size=30))
def test_any_text_is_a_policy_or_one_marked_error(text: str) -> None:
    try:
        parse(text, LETTERS, "policies.0")
    except ConfigError as error:
        assert str(error).count("\n") == 2
        assert str(error).endswith("^")
