"""The overview and the frame in a browser: other questions get the answers of `./csit answer`, and menus work."""

from pathlib import Path

import pytest

from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.rows import PDR
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import write_site
from csit_utils.studies.density.analysis.answers import Question
from csit_utils.studies.density.answer_text import fits_view
from resources.libraries.python.model.request.cell import ServiceType
from tests.integration.browser import IN_CHROMIUM, Browser
from tests.unit.csit_utils.builders import does_not_fit, result
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

VSC, CSC, CSP = ServiceType
READ = """[...document.querySelector('table.fits').tBodies[0].rows].map((row) => [...row.querySelectorAll('td')].map(
    (cell) => cell.dataset.v ? [cell.dataset.v, cell.querySelector('small').innerText] : null))"""
MENUS = "[...document.querySelectorAll('nav.page details')]"


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    """Cells of several densities with latency, some without, one that does not fit, and a repeated one."""
    cells = [result(kind, chains, nfs) for kind in (CSC, CSP) for chains in (1, 2, 4) for nfs in (1, 2)]
    others = [plain(8, 1, 1e5), plain(2, 1, 1.1e5, test_id="again"), does_not_fit(VSC, 8, 2), result(VSC, 1, 2)]
    asked = Unrecorded("S.a", "a", (), "output.xml", Status.SKIP, "Test skipped using 'robot:skip' tag.")
    return ReportContents(InMemory(dataset_of(*cells, *others, unrecorded=(asked,))))


@pytest.fixture(scope="module")
def site(shown: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(shown, tmp_path_factory.mktemp("site"))


def test_other_questions_have_the_answers_of_the_command(browser: Browser, shown: ReportContents, site: Path) -> None:
    browser.open(site)
    found = set()
    for rate_pps in (1e3, 2e4, 4.7e4, 1e5, 2.2e5, 1e6):
        for p99_us in (None, 1, 40, 100, 300, 5000):
            words = {"rate": f"{rate_pps:.0f}pps", "p99": "" if p99_us is None else f"{p99_us} us"}
            for number, text in enumerate(words.values()):
                browser.enter(f"document.querySelectorAll('#fits-question input')[{number}]", text)
            read = browser.value(READ)
            view = fits_view(Question(rate_pps, None if p99_us is None else p99_us * 1e3, PDR), shown.evidence)
            wanted = [[list(cell) if cell else None for cell in line.answers] for line in view.lines]
            assert read == wanted, words
            found |= {cell[1].split(":")[-1] for line in wanted for cell in line if cell}
    assert len(found) >= 5, "all kinds of limits are among the questions"
    browser.enter("document.querySelector('#fits-question input')", "fast")
    assert browser.value("document.querySelector('#fits-question [role=status]').innerText")
    assert browser.value("document.querySelector('#fits-question input').getAttribute('aria-invalid')") == "true"


def test_every_outcome_is_seen(browser: Browser, site: Path) -> None:
    browser.look(390, 900)
    browser.open(site)
    marks = "[...document.querySelectorAll('.tally .mark')].map((mark) => mark.getBoundingClientRect().left)"
    assert len(lefts := browser.value(marks)) == 3 and min(lefts) >= 0


@pytest.mark.parametrize("width", [1280, 390])
def test_menus_fit_the_window_and_close(browser: Browser, site: Path, width: int) -> None:
    browser.look(width, 900)
    browser.open(site)
    for number in range(browser.value(f"{MENUS}.length")):
        browser.value(f"{MENUS}[{number}].querySelector('summary').focus()")
        browser.press("Enter")
        browser.wait(f"{MENUS}[{number}].open")
        assert browser.value(f"{MENUS}.filter((menu) => menu.open).length") == 1
        box = browser.value(f"{MENUS}[{number}].querySelector('.menu').getBoundingClientRect().toJSON()")
        assert box["left"] >= 0 and box["right"] <= width
        assert browser.value("document.documentElement.scrollWidth") <= width
    browser.press("Escape")
    assert browser.value(f"{MENUS}.filter((menu) => menu.open).length") == 0
    assert browser.value("document.activeElement.tagName") == "SUMMARY"
    browser.value(f"{MENUS}[0].open = true")
    browser.value("document.querySelector('h1').click()")
    assert browser.value(f"{MENUS}.filter((menu) => menu.open).length") == 0
    links = "[...document.querySelectorAll('nav.page > div > a')]"
    assert browser.value(f"{links}.every((link) => link.getBoundingClientRect().right <= innerWidth)")
