"""NFVbench's JSON: a test for each frame size, and its place in the matrix by the name of its file."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.comparisons.comparability import likeness
from csit_utils.analysis.grouping import bounds, series_of
from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.foreign.place import NameTemplate
from csit_utils.dataset.goal_words import read_goal
from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import EITHER, EVERY_INSTANCE, MRR, NDR, PDR
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.datasets import invoked
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
    """A search that ended early says so, and line rate has nothing above it."""
    row = one(nfvbench({"64": searched()})).row
    assert bounds(row, NDR) == (2_976_190, 3_000_000, True)
    assert bounds(row, PDR) == (3_720_238, 3_740_000, True)
    assert (row.ndr_loss_ratio, row.pdr_loss_ratio) == (1e-5, 0.001)
    assert row.ndr_l1_bps == pytest.approx(2_976_190 * 84 * 8)
    assert row.goals == ("NDR loss <= 0.001% exceed 0% trials 60..60 s; PDR loss <= 0.1% exceed 0% trials 60..60 s")
    assert (row.origin, row.revision, row.version) == ("nfvbench", "NFVbench 5.1.3", "OVS-DPDK")
    told = searched() | {"iteration_stats": trials((2_976_190, 0.0), (5_000_000, 3.0))}
    assert bounds(one(nfvbench({"64": told})).row, NDR) == (2_976_190, 5_000_000, False)
    told = {"ndr": at_load(29_761_904, 200.0, 0.0), "iteration_stats": trials((29_761_904, 0.0))}
    assert bounds(one(nfvbench({"64": told})).row, NDR) == (29_761_904, None, True)


def test_goals_direction_and_simulation_are_those_of_the_run() -> None:
    asked = {"NDR": 0, "PDR": 0.0125, "load_epsilon": 1}
    row = one(nfvbench({"64": searched()}, measurement=asked, duration_sec=5.0)).row
    for name, ratio in (("NDR", 0.0), ("PDR", 0.000125)):
        goal = read_goal(row.goals or "", name)
        assert (goal.loss_ratio, goal.trial_s) == (ratio, 5.0)
    assert row.pdr_loss_ratio == 0.000125
    usual, data = nfvbench({"64": searched()}), nfvbench({"64": searched()}, generator="dummy")
    data["benchmarks"]["network"]["service_chain"]["PVVP"]["result"]["bidirectional"] = False
    row, other = one(data).row, one(usual).row
    assert (row.simulated, other.simulated) == (True, False)
    assert row.goals == f"{other.goals}; traffic in one direction only"
    assert one({"status": "OK", "result": usual}).row == other, "the answer of its server is read too"


@pytest.mark.parametrize("found", [{}, {"ndr": None}, {"run_config": None, "iteration_stats": trials((1e6, 0.0))}])
def test_a_test_without_a_figure_says_so(found: dict[str, Any]) -> None:
    assert one(nfvbench({"64": found})).row.evidence


@pytest.mark.parametrize("warning", [0, False, "", None])
def test_no_load_low_enough_is_below_the_lowest_that_was_tried(warning: object) -> None:
    item = one(nfvbench({"64": not_reached(warning)}))
    assert (item.row.ndr_lower_pps, item.latency) == (None, ())
    assert bounds(item.row, NDR) == (None, 29_000, False)
    assert item.row.evidence.startswith("NDR was not reached") and item.row.evidence.endswith(" tried, 29,000 pps")


def test_more_received_than_sent_and_less_sent_than_asked_are_remarks() -> None:
    found, at_fixed = searched(), fixed(200.0)
    found["ndr"]["stats"]["overall"]["drop_percentage"] = -0.0001
    at_fixed["stats"]["overall"]["drop_rate_percent"] = -0.25
    row, other = one(nfvbench({"64": found})).row, one(nfvbench({"64": at_fixed})).row
    assert (row.ndr_lower_pps, other.mrr_pps is not None) == (2_976_190, True)
    assert row.evidence.startswith("at NDR, 0.0001 % more received than sent")
    assert other.evidence.startswith("at the fixed load, 0.25 % more received than sent")
    told = searched()
    told["ndr"]["stats"] |= {"warning": "WARNING: significant difference", "total_tx_rate": 2_000_000}
    row = one(nfvbench({"64": told})).row
    assert row.evidence == "NDR is the intended load; the generator sent less than 90 % of it, 2,000,000 pps"
    assert row.ndr_lower_pps == 2_976_190


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
    assert series.name == "VSC"
    assert series.system.name == "nova:compute-4 (lab, nfvbench)"
    external = one(nfvbench({"64": searched()}, "EXT")).row
    assert (series_of(external), external.ndr_lower_pps) == (None, 2_976_190), "a chain without a place"


def test_frame_sizes_are_tests_with_latency_and_fixed_loads_are_mrr_at_that_load() -> None:
    small, imix = items_of(nfvbench({"64": searched(), "IMIX": searched(), "warning": "sent less"}))
    assert (small.row.frame, small.row.test_name) == ("64B", "64B-3xPVVP")
    assert (imix.row.frame, imix.row.test_name) == ("IMIX (7x64, 4x594, 1x1518)", "IMIX-3xPVVP")
    assert imix.row.frame_mean_bytes == pytest.approx((7 * 64 + 4 * 594 + 1518) / 12)
    assert small.anchor != imix.anchor
    ndr, pdr = one(nfvbench({"64": searched()})).latency
    assert (ndr.load, ndr.load_pps, pdr.load, pdr.load_pps) == ("NDR", 2_976_190, "PDR", 3_720_238)
    assert (ndr.instance, ndr.direction) == (EVERY_INSTANCE, EITHER)
    assert (ndr.min_ns, ndr.mean_ns, ndr.max_ns) == (10_000, 25_500, 80_000)
    assert ndr.p99_ns == pytest.approx(80_000, rel=1e-3)
    assert ndr.received == 4
    item = one(nfvbench({"64": fixed(200.0)}))
    row = item.row
    assert (row.test_type, row.mrr_trials, row.goals) == ("MRR", 1, "MRR 1 x 60 s")
    assert (row.mrr_pps, row.mrr_offered_pps) == pytest.approx((200 * 0.4 * 148_809, 200 * 0.99 * 148_809))
    ways = [(each.instance, each.direction) for each in item.latency]
    assert ways == [(1, "forward"), (2, "forward"), (1, "reverse"), (2, "reverse")]
    row, line = one(nfvbench({"64": fixed(20.0)})).row, one(nfvbench({"64": fixed(200.0)})).row
    assert (row.test_type, row.mrr_pps) == ("MRR", pytest.approx(1_190_472))
    load_pps = read_goal(row.goals or "", "MRR").load_pps
    assert load_pps == pytest.approx(20 * 148_809, abs=1)
    (difference,) = likeness(row, line, MRR).differences
    assert f"{load_pps:,.0f} pps" in difference


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["benchmarks", "network", "service_chain"], {}, "has no result"),
        (["config"], "x" * 1000, "config: expected an object, found xxx"),
        ([*CHAIN, "result", "64"], "fast", "PVVP 64: the result: expected an object, found fast"),
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
        (["config", "measurement", "NDR"], "1", "NDR is left out: its intended drop rate is unknown", "ndr_lower_pps"),
        (["config", "measurement", "PDR"], 100.0, "PDR is left out: its intended drop rate of 100 %", "pdr_lower_pps"),
        ([*CHAIN, "result", "64", "iteration_stats"], None, "invalid and left out: iteration_stats (None)", None),
        ([*CHAIN, "service_chain_count"], 0, "result.service_chain_count (0)", "nf_chains"),
        ([*OF_NDR, "rate_pps"], 10**400, "invalid and left out: ndr.rate_pps (1", "ndr_lower_pps"),
        ([*OF_NDR, "stats", "overall", "hdrh"], [], "invalid and left out: ndr.stats.overall.hdrh (a list)", None),
    ],
)
def test_an_invalid_value_costs_that_value(path: list[str], value: Any, remark: str, unknown: str | None) -> None:
    """No other one, and nothing of the other frame size where it is of one of them."""
    row, other = (item.row for item in items_of(changed(path, value)))
    assert remark in row.evidence
    usual = one(nfvbench({"64": searched()})).row
    for name in ("ndr_lower_pps", "pdr_lower_pps", "started_at", "nf_chains"):
        assert getattr(row, name) == (None if name == unknown else getattr(usual, name))
    assert (remark in other.evidence) == (CHAIN[-1] not in path[5:] and "64" not in path)


@pytest.mark.parametrize("size", ["0", "63", "99999", "64.5", "sixty", "-64", "\u0664\u0666", "9" * 500])
def test_a_size_that_is_no_frame_is_unknown(size: str) -> None:
    row = one(nfvbench({size: searched()})).row
    assert (row.frame, row.ndr_l1_bps) == (None, None)
    assert "frame size" in row.evidence


PLAIN = NameTemplate("{service}_{instances}c{nfs}n")
IN_FOLDER = NameTemplate("*t{vswitch_cores}c*/{service}_{instances}c{nfs}n_NF-{nf_cores}c")


def read(source: str, size: str = "64", chain: str = "EXT") -> ImportedTest:
    (item,) = read_foreign(packed(nfvbench({size: searched()}, chain)), source)
    assert isinstance(item, ImportedTest)
    return item


@given(
    st.sampled_from(ServiceType),
    st.integers(1, 99),
    st.integers(0, 99),
    st.sampled_from(["", "a/", "c:\\x\\", "2c3n/"]),
)
def test_a_name_states_its_cell_whatever_follows(service: ServiceType, instances: int, nfs: int, folder: str) -> None:
    place = PLAIN.place(f"{folder}{service.value.lower()}_{instances}c{nfs}n_18500000pps-1.json")
    assert (place.service_type, *place.dimensions) == (service, instances, nfs)


@pytest.mark.parametrize(
    "name", ["xcsc_2c4n.json", "csc_2c4.json", "csd_2c4n.json", "csc_0c4n.json", "csc_2c4n/a.json"]
)
def test_other_names_state_none(name: str) -> None:
    assert PLAIN.place(name) is None


def test_names_folders_and_values_of_the_template_place_files_and_what_they_do_not_state_is_a_remark() -> None:
    place = IN_FOLDER.place("results/4t2c_novlan/csp_2c4n_NF-0.5c_ndr-1.json")
    assert place.columns["data_cores"] == 2 + 0.5 * 8
    row = IN_FOLDER.placed(read("results/4t2c_novlan/csp_2c4n_NF-1c_ndr-1.json")).row
    assert row.ndr_lower_pps and row.ndr_pps_per_core == pytest.approx(row.ndr_lower_pps / 10)
    template = NameTemplate("{service=csc}{nf_cores=0.5}{vswitch_cores=1}run_{instances}_{nfs}")
    place = template.place("a.zip!run_4_2.json")
    assert (place.service_type, *place.dimensions, place.data_cores) == (ServiceType.CSC, 4, 2, 1 + 0.5 * 8)
    item = PLAIN.placed(read("64B/csc_3c2n_ndr-1.json"))
    assert (item.row.service_type, item.row.nf_chains, item.row.nf_nodes, item.row.evidence) == ("CSC", 3, 2, "")
    assert item.row.test_id != PLAIN.placed(read("64B/csc_3c2n_ndr-2.json")).row.test_id
    own = read("csc_3c2n.json", chain="PVVP")
    assert PLAIN.placed(own) == own
    assert "IMIX" in PLAIN.placed(read("64B/csc_3c2n.json", size="IMIX")).row.evidence
    assert not PLAIN.placed(read("64B/csc_3c2n.json")).row.evidence
    row = PLAIN.placed(read("phy.json")).row
    assert row.service_type is None and PLAIN.text in row.evidence


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{service}_{rows}", "{rows}"), ("{service}_{instances}", "{nfs}"),
        ("{service}{instances}{instances}{nfs}", "{instances} occurs twice"), ("{service}{instances}{nfs}}", "brace"),
        ("{service}{instances}{nfs}*****", "*"), ("{service}{instances}{nfs}{nf_cores=big}", "out of range"),
        ("{service=CSC}{instances=1}{nfs=500}", "{nfs=500}"), ("{service}{instances}{nfs}" + "x" * 200, "200"),
    ],
)  # fmt: skip
def test_a_template_with_a_fault_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(fault)):
        NameTemplate(text)


def test_import_places_files_and_a_cell_has_the_figures_of_two_but_no_two_definitions(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, found in (("csc_3c2n_ndr", searched()), ("csc_3c2n_1000pps", fixed(20.0)), ("phy", searched())):
            archive.writestr(f"{name}.json", packed(nfvbench({"64": found}, "EXT", label=name)))
    into, options = tmp_path / "dataset", ("--place", PLAIN.text, "--format", "json")
    counts = json.loads(invoked("import", tmp_path / "all.zip", "-o", into, *options).stdout)
    assert [counts[name] for name in ("tests", "placed", "not_placed")] == [3, 2, 1]
    placed = [row for row in opened([into]).contents().tests if row.service_type]
    ndr, mrr = sorted(placed, key=lambda row: row.mrr_pps is not None)
    assert ndr.ndr_lower_pps and mrr.mrr_pps and (series_of(ndr), ndr.run) == (series_of(mrr), mrr.run)
    (more := tmp_path / "more").mkdir()
    for name, found in (("ndr", searched()), ("20pc", fixed(20.0)), ("30pc", fixed(30.0))):
        (more / f"csc_3c2n_{name}.json").write_bytes(packed(nfvbench({"64": found}, "EXT")))
    (more / "csc_3c3n_ndr.json").write_bytes(packed(nfvbench({"IMIX": searched()}, "EXT")))
    assert "IMIX" in invoked("import", more, "-o", tmp_path / "apart", "--place", PLAIN.text).stdout
    assert len({series_of(row) for row in opened([tmp_path / "apart"]).contents().tests}) == 4


def test_a_matrix_with_ndr_only_is_answered_whatever_else_was_measured_later(tmp_path: Path) -> None:
    for name, day in (("csc_1c1n", "01"), ("csc_2c1n", "01"), ("phy", "02")):
        found = nfvbench({"64": searched() | {"pdr": None}}, "EXT", label=name) | {"date": f"2023-06-{day} 12:30:45"}
        (tmp_path / f"{name}.json").write_bytes(packed(found))
    dataset = tmp_path / "dataset"
    assert invoked("import", tmp_path, "-o", dataset, "--place", PLAIN.text).exit_code == 0
    done = invoked("answer", dataset, "--rate", "1.4Mpps", "--format", "json")
    (found,) = map(json.loads, done.stdout.splitlines())
    assert (found["goal"], found["instances"], found["next"]) == ("NDR", 2, "3x1 was not measured")


@pytest.mark.parametrize(
    ("template", "systems", "apart"),
    [(PLAIN.text, 2, ("2t1c", "4t2c")), (f"*t{{vswitch_cores}}c/{PLAIN.text}", 1, ("vSwitch-1c", "vSwitch-2c"))],
)
def test_files_of_one_name_in_two_folders_are_of_two_systems_unless_the_template_states_the_folders(
    tmp_path: Path, template: str, systems: int, apart: tuple[str, str]
) -> None:
    """What sets two tests of a cell apart is in tables, and in the refusal to compare cells of other sizes."""
    for folder, found in (("2t1c", searched()), ("4t2c", searched() | {"pdr": None})):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "csc_1c1n.json").write_bytes(packed(nfvbench({"64": found}, "EXT")))
    dataset = tmp_path / "dataset"
    assert invoked("import", tmp_path / "in", "-o", dataset, "--place", template).exit_code == 0
    series = {series_of(row) for row in opened([dataset]).contents().tests}
    assert (len(series), len({one.system for one in series})) == (2, systems)
    _, *lines = invoked("show", dataset).stdout.splitlines()
    assert [sum(word in line for line in lines) for word in apart] == [1, 1]
    refused = invoked("compare", dataset, "fdio-2019")
    assert isinstance(refused.exception, ConfigError) and "CSC 1x1" in str(refused.exception)
