"""Bisection under noise: places of changes, on histories that are not the model."""

from collections.abc import Sequence

import pytest

from csit_utils.analysis.bisection import Beliefs, BisectionAnswer, BisectionQuestion, Culprit, look


def run(
    levels: Sequence[float], question: BisectionQuestion, skipped: frozenset[int] = frozenset()
) -> tuple[Beliefs, list[int]]:
    """Measure a history without chance; what is found, and the revisions in the order of measurement."""
    values: dict[int, list[float]] = {}
    order: list[int] = []
    while (found := look(values, skipped, question)).next is not None:
        seen = values.setdefault(found.next, [])
        seen.append(levels[found.next] + (-0.001 if len(seen) % 2 else 0.001))
        order.append(found.next)
    return found, order


def places(found: Beliefs) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in found.culprits]


def test_a_change_is_found_with_a_few_observations_of_a_few_revisions() -> None:
    found, order = run([0.0] * 37 + [-0.05] * 27, BisectionQuestion(64))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(37, 37)])
    assert found.probability >= 0.99
    assert len(order) < 24
    assert order[:2] == [0, 63]


def test_levels_have_intervals_around_the_truth() -> None:
    found, _ = run([0.0] * 3 + [-0.05] * 5, BisectionQuestion(8))
    for number, level in found.levels.items():
        assert level.mean == pytest.approx(0.0 if number < 3 else -0.05, abs=0.01)
        assert 0 <= level.stdev < 0.01


@pytest.mark.parametrize("middle", [-0.05, -0.15, 0.06], ids=["between", "below both", "above both"])
def test_two_changes_are_two_culprits(middle: float) -> None:
    found, _ = run([0.0] * 10 + [middle] * 8 + [-0.1] * 14, BisectionQuestion(32))
    assert (found.answer, places(found)) == (BisectionAnswer.TWO_CULPRITS, [(10, 10), (18, 18)])


def test_no_difference_between_good_and_bad_is_not_in_these_revisions() -> None:
    found, order = run([0.0] * 16, BisectionQuestion(16))
    assert found.answer is BisectionAnswer.NOT_HERE
    assert set(order) == {0, 15}


def test_revisions_that_cannot_be_measured_are_named_with_the_culprit() -> None:
    found, order = run([0.0] * 6 + [-0.1] * 10, BisectionQuestion(16), skipped=frozenset({5, 6, 7}))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(5, 8)])
    assert not {5, 6, 7} & set(order)


def test_two_revisions_need_no_search() -> None:
    found, _ = run([0.0, -0.1], BisectionQuestion(2))
    assert found.culprits == (Culprit(1, 1, pytest.approx(1.0, abs=0.01)),)


def test_it_ends_undecided_with_the_most_probable_place() -> None:
    found, order = run([0.0] * 20 + [-0.05] * 12, BisectionQuestion(32, most=5))
    assert (found.answer, len(order)) == (BisectionAnswer.UNDECIDED, 5)
    assert found.culprits[0].first <= 20 <= found.culprits[0].last


def test_a_change_below_the_least_change_is_ignored() -> None:
    found, _ = run([0.0] * 8 + [-0.004] * 8, BisectionQuestion(16, change=0.03))
    assert found.answer is BisectionAnswer.NOT_HERE
