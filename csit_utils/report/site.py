"""The report as a folder of pages or as one file, which needs no server and no network, and its overview."""

import base64
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import TypeVar

from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.processes import shared
from csit_utils.report.details.testview import TestView
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill, script, style, visible_dumps
from csit_utils.report.links import CellNames
from csit_utils.report.messages import write_messages
from csit_utils.report.pages import compare, environment, failures, spread, trend
from csit_utils.report.pages.environment import facts
from csit_utils.report.pages.trend import sparkline
from csit_utils.report.report_context import ReportContents, newest_first, runs_shown
from csit_utils.report.study import Page
from csit_utils.studies.density.answer_text import fits_view
from csit_utils.studies.density.headlines import testbed_views
from csit_utils.studies.registry import explanations_by_heading, record_kinds, studies
from resources.libraries.python.whole_files import write_whole

TESTS = "tests"
"""Folder of the pages of single tests."""
_FEW = 32
"""Tests per process below which another process is not worthwhile."""
_MANY = 300
"""Tests from which another process renders pages of all tests: it makes some of their data once more."""
_MAX_PLAIN = 20
"""Number of tests on one page up to which their contents are not compressed, so that search and no-script work."""
_ID = re.compile(r'id="(?<!\wid=")([^"]+)"')
"""Begins with plain text, which is found eight times as fast as a word boundary; so does the next one."""
_LINK = re.compile(r'href="#(?<!\whref="#)([^"]+)"')


def _overview(shown: ReportContents) -> Mapping[str, object]:
    blocks = (block for view in shown.systems if not view.published for block in view.blocks)
    question = next((block.questions[-1].question for block in blocks if block.questions), None)
    changed = {line.href for line in shown.changes}
    followed = ((f"#{CellNames.address(trend.cell)}", trend) for trend in shown.trends) if changed else ()
    return {
        "tally": shown.tally,
        "testbeds": testbed_views(shown.systems, shown.trends_by_cell),
        "fits": fits_view(question, shown.evidence) if question else None,
        "systems": shown.systems,
        "runs": runs_shown(shown),
        "changes": shown.changes,
        "unplaced": sum(row.recorded and row.origin != OWN and row.dimensions is None for row in shown.latest),
        "sparks": {href: sparkline(trend.values) for href, trend in followed if href in changed},
        "compared": shown.has_earlier_runs,
        "oversubscribed": sum(bool(row.oversubscribed) for row in shown.latest),
        "problems": shown.contents.problems,
        "characterizations": shown.characterizations,
        "kinds": {kind.kind: kind.name for kind in record_kinds().values()},
        "facts": facts(shown.contents),
    }


OVERVIEW = Page("overview", "Overview", _overview)


_HELP: Page[ReportContents] = Page("metrics", "Help", lambda _: {"sections": explanations_by_heading()})


@cache
def every_page() -> tuple[Page[ReportContents], ...]:
    """Return all pages in the order of the navigation.

    Links between them are written as within one page, `#anchor`; the site resolves them to files.
    """
    of_studies = (replace(page, group=study.group) for study in studies() for page in study.pages)
    after = (compare.PAGE, trend.PAGE, spread.PAGE, failures.PAGE, environment.PAGE, _HELP)
    return (OVERVIEW, *of_studies, *after)


def pages_for_two() -> tuple[Page[ReportContents], ...]:
    """Return all pages in an order for two processes, one of which begins with the first and one with the last.

    Those with trends, which take a fifth of the time of all pages, come first: only one process makes the trends.
    """
    first = (OVERVIEW, trend.PAGE, spread.PAGE)
    return (*first, *(page for page in every_page() if page not in first))


@dataclass(frozen=True)
class RenderedPage:
    """The body of a page."""

    name: str
    title: str
    html: Markup
    figures: tuple[Figure, ...]
    count: int = 0
    """Number shown in the navigation, such as failed tests."""
    group: str = ""
    """Menu of the navigation."""
    simulated: bool | None = None
    """Whether all on it is; None: as the report."""
    packed: Mapping[str, str] = field(default_factory=dict)
    """Compressed contents of test entries (`deferred.deflated`), by anchor."""

    @property
    def ids(self) -> set[str]:
        """Return all anchors."""
        return {self.name, *_ID.findall(self.html)}

    def linked(self, places: Mapping[str, str], missing: Mapping[str, TestRow], up: str = "") -> "RenderedPage":
        """Return the page with links to other files.

        Args:
            places: File by anchor, for anchors in other files.
            missing: Tests without a page by anchor, for a text instead of a link.
            up: Relative path from this page's folder to that of `places`.
        """
        own = self.ids

        def lead(found: re.Match[str]) -> str:
            anchor = found[1]
            if anchor in own:
                return found[0]
            if anchor in places:
                return f'href="{up}{places[anchor]}#{anchor}"'
            if anchor in missing:
                return f'role="note" tabindex="0" data-nopage data-tip="{escape(_no_page(missing[anchor]))}"'
            return found[0]

        html = Markup(_LINK.sub(lead, self.html))  # noqa: S704 - quotes in text are escaped, so these are our links
        return replace(self, html=html)


