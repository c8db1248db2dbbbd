"""NFVbench's JSON: a test for each frame size, with the drop rates of its own run."""

from typing import Any

import pytest

from csit_utils.analysis.comparisons.comparability import likeness
from csit_utils.analysis.grouping import bounds, series_of
from csit_utils.dataset.goal_words import read_goal
from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import EITHER, EVERY_INSTANCE, MRR, NDR, PDR
from tests.unit.csit_utils.foreign_files import at_load, fixed, nfvbench, not_reached, packed, searched, trials

CHAIN = ["benchmarks", "network", "service_chain", "PVVP", "result"]
SOURCE = "results/PVVP-3-10000-64.json"


def items_of(data: object) -> list[ImportedTest]:
    items = [*read_foreign(packed(data), SOURCE)]
    found = [item for item in items if isinstance(item, ImportedTest)]
    assert found == items
    return found


def one(data: object) -> ImportedTest:
    (item,) = items_of(data)
    return item


def problem(data: object) -> str:
    (item,) = read_foreign(packed(data), SOURCE)
    assert isinstance(item, Problem), item
    assert item.text.startswith(f"{SOURCE}: ")
    return item.text


def test_loads_are_aggregates_with_the_lowest_load_that_was_too_much_above_them() -> None:
    row = one(nfvbench({"64": searched()})).row
    assert bounds(row, NDR) == (2_976_190, 3_000_000, True)
    assert bounds(row, PDR) == (3_720_238, 3_740_000, True)
    assert (row.ndr_loss_ratio, row.pdr_loss_ratio) == (1e-5, 0.001)
    assert row.ndr_l1_bps == pytest.approx(2_976_190 * 84 * 8)
    assert row.goals == ("NDR loss <= 0.001% exceed 0% trials 60..60 s; PDR loss <= 0.1% exceed 0% trials 60..60 s")
    assert (row.origin, row.revision, row.version) == ("nfvbench", "NFVbench 5.1.3", "OVS-DPDK")


def test_goals_are_those_of_the_run_and_not_the_usual_ones() -> None:
    asked = {"NDR": 0, "PDR": 0.0125, "load_epsilon": 1}
    row = one(nfvbench({"64": searched()}, measurement=asked, duration_sec=5.0)).row
    for name, ratio in (("NDR", 0.0), ("PDR", 0.000125)):
        goal = read_goal(row.goals or "", name)
        assert (goal.loss_ratio, goal.trial_s) == (ratio, 5.0)
    assert row.pdr_loss_ratio == 0.000125


def test_bounds_farther_apart_than_asked_for_and_line_rate() -> None:
    """A search that ended early says so, and line rate has nothing above it."""
    told = searched() | {"iteration_stats": trials((2_976_190, 0.0), (5_000_000, 3.0))}
    assert bounds(one(nfvbench({"64": told})).row, NDR) == (2_976_190, 5_000_000, False)
    told = {"ndr": at_load(29_761_904, 200.0, 0.0), "iteration_stats": trials((29_761_904, 0.0))}
    assert bounds(one(nfvbench({"64": told})).row, NDR) == (29_761_904, None, True)


@pytest.mark.parametrize("warning", [0, False, "", None])
def test_no_load_low_enough_is_below_the_lowest_that_was_tried(warning: object) -> None:
    item = one(nfvbench({"64": not_reached(warning)}))
    assert item.row.ndr_lower_pps is None
    assert bounds(item.row, NDR) == (None, 29_000, False)
    assert item.latency == ()
    assert item.row.evidence == (
        "NDR was not reached: more than 0.001 % was dropped at each load, also at the lowest load tried, 29,000 pps"
    )


def test_more_received_than_sent_is_a_remark_and_costs_no_figure() -> None:
    found, at_fixed = searched(), fixed(200.0)
    found["ndr"]["stats"]["overall"]["drop_percentage"] = -0.0001
    at_fixed["stats"]["overall"]["drop_rate_percent"] = -0.25
    row, other = one(nfvbench({"64": found})).row, one(nfvbench({"64": at_fixed})).row
    assert (row.ndr_lower_pps, other.mrr_pps is not None) == (2_976_190, True)
    assert row.evidence.startswith("at NDR, 0.0001 % more received than sent")
    assert other.evidence.startswith("at the fixed load, 0.25 % more received than sent")


