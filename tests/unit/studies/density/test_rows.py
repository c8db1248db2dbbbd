"""Rows of the suites: derived names that agree with tags, and exactly the cells that fit."""

import re

import pytest

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import make_rows
from tests.builders import SIM


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
        expected = {
            kind,
            f"{chains}R{nodes}C",
            f"{total}DCR{threads}T",
            f"{vswitch}C",
            frame,
            "MRR",
            "NF_DENSITY",
            suite,
        }
        assert expected <= set(row.tags)
        assert ("PIPELINE" in row.tags, "CHAIN" in row.tags) == (kind == "CSP", kind == "CSC")