Progress = Callable[[int, int], None]
"""Called with the number of finished pages and the total; with 0 where pages of another kind begin."""
_Made = TypeVar("_Made")


def _silent(_done: int, _total: int) -> None:
    """Show no progress."""


Links = Sequence[tuple[str, RenderedPage]]
"""Pages with their addresses."""


def render(page: Page[ReportContents], shown: ReportContents) -> RenderedPage | None:
    """Return the body of a page; None if it is empty."""
    values = page.build(shown)
    if values is None:
        return None
    rest = dict(values)
    figures: Sequence[Figure] = rest.pop("figures", ())  # type: ignore[assignment]
    count: int = rest.pop("count", 0)  # type: ignore[assignment]
    html = fill(f"pages/{page.template or page.name}.html.j2", rest)
    return RenderedPage(page.name, page.title, html, tuple(figures), count, page.group)


def shell(shown: ReportContents, pages: Sequence[RenderedPage], navigation: Links, assets: str = "") -> str:
    """Return an HTML file.

    `pages`: its pages, in order.
    `navigation`: all pages; those that follow each other in one group are a menu.
    `assets`: relative path of the folder with style and scripts; empty: inline.
    """
    alone = pages[0].simulated if len(pages) == 1 else None
    return fill(
        "shell.html.j2",
        {
            "title": _title(shown),
            "simulated": shown.simulated if alone is None else alone,
            "measured": shown.measured if alone is None else not alone,
            "pages": pages,
            "menus": [(name, list(own)) for name, own in groupby(navigation, key=lambda link: link[1].group)],
            "home": navigation[0][0],
            "figures": {figure.identity: figure.payload() for page in pages for figure in page.figures},
            "assets": assets,
            "plotly": None if assets else plotly(),
            "style": style(),
            "script": script(),
        },
    )


def _title(shown: ReportContents) -> str:
    types = shown.service_types
    if not types and shown.characterizations:
        return "NF characterization"
    return f"NF service density: {', '.join(types)}" if types else "NF service density"


def _marked_title(shown: ReportContents) -> str:
    """Return the title of a text that has no room for a banner."""
    mark = "partly SIMULATED: " if shown.measured else "SIMULATED: "
    return mark * shown.simulated + _title(shown)