@pytest.mark.parametrize("value", [-1, "n/a", float("nan")])
def test_latencies_that_were_not_measured_are_unknown_without_a_remark(value: object) -> None:
    told = searched()
    told["ndr"]["stats"]["overall"] |= {"min_delay_usec": value, "avg_delay_usec": value, "hdrh": None}
    item = one(nfvbench({"64": told}))
    assert (item.latency[0].min_ns, item.latency[0].mean_ns, item.latency[0].max_ns) == (None, None, 80_000)
    assert not item.row.evidence


@pytest.mark.parametrize(("chain", "nodes"), [("PVP", 1), ("PVVP", 2), ("pvp", 1)])
def test_chains_of_vms_are_services(chain: str, nodes: int) -> None:
    row = one(nfvbench({"64": searched()}, chain, 3)).row
    assert (row.service_type, row.nf_chains, row.nf_nodes) == ("VSC", 3, nodes)
    assert (row.nf_size, row.vs_dtc, row.data_cores) == (None, None, None)
    series = series_of(row)
    assert series.name == "VSC · NF of unknown size · vSwitch of unknown size"
    assert series.system.name == "nova:compute-4 (lab, nfvbench)"


def test_an_external_chain_has_no_place() -> None:
    row = one(nfvbench({"64": searched()}, "EXT")).row
    assert (series_of(row), row.ndr_lower_pps) == (None, 2_976_190)


def test_each_frame_size_is_a_test_and_imix_is_its_own() -> None:
    rows = [item.row for item in items_of(nfvbench({"64": searched(), "IMIX": searched(), "warning": "sent less"}))]
    assert [row.frame for row in rows] == ["64B", "IMIX (7x64, 4x594, 1x1518)"]
    assert [row.test_name for row in rows] == ["64B-3xPVVP", "IMIX-3xPVVP"]
    assert rows[1].frame_mean_bytes == pytest.approx((7 * 64 + 4 * 594 + 1518) / 12)
    assert len({row.anchor for row in rows}) == 2


def test_latency_at_the_loads_is_of_all_chains_and_both_directions() -> None:
    ndr, pdr = one(nfvbench({"64": searched()})).latency
    assert (ndr.load, ndr.load_pps, pdr.load, pdr.load_pps) == ("NDR", 2_976_190, "PDR", 3_720_238)
    assert (ndr.instance, ndr.direction) == (EVERY_INSTANCE, EITHER)
    assert (ndr.min_ns, ndr.mean_ns, ndr.max_ns) == (10_000, 25_500, 80_000)
    assert ndr.p99_ns == pytest.approx(80_000, rel=1e-3)
    assert ndr.received == 4


def test_a_load_that_was_not_sent_is_reported() -> None:
    """NFVbench gives the load it asked for, whatever its generator sent."""
    told = searched()
    told["ndr"]["stats"] |= {"warning": "WARNING: significant difference", "total_tx_rate": 2_000_000}
    row = one(nfvbench({"64": told})).row
    assert row.evidence == "NDR is the intended load; the generator sent less than 90 % of it, 2,000,000 pps"
    assert row.ndr_lower_pps == 2_976_190


def test_a_fixed_load_at_line_rate_is_mrr() -> None:
    item = one(nfvbench({"64": fixed(200.0)}))
    row = item.row
    assert (row.test_type, row.mrr_trials, row.goals) == ("MRR", 1, "MRR 1 x 60 s")
    assert (row.mrr_pps, row.mrr_offered_pps) == pytest.approx((200 * 0.4 * 148_809, 200 * 0.99 * 148_809))
    ways = [(each.instance, each.direction) for each in item.latency]
    assert ways == [(1, "forward"), (2, "forward"), (1, "reverse"), (2, "reverse")]


def test_a_lower_fixed_load_is_mrr_at_that_load_and_not_like_one_at_line_rate() -> None:
    row, line = one(nfvbench({"64": fixed(20.0)})).row, one(nfvbench({"64": fixed(200.0)})).row
    assert (row.test_type, row.mrr_pps) == ("MRR", pytest.approx(1_190_472))
    load_pps = read_goal(row.goals or "", "MRR").load_pps
    assert load_pps == pytest.approx(20 * 148_809, abs=1)
    (difference,) = likeness(row, line, MRR).differences
    assert f"{load_pps:,.0f} pps" in difference


