"""The page of a bisection in a real browser: silent, as wide as their window, and whole on paper."""

import base64
import re
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import pytest

from csit_utils.analysis.bisection import BisectionQuestion
from csit_utils.bisection.run import BisectionJournal, BisectionRun
from csit_utils.bisection.spec import OrderedList, Revision, revisions_of
from csit_utils.commands.runs.bisect import render_bisection
from resources.libraries.python.errors import CommandFailed
from tests.integration.browser import IN_CHROMIUM, Browser

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

_LONG = "a-branch-with-a-name-that-is-longer-than-any-column-of-a-table-on-a-telephone-or-on-paper"
_SLOW_FROM, _BROKEN = 20, 19
_HOSTILE = "<script>document.title = 'owned'</script><img src=https://example.invalid/x>"
_WIDTH_PX, _HEIGHT_PX = round(96 * (8.5 - 2 * 0.4)), round(96 * (11 - 2 * 0.4))
"""What is printed of US letter with the margins of Chromium."""


@pytest.fixture(scope="module")
def bisection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real bisection of 32 versions: one slows down, the one before it cannot be installed."""
    folder = tmp_path_factory.mktemp("bisection")
    revisions = revisions_of(OrderedList(versions=(*(f"1.{n}" for n in range(31)), f"{_LONG}-{_HOSTILE}")), Path())
    installed: list[int] = []

    def install(revision: Revision) -> None:
        installed.append(revisions.index(revision))
        if installed[-1] == _BROKEN:
            raise CommandFailed(["make", _LONG], 2, _HOSTILE)

    def measure() -> Sequence[float]:
        return ((900e3 if installed[-1] >= _SLOW_FROM else 1e6) + 1e3 * (len(installed) % 3),)

    with BisectionJournal(folder / "journal", "digest") as journal:
        result = BisectionRun(revisions, BisectionQuestion(len(revisions)), journal, install, measure).run()
    page = folder / "bisection.html"
    page.write_text(render_bisection(result, revisions, f"MRR of CSC 1x1 {_HOSTILE}", simulated=True), "utf-8")
    return page


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_silent_and_as_wide_as_its_window(
    browser: Browser, bisection: Path, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.open(bisection, scripted=False)
    assert str(browser.value("document.title")).startswith("SIMULATED: ")
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"


def test_the_bisection_draws_each_level_and_shades_the_culprit(browser: Browser, bisection: Path) -> None:
    browser.open(bisection, scripted=False)
    rows = browser.value("document.querySelectorAll('tbody tr').length")
    drawn = browser.value(
        "[...document.querySelectorAll('svg circle.mean, svg line.level, svg rect.band')].filter((one) => {"
        " const box = one.getBoundingClientRect(), all = one.closest('svg').getBoundingClientRect();"
        " return box.width + box.height > 2 && box.left >= all.left && box.right <= all.right"
        " && box.top >= all.top && box.bottom <= all.bottom; }).map((one) => one.getAttribute('class'))"
    )
    assert rows > 3
    assert (drawn.count("mean"), drawn.count("level"), drawn.count("band")) == (rows, rows, 1)
    text = str(browser.value("document.body.innerText"))
    assert f"one of 2 revisions from 1.{_BROKEN} to 1.{_SLOW_FROM}" in text
    assert _HOSTILE in text  # as text


def test_the_page_is_printed_whole(browser: Browser, bisection: Path) -> None:
    browser.look(_WIDTH_PX, _HEIGHT_PX)
    browser.open(bisection, scripted=False)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.value("document.documentElement.scrollWidth") <= _WIDTH_PX, (
            "text is cut off at the edge of the paper"
        )
        hidden = browser.value(
            "[...document.querySelectorAll('h1, h2, p, svg, tr, li')].filter((one) => !one.getClientRects().length"
            " || getComputedStyle(one).visibility !== 'visible').map((one) => one.tagName)"
        )
        assert hidden == []
        end = browser.value(
            "Math.max(...[...document.querySelectorAll('main *')].map((one) => one.getBoundingClientRect().bottom))"
        )
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")
    paper = base64.b64decode(browser.ask("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= ceil(end / _HEIGHT_PX), "what is below a limit is not printed"
