"""The results as a table for a terminal, or as lines for a pipe."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from csit_utils.analysis.grouping import Metric, bounds
from csit_utils.analysis.verdicts import verdict_of
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.rows import LatencyRow, TestRow
from csit_utils.report.testview import bounds_text, p99_at_half_pdr
from csit_utils.report.units import DASH, latency
from resources.libraries.python.search.verdict import verdict_text

_STYLES = {
    "failed": "red",
    "quarantined": "red",
    "quarantined:": "red",
    "no-traffic": "red",
    "affinity-lost": "red",
    "measured": "green",
}


def print_table(contents: Contents, *, why: bool = False) -> None:
    """Print one line per test.

    Args:
        contents: The tests.
        why: Print the evidence of each verdict below its test.
    """
    rows = contents.tests
    latencies: dict[str, list[LatencyRow]] = {}
    for row in contents.latency():
        latencies.setdefault(row.anchor, []).append(row)
    types = len({row.test_type for row in rows if row.recorded}) > 1
    columns = ["cell", *(["test"] if types else []), "frame", *_metrics(rows), "p99", "verdict"]
    lines = [_line(row, latencies.get(row.anchor, []), _metrics(rows), types=types) for row in rows]
    said: list[list[str]] = [row.evidence.splitlines() if why else [] for row in rows]
    if not sys.stdout.isatty():
        for line, evidence in zip([columns, *lines], [[], *said], strict=True):
            sys.stdout.write("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in line) + "\n")
            for sentence in evidence:
                sys.stdout.write("\t" * (len(line) - 1) + sentence + "\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column not in ("cell", "test", "frame", "verdict")
        table.add_column(column, justify="right" if right else "left", no_wrap=column != "verdict")
    for line, evidence in zip(lines, said, strict=True):
        style = next(
            (_STYLES[word] for word in line[-1].replace(",", " ").replace(";", " ").split() if word in _STYLES),
            "yellow",
        )
        table.add_row(*line, style=None if style == "green" else style)
        for sentence in evidence:
            table.add_row(*[""] * (len(line) - 1), sentence, style="dim")
    Console(markup=False, highlight=False).print(table)


def _metrics(rows: Sequence[TestRow]) -> list[Metric]:
    """NDR and PDR, unless no test searched for them; soak rate, MRR and ORR where a test measured them."""
    searched = any(row.ndr_loss_ratio is not None or row.pdr_loss_ratio is not None for row in rows)
    others = [
        *([Metric.SOAK] if any(row.soak_loss_ratio is not None for row in rows) else []),
        *([Metric.MRR] if any(row.mrr_pps is not None for row in rows) else []),
        *([Metric.ORR] if any(row.orr_pps is not None for row in rows) else []),
    ]
    return [*([Metric.NDR, Metric.PDR] if searched or not others else []), *others]


def _line(row: TestRow, latencies: list[LatencyRow], metrics: list[Metric], *, types: bool) -> list[str]:
    cell = f"{row.service_type} {row.nf_chains}x{row.nf_nodes}" if row.service_type and row.nf_chains else row.test_name
    sizes = f" NF-{row.nf_size}" if row.nf_size else ""
    said = [_verdicts(row, metrics) if row.status == "PASS" else f"{row.status}: {row.message}"]
    if row.simulated:
        said.insert(0, "SIMULATED")
    if row.oversubscribed and "oversubscribed" not in row.verdicts:
        said.append("oversubscribed")
    return [
        cell + sizes,
        *([row.test_type or DASH] if types else []),
        row.frame or DASH,
        *(bounds_text(row, metric) for metric in metrics),
        latency(p99_at_half_pdr(latencies)),
        " ".join(said),
    ]


def _verdicts(row: TestRow, metrics: list[Metric]) -> str:
    """The verdict of each number that the line shows."""
    numbers = {str(metric): verdict_of(row, metric) for metric in metrics if bounds(row, metric) is not None}
    return verdict_text(numbers or {"": row.verdicts.split()})