def test_the_dummy_generator_is_a_simulation_and_one_direction_is_reported() -> None:
    usual, data = one(nfvbench({"64": searched()})).row, nfvbench({"64": searched()}, generator="dummy")
    data["benchmarks"]["network"]["service_chain"]["PVVP"]["result"]["bidirectional"] = False
    row = one(data).row
    assert (row.simulated, usual.simulated) == (True, False)
    assert row.goals == f"{usual.goals}; traffic in one direction only"


def test_the_answer_of_its_server_is_read_too() -> None:
    data = nfvbench({"64": searched()})
    assert one({"status": "OK", "result": data}).row == one(data).row


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["benchmarks", "network", "service_chain"], {}, "has no result"),
        (["benchmarks", "network"], [], "benchmarks.network: expected an object, found a list"),
        (["config"], "x" * 1000, "config: expected an object, found xxx"),
        ([*CHAIN, "result", "64"], "fast", "PVVP 64: the result: expected an object, found fast"),
        ([*CHAIN, "result", "64", "ndr", "stats"], None, "ndr.stats: expected an object, found None"),
        ([*CHAIN, "result", "64", "iteration_stats", "ndr_pdr"], 5, "iteration_stats.ndr_pdr: expected a list"),
    ],
)
def test_a_file_of_another_structure_is_one_problem(path: list[str], value: Any, said: str) -> None:
    assert said in problem(changed(path, value))


def changed(path: list[str], value: Any) -> dict[str, Any]:
    data = nfvbench({"64": searched(), "128": searched()})
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


OF_NDR = [*CHAIN, "result", "64", "ndr"]


@pytest.mark.parametrize(
    ("path", "value", "remark", "unknown"),
    [
        (["date"], "soon", "invalid and left out: the time 'soon'", "started_at"),
        (["date"], 7, "invalid and left out: date (7)", "started_at"),
        (["config", "measurement", "NDR"], "1", "NDR is left out: its intended drop rate is unknown", "ndr_lower_pps"),
        (["config", "measurement", "PDR"], 100.0, "PDR is left out: its intended drop rate of 100 %", "pdr_lower_pps"),
        (["config", "measurement"], None, "NDR is left out: its intended drop rate is unknown", "ndr_lower_pps"),
        (["config", "duration_sec"], float("nan"), "invalid and left out: config.duration_sec (nan)", None),
        ([*CHAIN, "compute_nodes"], None, "result.compute_nodes (None)", None),
        ([*CHAIN, "result", "64", "iteration_stats"], None, "invalid and left out: iteration_stats (None)", None),
        ([*CHAIN, "service_chain_count"], 0, "result.service_chain_count (0)", "nf_chains"),
        ([*OF_NDR, "rate_pps"], 10**400, "invalid and left out: ndr.rate_pps (1", "ndr_lower_pps"),
        ([*OF_NDR, "rate_pps"], -5, "invalid and left out: ndr.rate_pps (-5)", "ndr_lower_pps"),
        ([*OF_NDR, "stats", "overall", "hdrh"], [], "invalid and left out: ndr.stats.overall.hdrh (a list)", None),
        ([*OF_NDR, "stats", "warning"], {"a": 1}, "invalid and left out: ndr.stats.warning", None),
    ],
)
def test_an_invalid_value_costs_that_value(path: list[str], value: Any, remark: str, unknown: str | None) -> None:
    """No other one, and nothing of the other frame size where it is of one of them."""
    row, other = (item.row for item in items_of(changed(path, value)))
    assert remark in row.evidence
    usual = one(nfvbench({"64": searched()})).row
    kept = {"ndr_lower_pps", "pdr_lower_pps", "started_at", "nf_chains"} - {unknown}
    if path[-1] == "measurement":
        kept -= {"pdr_lower_pps"}
    assert {name: getattr(row, name) for name in kept} == {name: getattr(usual, name) for name in kept}
    assert unknown is None or getattr(row, unknown) is None
    assert (remark in other.evidence) == (CHAIN[-1] not in path[5:] and "64" not in path)


@pytest.mark.parametrize("size", ["0", "63", "99999", "64.5", "sixty", "-64", "\u0664\u0666", "9" * 500])
def test_a_size_that_is_no_frame_is_unknown(size: str) -> None:
    row = one(nfvbench({size: searched()})).row
    assert (row.frame, row.ndr_l1_bps) == (None, None)
