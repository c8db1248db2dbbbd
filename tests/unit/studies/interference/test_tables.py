"""Tables of a study, and which resources go with its degradation."""

from itertools import product
from random import Random

import pytest

from resources.libraries.python.studies.interference.analysis.resources import comparisons, relations_of
from resources.libraries.python.studies.interference.analysis.sentences import resources_in_words
from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.interference.analysis.tables import COMPARISON, MATRIX, MEANS, MEASUREMENTS
from resources.libraries.python.studies.interference.model.record import ColocationMeasurement, Interference
from tests.unit.studies.interference.measurements import measured, measurement, spec_of, tables


def study() -> Interference:
    rows = [
        measurement("B", (), 50.0, turn=3),
        measurement("A", (), 100.0, turn=0, response_s=0.001, cpu=0.5, memory_bytes=7, loss_ratio=0.25),
        measurement("A", ("B",), 60.0, turn=2),
        measurement("A", (), 100.0, turn=1),
        measurement("A", ("B",), 90.0, turn=4, guaranteed=True),
    ]
    return analyse(spec_of("A", "B", "C"), rows)


def test_measurements_are_in_their_order_and_what_is_unknown_is_empty() -> None:
    head, *rows = tables(study())["interference_measurements"]
    assert head == MEASUREMENTS
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0] == (0, 0, "A", "", False, "512B", 1e5, 100.0, 0.25, 1000.0, 0.5, 7, None, None)


def test_the_matrix_is_there_with_and_without_a_guarantee() -> None:
    head, *rows = tables(study())["interference_matrix"]
    assert head == MATRIX
    found = [dict(zip(MATRIX, row, strict=True)) for row in rows]
    assert [(row["guaranteed"], row["normalized"], row["degradation"]) for row in found] == [
        (False, 0.6, 0.4), (True, 0.9, 1 - 0.9),
    ]  # fmt: skip
    assert found[0]["low"] is None


def test_neighbours_are_joined_in_one_column() -> None:
    rows = [measurement("A", (), 100.0), measurement("A", ("B", "C"), 40.0)]
    found = tables(analyse(spec_of("A", "B", "C", together=3), rows))
    assert found["interference_matrix"][1][:4] == ("A", "B+C", False, 0.4)
    assert {row[3] for row in found["interference_measurements"][1:]} == {"", "B+C"}


def test_means_name_all_network_functions_also_those_that_were_not_measured() -> None:
    head, *rows = tables(study())["interference_means"]
    assert head == MEANS
    means = [dict(zip(MEANS, row, strict=True)) for row in rows]
    assert [(each["network_function"], each["sensitivity"], each["aggressiveness"]) for each in means] == [
        ("A", 0.4, None), ("B", None, 0.4), ("C", None, None),
    ]  # fmt: skip


def test_the_means_have_intervals_and_ranks() -> None:
    rows = measured({"A": 1e5, "B": 1e5}, {("A", ("B",)): 0.5, ("B", ("A",)): 0.8}, noise=0.01)
    _, *lines = tables(analyse(spec_of("A", "B"), rows))["interference_means"]
    (first, second) = (dict(zip(MEANS, row, strict=True)) for row in lines)
    assert first["sensitivity_low"] < first["sensitivity"] < first["sensitivity_high"]
    assert (first["sensitivity_first_rank"], first["sensitivity_last_rank"]) == (1, 1), "it loses most"
    assert (second["sensitivity_first_rank"], second["aggressiveness_first_rank"]) == (2, 1)


def test_each_set_is_compared_with_the_baselines_in_absolute_numbers() -> None:
    rows = [
        measurement("A", (), 100.0, response_s=1e-3, loss_ratio=0.1, cpu=0.5, cache_misses=1000),
        measurement("A", ("B",), 50.0, response_s=3e-3, loss_ratio=0.5, cpu=0.5, cache_misses=1500),
        measurement("A", ("B",), 80.0, guaranteed=True, guaranteed_resource="cpu"),
    ]
    head, free, cpu = tables(analyse(spec_of("A", "B"), rows))["interference_comparison"]
    assert head == COMPARISON
    found = dict(zip(COMPARISON, free, strict=True))
    assert (found["throughput_pps_alone"], found["throughput_pps_beside"]) == (100.0, 50.0)
    assert (found["response_us_alone"], found["response_us_beside"]) == (1000.0, 3000.0)
    assert (found["loss_ratio_alone"], found["loss_ratio_beside"]) == (0.1, 0.5)
    assert found["cpu_time_per_packet_beside"] / found["cpu_time_per_packet_alone"] == 2
    assert found["cache_misses_per_packet_beside"] / found["cache_misses_per_packet_alone"] == 3
    assert found["memory_alone"] is None
    assert cpu[:5] == ("A", "B", "cpu", 100.0, 80.0)


def test_other_records_have_no_such_tables() -> None:
    assert tables(None) == {}
    assert set(tables(analyse(spec_of("A"), []))) == {"interference_means"}


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
