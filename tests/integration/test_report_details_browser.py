"""Pages of latency, losses, repeated runs, failures, environments and of a test with everything in a real browser."""

from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from csit_utils.dataset.items import Recorded, Status
from csit_utils.report.html import script, style
from csit_utils.report.pages import environment, failures, spread
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render, rendered, shell
from csit_utils.studies.density.pages import fairness, latency, losses
from resources.libraries.python.model.findings import HopLoss, LocatedLosses
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.studies.density.model import DensityRecord
from tests.builders import cpu_noise, qualification, qualified_point
from tests.integration.browser import IN_CHROMIUM, WINDOWS, Browser
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.measured_extras import BURSTS, LOSSES, METERED

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

PAGES = (latency.PAGE, fairness.PAGE, losses.PAGE, spread.PAGE, failures.PAGE, environment.PAGE)
HOSTILE = "</script><img src=https://example.invalid/x onerror=alert(1)>"
LOST = LocatedLosses(
    purpose="locate",
    load_pps=1e6,
    offered_pps=1e6,
    trials=1,
    sent=1000,
    received=900,
    hops=tuple(
        HopLoss(instance=1, direction=Direction.FORWARD, last="a", next="b", owner=owner, cause="queue", lost=lost)
        for owner, lost in (("vswitch", 60), ("nf-1-1", 40))
    ),
)
EXTRAS = {
    "energy": METERED,
    "losses": LOSSES,
    "back_to_back": BURSTS,
    "noise": (cpu_noise(3, 57_000), cpu_noise(4, 9_000)),
    "qualification": qualification(qualified_point(), qualified_point(size="1518B", loss_free_pps=None)),
}
"""What a test measures besides rates and latency."""
PICTURES = ("latency", "energy", "losses", "bursts", "qualification", "noise")
"""First words of the names of its figures."""


