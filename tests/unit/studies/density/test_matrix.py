"""The whole matrix: fast, with a reason for every cell that does not run; the others are rows of its suites."""

import re

import pytest

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.planning.reasons import Limit
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates, make_rows
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


def test_more_instances_than_addresses() -> None:
    asked = parse_selection(service_types="CSC", cells="300x1", nf_sizes="1c")
    (row,) = candidates(LOCAL, TWO_CORES, asked)
    assert row.reason == (
        "needs addresses for 300 instances and 300 NFs, there are 254 and 65535; needs 454 cores on NUMA 0, 2 available"
    )
    assert not row.runs, "addresses cannot be shared, whatever is true of cores"


def test_all_reasons_are_reported_at_once_with_their_numbers() -> None:
    (row,) = candidates(SIM, SIM.dut.layout, parse_selection(service_types="VSC", cells="10x10", nf_sizes="1c"))
    assert [(reason.limit, reason.needs, reason.there) for reason in row.reasons] == [
        (Limit.CORES, 1 + 2 + 50 + 100, 28),
        (Limit.HUGEPAGES, 1024 + 100 * 4096, 131072),
    ]
    assert row.reason.endswith("; needs 410624 MB of huge pages on NUMA 0, 131072 available")


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
