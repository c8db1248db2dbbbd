"""A study of interference from its measurements to its tables, its advice, its sentences, and related resources."""

from itertools import product
from random import Random
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.analysis.resources import relations_of
from resources.libraries.python.studies.interference.analysis.sentences import matrix_in_words, resources_in_words
from resources.libraries.python.studies.interference.analysis.study import advised, analyse
from resources.libraries.python.studies.interference.analysis.tables import COMPARISON, MATRIX, MEANS, MEASUREMENTS
from resources.libraries.python.studies.interference.model import ColocationMeasurement, Interference
from tests.unit.studies.interference.measurements import (
    Company,
    every_pair,
    measured,
    measurement,
    network_shares,
    spec_of,
    tables,
)

ALONE = {"gateway": 90e3, "monitor": 60e3, "proxy": 30e3}
TRUTH = {
    ("gateway", "gateway"): 0.85, ("gateway", "monitor"): 0.9, ("gateway", "proxy"): 0.82,
    ("monitor", "gateway"): 0.6, ("monitor", "monitor"): 0.5, ("monitor", "proxy"): 0.4,
    ("proxy", "gateway"): 0.7, ("proxy", "monitor"): 0.65, ("proxy", "proxy"): 0.6,
}  # fmt: skip


LACKING = ("proxy", "monitor")


def measurements() -> list[ColocationMeasurement]:
    return measured(ALONE, {(one, (other,)): mean for (one, other), mean in TRUTH.items()}, 2)


def study() -> Interference:
    return analyse(spec_of(*ALONE), measurements())


def test_the_share_of_the_network_is_over_the_baseline_without_a_limit_for_each_number_together() -> None:
    rows = [
        measurement("A", (), 100.0), measurement("A", (), 60.0, guaranteed=True, limit_pps=60.0),
        measurement("A", ("B",), 50.0), measurement("A", ("B",), 60.0, guaranteed=True, limit_pps=200.0),
        measurement("A", ("B", "B"), 20.0), measurement("A", ("B", "B"), 84.0, guaranteed=True, limit_pps=150.0),
    ]  # fmt: skip
    found = analyse(spec_of("A", "B", together=3), 2 * rows)
    assert [row.mean for row in found.guaranteed] == pytest.approx([0.6, 0.84])
    assert network_shares(found) == pytest.approx({2: 0.2, 3: 0.8})


def test_a_function_guaranteed_less_than_it_has_alone_is_left_out_of_the_share_with_the_numbers() -> None:
    """Half of the degradation of B, which has all that it needs, comes from the resource."""
    for limit, resource, numbers in (
        ({"limit_pps": 50.0}, "network", ("100 pps", "50.0 pps")),
        ({"limit_cpus": 0.5}, "cpu", ("1.00 CPUs", "0.50")),
    ):
        rows = [measurement("A", (), 100.0, cpu=1.0), measurement("B", (), 40.0, cpu=0.4)]
        rows += [measurement("A", ("B",), 60.0), measurement("B", ("A",), 20.0)]
        more: dict[str, Any] = {"guaranteed": True, "guaranteed_resource": resource, **limit}
        rows += [measurement("A", ("B",), 50.0, **more), measurement("B", ("A",), 30.0, **more)]
        found = analyse(spec_of("A", "B"), 2 * rows)
        shares = [each.share.value for each in found.findings.shares if each.resource == resource and not each.target]
        assert shares == [pytest.approx(0.5)]
        assert found.notes[0].startswith("A is excluded") and all(number in found.notes[0] for number in numbers)


