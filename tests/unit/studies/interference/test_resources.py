"""Resources beside the degradation: whether pairs that lose more are those whose packets cost more."""

from itertools import product
from random import Random

import pytest

from resources.libraries.python.studies.interference.analysis.resources import comparisons, relations_of
from resources.libraries.python.studies.interference.analysis.sentences import resources_in_words
from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.interference.model.record import ColocationMeasurement
from tests.unit.studies.interference.measurements import measurement, spec_of

NAMES = "ABCDE"


def rows(seed: int = 1, *, cache: bool = True) -> list[ColocationMeasurement]:
    """More is lost where more cache is missed for each packet; memory goes its own way, and CPU time stays."""
    draw = Random(seed)
    found = [measurement(name, (), 1e5, cpu=1.0, memory_bytes=1000, cache_misses=10**6) for name in NAMES]
    for target, other in product(NAMES, NAMES):
        lost = draw.uniform(0, 0.5)
        misses = int(10**6 * (1 - lost) * (1 + 3 * lost + draw.uniform(0, 0.05)))
        memory = draw.randint(900, 1100)
        found.append(
            measurement(
                target, (other,), 1e5 * (1 - lost), cpu=1.0, memory_bytes=memory, cache_misses=misses if cache else None
            )
        )
    return found


def test_what_goes_with_the_degradation_is_named_and_what_does_not_is_not() -> None:
    found = {each.quantity: each for each in relations_of(rows())}
    assert set(found) == {"CPU time per packet", "cache misses per packet", "memory"}, "CPU time does not change at all"
    close = found["cache misses per packet"]
    assert close.correlation > 0.95 and close.p < 0.05 and close.pairs == 25
    assert found["memory"].p > 0.05
    assert "cache misses per packet" not in {each.quantity for each in relations_of(rows(cache=False))}
    (sentence,) = resources_in_words(analyse(spec_of(*NAMES), [*rows(), *rows()]))
    assert sentence.startswith("degradation in pairs goes with the change of ")
    assert "cache misses per packet (rank correlation " in sentence and sentence.endswith(", not with that of memory")


@pytest.mark.slow
def test_unrelated_resources_are_rarely_related() -> None:
    """All quantities of a study together, with rows and columns of their own."""
    alarms = 0
    for seed in range(200):
        draw = Random(seed)
        row, column = ({name: draw.gauss(0, 0.1) for name in NAMES} for _ in range(2))
        found = []
        for each in rows(seed):
            if each.against:
                memory = int(1000 * (1 + row[each.target] + column[each.against[0]] + draw.gauss(0, 0.02)))
                each = each.model_copy(update={"cpu": None, "cache_misses": None, "memory_bytes": max(1, memory)})  # noqa: PLW2901
            found.append(each)
        alarms += any(each.p < 0.05 for each in relations_of(found))
    assert alarms / 200 < 0.09


def test_three_network_functions_have_too_few_permutations_for_any_claim() -> None:
    few = [each for each in rows() if {each.target, *each.against} <= set("ABC")]
    assert all(each.p > 0.05 for each in relations_of(few))


def test_a_quantity_is_compared_with_the_baseline_of_its_target_where_both_were_counted() -> None:
    found = comparisons(
        [
            measurement("A", (), 100.0),
            measurement("A", (), 120.0),
            measurement("A", ("B",), 55.0),
            measurement("B", ("A",), 9.0),
        ],
        lambda each: each.throughput_pps,
    )
    assert list(found) == [("A", ("B",))]
    assert (found["A", ("B",)].alone, found["A", ("B",)].beside) == (110, 55)
    assert found["A", ("B",)].change == -0.5
