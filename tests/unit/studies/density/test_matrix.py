"""The matrix: selections as people write them, a reason for each cell that does not run, rows and their time."""

import re

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.findings import Limit
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544, SOAK
from resources.libraries.python.studies.density.planning.extras import Extras, estimate_s
from resources.libraries.python.studies.density.planning.matrix import candidates, make_rows
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import SIM, cpus, shipped

LOCAL = shipped("local")
TWO_CORES = cpus(2)


@pytest.mark.slow
def test_every_cell_fits_with_a_core_map_that_is_the_planners_own_or_says_why() -> None:
    rows = list(
        candidates(SIM, SIM.dut.layout, parse_selection(cells="1-10x1-10", nf_sizes="0.5c,1c,2c", vswitch="1,2,4"))
    )
    assert len(rows) == 100 * 3 * 3 * 3
    assert all((row.cores is not None) == row.fits == (row.reason is None) for row in rows)
    mixed = candidates(SIM, SIM.dut.layout, parse_selection(cells="1-4x1-4", nf_sizes="0.5c,1c+1c,2c", vswitch="1,4"))
    for row in (each for each in mixed if each.fits):
        assert row.cores == make_plan(SIM, row.cell, SIM.dut.layout).cores


@pytest.mark.parametrize(
    ("kind", "size", "reason", "runs"),
    [
        ("CSC", "1c", "", True),
        ("CSC", "0.5c", "NF size 0.5c needs SMT (half a core is one of two sibling threads), and SMT is off; ", False),
        ("VSC", "1c", "testbed local has no driver for VMs; ", False),
    ],
)
def test_two_cores_run_what_is_only_a_matter_of_their_number(kind: str, size: str, reason: str, runs: bool) -> None:
    dut = LOCAL.dut.model_copy(update={"vms": None})
    without_vms = LOCAL.model_copy(update={"nodes": {**LOCAL.nodes, "DUT1": dut}})
    (row,) = candidates(without_vms, TWO_CORES, parse_selection(service_types=kind, cells="1x1", nf_sizes=size))
    assert row.reason == f"{reason}needs 6 cores on NUMA 0, 2 available"
    assert (row.runs, row.oversubscribed, row.fits) == (runs, runs, False)


def test_all_reasons_are_reported_at_once_with_their_numbers() -> None:
    (row,) = candidates(LOCAL, TWO_CORES, parse_selection(service_types="CSC", cells="300x1", nf_sizes="1c"))
    assert "254" in row.reason and row.reason.endswith("; needs 454 cores on NUMA 0, 2 available")
    assert not row.runs, "addresses cannot be shared, whatever is true of cores"
    (row,) = candidates(SIM, SIM.dut.layout, parse_selection(service_types="VSC", cells="10x10", nf_sizes="1c"))
    assert [(reason.limit, reason.needs, reason.there) for reason in row.reasons] == [
        (Limit.CORES, 1 + 2 + 50 + 100, 28),
        (Limit.HUGEPAGES, 1024 + 100 * 4096, 131072),
    ]


@pytest.mark.parametrize(("size", "cells"), [("1c", 19), ("0.5c", 23)])
@pytest.mark.parametrize("kind", ["CSC", "CSP"])
def test_a_suite_has_exactly_the_cells_that_fit_on_28_cores(kind: str, size: str, cells: int) -> None:
    made = make_rows(SIM, SIM.dut.layout, parse_selection(service_types=kind, nf_sizes=size), TestType.NDRPDR)
    assert len(made.rows) == cells
    assert len(made.refused) == 36 - cells
    assert all(re.fullmatch(r"needs \d+ cores on NUMA 0, 28 available", each.refused.reason) for each in made.refused)


def test_names_tags_and_arguments_say_the_same() -> None:
    made = make_rows(SIM, SIM.dut.layout, parse_selection(service_types="CSC,CSP"), TestType.MRR)
    assert len({row.name for row in made.rows}) == len(made.rows)
    for row in made.rows:
        kind, chains, nodes, frame, size, vswitch = row.arguments
        total = int(chains) * int(nodes)
        interfaces = 2 * int(chains) if kind == "CSP" else 2 * total
        threads = {"1c": 2, "0.5c": 1}[size]
        word = {"CSC": "ch", "CSP": "pl"}[kind]
        suite = f"eth-l2bd-{chains}{word}-{interfaces}mif-{total}dcr{threads}t-simip4"
        assert row.name == f"{frame}-{vswitch}c-{suite}-mrr"
        counted = {f"{chains}R{nodes}C", f"{total}DCR{threads}T", f"{vswitch}C"}
        assert {kind, frame, suite, "MRR", "NF_DENSITY", *counted} <= set(row.tags)
        assert ("PIPELINE" in row.tags, "CHAIN" in row.tags) == (kind == "CSP", kind == "CSC")


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1x1,1x2,2x1", ((1, 1), (1, 2), (2, 1))), ("{1,2}x{1,4}", ((1, 1), (1, 4), (2, 1), (2, 4))),
        ("1-3x2", ((1, 2), (2, 2), (3, 2))), ("{1-2,5}x1, 1x1", ((1, 1), (2, 1), (5, 1))),
        ("2R4C, 1-2x1, 1r1c", ((2, 4), (1, 1), (2, 1))), ("32x32", ((32, 32),)),
    ],
)  # fmt: skip
def test_cells_are_selected_from_the_drafts_grid_or_any_other(text: str, points: tuple[tuple[int, int], ...]) -> None:
    assert parse_selection(cells=text).points == points
    assert len(parse_selection().points) == 36


