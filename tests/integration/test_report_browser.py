"""The report in a real browser: nothing is fetched, nothing goes wrong, and what can be clicked works."""

import json
from pathlib import Path

import pytest

from csit_utils.dataset.reference import FDIO_2019, reference_items
from csit_utils.report.report_context import Details, ReportContents
from csit_utils.report.site import single_file, write_site
from resources.libraries.python.model.request.cell import ServiceType
from tests.integration.browser import IN_CHROMIUM, WINDOWS, Browser
from tests.loaded import load
from tests.unit.csit_utils.builders import does_not_fit, mrr_result, result
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.robot_output import write_output_xml

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

HOSTILE = "</script><script>document.title='owned'</script><img src=https://example.invalid/x onerror=alert(1)>"
MAP = "document.querySelector('.map[data-map]')"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ReportContents:
    """Measured, simulated, oversubscribed, failed, hostile and published results."""
    folder = tmp_path_factory.mktemp("input")
    results = [
        result(ServiceType.CSC, 1, 1),
        result(ServiceType.CSC, 2, 1),
        result(ServiceType.CSC, 2, 2, oversubscribed=True, histograms=False),
        result(ServiceType.CSP, 1, 1, histograms=False, test_name=HOSTILE, testbed="local"),
        mrr_result(ServiceType.CSC, 1, 1),
        does_not_fit(ServiceType.CSP, 2, 1),
    ]
    source = write_output_xml(folder / "output.xml", results, [(HOSTILE, "Fail", HOSTILE, ("CSC", "1R2C"))])
    model = write_output_xml(folder / "sim.xml", [result(ServiceType.CSC, 1, 1, simulated=True, histograms=False)])
    dataset = load([source, model])
    for item in reference_items(FDIO_2019):
        dataset.add(item)
    return ReportContents(InMemory(dataset))


