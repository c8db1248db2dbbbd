"""The pages of a bisection and of a night in a real browser: silent, as wide as their window, and whole on paper."""

import base64
import re
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import pytest

from csit_utils.analysis.bisection import BisectionQuestion
from csit_utils.bisection.page import render_bisection
from csit_utils.bisection.revisions import Revision, revisions_of
from csit_utils.bisection.run import BisectionJournal, BisectionRun
from csit_utils.bisection.spec import OrderedList
from csit_utils.night import NightChoices, TestOfNight, render_night
from resources.libraries.python.errors import CommandFailed
from tests.integration.browser import IN_CHROMIUM, Browser

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

_LONG = "a-branch-with-a-name-that-is-longer-than-any-column-of-a-table-on-a-telephone-or-on-paper"
_SLOW_FROM, _BROKEN = 20, 19
_HOSTILE = "<script>document.title = 'owned'</script><img src=https://example.invalid/x>"
_TESTS = 120
_PAPER_PX = {
    "bisection": (round(96 * (8.5 - 2 * 0.4)), round(96 * (11 - 2 * 0.4))),
    "night": (round(96 * (297 - 2 * 12) / 25.4), round(96 * (210 - 2 * 12) / 25.4)),
}
"""Width and height of what is printed: US letter with the margins of Chromium, and A4 landscape as in a report."""


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


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night of many tests, one of which failed, with tests that are open and left out."""
    folder = tmp_path_factory.mktemp("night")
    tests = [
        TestOfNight(
            run="01-uncertain", test=f"Night.a.{n}", title=f"CSC {n}R1C {_LONG}", why="uncertain: PDR ±4 %",
            seconds=60.0, status="PLANNED" if n == _TESTS - 1 else "FAIL" if n == 1 else "PASS",
            message=_HOSTILE if n == 1 else "",
        )
        for n in range(_TESTS)
    ]  # fmt: skip
    choices = NightChoices(
        topology="topologies/sim.yaml", simulated=True, hours=8.0, types="CSC", tests="MRR",
        variables={"SEARCH": "quick"}, data=(), within=0.02, unseen_days=7.0, began="2026-11-26T22:00:00+00:00",
    )  # fmt: skip
    page = folder / "night.html"
    text = render_night(choices, tests, "1 failed", [("CSC 2R1C", "uncertain")], [(_HOSTILE, _LONG)], has_report=False)
    page.write_text(text, "utf-8")
    return page


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize("name", ["bisection", "night"])
def test_pages_are_silent_and_as_wide_as_their_window(
    request: pytest.FixtureRequest, browser: Browser, name: str, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.events.clear()
    browser.open(request.getfixturevalue(name), scripted=False)
    assert browser.complaints() == []
    assert str(browser.value("document.title")).startswith("SIMULATED: ")
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"


def test_the_bisection_draws_each_level_and_shades_the_culprit(browser: Browser, bisection: Path) -> None:
    browser.look(1280, 900)
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


def test_the_night_lists_every_test_with_its_outcome(browser: Browser, night: Path) -> None:
    browser.look(1280, 900)
    browser.open(night, scripted=False)
    outcomes = browser.value("[...document.querySelectorAll('tbody tr td:nth-child(5)')].map((one) => one.innerText)")
    assert len(outcomes) == _TESTS
    assert (outcomes.count("pass"), outcomes[1], outcomes[-1]) == (_TESTS - 2, f"fail: {_HOSTILE}", "not begun")


@pytest.mark.parametrize("name", ["bisection", "night"])
def test_pages_are_printed_whole(request: pytest.FixtureRequest, browser: Browser, name: str) -> None:
    width, height = _PAPER_PX[name]
    browser.look(width, height)
    browser.open(request.getfixturevalue(name), scripted=False)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.value("document.documentElement.scrollWidth") <= width, (
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
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= ceil(end / height), "what is below a limit is not printed"
