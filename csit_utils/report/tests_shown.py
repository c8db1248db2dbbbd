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
    for anchor in anchors:
        item = shown.contents.record(anchor)
        alone = Dataset(recorded=[item])
        yield view_of(item, shown.by_anchor[anchor], list(latency_rows(alone)), list(trial_rows(alone)))


def rendered(shown: Shown, anchor: str) -> Rendered:
    """The page of one test."""
    (view,) = views(shown, [anchor])
    html = fill("test.html.j2", {"test": view, "relative": shown.relatives, "alone": True})
    return Rendered(anchor, view.row.test_name, html, view.figures)
