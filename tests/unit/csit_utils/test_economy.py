"""Throughput per core, by number of flows, efficiency and ratios by hand; cells that do not fit show why."""

from pathlib import Path
from typing import Any

import pytest
from robot.api import TestSuite as Suite

from csit_utils.analysis.grouping import all_series
from csit_utils.dataset.items import Refusal
from csit_utils.report.figures import Figure
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.analysis.efficiency import efficiencies
from csit_utils.studies.density.figures.throughput import flows_figure
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.recording.marker import REFUSED_MARKER
from resources.libraries.python.studies.density.model.record import REFUSED_CELLS, DensityRecord
from tests.loaded import load, rows_of_tests
from tests.unit.csit_utils.builders import NDR, PDR, goal_result, refused_cell, result
from tests.unit.csit_utils.datasets import dataset_of, html_of, plain
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.rendered_pages import Page

CSC, CSP, VSC = ServiceType.CSC, ServiceType.CSP, ServiceType.VSC


def of(kind: ServiceType, chains: int, nodes: int, rate: float) -> DensityRecord:
    made = goal_result(NDR, rate), goal_result(PDR, rate)
    return result(kind, chains, nodes, histograms=False, ndr=made[0], pdr=made[1])


def test_cores_are_counted_in_three_ways() -> None:
    (row,) = rows_of_tests(dataset_of(result(CSC, 2, 4, histograms=False)))
    assert (row.data_cores, row.slide_cores) == (1 + 8, 2 + 1.5 * 8)
    assert row.real_cores == 5 + 8 - 1, "the plan takes 13 cores, one of them for the generator"
    (half,) = rows_of_tests(dataset_of(result(CSC, 2, 4, size=NfSize.HALF, vs_dtc=2, histograms=False)))
    assert (half.data_cores, half.slide_cores) == (2 + 4, 1 + 2 + 8)


def test_efficiency_by_hand() -> None:
    made = dataset_of(plain(1, 1, 100e3), plain(1, 4, 50e3), plain(2, 2, 60e3))
    rows = rows_of_tests(made)
    ndr = matrices(rows, all_series(rows)[0])[0]
    one, chain, square = efficiencies(ndr)
    assert (one.of_one, one.hops, one.per_hop) == (1.0, 1.0, 1.0)
    assert (chain.place, chain.of_one, chain.hops, chain.per_hop) == ((1, 4), 0.5, 2.0, 0.5)
    assert (square.of_one, square.hops, square.per_hop) == pytest.approx((0.6, 1.2, 0.3))
    assert square.per_data_core_pps == pytest.approx(60e3 / 5)
    assert square.per_slide_core_pps == pytest.approx(60e3 / 8)
    assert square.per_real_core_pps == pytest.approx(60e3 / 8)


def test_without_1x1_there_is_no_efficiency_but_a_share_per_core() -> None:
    rows = rows_of_tests(dataset_of(plain(2, 1, 100e3)))
    (found,) = efficiencies(matrices(rows, all_series(rows)[0])[0])
    assert (found.of_one, found.hops, found.per_hop) == (None, None, None)
    assert found.per_data_core_pps == pytest.approx(100e3 / 3)


def test_the_page_shows_all_of_it() -> None:
    made = dataset_of(of(VSC, 1, 2, 80e3), of(CSC, 1, 2, 100e3), of(CSC, 1, 1, 125e3), of(CSC, 2, 1, 120e3))
    page = Page(html_of(made))
    assert "0.80 : 1.00 : \N{EN DASH}" in page.text
    assert "Throughput per core, and efficiency against 1x1" in page.text
    assert "48 %" in page.text, "2x1: 120 of 2 x 125"
    assert "How many instances fit at 20.0 kpps each, loss as for PDR?" in page.text


_REASON = "needs 33 cores on NUMA 0, 28 available"
REFUSED = refused_cell(10, 2, _REASON)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, CellState.DOES_NOT_FIT),
        ({"source": "other.xml"}, None),
        ({"nf_sizes": (NfSize("2c"),)}, None),
        ({"vs_dtc": 4}, None),
        ({"service_type": ServiceType.CSP}, None),
    ],
)
def test_a_refused_cell_is_shown_in_its_own_matrix(changes: dict[str, Any], state: CellState | None) -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 1e5)))
    refused = refused_cell(10, 2, _REASON, **changes)
    (ndr, _) = matrices(rows, all_series(rows)[0], [refused])
    found = ndr.cells.get((10, 2))
    assert (found.state if found else None) == state
    if found:
        assert found.reason == _REASON
        assert ndr.cells[1, 2].state is CellState.NOT_RUN


def test_a_figure_is_never_hidden_by_a_refusal() -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 1e5), plain(10, 2, 5e4)))
    assert matrices(rows, all_series(rows)[0], [REFUSED])[0].cells[10, 2].value_pps == 5e4


def test_refusals_come_from_a_real_output_xml_once_each(tmp_path: Path) -> None:
    suite = Suite("Density")
    for name in ("Csc-Ndrpdr", "Csc-Mrr"):
        inner = suite.suites.create(name)
        inner.metadata["Version"] = "1"
        inner.setup.config(name="Log", args=[f"{REFUSED_MARKER}{REFUSED_CELLS.dump_json((REFUSED.refused,)).decode()}"])
        inner.tests.create("t").body.create_keyword("Fail")
    path = tmp_path / "output.xml"
    suite.run(output=str(path), console="none", log=None, report=None)
    (found,) = load([path]).refused
    assert found == Refusal(str(path), REFUSED.refused)


OF_FLOWS = (("128B-1f", 1e6), ("128B-1000f", 9e5), ("128B-100000f", 5e5), ("128B-ip6-1000f", 8e5))


def recorded(*rates: tuple[str, float]) -> list[DensityRecord]:
    return [plain(2, 1, rate, frame=frame(name), test_id=name, test_name=name) for name, rate in rates]


def drawn(*rates: tuple[str, float]) -> Figure | None:
    rows = InMemory(dataset_of(*recorded(*rates))).tests
    return flows_figure("f", "Flows", [matrix for one in all_series(rows) for matrix in matrices(rows, one)])


def test_a_cell_has_a_line_per_version_of_ip_over_all_numbers_of_flows() -> None:
    figure = drawn(*OF_FLOWS)
    variant = figure.variants["NDR"]
    assert [(line["name"][-4:], line["x"], line["y"], line["line"]["dash"]) for line in variant["data"]] == [
        ("IPv4", [1, 1000, 100_000], [1.0, 0.9, 0.5], "solid"),
        ("IPv6", [1000], [0.8], "dash"),
    ]
    assert len({line["meta"]["colour"] for line in variant["data"]}) == 1, "of one cell"
    assert variant["layout"]["xaxis"]["ticktext"] == ["1", "1,000", "100,000"]


def test_frame_sizes_are_not_one_line_and_one_load_alone_is_no_line() -> None:
    assert drawn(("128B-1f", 1e6), ("1518B-1f", 5e5)) is None
    assert drawn(("128B", 1e6), ("128B-1f", 5e5)) is None, "packets without ports are another load"
    figure = drawn(("128B-1f", 1e6), ("128B-1000f", 9e5), ("1518B-1f", 5e5), ("1518B-1000f", 4e5))
    assert len({line["meta"]["colour"] for line in figure.variants["PDR"]["data"]}) == 2