def night(day: int) -> list[DensityRecord]:
    """The tests of a night; a kernel came with the third one, and one cell hung then."""
    found = []
    for chains in (1, 2):
        one = result(ServiceType.CSC, chains, 1, located=LOST, **EXTRAS)
        kernel = "6.19.0" if day > 2 else one.environment.kernel
        machine = one.environment.model_copy(update={"kernel": kernel, "distribution": HOSTILE})
        started = f"2026-01-{day:02d}T00:0{chains}:00Z"
        found.append(one.model_copy(update={"environment": machine, "started_at": started, "finished_at": started}))
    if day == 3:
        found[1] = found[1].model_copy(update={"passed": False, "message": f"nf-2-1 hung: {HOSTILE}"})
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our pages in files of their own, and the page of a test."""
    dataset = Dataset()
    for day in (1, 2, 3, 4):
        for one in night(day):
            dataset.add(Recorded(one, f"{day}.xml", Status.PASS if one.passed else Status.FAIL, one.message))
    shown = ReportContents(InMemory(dataset))
    made = [found for page in PAGES if (found := render(page, shown)) is not None]
    assert len(made) == len(PAGES)
    row = max(shown.rows, key=lambda row: (row.status == "PASS", row.nf_chains or 0))
    made.append(rendered(shown, row.anchor))
    out = tmp_path_factory.mktemp("details")
    (out / "assets").mkdir()
    for name, text in (("report.css", style()), ("report.js", script()), ("plotly.js", get_plotlyjs())):
        (out / "assets" / name).write_text(text, encoding="utf-8")
    for page in made:
        name = "test" if page is made[-1] else page.name
        text = shell(shown, [page], [(f"{page.name}.html", page)], assets="assets/")
        (out / f"{name}.html").write_text(text, encoding="utf-8")
    return out


@WINDOWS
def test_all_pages_are_silent_and_as_wide_as_the_window(browser: Browser, folder: Path, width: int, dark: bool) -> None:
    files = sorted(folder.glob("*.html"))
    plots = dict(zip(files, browser.plots_in_window(files, width, dark=dark), strict=True))
    assert plots[folder / "test.html"] > 2


def test_a_heat_map_shows_what_is_chosen(browser: Browser, folder: Path) -> None:
    browser.open(folder / "latency.html")
    cell = "document.querySelector('table.heat tbody tr:nth-child(2) td')"
    before = browser.value(f"[{cell}.textContent, {cell}.dataset.tip, {cell}.style.background]")
    assert "p99 " in before[1] and "PDR50" in before[1]
    for choice in ("p50", "PDR90"):
        browser.click("[data-choices] .choices button", choice)
    after = browser.value(f"[{cell}.textContent, {cell}.dataset.tip, {cell}.style.background]")
    assert "p50 " in after[1] and "PDR90" in after[1]
    assert after[0] != before[0]
    assert after[2] != before[2]
    assert browser.value("document.querySelector('.chosen').textContent") == "p50 · PDR90 · worst of both"
    assert browser.value(f"{cell}.querySelector('a').getAttribute('href')").startswith("#test-csc-2r1c")
    name, text, *_ = browser.saved("document.querySelector('.map .saves button').click()")
    assert name.startswith("latency-map-1-1")
    assert float(text.splitlines()[2].split(",")[1]) > 1000, "nanoseconds, for machines"


def test_the_part_that_loses_most_is_coloured_and_shares_have_a_scale(browser: Browser, folder: Path) -> None:
    browser.open(folder / "losses.html")
    cell, scale = "document.querySelector('table.heat td.c-value')", "document.querySelector('.scale')"
    assert browser.value(f"{cell}.textContent.trim()") == "vSwitch60 %"
    assert browser.value(f"getComputedStyle({scale}).display") == "none"
    browser.value("document.querySelectorAll('[data-choices] .choices button')[2].click()")
    assert browser.value(f"{cell}.textContent.trim()") == "40 %"
    assert browser.value(f"{scale}.textContent.trim().replace(/\\s+/g, ' ')") == "0 %100 %"


def test_two_environments_are_chosen_and_compared(browser: Browser, folder: Path) -> None:
    browser.open(folder / "environment.html")
    rows = (
        "[...document.querySelectorAll('.pair tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert browser.value(rows) == [["kernel", "6.18.4-amd64", "6.19.0"]]
    browser.value("document.querySelector('.pair input').click()")
    every = browser.value(rows)
    assert ["distribution", HOSTILE, HOSTILE] in every, "text stays text"
    browser.value("document.querySelector('.pair input').click()")
    browser.enter("document.querySelectorAll('.pair select')[0]", "0", "change")
    assert browser.value(rows) == [["No recorded difference."]]


def test_a_test_shows_energy_losses_bursts_qualification_and_noise(browser: Browser, folder: Path) -> None:
    browser.open(folder / "test.html")
    browser.show_all()
    names = browser.value("[...document.querySelectorAll('figure.plot')].map((each) => each.dataset.figure)")
    assert [name.split("-")[0] for name in names] == list(PICTURES)
    drawn = browser.value(
        "[...document.querySelectorAll('figure.plot')].map((each) => each.querySelectorAll("
        "'.scatterlayer .trace, .barlayer .trace').length)"
    )
    assert all(drawn), dict(zip(names, drawn, strict=True))
    text = browser.value("document.body.innerText")
    for part in ("90.00 ± 0.5 W", "310 ± 10 frames of each flow", "Noise floor", "DUT1 by powercap"):
        assert part in text, part
    link = "document.querySelector('.capsule a[download]')"
    plan = browser.value(f"JSON.parse(atob({link}.href.split(',')[1])).cell.nf_chains")
    assert plan == 2
    assert "./csit robot" in browser.value("document.querySelector('.capsule pre').textContent")


def test_points_of_a_box_say_which_run_they_are(browser: Browser, folder: Path) -> None:
    browser.open(folder / "spread.html")
    browser.show_all()
    browser.value("document.querySelector('.canvas').scrollIntoView({ block: 'center' })")
    points = "[...document.querySelectorAll('.canvas .trace.boxes path.point')]"
    assert browser.value(f"{points}.length") == 7, "4 nights of one cell and 3 of the other"
    browser.point(f"{points}[0]")
    browser.wait("document.querySelector('.hoverlayer .hovertext')")
    told = browser.value("document.querySelector('.hoverlayer').textContent")
    assert "1x1: 0, 2026-01-0" in told
