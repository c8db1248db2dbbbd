"""Tables of a study have a line for each measurement, each cell of the matrix and each network function."""

from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.interference.analysis.tables import (
    MATRIX,
    MEANS,
    MEASUREMENTS,
)
from resources.libraries.python.studies.interference.model.record import Interference
from tests.unit.studies.interference.measurements import measurement, spec_of, tables


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
    assert rows[0] == (0, 0, "A", "", False, "512B", 1e5, 100.0, 0.25, 1000.0, 0.5, 7, None)


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
    assert [(row[0], row[4], row[5]) for row in rows] == [("A", 0.6, None), ("B", None, 0.6), ("C", None, None)]


def test_other_records_have_no_such_tables() -> None:
    assert tables(None) == {}
    assert set(tables(analyse(spec_of("A"), []))) == {"interference_means"}
