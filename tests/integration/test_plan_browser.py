"""The page of a plan in a real browser: by pointer, by keyboard, wide and narrow, light and dark."""

from pathlib import Path

import pytest

from csit_utils.studies.density.plan_page import render_plan
from csit_utils.studies.density.plan_table import times
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.integration.browser import IN_CHROMIUM, Browser

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]
TOPOLOGIES = Path(__file__).parents[2] / "topologies"
CHOSEN = "document.querySelector('button[aria-pressed=true]')?.dataset.k"
ABOUT = "document.getElementById('about').innerText"


def page_of(folder: Path, name: str, cpus: int | None = None) -> Path:
    """The page of a testbed, with a number of CPUs where its own are to be discovered."""
    testbed = load_topology(TOPOLOGIES / f"{name}.yaml")
    cores = layout([(cpu, cpu, 0, 0) for cpu in range(cpus)]) if cpus else testbed.dut.layout
    selection = parse_selection(cells="1-10x1-10", nf_sizes="0.5c,1c", vswitch="1,4")
    rows = list(candidates(testbed, cores, selection))
    made = folder / f"{name}.html"
    made.write_text(render_plan(testbed, None, rows, times(testbed, rows, LADDER, list(TestType))), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells that fit and cells that do not."""
    return page_of(tmp_path_factory.mktemp("plan"), "sim")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells that run oversubscribed."""
    return page_of(tmp_path_factory.mktemp("plan"), "local", cpus=2)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("testbed", ["sim", "local"])
def test_it_loads_in_silence_and_stays_in_the_window(
    request: pytest.FixtureRequest, browser: Browser, testbed: str, width: int, dark: bool
) -> None:
    page = request.getfixturevalue(testbed)
    browser.look(width, 900, dark=dark)
    browser.open(page)
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page must not scroll sideways"
    picture = page.with_name(f"{testbed}-{width}-{dark}.png")
    browser.screenshot(picture)
    assert picture.stat().st_size > 20_000


def test_the_three_states_look_different_and_say_it_without_colour(browser: Browser, sim: Path, local: Path) -> None:
    colours = set()
    for page, states in ((sim, ("fits", "none")), (local, ("over",))):
        browser.look(1400, 900)
        browser.open(page)
        for state in states:
            colours.add(browser.value(f"getComputedStyle(document.querySelector('td .{state}')).backgroundColor"))
            text = browser.value(f"document.querySelector('td .{state}').innerText")
            assert text.isdigit() == (state != "none"), "a number where it runs, letters where it does not"
    assert len(colours) == 3


def test_a_click_shows_the_core_map(browser: Browser, sim: Path) -> None:
    browser.look(1400, 900)
    browser.open(sim)
    browser.value("document.querySelector('[data-k=\"CSC-2x4-1c-4c\"]').click()")
    text = browser.value(ABOUT)
    for fact in ("CSC 2x4 NF-1c vSwitch-4c", "20 receive queues on 8 data threads, 2 to 3 per thread", "10 stay free"):
        assert fact in text
    boxes = browser.value(
        "[...document.querySelectorAll('.cores > div:not(.head):not(.number)')].map((box) => box.innerText)"
    )
    assert len(boxes) == 2 * 18, "cores times threads"
    # Planned: data cores of NFs begin behind 1 system, 5 vSwitch and 4 shared main cores.
    wanted = {2: "CPU 1 vswitch main", 20: "CPU 10 nf-1-1 data 0", 21: "CPU 38 nf-1-1 data 1"}
    assert {at: " ".join(boxes[at].split()) for at in wanted} == wanted
    assert browser.value("location.hash") == "#CSC-2x4-1c-4c"


def test_a_lab_has_a_core_map_for_each_machine(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    testbed = load_topology(TOPOLOGIES / "available" / "lab-3n-vpp.yaml")
    rows = list(candidates(testbed, {}, parse_selection(service_types="CSC", cells="2x2", nf_sizes="1c")))
    page = tmp_path_factory.mktemp("lab") / "lab.html"
    page.write_text(render_plan(testbed, None, rows, times(testbed, rows, LADDER, list(TestType))), encoding="utf-8")
    browser.look(1400, 900)
    browser.open(page)
    browser.value("document.querySelector('[data-k=\"CSC-2x2-1c-1c\"]').click()")
    headings = browser.value("[...document.querySelectorAll('#about h4')].map((each) => each.innerText)")
    assert [each for each in headings if each.startswith("Core map")] == [
        "Core map", "Core map of DUT2", "Core map of TG",
    ]  # fmt: skip
    boxes = browser.value(
        "[...document.querySelectorAll('.cores')].map((map) => map.querySelectorAll('div')[7].innerText)"
    )
    assert [" ".join(each.split()) for each in boxes] == [
        "CPU 1 vswitch main", "CPU 1 vswitch-2 main", "CPU 1 generator data 0",
    ]  # fmt: skip
    tones = browser.value(
        "[...document.querySelectorAll('.thread')].filter((each) => each.innerText.startsWith('vswitch'))"
        ".map((each) => getComputedStyle(each).getPropertyValue('--tone'))"
    )
    assert len(tones) == 6
    assert len(set(tones)) == 1, "vSwitches have one colour"


def test_a_link_opens_its_cell_and_a_refused_cell_says_all_reasons(browser: Browser, sim: Path) -> None:
    browser.look(1400, 900)
    browser.open(sim, "#VSC-10x10-1c-1c")
    text = browser.value(ABOUT)
    assert "does not fit" in text
    assert "needs 153 cores on NUMA 0, 28 available" in text
    assert "needs 410624 MB of huge pages on NUMA 0, 131072 available" in text
    assert browser.value("document.querySelector('.cores')") is None


def test_arrow_keys_walk_through_a_matrix(browser: Browser, sim: Path) -> None:
    browser.look(1400, 900)
    browser.open(sim)
    browser.value("document.querySelector('[data-k=\"CSC-1x1-1c-1c\"]').focus()")
    for key, place in (("ArrowRight", "1x2"), ("ArrowDown", "2x2"), ("ArrowLeft", "2x1"), ("ArrowUp", "1x1")):
        browser.press(key)
        assert browser.value(CHOSEN) == f"CSC-{place}-1c-1c"
        assert browser.value("document.activeElement.dataset.k") == f"CSC-{place}-1c-1c"
        assert f"CSC {place} NF-1c" in browser.value(ABOUT)
    browser.press("ArrowUp")
    assert browser.value(CHOSEN) == "CSC-1x1-1c-1c", "the edge holds"


def test_a_look_is_enough_and_the_choice_comes_back(browser: Browser, sim: Path) -> None:
    browser.look(1400, 900)
    browser.open(sim, "#CSC-1x1-1c-1c")
    assert "CSC 1x1" in browser.value(ABOUT)
    over = "document.querySelector('[data-k=\"CSC-2x1-1c-1c\"]')"
    browser.value(f"{over}.dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}))")
    assert "CSC 2x1" in browser.value(ABOUT)
    browser.value("document.getElementById('matrices').dispatchEvent(new MouseEvent('mouseleave'))")
    assert "CSC 1x1" in browser.value(ABOUT)


def test_on_a_phone_the_map_opens_from_below_and_closes(browser: Browser, local: Path) -> None:
    browser.look(390, 844)
    browser.open(local)
    shown = "getComputedStyle(document.getElementById('detail')).display"
    assert browser.value(shown) == "none"
    browser.value("document.querySelector('[data-k=\"CSC-10x10-1c-1c\"]').click()")
    assert browser.value(shown) == "block"
    text = browser.value(ABOUT)
    assert "runs oversubscribed" in text
    assert "100 NF threads data: nf-1-1 to nf-10-10" in text, "a hundred boxes are one"
    assert browser.value("document.documentElement.scrollWidth") <= 390
    browser.value("document.getElementById('close').click()")
    assert browser.value(shown) == "none"
    assert browser.value("document.activeElement.dataset.k") == "CSC-10x10-1c-1c", "focus goes back to the cell"
