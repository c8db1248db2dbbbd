"""The page: one HTML file with everything inside."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from csit_utils.analysis.answers import evidence
from csit_utils.analysis.grouping import Metric, per_core
from csit_utils.analysis.verdicts import verdict_of
from csit_utils.dataset.flatten import instance_rows, latency_rows, rows_of_tests, trial_rows
from csit_utils.dataset.items import Dataset
from csit_utils.dataset.rows import LatencyRow, TestRow, TrialRow
from csit_utils.report import units
from csit_utils.report.blocks import SystemView, system_views
from csit_utils.report.explain import EXPLANATIONS
from csit_utils.report.facts import GOAL_COLUMNS, environments, facts, profiles
from csit_utils.report.figures import Figure
from csit_utils.report.testview import TestView, bounds_pair, bounds_text, view_of

_TEMPLATES = Path(__file__).with_name("templates")
_Row = TypeVar("_Row", LatencyRow, TrialRow)


def render(dataset: Dataset) -> str:
    """The whole page."""
    rows = rows_of_tests(dataset)
    seen = evidence(rows, instance_rows(dataset), latency_rows(dataset), dataset.refused)
    systems = system_views(rows, dataset.refused, seen)
    tests = _test_views(dataset, rows)
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        rate=units.rate,
        bandwidth=units.bandwidth,
        latency=units.latency,
        seconds=units.seconds,
        percent=units.percent,
    )
    return environment.get_template("page.html.j2").render(
        title=_title(rows),
        facts=facts(dataset, rows),
        simulated=any(row.simulated for row in rows),
        measured=any(row.simulated is False for row in rows),
        oversubscribed=sum(bool(row.oversubscribed) for row in rows),
        systems=systems,
        tests=tests,
        not_passed=[row for row in rows if row.status != "PASS"],
        problems=dataset.problems,
        sources=list(dict.fromkeys(row.source for row in rows)),
        environments=environments(dataset.recorded),
        profiles=profiles(dataset.recorded),
        goal_columns=GOAL_COLUMNS,
        explanations=EXPLANATIONS.values(),
        figures=_figures(systems, tests),
        csv={"columns": list(TestRow.__dataclass_fields__), "rows": [list(asdict(row).values()) for row in rows]},
        types={row.test_type for row in rows if row.recorded},
        metrics=[metric for metric in Metric if any(_has(row, metric) for row in rows)],
        best_metric=_best_metric,
        bounds_pair=bounds_pair,
        bounds_text=bounds_text,
        Metric=Metric,
        per_core=per_core,
        verdict_of=verdict_of,
        relative=_relatives(systems),
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        script=Markup((_TEMPLATES / "page.js").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        plotly=Markup(get_plotlyjs()),  # noqa: S704 - the library's own file
    )


def _title(rows: Iterable[TestRow]) -> str:
    types = sorted({row.service_type for row in rows if row.service_type})
    return f"NF service density: {', '.join(types)}" if types else "NF service density"


def _has(row: TestRow, metric: Metric) -> bool:
    found = {
        Metric.NDR: row.ndr_loss_ratio,
        Metric.PDR: row.pdr_loss_ratio,
        Metric.SOAK: row.soak_loss_ratio,
        Metric.MRR: row.mrr_pps,
    }
    return found[metric] is not None


def _best_metric(row: TestRow) -> Metric:
    """The metric whose bandwidth and share per core a table shows, where it has room for one."""
    return next((metric for metric in (Metric.PDR, Metric.NDR, Metric.SOAK) if _has(row, metric)), Metric.MRR)


def _by_anchor(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    """Rows come in the order of their tests."""
    return {anchor: list(group) for anchor, group in groupby(rows, key=lambda row: row.anchor)}


def _test_views(dataset: Dataset, rows: Iterable[TestRow]) -> list[TestView]:
    latencies = _by_anchor(latency_rows(dataset))
    trials = _by_anchor(trial_rows(dataset))
    views = []
    for item, row in zip(dataset.recorded, rows, strict=False):
        anchor = row.anchor
        views.append(view_of(item, row, latencies.get(anchor, []), trials.get(anchor, [])))
    return views


def _figures(systems: Iterable[SystemView], tests: Iterable[TestView]) -> Mapping[str, Any]:
    found: list[Figure] = [figure for view in systems for block in view.blocks for figure in block.figures]
    found += [view.latency_figure for view in tests if view.latency_figure is not None]
    return {figure.identity: figure.payload() for figure in found}


def _relatives(systems: Iterable[SystemView]) -> dict[tuple[str, str], str]:
    """Throughput against 1x1 by test and metric, as the heat maps show it."""
    return {
        (cell.href.removeprefix("#"), shown.metric): cell.note
        for view in systems
        for block in view.blocks
        for metric in block.metrics
        for shown in metric.maps
        for line in shown.rows
        for cell in line
        if cell.href and cell.note
    }
