"""The page and the terminal give each number its verdict, with the evidence on demand."""

import re

import pytest

from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, ThreadRow
from csit_utils.studies.density.results_table import print_results
from resources.libraries.python.model.findings.evidence import HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import Finding, Verdict, VerdictKind
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import table_rows
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of, html_of
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.measured_extras import LOSSES

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
    kinds, evidence = zip(*((finding.kind, finding.text) for finding in FINDINGS), strict=True)
    verdict = Verdict(kinds=kinds, evidence=evidence, findings=FINDINGS)
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
