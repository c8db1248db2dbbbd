"""Each test with all that is known of it."""

from collections.abc import Iterable, Iterator

from csit_utils.dataset.flatten import latency_rows, trial_rows
from csit_utils.dataset.items import Dataset
from csit_utils.report.html import fill
from csit_utils.report.rendered import Rendered
from csit_utils.report.shown import Shown
from csit_utils.report.testview import TestView, view_of


def views(shown: Shown, anchors: Iterable[str]) -> Iterator[TestView]:
    """One at a time: a record with its trials is large."""
    rows = {row.anchor: row for row in shown.rows}
    for anchor in anchors:
        item = shown.contents.record(anchor)
        alone = Dataset(recorded=[item])
        yield view_of(item, rows[anchor], list(latency_rows(alone)), list(trial_rows(alone)))


def rendered(shown: Shown, anchor: str) -> Rendered:
    """The page of one test."""
    (view,) = views(shown, [anchor])
    figures = [view.latency_figure] if view.latency_figure else []
    html = fill("test.html.j2", {"test": view, "relative": relatives(shown)})
    return Rendered(anchor, view.row.test_name, html, tuple(figures))


def relatives(shown: Shown) -> dict[tuple[str, str], str]:
    """Throughput against 1x1 by test and metric, as the heat maps show it."""
    return {
        (cell.href.removeprefix("#"), metric.metric): cell.note
        for view in shown.systems
        for block in view.blocks
        for metric in block.metrics
        for each in metric.maps
        for line in each.rows
        for cell in line
        if cell.href and cell.note
    }
