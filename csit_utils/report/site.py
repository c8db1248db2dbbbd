"""The report: a folder of pages that needs no server and no network, or the same in one file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from plotly.offline import get_plotlyjs

from csit_utils.dataset.contents import Contents
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill, own_file
from csit_utils.report.pages import PAGES
from csit_utils.report.rendered import Rendered, render, shell
from csit_utils.report.shown import Shown
from csit_utils.report.tests_shown import relatives, rendered, views

TESTS = "tests"
"""Folder of the pages of single tests."""


def single_file(contents: Contents) -> str:
    """All pages and all tests as one HTML file."""
    shown = Shown(contents)
    pages = list(_pages(shown))
    anchors = [row.anchor for row in shown.rows if row.recorded]
    if anchors:
        place = next(number for number, page in enumerate(pages) if page.name == "results") + 1
        pages.insert(place, _all_tests(shown, anchors))
    return shell(shown, pages, [(f"#{page.name}", page) for page in pages])


def _pages(shown: Shown) -> Iterator[Rendered]:
    for page in PAGES:
        made = render(page, shown)
        if made is not None:
            yield made


def _all_tests(shown: Shown, anchors: Sequence[str]) -> Rendered:
    every = list(views(shown, anchors))
    figures: list[Figure] = [view.latency_figure for view in every if view.latency_figure]
    html = fill("pages/tests.html.j2", {"tests": every, "relative": relatives(shown)})
    return Rendered("tests", "Tests", html, tuple(figures))


def write_site(contents: Contents, folder: Path) -> Path:
    """Write a page per subject and one per test.

    Args:
        contents: What it is made of.
        folder: Where to; made if it is not there. Pages of the same names are replaced.

    Returns:
        The page to open first.
    """
    shown = Shown(contents)
    pages = list(_pages(shown))
    assets = folder / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in ("report.css", "report.js"):
        (assets / name).write_text(own_file(name), encoding="utf-8")
    (assets / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
    files = {page.name: "index.html" if page is pages[0] else f"{page.name}.html" for page in pages}
    anchors = [row.anchor for row in shown.rows if row.recorded]
    places = {anchor: files[page.name] for page in pages for anchor in page.ids}
    places |= {anchor: f"{TESTS}/{anchor}.html" for anchor in anchors}
    for page in pages:
        navigation = [(files[other.name], other) for other in pages]
        html = shell(shown, [page.linked(places)], navigation, assets="assets/")
        (folder / files[page.name]).write_text(html, encoding="utf-8")
    (folder / TESTS).mkdir(exist_ok=True)
    navigation = [(f"../{files[page.name]}", page) for page in pages]
    for anchor in anchors:
        html = shell(shown, [rendered(shown, anchor).linked(places, "../")], navigation, assets="../assets/")
        (folder / TESTS / f"{anchor}.html").write_text(html, encoding="utf-8")
    return folder / "index.html"