def test_sizes_for_each_nf_apply_to_services_of_that_length_only() -> None:
    cells = parse_selection(service_types="csc", cells="1x1-3", nf_sizes="1C,2c+0.5c,3c").cells()
    found = " ".join(f"{cell.nf_nodes}:{cell.size_name}" for cell in cells)
    assert found == "1:1c 2:1c 3:1c 2:2c+0.5c 1:3c 2:3c 3:3c"


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("cells", "1x", "'1x'"),
        ("cells", "0x1", "count from 1"),
        ("cells", "3-1x1", "runs backwards"),
        ("cells", "", "no cells"),
        ("nf_sizes", "1.5c", "'1.5c'.* 0.5c, 1c, 2c "),
        ("service_types", "CSX", "'CSX'; choose from VSC, CSC, CSP"),
        ("vswitch", "3", "'3'"),
        ("frames", "63B-10f", "'63B'"),
        ("frames", " ", "selects nothing"),
        ("frames", "64B-1000001f", "1,000,001 flows"),
        ("flows", "0", "'0'; expected 1 to 1000000"),
        ("flows", "2000000", "2,000,000 flows"),
        ("flows", "1k", "'1k'"),
        ("flows", ",", "selects nothing"),
        ("cells", "1x1000000", "1,000,000 NFs; at most 1,024"),
        ("cells", "{1-1000}x{1}", "at most 100,000"),
        ("cells", f"{'z' * 5000}", "expected rows x columns"),
    ],
)
def test_unreadable_input_and_what_cannot_be_planned_in_time_is_refused(option: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        parse_selection(**{option: value})
    assert len(str(caught.value)) <= 400


def test_each_number_of_flows_goes_with_each_frame() -> None:
    found = parse_selection(frames="64B,IMIX-7f", flows="auto,1,001,1000000").frames
    assert [(frame.name, frame.flows) for frame in found] == [
        ("64B", None), ("64B-1f", 1), ("64B-1000000f", 1_000_000),
        ("IMIX-7f", 7), ("IMIX-1f", 1), ("IMIX-1000000f", 1_000_000),
    ]  # fmt: skip
    assert [frame.size_name for frame in found] == ["64B"] * 3 + ["IMIX"] * 3


@pytest.mark.parametrize(
    ("profile", "test_type", "seconds"),
    [
        (LADDER, TestType.MRR, 0.7 + 10 * 1.5),
        (LADDER, TestType.LATENCY, 0.7 + 1.5 * 21 + 4 * 5.5),
        (LADDER, TestType.NDRPDR, 0.7 + 1.5 * 21 + 0.5 * 21 + 4 * 5.5),
        (REFERENCE, TestType.NDRPDR, 0.7 + (1.8 + 0.6) * 21 + 4 * 5.5),  # plain MLRsearch
        (RFC2544, TestType.NDRPDR, 0.7 + (2.1 + 3.1) * 60 + 4 * 5.5),
        (SOAK, TestType.NDRPDR, 0.7 + 1800 + 4 * 5.5),
        (LADDER.model_copy(update={"duration_max_s": 10.0}), TestType.NDRPDR, 0.7 + 10 + 4 * 5.5),
    ],
)
def test_what_a_test_takes(profile: SearchProfile, test_type: TestType, seconds: float) -> None:
    assert estimate_s(profile, test_type, trial_overhead_s=0.5, deploy_s=0.0) == pytest.approx(seconds)
    assert estimate_s(profile, test_type, trial_overhead_s=0.5, deploy_s=3.0) == pytest.approx(seconds + 3.0)


@pytest.mark.parametrize(
    ("extras", "seconds"),
    [
        (Extras(), 0.0), (Extras(loss_trial_s=1.0), 3 * 1.5), (Extras(energy_trial_s=10.0), 5 * 10.5),
        (Extras(stacks_trial_s=10.0), 10.0 + 0.5 + 1.5), (Extras(bursts=50), 50 * 14 * 0.5),
    ],
)  # fmt: skip
def test_measurements_that_variables_ask_for_cost_time(extras: Extras, seconds: float) -> None:
    def took_s(test_type: TestType, more: Extras) -> float:
        return estimate_s(QUICK, test_type, trial_overhead_s=0.5, deploy_s=0.0, extras=more)

    assert took_s(TestType.NDRPDR, extras) - took_s(TestType.NDRPDR, Extras()) == pytest.approx(seconds)
    for other in (TestType.MRR, TestType.LATENCY):
        assert took_s(other, extras) == took_s(other, Extras())
