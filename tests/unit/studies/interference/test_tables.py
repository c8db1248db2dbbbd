"""Tables of a study have a line for each measurement, each cell of the matrix and each network function."""

from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.interference.analysis.tables import COMPARISON, MATRIX, MEANS, MEASUREMENTS
from resources.libraries.python.studies.interference.model.record import Interference
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
