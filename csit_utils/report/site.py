"""The report as a folder of pages or as one file; needs no server and no network."""

import gc
import json
import multiprocessing
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from csit_utils.dataset.flatten import latency_rows, trial_rows
from csit_utils.dataset.items import Dataset
from csit_utils.dataset.rows import OWN
from csit_utils.report.details.testview import TestView, view_of
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill, script, style
from csit_utils.report.pages import pages as all_pages
from csit_utils.report.rendered import Rendered, deflated, render, shell
from csit_utils.report.report_context import ReportContents
from csit_utils.report.runs_shown import newest_first
from resources.libraries.python.paths import write_whole

TESTS = "tests"
"""Folder of the pages of single tests."""
_BATCH = 8
_FEW = 32
"""Tests per process below which another process is not worthwhile."""
_MOST_PLAIN = 20
"""Number of tests on one page up to which their contents are not compressed, so that search and no-script work."""


def single_file(shown: ReportContents) -> str:
    """Return all pages and all tests as one HTML file."""
    pages = list(_pages(shown))
    if shown.paged:
        place = next(number for number, page in enumerate(pages) if page.name == "results") + 1
        pages.insert(place, all_rendered(shown))
    places = {anchor: "" for page in pages for anchor in page.ids}
    missing = _missing(shown, places)
    linked = [page.linked({}, missing=missing) if missing else page for page in pages]
    return shell(shown, linked, [(f"#{page.name}", page) for page in pages])


def write_site(
    shown: ReportContents, folder: Path, *, processes: int = 1, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Write a page per subject and one per test.

    Args:
        shown: The contents of the report.
        folder: Output folder, created if missing. Existing pages are replaced.
        processes: Number of processes that write pages of tests; more than one only for contents in memory.
        progress: Called with the number of written pages of tests and the total.

    Returns:
        The path of the start page.
    """
    pages = list(_pages(shown))
    assets = folder / "assets"
    write_whole(assets / "report.css", style())
    write_whole(assets / "report.js", script())
    write_whole(assets / "plotly.js", get_plotlyjs())
    files = {page.name: "index.html" if page is pages[0] else f"{page.name}.html" for page in pages}
    # A failed test is also on the page of failures; prefer its own page.
    places = {anchor: files[page.name] for page in pages for anchor in page.ids}
    places |= {anchor: f"{TESTS}/{anchor}.html" for anchor in shown.paged}
    missing = _missing(shown, places)
    for page in pages:
        navigation = [(files[other.name], other) for other in pages]
        html = shell(shown, [page.linked(places, missing=missing)], navigation, assets="assets/")
        write_whole(folder / files[page.name], html)
    navigation = [(f"../{files[page.name]}", page) for page in pages]
    TestPages(shown, folder, places, missing, navigation).write(processes, progress)
    return folder / "index.html"


def _pages(shown: ReportContents) -> Iterator[Rendered]:
    for page in all_pages():
        made = render(page, shown)
        if made is not None:
            yield made


def _missing(shown: ReportContents, places: Mapping[str, str]) -> Mapping[str, str]:
    """Text of links to tests without a page."""
    return {
        row.anchor: f"{row.test_name}: no page in this report.\n./csit show {shlex.quote(row.source)} shows it;"
        "\n./csit report --details all writes a page for every test."
        if row.recorded and row.origin == OWN
        else f"{row.test_name}: this page has all data on it."
        for row in shown.figured
        if row.anchor not in places
    }


@dataclass(frozen=True)
class TestPages:
    """Data shared by all pages of tests."""

    __test__ = False  # not a pytest class

    shown: ReportContents
    folder: Path
    places: Mapping[str, str]
    """File of each anchor of the site."""
    missing: Mapping[str, str]
    """Text of links without a target, by anchor."""
    navigation: Sequence[tuple[str, Rendered]]

    def write(self, processes: int = 1, progress: Callable[[int, int], None] | None = None) -> None:
        """Write all pages.

        Args:
            processes: Number of processes; more than one only for contents in memory, since they are forked.
            progress: Called with the number of written pages and the total.
        """
        anchors = [row.anchor for row in self.shown.rows if row.anchor in self.shown.paged]
        written = self._forked(anchors, processes) if processes > 1 and len(anchors) > _FEW else map(self._one, anchors)
        for count, _ in enumerate(written, 1):
            if progress is not None:
                progress(count, len(anchors))

    def _one(self, anchor: str) -> None:
        page = rendered(self.shown, anchor).linked(self.places, "../", self.missing)
        html = shell(self.shown, [page], self.navigation, assets="../assets/")
        write_whole(self.folder / TESTS / f"{anchor}.html", html)

    def _forked(self, anchors: Sequence[str], processes: int) -> Iterator[None]:
        # The first page fills caches that the forked processes share.
        self._one(anchors[0])
        yield
        _SHARED.append(self)
        gc.freeze()  # else a collection would copy the shared memory pages
        try:
            with multiprocessing.get_context("fork").Pool(processes) as pool:
                yield from pool.imap_unordered(_write, anchors[1:], chunksize=_BATCH)
        finally:
            gc.unfreeze()
            _SHARED.pop()


_SHARED: list[TestPages] = []
"""Inherited by forked processes: it is too large to be sent to them."""


def _write(anchor: str) -> None:
    _SHARED[-1]._one(anchor)


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
