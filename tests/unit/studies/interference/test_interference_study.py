"""A study of interference from its measurements to its advice and its sentences."""

from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.analysis.sentences import matrix_in_words
from resources.libraries.python.studies.interference.analysis.study import advised, analyse
from resources.libraries.python.studies.interference.model.record import ColocationMeasurement, Interference
from tests.unit.studies.interference.measurements import Company, every_pair, measured, measurement, spec_of

ALONE = {"gateway": 90e3, "monitor": 60e3, "proxy": 30e3}
TRUTH = {
    ("gateway", "gateway"): 0.85, ("gateway", "monitor"): 0.9, ("gateway", "proxy"): 0.82,
    ("monitor", "gateway"): 0.6, ("monitor", "monitor"): 0.5, ("monitor", "proxy"): 0.4,
    ("proxy", "gateway"): 0.7, ("proxy", "monitor"): 0.65, ("proxy", "proxy"): 0.6,
}  # fmt: skip


def measurements(share_of_network: float | None = None, noise: float = 0.02) -> list[ColocationMeasurement]:
    plain: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in TRUTH.items()}
    found = measured(ALONE, plain, 10, noise)
    if share_of_network is not None:
        better: dict[Company, float] = {
            (one, (other,)): mean + share_of_network * (1 - mean) for (one, other), mean in TRUTH.items()
        }
        found += measured(ALONE, better, 10, noise, 2, guaranteed=True)
    return found


def study(*, share_of_network: float | None = None, noise: float = 0.02) -> Interference:
    return analyse(spec_of(*ALONE), measurements(share_of_network, noise))


def test_the_truth_is_inside_the_intervals_and_close_to_the_means() -> None:
    found = study()
    assert len(found.matrix) == 9
    for row in found.matrix:
        assert row.mean == pytest.approx(TRUTH[row.target, row.against[0]], abs=0.02)
        assert row.low < row.mean < row.high
        assert row.high - row.low < 0.06


def test_the_share_of_the_network_is_over_the_baseline_without_a_limit_for_each_number_together() -> None:
    rows = [
        measurement("A", (), 100.0), measurement("A", (), 60.0, guaranteed=True, limit_pps=60.0),
        measurement("A", ("B",), 50.0), measurement("A", ("B",), 60.0, guaranteed=True, limit_pps=200.0),
        measurement("A", ("B", "B"), 20.0), measurement("A", ("B", "B"), 84.0, guaranteed=True, limit_pps=150.0),
    ]  # fmt: skip
    found = analyse(spec_of("A", "B", together=3), 2 * rows)
    assert [row.mean for row in found.guaranteed] == pytest.approx([0.6, 0.84])
    assert found.network_shares == pytest.approx({2: 0.2, 3: 0.8})
    lines = matrix_in_words(found)
    assert "20.0 % (20.0 to 20.0 %) of the degradation of pairs comes from network I/O" in lines
    assert "80.0 % (80.0 to 80.0 %) of the degradation of 3 co-located NFs comes from network I/O" in lines


def test_a_function_guaranteed_less_than_it_carries_alone_is_left_out_of_the_share_with_the_numbers() -> None:
    rows = [measurement(name, (), pps) for name, pps in (("A", 100.0), ("B", 40.0))]
    for guaranteed, a, b in ((False, 70.0, 20.0), (True, 50.0, 30.0)):
        limit: dict[str, Any] = {"guaranteed": guaranteed, "limit_pps": 50.0 if guaranteed else None}
        rows += [measurement("A", ("B",), a, **limit), measurement("B", ("A",), b, **limit)]
    found = analyse(spec_of("A", "B"), 2 * rows)
    assert found.network_share == pytest.approx(0.5), "of B, which has all that it needs"
    assert found.notes[0] == (
        "A is excluded from the share of network I/O of 2 co-located NFs: it has 100 pps alone, and each is "
        "guaranteed 50.0 pps"
    )


def test_a_function_that_uses_more_cpu_alone_than_it_is_guaranteed_is_left_out_of_the_share_of_cpu() -> None:
    rows = [measurement(name, (), 100.0, cpu=cpus) for name, cpus in (("A", 1.0), ("B", 0.4))]
    for guaranteed, a, b in ((False, 60.0, 50.0), (True, 50.0, 75.0)):
        more: dict[str, Any] = {"guaranteed": guaranteed, "limit_cpus": 0.5 if guaranteed else None}
        more |= {"guaranteed_resource": "cpu"} if guaranteed else {}
        rows += [measurement("A", ("B",), a, **more), measurement("B", ("A",), b, **more)]
    found = analyse(spec_of("A", "B"), 2 * rows)
    assert [row.mean for row in found.guaranteed_cpu] == [0.5, 0.75]
    assert "50.0 % (50.0 to 50.0 %) of the degradation of pairs comes from competition for CPU time" in matrix_in_words(
        found
    )
    assert found.notes[0] == (
        "A is excluded from the share of CPU of 2 co-located NFs: it uses 1.00 CPUs alone, and each is guaranteed 0.50"
    )


def test_one_more_is_placed_beside_those_that_are_there() -> None:
    found = advised(study(noise=0.0), [("gateway",), ("proxy",)])
    assert found.advice[0].best.servers == (("gateway", "monitor"), ("proxy",))
    again = advised(found, [("gateway",), ("gateway",)], ["gateway"])
    assert again.advice[0].best.capacity == pytest.approx(1 + 2 * 0.85)


@pytest.mark.parametrize(
    ("servers", "more", "message"),
    [
        ([("gatway",)], (), "gatway: not a network function of this study; choose from gateway, monitor, proxy"),
        ([("gateway", "monitor"), ("proxy",)], (), "all network functions of the study are on servers"),
        ([], (), "no server for gateway, monitor, proxy"),
    ],
)
def test_invalid_servers_are_reported(servers: list[tuple[str, ...]], more: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        advised(study(), servers, more)


def test_a_pair_that_failed_leaves_the_matrix_and_says_why_there_is_no_advice() -> None:
    kept = [each for each in measurements() if (each.target, each.against) != ("proxy", ("monitor",))]
    found = analyse(spec_of(*ALONE), kept, ["proxy beside monitor was not measured: no traffic"])
    assert len(found.matrix) == 8
    assert not found.advice
    assert found.notes[0] == "proxy beside monitor was not measured: no traffic"
    assert found.notes[1].startswith("no placement is advised: proxy was not measured beside monitor")


def test_nothing_measured_is_an_empty_study() -> None:
    found = analyse(spec_of("gateway"), [])
    assert (found.matrix, found.advice, found.network_share, matrix_in_words(found)) == ((), (), None, ())


def test_rows_are_in_the_order_of_the_specification_however_they_were_measured() -> None:
    found = analyse(spec_of(*ALONE), measurements()[::-1])
    assert [(row.target, row.against[0]) for row in found.matrix] == list(TRUTH)


def test_three_together_are_compared_with_the_prediction_from_pairs() -> None:
    pairs = every_pair("ABC", 4)
    beside: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in pairs.items()}
    beside["A", ("B", "C")] = 1 / (1 / pairs["A", "B"] + 1 / pairs["A", "C"] - 1) + 0.05
    found = analyse(spec_of(*"ABC", together=3), measured(dict.fromkeys("ABC", 1e4), beside))
    assert found.advice[0].prediction_error == pytest.approx(0.05)