def deflated(text: str) -> str:
    """Return a text as a zlib stream (RFC 1950) in base64, which `script/deferred_content.js` reads."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


@cache
def plotly() -> str:
    """Return the plot library, compressed."""
    return deflated(get_plotlyjs())


def single_file(shown: ReportContents, progress: Progress = _silent) -> str:
    """Return all pages and all tests as one HTML file."""
    pages = list(_pages(shown, progress))
    if shown.paged:
        place = next(number for number, page in enumerate(pages) if page.name == "results") + 1
        pages.insert(place, all_rendered(shown, progress))
    places = {anchor: "" for page in pages for anchor in page.ids}
    missing = _missing(shown, places)
    linked = [page.linked({}, missing) if missing else page for page in pages]
    return shell(shown, linked, [(f"#{page.name}", page) for page in pages])


def write_site(
    shown: ReportContents, folder: Path, *, processes: int = 1, progress: Progress = _silent, url: str = ""
) -> Path:
    """Write a page per subject and one per test, and a message that sums them up.

    `folder`: output folder, created if missing. Existing pages are replaced.
    `processes`: the most processes that render pages: two for the pages of all tests, every one for pages of single
      tests. They are forked, and read contents in memory or of a dataset.
    `progress`: called with the number of pages, and then with that of pages of tests.
    `url`: address at which the folder will be published, for links in the message; empty: links are relative.

    Returns:
        The path of the start page.
    """
    pages = list(_pages(shown, progress, processes))
    assets = folder / "assets"
    write_whole(assets / "report.css", style(), sync=False)
    write_whole(assets / "report.js", script(), sync=False)
    write_whole(assets / "plotly.js", get_plotlyjs(), sync=False)
    files = {page.name: "index.html" if page is pages[0] else f"{page.name}.html" for page in pages}
    # A failed test is also on the page of failures; prefer its own page.
    places = {anchor: files[page.name] for page in pages for anchor in page.ids}
    places |= {anchor: f"{TESTS}/{anchor}.html" for anchor in shown.paged}
    missing = _missing(shown, places)

    def write_subjects() -> None:
        navigation = [(files[page.name], page) for page in pages]
        for page in pages:
            html = shell(shown, [page.linked(places, missing)], navigation, assets="assets/")
            write_whole(folder / files[page.name], html, sync=False)
        write_messages(shown, _marked_title(shown), folder, places, url)

    from_tests = [(f"../{files[page.name]}", page) for page in pages]

    def write_test(anchor: str) -> str:
        page = rendered(shown, anchor).linked(places, missing, "../")
        html = shell(shown, [page], from_tests, assets="../assets/")
        write_whole(folder / TESTS / f"{anchor}.html", html, sync=False)
        return anchor

    anchors = [row.anchor for row in shown.rows if row.anchor in shown.paged]
    # The first page fills caches that the forked processes share.
    first, rest = anchors[:1], anchors[1:]
    several = processes if len(rest) >= _FEW else 1
    written = chain(map(write_test, first), shared(write_test, rest, several, meanwhile=write_subjects))
    for _ in _counted(written, len(anchors), progress):
        pass
    return folder / "index.html"


def _pages(shown: ReportContents, progress: Progress, processes: int = 1) -> Iterator[RenderedPage]:
    """Yield the pages in order.

    With two processes, this one begins with the first, whose data the pages of tests need as well.
    """
    every = every_page()
    if (several := min(processes, 2) if len(shown.rows) >= _MANY else 1) > 1:
        # What is damaged is noted where it is read, and reported by this process.
        _ = shown.contents.refused, shown.contents.environments, shown.contents.characterizations
    made = shared(lambda page: (page.name, render(page, shown)), pages_for_two(), several, from_both_ends=True)
    by_name = dict(_counted(made, len(every), progress))
    yield from (page for each in every if (page := by_name[each.name]) is not None)


def _counted(made: Iterable[_Made], total: int, progress: Progress) -> Iterator[_Made]:
    """Yield what is made, and report its number."""
    progress(0, total)
    for count, each in enumerate(made, 1):
        progress(count, total)
        yield each


def _missing(shown: ReportContents, places: Mapping[str, str]) -> Mapping[str, TestRow]:
    """Return tests without a page by anchor."""
    return {row.anchor: row for row in shown.figured if row.anchor not in places}


def _no_page(row: TestRow) -> str:
    """Return the text of links to a test without a page."""
    if not row.recorded or row.origin != OWN:
        return f"{row.test_name}: this page has all data on it."
    return (
        f"{row.test_name}: no page in this report.\n./csit show {shlex.quote(row.source)} shows it;"
        "\n./csit report --details all writes a page for every test."
    )


def views(shown: ReportContents, anchors: Iterable[str]) -> Iterator[TestView]:
    """Yield the views of tests one at a time, since records with trials are large."""
    for anchor in anchors:
        yield TestView(shown.contents.record(anchor), shown.by_anchor[anchor])


def rendered(shown: ReportContents, anchor: str) -> RenderedPage:
    """Return the page of one test."""
    (view,) = views(shown, [anchor])
    html = _entry(view, _body(shown, view, packed=False), alone=True)
    return RenderedPage(anchor, view.row.test_name, html, view.figures, simulated=bool(view.row.simulated))


def all_rendered(shown: ReportContents, progress: Progress = _silent) -> RenderedPage:
    """Return all tests on one page. If there are many, each is unpacked on demand."""
    anchors = [row.anchor for row in newest_first(shown.rows, shown.history) if row.anchor in shown.paged]
    packed = len(anchors) > _MAX_PLAIN
    entries: list[Markup] = []
    insides: dict[str, str] = {}
    figures: list[Figure] = []
    for view in _counted(views(shown, anchors), len(anchors), progress):
        body = _body(shown, view, packed=packed)
        entries.append(_entry(view, None if packed else body))
        if packed:
            own = {figure.identity: figure.payload() for figure in view.figures}
            inside = {"body": body, "figures": own, "plan": view.capsule.plan}
            insides[view.row.anchor] = deflated(visible_dumps(inside, separators=(",", ":")))
        else:
            figures += view.figures
    html = fill("pages/tests.html.j2", {"entries": entries, "packed": packed})
    return RenderedPage("tests", "Tests", html, tuple(figures), group="Density", packed=insides)


def _entry(view: TestView, body: Markup | None, *, alone: bool = False) -> Markup:
    return fill("test.html.j2", {"test": view, "body": body, "alone": alone})


def _body(shown: ReportContents, view: TestView, *, packed: bool) -> Markup:
    return fill("test_body.html.j2", {"test": view, "relative": shown.relatives, "packed": packed})