def test_one_more_is_placed_beside_those_there_and_three_are_compared_with_their_prediction() -> None:
    found = advised(study(), [("gateway",), ("proxy",)])
    assert found.advice[0].best.servers == (("gateway", "monitor"), ("proxy",))
    again = advised(found, [("gateway",), ("gateway",)], ["gateway"])
    assert again.advice[0].best.capacity == pytest.approx(1 + 2 * 0.85)
    pairs = every_pair("ABC", 4)
    beside: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in pairs.items()}
    beside["A", ("B", "C")] = 1 / (1 / pairs["A", "B"] + 1 / pairs["A", "C"] - 1) + 0.05
    found = analyse(spec_of(*"ABC", together=3), measured(dict.fromkeys("ABC", 1e4), beside))
    assert found.advice[0].prediction_error == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([("gatway",)], "gatway: .* choose from gateway, monitor, proxy"),
        ([("gateway", "monitor"), ("proxy",)], "all network functions"),
        ([], "no server for gateway, monitor, proxy"),
    ],
)
def test_invalid_servers_are_reported(servers: list[tuple[str, ...]], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        advised(study(), servers)


def test_what_was_not_measured_leaves_the_matrix_and_says_why_there_is_no_advice() -> None:
    kept = [each for each in measurements() if (each.target, *each.against) != LACKING]
    found = analyse(spec_of(*ALONE), kept[::-1], ["proxy beside monitor was not measured: no traffic"])
    assert [(row.target, row.against[0]) for row in found.matrix] == [pair for pair in TRUTH if pair != LACKING]
    assert not found.advice
    assert found.notes[0] == "proxy beside monitor was not measured: no traffic"
    assert found.notes[1].startswith("no placement is advised: proxy was not measured beside monitor")
    found = analyse(spec_of("gateway"), [])
    assert (found.matrix, found.advice, found.findings, matrix_in_words(found)) == ((), (), None, ())
    assert tables(None) == {}
    assert set(tables(analyse(spec_of("A"), []))) == {"interference_means"}


def five() -> Interference:
    rows = [
        measurement("B", (), 50.0, turn=3),
        measurement("A", (), 100.0, turn=0, response_s=0.001, cpu=0.5, memory_bytes=7, loss_ratio=0.25),
        measurement("A", ("B",), 60.0, turn=2),
        measurement("A", (), 100.0, turn=1),
        measurement("A", ("B",), 90.0, turn=4, guaranteed=True),
    ]
    return analyse(spec_of("A", "B", "C"), rows)


def read(found: Interference, name: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    head, *rows = tables(found)[f"interference_{name}"]
    assert head == columns
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_measurements_are_in_their_order_and_means_also_of_what_was_not_measured() -> None:
    rows = [tuple(row.values()) for row in read(five(), "measurements", MEASUREMENTS)]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0] == (0, 0, "A", "", False, "512B", 1e5, 100.0, 0.25, 1000.0, 0.5, 7, None, None)
    means = read(five(), "means", MEANS)
    assert [(each["network_function"], each["sensitivity"], each["aggressiveness"]) for each in means] == [
        ("A", 0.4, None), ("B", None, 0.4), ("C", None, None),
    ]  # fmt: skip
    noisy = measured({"A": 1e5, "B": 1e5}, {("A", ("B",)): 0.5, ("B", ("A",)): 0.8}, noise=0.01)
    first, second = read(analyse(spec_of("A", "B"), noisy), "means", MEANS)
    assert first["sensitivity_low"] < first["sensitivity"] < first["sensitivity_high"]
    assert (first["sensitivity_first_rank"], first["sensitivity_last_rank"]) == (1, 1), "it loses most"
    assert (second["sensitivity_first_rank"], second["aggressiveness_first_rank"]) == (2, 1)


def test_the_matrix_is_there_with_and_without_a_guarantee_and_joins_neighbours_in_one_column() -> None:
    found = read(five(), "matrix", MATRIX)
    assert [(row["guaranteed"], row["normalized"], row["degradation"], row["low"]) for row in found] == [
        (False, 0.6, 0.4, None), (True, 0.9, 1 - 0.9, None),
    ]  # fmt: skip
    rows = [measurement("A", (), 100.0), measurement("A", ("B", "C"), 40.0)]
    (row,) = read(analyse(spec_of("A", "B", "C", together=3), rows), "matrix", MATRIX)
    assert tuple(row.values())[:4] == ("A", "B+C", False, 0.4)


def test_each_set_is_compared_with_the_baselines_in_absolute_numbers() -> None:
    rows = [
        measurement("A", (), 100.0, response_s=1e-3, loss_ratio=0.1, cpu=0.5, cache_misses=1000),
        measurement("A", ("B",), 50.0, response_s=3e-3, loss_ratio=0.5, cpu=0.5, cache_misses=1500),
        measurement("A", ("B",), 80.0, guaranteed=True, guaranteed_resource="cpu"),
    ]
    found, cpu = read(analyse(spec_of("A", "B"), rows), "comparison", COMPARISON)
    assert (found["throughput_pps_alone"], found["throughput_pps_beside"]) == (100.0, 50.0)
    assert (found["response_us_alone"], found["response_us_beside"]) == (1000.0, 3000.0)
    assert (found["loss_ratio_alone"], found["loss_ratio_beside"]) == (0.1, 0.5)
    assert found["cpu_time_per_packet_beside"] / found["cpu_time_per_packet_alone"] == 2
    assert found["cache_misses_per_packet_beside"] / found["cache_misses_per_packet_alone"] == 3
    assert found["memory_alone"] is None
    assert tuple(cpu.values())[:5] == ("A", "B", "cpu", 100.0, 80.0)


NAMES = "ABCDE"


def rows(seed: int = 1, *, cache: bool = True) -> list[ColocationMeasurement]:
    """More is lost where more cache is missed for each packet; memory goes its own way, and CPU time stays."""
    draw = Random(seed)
    found = [measurement(name, (), 1e5, cpu=1.0, memory_bytes=1000, cache_misses=10**6) for name in NAMES]
    for target, other in product(NAMES, NAMES):
        lost = draw.uniform(0, 0.5)
        misses = int(10**6 * (1 - lost) * (1 + 3 * lost + draw.uniform(0, 0.05)))
        more = {"cpu": 1.0, "memory_bytes": draw.randint(900, 1100), "cache_misses": misses if cache else None}
        found.append(measurement(target, (other,), 1e5 * (1 - lost), **more))
    return found


def test_what_goes_with_the_degradation_is_named_where_there_are_permutations_enough() -> None:
    found = {each.quantity: each for each in relations_of(rows())}
    assert set(found) == {"CPU time per packet", "cache misses per packet", "memory"}, "CPU time does not change at all"
    close = found["cache misses per packet"]
    assert close.correlation > 0.95 and close.p < 0.05 and close.pairs == 25
    assert found["memory"].p > 0.05
    assert "cache misses per packet" not in {each.quantity for each in relations_of(rows(cache=False))}
    (sentence,) = resources_in_words(analyse(spec_of(*NAMES), [*rows(), *rows()]))
    assert sentence.startswith("degradation in pairs goes with the change of ")
    assert "cache misses per packet (rank correlation " in sentence and sentence.endswith(", not with that of memory")
    few = [each for each in rows() if {each.target, *each.against} <= set("ABC")]
    assert all(each.p > 0.05 for each in relations_of(few))


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
