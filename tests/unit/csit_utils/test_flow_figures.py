"""Throughput by the number of flows and the version of IP."""

from csit_utils.analysis.grouping import all_series
from csit_utils.report.figures import Figure
from csit_utils.studies.density.analysis.density import matrices
from csit_utils.studies.density.figures.throughput import flows_figure
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory

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
