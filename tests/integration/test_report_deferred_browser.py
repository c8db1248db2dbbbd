"""What a page holds back, in a real browser: it opens without it, and it is there for whoever wants it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import single_file
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.request.cell import ServiceType
from tests.integration.browser import IN_CHROMIUM, Browser
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

ROWS = "document.querySelectorAll('#list tbody tr').length"
ENTRIES = "document.querySelectorAll('details.test').length"


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    """130 tests; the first one has all that a record can have."""
    full = result(ServiceType.CSC, 2, 2)
    return ReportContents(
        InMemory(dataset_of(full, *(plain(1, 1, 2e5 + number, test_id=f"S.{number}") for number in range(129))))
    )


@pytest.fixture(scope="module")
def page(shown: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All in one file."""
    path = tmp_path_factory.mktemp("later") / "all.html"
    path.write_text(single_file(shown), encoding="utf-8")
    return path


@pytest.fixture
def idle(browser: Browser) -> Iterator[Browser]:
    """A browser that is always busy: nothing comes by itself."""
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source="window.requestIdleCallback = () => 0;")
    yield browser
    browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_the_rest_comes_by_itself(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait("document.documentElement.dataset.complete === 'yes'")
    assert (browser.value(ROWS), browser.value(ENTRIES)) == (130, 130)


@pytest.mark.parametrize(
    "action",
    [
        "document.querySelector('#list th button.sort').click()",
        "document.querySelector('#results .saves button').click()",
        "dispatchEvent(new Event('beforeprint'))",
        "dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true }))",
    ],
)
def test_sorting_saving_printing_and_searching_use_all_rows(idle: Browser, page: Path, action: str) -> None:
    idle.open(page)
    assert (idle.value(ROWS), idle.value(ENTRIES)) == (100, 100), "it opens without the rest"
    assert idle.value("document.querySelector('#results .shown').textContent") == "130 of 130 cells"
    idle.value("csit.save = () => {}")
    idle.value(action)
    assert idle.value(ROWS) == 130


def test_the_filter_finds_what_is_held_back(idle: Browser, page: Path, shown: ReportContents) -> None:
    last = [row for row in shown.rows if row.recorded][-1]
    idle.open(page, f"#filter={last.test_type.lower()}")  # type: ignore[union-attr]
    assert idle.value("document.querySelector('#results .shown').textContent") == "130 of 130 cells"
    assert idle.value(ROWS) == 130


def test_a_link_to_a_test_that_is_held_back_unpacks_it(idle: Browser, page: Path, shown: ReportContents) -> None:
    last = [row for row in shown.rows if row.recorded][-1]
    idle.open(page, f"#{last.anchor}")
    entry = f"document.getElementById('{last.anchor}')"
    idle.wait(f"{entry}.open && {entry}.querySelector('.body .name')")
    assert last.test_id in idle.value(f"{entry}.querySelector('.body').innerText")


def test_an_entry_that_is_opened_has_plots_tables_and_the_plan(
    browser: Browser, page: Path, shown: ReportContents
) -> None:
    row = shown.rows[0]
    plan = shown.contents.record(row.anchor).plan
    assert plan is not None
    browser.open(page)
    # The page may load nothing, not even what it has made itself: what it makes is kept beside.
    browser.value(
        "{ const made = URL.createObjectURL; URL.createObjectURL = (blob) => (window.plan = blob, made(blob)); }"
    )
    entry = f"document.getElementById('{row.anchor}')"
    assert browser.value(f"{entry}.querySelector('.body')") is None
    browser.value(f"{entry}.querySelector('summary').scrollIntoView()")
    browser.value(f"{entry}.querySelector('summary').click()")
    browser.wait(f"{entry}.querySelector('figure.plot')")
    browser.value(f"{entry}.querySelector('figure.plot').scrollIntoView()")
    browser.wait(f"{entry}.querySelector('svg.main-svg')")
    assert browser.value(f"{entry}.querySelectorAll('.saves button').length") > 2
    assert browser.value(f"{entry}.querySelector('.capsule a[download]').href").startswith("blob:")
    saved = browser.value("window.plan.text()")
    assert hashlib.sha256(saved.encode()).hexdigest() == digest_of_model(plan)


def test_a_core_map_has_an_address_in_one_file_too(browser: Browser, page: Path, shown: ReportContents) -> None:
    anchor = shown.rows[0].anchor
    browser.open(page, f"#cores-{anchor}")
    assert browser.value("document.querySelector('h3.target').innerText").startswith("Core map")
    assert 0 <= browser.value("document.querySelector('h3.target').getBoundingClientRect().top") < 900
