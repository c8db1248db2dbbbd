"""Each number has its verdict with the evidence on demand; a PDR below its NDR gets a remark in every reader."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from csit_utils.analysis.comparisons.comparison import compare
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import NDR, PDR, HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.studies.density.analysis.density import verdict_of
from csit_utils.studies.density.results_table import print_results
from resources.libraries.python.model.findings import HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import Finding, Verdict, VerdictKind
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset, load, rows_of_tests, table_rows
from tests.unit.csit_utils.builders import result, trial
from tests.unit.csit_utils.datasets import dataset_of, html_of, imported, plain
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, nfvbench, packed, pps, searched
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.measured_extras import LOSSES
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


def test_rows_records_pages_datasets_and_comparisons_have_the_remark(tmp_path: Path) -> None:
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
    wrong, right = sorted(rows_of_tests(dataset), key=lambda row: row.nf_chains or 0)
    sides = [[text[:3] for text in change.remarks if has_remark(text)] for change in compare([wrong], [wrong]).changes]
    assert sides == [["A: ", "B: "]] * 2
    assert not any(has_remark(" ".join(each.remarks)) for each in compare([right], [right]).changes)


def test_files_of_other_tools_get_it() -> None:
    result = csit_ndrpdr(ndr={"lower": pps(NDR_PPS)}, pdr={"lower": pps(PDR_PPS)})
    swapped = searched()
    swapped |= {"ndr": swapped["pdr"], "pdr": swapped["ndr"]}
    files = (csit(result), nfvbench({"64": swapped}), csit(csit_ndrpdr()), nfvbench({"64": searched()}))
    rows = [item.row for data in files for item in read_foreign(packed(data), "a.json")]
    assert ["PDR of " in row.evidence for row in rows] == [True, True, False, False]
    assert [verdict_of(row, PDR) for row in rows] == [("unstable",), ("unstable",), (), ()]
    assert has_remark(rows[0].evidence)


WHY_NDR = "90 of them at nf-2-1: 90 met a full receive queue"
WHY_PDR = "still met at 9 pps"
FINDINGS = (
    Finding(kind=VerdictKind.GENERATOR_BOUND, text=WHY_PDR, numbers=("PDR",)),
    Finding(kind=VerdictKind.NF_BOUND, text=WHY_NDR, numbers=("NDR", "overload")),
)
HOPS = tuple(
    HopLoss(instance=instance, direction=direction, last="a", next="b", owner=owner, cause=cause, lost=lost)
    for instance, direction, owner, cause, lost in (
        (2, Direction.REVERSE, "nf-2-1", "queue", 90),
        (1, Direction.FORWARD, "vswitch", "inside", 10),
    )
)
LOCATED = LocatedLosses(
    purpose="locate", load_pps=1e5, offered_pps=1e5, trials=1, sent=50_000, received=49_900, hops=HOPS,
    usage=Usage(threads=(ThreadLoad(owner="nf-2-1", interface="csn2x1i2", cpu=5, running=0.97, waiting=0.01),)),
)  # fmt: skip


def made(**changes: object) -> DensityRecord:
    verdict = Verdict(findings=FINDINGS)
    return result(ServiceType.CSC, 2, 1, verdict=verdict, located=LOCATED, **changes)  # type: ignore[arg-type]


def test_each_number_of_a_test_has_its_verdict_beside_it() -> None:
    html = html_of(dataset_of(made()))
    ndr, pdr = re.findall(r'<tr><th scope="row">(?:NDR|PDR)</th>.*?</tr>', html, re.S)
    assert "v-nf-bound" in ndr and WHY_NDR in ndr and "v-generator-bound" not in ndr
    assert "v-generator-bound" in pdr and WHY_PDR in pdr
    assert "v-measured" in re.search(r"<caption>[^/]*?Latency by load.*?</caption>", html, re.S)[0]
    row = re.search(r'<table[^>]* id="list".*?<tbody>\s*(<tr>.*?</tr>)', html, re.S)[1]
    limits = re.findall(r'<small>(\w+)</small> <span class="verdict v-([\w-]+)"', row)
    assert limits == [("NDR", "nf-bound"), ("PDR", "generator-bound")], "in the list of results too"
    assert re.findall(r'<small class="why">(.*?)</small>', html) == ["NF", "TG"], "and in the matrices"


@pytest.mark.parametrize("name", ["trials", "instances", "loss-patterns"])
def test_counts_are_grouped_where_they_are_read_and_plain_where_they_are_saved(name: str) -> None:
    html = html_of(dataset_of(made(losses=LOSSES)))
    table = re.search(rf'<table class="data[^>]* data-name="{name}".*?</table>', html, re.S)[0]
    cells = re.findall(r'<td class="num[^"]*"(?: data-v="([^"]*)")?>([^<]*)</td>', table)
    grouped = [(raw, text) for raw, text in cells if "," in text]
    assert grouped and all(raw == text.replace(",", "") for raw, text in grouped)
    assert not [text for _, text in cells if re.search(r"\d{4}", text)]


@pytest.mark.parametrize("why", [False, True])
def test_the_terminal_distinguishes_numbers(capsys: pytest.CaptureFixture[str], why: bool) -> None:
    print_results(InMemory(dataset_of(made())), why=why)
    _, line, *evidence = capsys.readouterr().out.splitlines()
    assert line.endswith("NDR nf-bound; PDR generator-bound")
    assert [sentence.strip() for sentence in evidence] == ([WHY_PDR, WHY_NDR] if why else [])


def test_rows_for_tables_carry_them_too() -> None:
    data = dataset_of(made())
    hops = [(row.owner, row.lost, row.lost_share) for row in table_rows(data, HopRow)]
    assert hops == [("nf-2-1", 90, 0.9), ("vswitch", 10, 0.1)]
    assert [(row.owner, row.cpu, row.running) for row in table_rows(data, ThreadRow)] == [("nf-2-1", 5, 0.97)]
    verdicts = {(row.number, row.verdict) for row in table_rows(data, InstanceRow)}
    assert verdicts == {("NDR", "nf-bound"), ("PDR", "generator-bound")}
    assert {row.verdict for row in table_rows(data, LatencyRow)} == {"measured"}
