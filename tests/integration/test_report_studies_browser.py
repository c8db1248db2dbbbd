"""Pages of studies of chains, of interference, of outages and of stateful density in a real browser."""

from pathlib import Path

import pytest

from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import write_site
from csit_utils.studies.registry import views
from tests.integration.browser import IN_CHROMIUM, WINDOWS, Browser
from tests.unit.csit_utils.characterization_records import dataset_of
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.outages import outage_record
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.csit_utils.study_records import chain_studied, interfered

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

SUSPECTS = ("1. nat > firewall", "2. ids > nat")
MAP = "document.querySelector('[data-choices]')"


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    return ReportContents(InMemory(dataset_of(chain_studied(), interfered(), outage_record(), stateful_record(998))))


@pytest.fixture(scope="module")
def site(shown: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one study of each kind."""
    return write_site(shown, tmp_path_factory.mktemp("studied")).parent


def anchors(shown: ReportContents) -> dict[str, str]:
    return {view.record.kind: view.anchor for view in views(shown.contents.characterizations)}


@WINDOWS
def test_pages_are_silent_and_no_wider_than_the_window(browser: Browser, site: Path, width: int, dark: bool) -> None:
    plots = {"index": 0, "chain_study": 9, "interference": 1, "outage": 1, "stateful": 2}
    assert browser.plots_in_window((site / f"{name}.html" for name in plots), width, dark=dark) == [*plots.values()]


@pytest.mark.parametrize("width", [800, 390])
def test_tables_of_outages_and_connections_need_no_scrolling(browser: Browser, site: Path, width: int) -> None:
    browser.look(width, 900)
    overflow = "each => each.scrollWidth > each.clientWidth ? [each.querySelector('table').dataset.name] : []"
    for name in ("outage", "stateful"):
        browser.open(site / f"{name}.html")
        assert browser.value(f"[...document.querySelectorAll('.scroll')].flatMap({overflow}).join()") == "", name
        assert browser.value("document.querySelectorAll('.scroll table').length") >= 2


def test_the_map_shows_the_chosen_metric_and_its_cells(browser: Browser, site: Path, shown: ReportContents) -> None:
    cell = f"{anchors(shown)['interference']}-map-monitor-balancer"
    browser.open(site / "interference.html", f"#{cell}")
    own = f"document.getElementById('{cell}')"
    assert browser.value(f"{own}.classList.contains('target')")
    first, colour = browser.value(f"[{own}.querySelector('b').textContent, {own}.style.background]")
    assert float(first) == pytest.approx(0.5, abs=0.03)
    browser.value(f"{own}.scrollIntoView({{ block: 'center' }})")
    browser.point(own)
    tip = "target monitor, neighbour balancer: normalized throughput"
    browser.wait(f"document.getElementById('tip').textContent.startsWith('{tip}')")
    browser.enter(f"{MAP}.querySelector('select')", "response time", "change")
    assert browser.value(f"{own}.querySelector('b').textContent") == "300 µs"
    assert browser.value(f"{MAP}.querySelector('.chosen').textContent") == "response time · without a guarantee"
    browser.enter(f"{MAP}.querySelector('select')", "normalized throughput", "change")
    browser.value(f"{MAP}.querySelectorAll('.choices button')[1].click()")
    better, other = browser.value(f"[{own}.querySelector('b').textContent, {own}.style.background]")
    assert float(better) == pytest.approx(0.75, abs=0.03) and other != colour


def test_a_suspects_chart_is_selectable_and_shows_its_events(browser: Browser, site: Path) -> None:
    browser.open(site / "chain_study.html")
    browser.show_all()
    graph = "document.querySelector('figure.plot[data-figure$=-graphs]')"
    chosen = f"{graph}.querySelector('.choices select')"
    choices = browser.value(f"[...{chosen}.options].map((each) => each.value)")
    assert choices == [f"{suspect}: {vnf}" for suspect in SUSPECTS for vnf in suspect[3:].split(" > ")]
    browser.enter(chosen, choices[1], "change")
    events = f"[...{graph}.querySelectorAll('.scatterlayer .trace')].at(-1).querySelectorAll('path.point')"
    browser.wait(f"{graph}.querySelectorAll('.scatterlayer .trace').length === 9")
    browser.value(f"{events}[0].scrollIntoView({{ block: 'center' }})")
    browser.point(f"{events}[0]")
    browser.wait(f"{graph}.querySelector('.hoverlayer').textContent.includes('times a second')")
    bars = "document.querySelector('figure.plot[data-figure$=-classes]')"
    browser.value(f"{bars}.scrollIntoView({{ block: 'center' }})")
    assert browser.value(f"{bars}.querySelectorAll('.bars .point').length") > 4


def test_suspects_are_sorted_and_lead_to_their_evidence(browser: Browser, site: Path) -> None:
    browser.open(site / "chain_study.html")
    table = "document.querySelector('table[data-name^=suspects]')"
    ranks = f"[...{table}.tBodies[0].rows].map((row) => Number(row.cells[0].textContent))"
    assert browser.value(ranks) == [1, 2]
    assert browser.value(f"{table}.parentElement.scrollWidth <= {table}.parentElement.clientWidth"), "reasons are read"
    browser.value(f"{table}.querySelectorAll('button.sort')[4].click()")
    assert browser.value(ranks) == [2, 1], "the least distance comes first now"
    browser.value(f"{table}.querySelector('tbody a[href$=suspect-2]').click()")
    browser.wait("document.querySelector('details[id$=suspect-2]').open")
