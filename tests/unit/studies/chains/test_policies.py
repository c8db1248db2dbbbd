"""Policies of chains: what each expression allows, and how a mistake in one is told."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_BRACKETS
from resources.libraries.python.studies.chains.planning.chain_policies import (
    Name,
    OperandGroup,
    Operator,
    Policy,
    parse,
    policy,
)

NAMES = ("A", "B", "C", "D")


def allowed(text: str, *chains: str) -> list[str]:
    """Of chains such as `AB`, those that a policy allows."""
    judge = policy(text, NAMES, "policies.0")
    return [chain for chain in chains if judge.obeys(tuple(chain))]


def said(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, NAMES, "study: policies.0")
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
def test_each_operator_means_what_the_paper_says_and_inside_another_is_a_condition_of_its_own(
    text: str, chains: tuple[str, ...], obeying: list[str]
) -> None:
    assert allowed(text, *chains) == obeying


def test_following_binds_most_and_one_of_binds_least() -> None:
    assert parse("A > B & C > D", NAMES, "") == parse("(A > B) & (C > D)", NAMES, "")
    assert parse("A & B | C & D", NAMES, "") == parse("(A & B) | (C & D)", NAMES, "")
    assert parse("A | B > C", NAMES, "") == OperandGroup(
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
    first, shown, caret = said(text).split("\n")
    assert first == f"study: policies.0: {message} (column {column}):"
    assert shown == "  " + text.replace("\n", " ")
    assert caret.index("^") == column + 1


def test_brackets_have_a_bottom() -> None:
    deep = "(" * MAX_BRACKETS + "A > B" + ")" * MAX_BRACKETS
    assert parse(deep, NAMES, "") == parse("A > B", NAMES, "")
    assert f"more than {MAX_BRACKETS} nested brackets" in said(f"({deep})")
    assert "brackets" in said("(" * 100_000)


EXPRESSIONS = st.recursive(
    st.sampled_from(NAMES), lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(">&|"), inner)
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
        judge: Policy = policy(text, NAMES, "")
    except ConfigError as error:
        assert "on both sides of" in str(error)
        return
    for length in range(1, len(NAMES) + 1):
        for order in permutations(NAMES, length):
            assert judge.obeys(order) == obeys_by_definition(text, order), (text, order)


@given(st.text(alphabet="AB()>&| x$\n", max_size=30))
def test_any_text_is_a_policy_or_one_marked_error(text: str) -> None:
    try:
        parse(text, NAMES, "policies.0")
    except ConfigError as error:
        assert str(error).count("\n") == 2
        assert str(error).endswith("^")
