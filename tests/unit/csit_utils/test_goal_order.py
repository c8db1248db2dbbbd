"""A PDR below its NDR gets a remark with both rates, from any source and in every reader."""

from collections.abc import Sequence
from pathlib import Path

from csit_utils.analysis.comparisons.comparison import compare
from csit_utils.analysis.verdicts import verdict_of
from csit_utils.dataset.items import ImportedTest
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import NDR, PDR, InstanceRow, TestRow
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from tests.loaded import Dataset, load, rows_of_tests, table_rows
from tests.unit.csit_utils.builders import trial
from tests.unit.csit_utils.datasets import html_of, imported, plain
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, nfvbench, packed, pps, searched
from tests.unit.csit_utils.robot_output import write_output_xml

NDR_PPS, PDR_PPS = 6.47e6, 6.41e6
RATES = ("PDR of 6.41 Mpps", "NDR of 6.47 Mpps")


def read(folder: Path) -> Dataset:
    """One cell out of order, and one in order."""
    each = {"trials": (trial(NDR_PPS, 1, 0.0),)}
    records = [plain(1, 1, NDR_PPS, PDR_PPS, **each), plain(2, 1, PDR_PPS, NDR_PPS, **each)]
    return load([write_output_xml(folder / "output.xml", records)])


def has_remark(text: str) -> bool:
    return all(each in text for each in RATES)


def check(rows: Sequence[TestRow]) -> None:
    wrong, right = sorted(rows, key=lambda row: row.nf_chains or 0)
    assert [has_remark(line) for line in wrong.evidence.splitlines()].count(True) == 1
    for metric in (NDR, PDR):
        assert "unstable" in verdict_of(wrong, metric)
        assert verdict_of(right, metric) == ("measured",)
    assert not has_remark(right.evidence)


def test_rows_records_and_pages_of_files_and_of_a_dataset_have_the_remark(tmp_path: Path) -> None:
    dataset = read(tmp_path)
    check(rows_of_tests(dataset))
    assert [has_remark(" ".join(item.record.verdict.evidence)) for item in dataset.recorded] == [True, False]
    assert has_remark(html_of(dataset))
    imported(tmp_path / "dataset", tmp_path / "output.xml")
    stored = Stored(Layout(tmp_path / "dataset"))
    check(stored.tests)
    (wrong,) = [row.anchor for row in stored.tests if row.nf_chains == 1]
    assert has_remark(" ".join(stored.record(wrong).verdict.evidence))
    for rows in (stored.rows(InstanceRow, anchors=[wrong]), table_rows(dataset, InstanceRow)):
        assert {row.verdict for row in rows if row.anchor == wrong} == {"unstable"}


def test_a_comparison_names_the_side_that_has_it(tmp_path: Path) -> None:
    wrong, right = sorted(rows_of_tests(read(tmp_path)), key=lambda row: row.nf_chains or 0)
    a, b = compare([wrong], [wrong]).changes
    for change in (a, b):
        assert [text[:3] for text in change.remarks if has_remark(text)] == ["A: ", "B: "]
    assert not any(has_remark(" ".join(each.remarks)) for each in compare([right], [right]).changes)


def test_files_of_other_tools_get_it() -> None:
    result = csit_ndrpdr(ndr={"lower": pps(NDR_PPS)}, pdr={"lower": pps(PDR_PPS)})
    swapped = searched()
    swapped |= {"ndr": swapped["pdr"], "pdr": swapped["ndr"]}
    files = (csit(result), nfvbench({"64": swapped}), csit(csit_ndrpdr()), nfvbench({"64": searched()}))
    items = [item for data in files for item in read_foreign(packed(data), "a.json") or ()]
    rows = [item.row for item in items if isinstance(item, ImportedTest)]
    assert ["PDR of " in row.evidence for row in rows] == [True, True, False, False]
    assert [verdict_of(row, PDR) for row in rows] == [("unstable",), ("unstable",), (), ()]
    assert has_remark(rows[0].evidence)
