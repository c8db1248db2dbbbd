"""The table of results has a line per cell with the figures of all its tests."""

import re

from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from csit_utils.studies.density.pages.results import PAGE
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import mrr_result, result
from tests.unit.csit_utils.datasets import CSC, dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory


def lines(dataset: Dataset, *, mean: bool = False) -> list[dict[str, str]]:
    """Texts of the table by line and head; raw values of numbers."""
    made = render(PAGE, ReportContents(InMemory(dataset), mean=mean))
    assert made is not None
    table = made.html[: made.html.index("</table>")]
    heads = [re.sub(r"<[^>]*>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table)]
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r"<td([^>]*)>(.*?)</td>", row, re.DOTALL) for row in rows]
    texts = [
        [
            raw[1] if (raw := re.search('data-v="(.*?)"', attributes)) else re.sub(r"<[^>]*>", "", text).strip()
            for attributes, text in row
        ]
        for row in cells
    ]
    return [dict(zip(heads, row, strict=True)) for row in texts]


def latency_test(pdr_pps: float) -> DensityRecord:
    """One that found a PDR on its way."""
    made = result(CSC, 1, 1, ndr=None, pdr=plain(1, 1, pdr_pps, pdr_pps).pdr)
    return made.model_copy(update={"asked": made.asked.model_copy(update={"test_type": TestType.LATENCY})})


def test_all_tests_of_a_cell_are_one_line_with_one_unit_in_the_head() -> None:
    tests = (latency_test(1e5), plain(1, 1, 2e5, 2.1e5), mrr_result(CSC, 1, 1), plain(2, 1, 1.5e5))
    one, two = lines(dataset_of(*tests))
    assert [one["Cell"], two["Cell"]] == ["CSC 1x1", "CSC 2x1"]
    assert float(one["NDR, kpps"]) == 2e5
    assert float(one["PDR, kpps"]) == 2.1e5, "of the test that asked for it"
    assert float(one["MRR, kpps"]) > 0
    assert float(one["p99, \N{MICRO SIGN}s"]) > 0, "of the latency test"
    assert one["Tests"].split() == ["LATENCY", "NDRPDR", "MRR"]
    assert two["MRR, kpps"] == ""
    assert not {"Frame", "NF / vSw", "Testbed", "Run"} & set(one), "all cells have the same"


def test_a_failed_test_is_said_beside_the_figures_of_others() -> None:
    (line,) = lines(dataset_of(plain(1, 1, 2e5), mrr_result(CSC, 1, 1, passed=False, message="lost")))
    assert "failed" in line["Limit"]
    assert "MRR" in line["Limit"]
    assert float(line["NDR, kpps"]) == 2e5


def test_what_differs_between_cells_has_a_column() -> None:
    found = lines(dataset_of(result(CSC, 1, 1), result(CSC, 1, 1, size=NfSize.HALF), result(ServiceType.CSP, 1, 1)))
    assert [line["NF / vSw"] for line in found] == ["1c / 1c", "0.5c / 1c", "1c / 1c"]


def test_repeated_tests_are_lines_of_their_own_only_where_means_are_shown() -> None:
    both = dataset_of(plain(1, 1, 2e5, started_at="2026-11-01T20:00:00Z"), source="one.xml")
    both.recorded += dataset_of(plain(1, 1, 3e5, started_at="2026-11-02T20:00:00Z"), source="two.xml").recorded
    assert [float(line["NDR, kpps"]) for line in lines(both)] == [3e5]
    assert [(line["Run"], float(line["NDR, kpps"])) for line in lines(both, mean=True)] == [
        ("local 2026-11-02", 3e5),
        ("local 2026-11-01", 2e5),
    ]