@pytest.fixture(scope="module")
def site(shown: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site."""
    return write_site(shown, tmp_path_factory.mktemp("site"), processes=2).parent


def pages_of(site: Path) -> list[Path]:
    """The pages; the message beside them is an e-mail and has no script."""
    return sorted(page for page in site.glob("*.html") if page.name != "message.html")


@WINDOWS
def test_every_page_is_silent_and_as_wide_as_its_window(browser: Browser, site: Path, width: int, dark: bool) -> None:
    assert sum(browser.plots_in_window(pages_of(site), width, dark=dark)) >= 8


def test_all_of_it_in_one_file(browser: Browser, shown: ReportContents, tmp_path: Path) -> None:
    page = tmp_path / "all.html"
    page.write_text(single_file(shown), encoding="utf-8")
    browser.open(page)
    first = browser.value("document.querySelector('details.test figure.plot').closest('details.test').id")
    browser.open(page, f"#{first}")
    assert browser.value(f"document.getElementById('{first}').open") is True
    browser.wait(f"document.querySelector('#{first} svg.main-svg')")


def test_every_page_has_a_title_of_its_own_and_every_link_leads_somewhere(browser: Browser, site: Path) -> None:
    ids: dict[Path, set[str]] = {}
    links: set[tuple[Path, str]] = set()
    titles = set()
    for page in (*pages_of(site), *list((site / "tests").glob("*.html"))[:2]):
        browser.open(page)
        titles.add(title := browser.value("document.title"))
        assert title.startswith("partly SIMULATED: ") or page.parent.name == "tests"
        ids[page.resolve()] = set(browser.value("[...document.querySelectorAll('[id]')].map((one) => one.id)"))
        found = browser.value("[...document.querySelectorAll('a[href]')].map((one) => one.getAttribute('href'))")
        links |= {(page, link) for link in found if not link.startswith(("data:", "blob:"))}
    assert len(titles) == len(ids)
    for page, link in links:
        file, _, anchor = link.partition("#")
        target = ((page.parent / file) if file else page).resolve()
        assert target.exists(), f"{page.name}: {link}"
        if target in ids and anchor and "=" not in anchor:
            assert anchor in ids[target], f"{page.name}: {link}"


def test_heat_map_shows_values_and_reasons(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    cells = browser.value("[...document.querySelectorAll('.heat td[data-tip]')].map((cell) => cell.innerText)")
    assert any(text.startswith("2") for text in cells)
    assert {"does not fit", "failed", "not run"} <= set(cells)
    colours = browser.value(
        "[...document.querySelectorAll('.heat td.c-value')].map((cell) => getComputedStyle(cell).backgroundColor)"
    )
    assert len(set(colours)) > 2
    browser.value("document.querySelector('.heat td.over a').focus()")
    assert "OVERSUBSCRIBED" in browser.value("document.getElementById('tip').innerText")


def test_arrow_keys_go_through_a_heat_map(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    stops = f"{MAP}.querySelectorAll('td a:not(.to-cores), td span[tabindex]')"
    at = f"[...{stops}].indexOf(document.activeElement)"
    browser.value(f"{MAP}.querySelector('td a').focus()")
    columns = browser.value(f"{MAP}.querySelectorAll('thead tr:last-child th').length - 1")
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"):
        browser.press(key)
        seen.append(browser.value(at))
    assert seen == [1, columns + 1, columns, 0, 0]
    assert browser.value("document.querySelectorAll('.heat th.looked').length") == 2


def test_a_link_to_a_cell_shows_it_with_what_it_says(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    anchor = browser.value("document.querySelector('.heat td.over').id")
    assert anchor.startswith("csc-2x2-ndr-64b-1c-vs1-")
    browser.open(site / "density.html", f"#{anchor}")
    assert browser.value(f"document.getElementById('{anchor}').matches('.target')")
    assert "CSC 2x2" in browser.value("document.getElementById('tip').innerText")
    browser.open(site / "index.html")
    href = browser.value("document.querySelector('.carried a').getAttribute('href')")
    assert href.startswith("density.html#csc-2x2-pdr-")


def test_maps_are_chosen_by_what_they_are_of(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    select = "[...document.querySelectorAll('#map-choices select')].find((one) => one.ariaLabel === 'metric')"
    browser.enter(select, "MRR", "change")
    left = browser.value("[...document.querySelectorAll('.map[data-map]')].filter((map) => map.offsetParent).length")
    assert left == 1
    assert browser.value("document.querySelector('#map-choices .shown').textContent").startswith("1 of ")


def beside(browser: Browser, a: str, b: str, mode: str) -> None:
    """Choose two maps by a part of their titles."""
    browser.value("document.getElementById('beside').scrollIntoView()")
    browser.click("#beside button", mode)
    for side, part in (("A", a), ("B", b)):
        select = f"document.querySelector('#beside select[aria-label=\"map {side}\"]')"
        place = browser.value(f"[...{select}.options].findIndex((one) => one.textContent.includes('{part}'))")
        assert place >= 0, part
        browser.enter(select, str(place), "change")


PUBLISHED = "(published) · 64B · CSC · NF-{}c · vSwitch-1c · NDR"


def test_two_maps_of_like_figures_have_a_difference(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    beside(browser, PUBLISHED.format("0.5"), PUBLISHED.format("1"), "difference")
    cells = browser.value("[...document.querySelectorAll('.stage td[data-v]')].map((one) => one.dataset.v)")
    half, one = (
        browser.value(
            f"Object.fromEntries([...[...document.querySelectorAll('.map[data-map]')].find((map) => map.dataset.map"
            f".includes('{PUBLISHED.format(size)}')).querySelectorAll('td[data-v]')].filter((one) => one.dataset.v)"
            ".map((one) => [one.id.split('-')[1], Number(one.dataset.v)]))"
        )
        for size in ("0.5", "1")
    )
    expected = [one[place] / half[place] - 1 for place in one if place in half]
    assert sorted(float(raw) for raw in cells if raw) == pytest.approx(sorted(expected))
    assert len(expected) == 19, "as many as the slides have of the larger NF"
    assert len(cells) == 36, "and the others say why they have none"

    beside(browser, "(simulated)", PUBLISHED.format("1"), "difference")
    said = "document.querySelector('#beside .explanation').innerText"
    assert "Not comparable: A is simulated" in browser.value(said), "unlike figures have none"
    assert browser.value("document.querySelectorAll('.stage table').length") == 0
    beside(browser, "(simulated)", PUBLISHED.format("1"), "side by side")
    assert browser.value("document.querySelectorAll('.stage table').length") == 2
    assert "Not comparable" in browser.value(said)


def test_filter_by_address_and_by_typing(browser: Browser, site: Path) -> None:
    browser.open(site / "results.html", "#filter=csc%202x1")
    assert browser.value("document.querySelector('.shown').textContent") == "1 of 6 cells"
    browser.enter("document.querySelector('.tools input')", "CSP")
    assert browser.value("[...document.querySelectorAll('#list tbody tr')].filter((row) => !row.hidden).length") == 2
    assert browser.value("location.hash") == "#filter=CSP"


def test_sorting_by_keyboard_keeps_the_unknown_last(browser: Browser, site: Path) -> None:
    browser.open(site / "results.html")
    column = browser.value(
        "[...document.querySelectorAll('#list thead th')].findIndex((one) => one.innerText.startsWith('NDR'))"
    )
    rates = (
        f"[...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[{column}].dataset.v)"
        ".map((text) => text === '' ? null : Number(text))"
    )
    for order in ("ascending", "descending"):
        browser.value(f"document.querySelectorAll('#list thead th')[{column}].querySelector('button').focus()")
        browser.press("Enter")
        assert browser.value(f"document.querySelectorAll('#list thead th')[{column}].ariaSort") == order
        values = browser.value(rates)
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=order == "descending")
        assert values[len(known) :] == [None]


def test_tables_are_saved_as_they_are_shown(browser: Browser, site: Path) -> None:
    browser.open(site / "results.html", "#filter=csc%202x1")
    name, text, kind = browser.saved("document.querySelector('.saves button').click()")
    head, line = text.splitlines()
    assert (name, kind) == ("results.csv", "text/csv")
    assert float(line.split(",")[head.split(",").index("ndr_pps")]) > 1000
    name, text, _ = browser.saved("document.querySelectorAll('.saves button')[1].click()")
    assert name == "results.md"
    assert text.startswith("| Cell |")
    assert len(text.splitlines()) == 3
    browser.value("csit.addresses.filter('')")
    _, text, _ = browser.saved("document.querySelectorAll('.saves button')[1].click()")
    assert "<img" not in text


def test_counts_are_saved_without_the_separators_that_are_shown(browser: Browser, site: Path) -> None:
    browser.open(next((site / "tests").glob("*ndrpdr*.html")))
    table = "document.querySelector('table[data-name=trials]')"
    shown = browser.value(f"{table}.tBodies[0].rows[0].cells[6].textContent")
    _, text, _ = browser.saved(f"{table}.closest('.scroll').parentElement.querySelector('.saves button').click()")
    head, line, *_ = text.splitlines()
    assert "," in shown
    assert line.split(",")[head.split(",").index("sent")] == shown.replace(",", "")


@pytest.mark.parametrize("what", [".plot", ".map[data-map]"])
def test_plots_and_maps_are_saved_as_pictures_without_a_network(browser: Browser, site: Path, what: str) -> None:
    browser.look(1280, 900, dark=True)
    browser.open(site / "density.html")
    browser.value(f"document.querySelector('{what}').scrollIntoView()")
    browser.wait(f"document.querySelectorAll('{what} :is(.pictures, .saves) button').length > 1")
    click = "[...document.querySelectorAll('{} button')].find((one) => one.textContent === '{}').click()"
    name, picture, *_ = browser.saved(click.format(what, "SVG"))
    assert name.endswith(".svg")
    assert "<svg" in browser.value(f"decodeURIComponent({json.dumps(picture)})")
    assert "fill: rgb(255, 255, 255)" in browser.value(f"decodeURIComponent({json.dumps(picture)})"), "on paper"
    name, picture, *_ = browser.saved(click.format(what, "PNG"))
    assert name.endswith(".png")
    assert len(picture) > 20_000


def test_light_and_dark_are_chosen_and_remembered(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(background)
    browser.value("document.getElementById('scheme').click()")
    assert browser.value(background) != light
    browser.open(site / "metrics.html")
    assert browser.value("document.documentElement.dataset.scheme") == "dark"
    browser.value("document.getElementById('scheme').click()")
    assert browser.value(background) == light
    browser.value("localStorage.clear()")


def test_help_is_narrowed_by_words_of_its_texts(browser: Browser, site: Path) -> None:
    browser.open(site / "metrics.html")
    heads = (
        "[...document.querySelectorAll('.readings h3')].filter((one) => one.offsetParent).map((one) => one.textContent)"
    )
    every = browser.value(heads)
    assert {"Throughput", "Latency", "Outages"} <= set(every)
    browser.enter("document.getElementById('help-filter')", "blast radius")
    assert browser.value(heads) == ["Outages"]


def test_keyboard_users_can_skip_to_the_content(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    browser.press("Tab")
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "main"


def test_a_test_without_a_page_says_how_to_see_it(browser: Browser, shown: ReportContents, tmp_path: Path) -> None:
    page = write_site(ReportContents(shown.contents, details=Details.NONE), tmp_path / "few").parent / "results.html"
    browser.open(page)
    cell = "document.querySelector('#list tbody [data-nopage]')"
    assert browser.value(f"{cell}.getAttribute('href')") is None
    browser.value(f"{cell}.focus()")
    assert "./csit show " in browser.value("document.getElementById('tip').innerText")


def test_printing_turns_to_ink_and_plots_are_as_wide_as_their_places_on_paper_and_on_the_screen_again(
    browser: Browser, site: Path
) -> None:
    spare = (
        "[...document.querySelectorAll('figure.plot')].filter((one) => one.offsetParent)"
        ".map((one) => one.clientWidth - one.querySelector('svg.main-svg').clientWidth)"
    )
    browser.look(1280, 900, dark=True)
    browser.open(site / "density.html")
    browser.show_all()
    browser.value(
        "{ window.paper = []; matchMedia('print').addEventListener('change', (event) => {"
        f" if (event.matches) window.paper = {spare}; }}); }}"
    )
    assert len(browser.ask("Page.printToPDF", preferCSSPageSize=True)["data"]) > 50_000
    on_paper = browser.value("window.paper")
    assert on_paper and all(0 <= px < 20 for px in on_paper)
    browser.wait(f"{spare}.every((px) => px === 0)")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.ask("Emulation.setEmulatedMedia", media="")


def test_what_is_folded_on_the_page_of_a_test_is_printed(browser: Browser, site: Path) -> None:
    browser.open(next((site / "tests").glob("*ndrpdr*.html")))
    folded = "document.querySelectorAll('.body details:not([open], .why)').length"  # reasons are printed elsewhere
    before = browser.value(folded)
    assert before > 0
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert browser.value(folded) == 0
    assert "FD.io CSIT, NDR" in browser.value("document.querySelector('.body').innerText")
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert browser.value(folded) == before


def test_a_cell_leads_to_the_core_map_of_its_test(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    browser.value(f"{MAP}.querySelector('td a').focus()")
    test = browser.value("document.activeElement.getAttribute('href')")
    browser.press("Tab")
    assert browser.value("document.activeElement.ariaLabel") == "Core map of this test"
    assert browser.value("getComputedStyle(document.activeElement).opacity") == "1"
    file, anchor = browser.value("document.activeElement.getAttribute('href')").split("#")
    assert f"{file}#{anchor}" == test.replace("#test-", "#cores-test-")
    browser.open(site / file, f"#{anchor}")
    assert "Core map" in browser.value("document.querySelector('h3.target').innerText")
    assert 0 <= browser.value("document.querySelector('h3.target').getBoundingClientRect().top") < 900


def test_two_maps_against_each_other_have_an_address(browser: Browser, site: Path) -> None:
    browser.open(site / "density.html")
    chosen = (
        "[document.querySelector('#beside [aria-pressed=true]').textContent,"
        " ...[...document.querySelectorAll('#beside .choices select')].map((one) => one.selectedOptions[0].text)]"
    )
    first = browser.value(chosen)
    beside(browser, PUBLISHED.format("0.5"), PUBLISHED.format("1"), "side by side")
    second, address = browser.value(chosen), browser.value("location.hash")
    assert second[0] == "side by side"
    assert first[1:] != second[1:]
    browser.open(site / "density.html", address)
    assert browser.value(chosen) == second, "as sent to somebody else"
    assert browser.value("document.querySelectorAll('.stage table').length") == 2
    beside(browser, PUBLISHED.format("0.5"), PUBLISHED.format("1"), "difference")
    assert browser.value(chosen)[0] == "difference"
    browser.value("void setTimeout(() => history.back())")
    browser.wait(f"{chosen}[0] === 'side by side'")
    assert browser.value(chosen) == second, "what was chosen before"
    assert browser.value("location.hash") == address
