"""Sections of single tests."""

import json
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from csit_utils.dataset.flatten import latency_rows, trial_rows
from csit_utils.dataset.items import Dataset
from csit_utils.report.deferred import deflated
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill
from csit_utils.report.rendered import Rendered
from csit_utils.report.report_context import ReportContents
from csit_utils.report.runs_shown import newest_first
from csit_utils.report.testview import TestView, view_of

_MOST_PLAIN = 20
"""Number of tests on one page up to which their contents are not compressed, so that search and no-script work."""


def views(shown: ReportContents, anchors: Iterable[str]) -> Iterator[TestView]:
    """Yield the views of tests one at a time, since records with trials are large."""
    for anchor in anchors:
        item = shown.contents.record(anchor)
        alone = Dataset(recorded=[item])
        yield view_of(item, shown.by_anchor[anchor], list(latency_rows(alone)), list(trial_rows(alone)))


def rendered(shown: ReportContents, anchor: str) -> Rendered:
    """Return the page of one test."""
    (view,) = views(shown, [anchor])
    html = _entry(view, _body(shown, view, packed=False), alone=True)
    return Rendered(anchor, view.row.test_name, html, view.figures)


def all_rendered(shown: ReportContents) -> Rendered:
    """Return all tests on one page. If there are many, each is unpacked on demand."""
    anchors = [row.anchor for row in newest_first(shown.rows, shown.history) if row.anchor in shown.paged]
    packed = len(anchors) > _MOST_PLAIN
    entries: list[Markup] = []
    insides: dict[str, str] = {}
    figures: list[Figure] = []
    for view in views(shown, anchors):
        body = _body(shown, view, packed=packed)
        entries.append(_entry(view, None if packed else body))
        if packed:
            own = {figure.identity: figure.payload() for figure in view.figures}
            inside = {"body": body, "figures": own, "plan": view.capsule.plan}
            insides[view.row.anchor] = deflated(json.dumps(inside, separators=(",", ":")))
        else:
            figures += view.figures
    html = fill("pages/tests.html.j2", {"entries": entries, "packed": packed})
    return Rendered("tests", "Tests", html, tuple(figures), packed=insides)


def _entry(view: TestView, body: Markup | None, *, alone: bool = False) -> Markup:
    return fill("test.html.j2", {"test": view, "body": body, "alone": alone})


def _body(shown: ReportContents, view: TestView, *, packed: bool) -> Markup:
    return fill("test_body.html.j2", {"test": view, "relative": shown.relatives, "packed": packed})
