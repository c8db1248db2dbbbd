"""The page and the terminal give each number its verdict, with the evidence on demand."""

import io
import re
import sys

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
HOPS = (
    HopLoss(
        instance=2, direction=Direction.REVERSE, last="csv2p2", next="csn2x1i2", owner="nf-2-1", cause="queue",
        lost=90,
    ),
    HopLoss(
        instance=1, direction=Direction.FORWARD, last="csv1p1", next="csv1x1i1", owner="vswitch", cause="inside",
        lost=10,
    ),
)  # fmt: skip
LOCATED = LocatedLosses(
    purpose="locate", load_pps=1e5, offered_pps=1e5, trials=1, sent=50_000, received=49_900, hops=HOPS,
    usage=Usage(threads=(ThreadLoad(owner="nf-2-1", interface="csn2x1i2", cpu=5, running=0.97, waiting=0.01),)),
)  # fmt: skip


def made(**changes: object) -> DensityRecord:
    verdict = Verdict(
        kinds=tuple(finding.kind for finding in FINDINGS),
        evidence=tuple(finding.text for finding in FINDINGS),
        findings=FINDINGS,
    )
    return result(ServiceType.CSC, 2, 1, verdict=verdict, located=LOCATED, **changes)  # type: ignore[arg-type]


def test_each_number_of_a_test_has_its_verdict_beside_it() -> None:
    html = html_of(dataset_of(made()))
    ndr, pdr = re.findall(r'<tr><th scope="row">(?:NDR|PDR)</th>.*?</tr>', html, re.S)
    assert "v-nf-bound" in ndr
    assert WHY_NDR in ndr
    assert "v-generator-bound" not in ndr
    assert "v-generator-bound" in pdr
    assert WHY_PDR in pdr
    latency = re.search(r"<caption>[^/]*?Latency by load.*?</caption>", html, re.S)
    assert latency
    assert "v-measured" in latency[0]
    # The same in the list of results and in the matrices.
    row = re.search(r'<table[^>]* id="list".*?<tbody>\s*(<tr>.*?</tr>)', html, re.S)
    assert row
    limits = re.findall(r'<small>(\w+)</small> <span class="verdict v-([\w-]+)"', row[1])
    assert limits == [("NDR", "nf-bound"), ("PDR", "generator-bound")]
    cells = re.findall(r'<small class="why">(.*?)</small>', html)
    assert cells == ["NF", "TG"]


@pytest.mark.parametrize("name", ["trials", "instances", "loss-patterns"])
def test_counts_are_grouped_where_they_are_read_and_plain_where_they_are_saved(name: str) -> None:
    html = html_of(dataset_of(made(losses=LOSSES)))
    table = re.search(rf'<table class="data[^>]* data-name="{name}".*?</table>', html, re.S)
    assert table
    cells = re.findall(r'<td class="num[^"]*"(?: data-v="([^"]*)")?>([^<]*)</td>', table[0])
    grouped = [(raw, text) for raw, text in cells if "," in text]
    assert grouped
    assert all(raw == text.replace(",", "") for raw, text in grouped)
    assert not [text for _, text in cells if re.search(r"\d{4}", text)]


def test_rows_for_tables_carry_them_too() -> None:
    data = dataset_of(made())
    assert [(row.owner, row.lost, row.lost_share) for row in table_rows(data, HopRow)] == [
        ("nf-2-1", 90, 0.9),
        ("vswitch", 10, 0.1),
    ]
    assert [(row.owner, row.cpu, row.running) for row in table_rows(data, ThreadRow)] == [("nf-2-1", 5, 0.97)]
    assert {(row.number, row.verdict) for row in table_rows(data, InstanceRow)} == {
        ("NDR", "nf-bound"),
        ("PDR", "generator-bound"),
    }
    assert {row.verdict for row in table_rows(data, LatencyRow)} == {"measured"}


@pytest.mark.parametrize("why", [False, True])
def test_the_terminal_distinguishes_numbers(monkeypatch: pytest.MonkeyPatch, why: bool) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    print_results(InMemory(dataset_of(made())), why=why)
    _, line, *evidence = out.getvalue().splitlines()
    assert line.endswith("NDR nf-bound; PDR generator-bound")
    assert [sentence.strip() for sentence in evidence] == ([WHY_PDR, WHY_NDR] if why else [])
