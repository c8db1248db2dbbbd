"""Pages of profiles, chains, bursts and sizings in a real browser."""

import json
from pathlib import Path

import pytest

from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import write_site
from csit_utils.report.units import DASH
from csit_utils.studies.registry import views
from csit_utils.studies.sweep.profiles import plain
from resources.libraries.python.studies.sweep.analysis.curves import CURVES
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, answers
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, profile_of
from resources.libraries.python.studies.sweep.model import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
    SweepRecord,
)
from tests.integration.browser import IN_CHROMIUM, WINDOWS, Browser
from tests.truth.sweeps import simulated
from tests.unit.csit_utils.characterization_records import dataset_of, one_of_each
from tests.unit.csit_utils.in_memory import InMemory

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

PAGES = ("index", "profiles", "chains", "bursts", "sizings")
BOUNDS = (
    QualityBounds(0.5, 1.0),
    QualityBounds(0.0, None),
    QualityBounds(None, 0.06),
    QualityBounds(5.0, 100.0),
    QualityBounds(None, 0.001),
    QualityBounds(None, None),
)
CELLS = (
    "[...document.querySelectorAll('tr[data-profile]')].map((row) =>"
    " [row.querySelector('.highest').dataset.v, row.querySelector('.limited').textContent,"
    " row.querySelector('.carries').textContent])"
)


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    return ReportContents(
        InMemory(dataset_of(*one_of_each(), *one_of_each(simulated=True, testbed="sim", world="sim")))
    )


@pytest.fixture(scope="module")
def site(shown: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of measured and simulated characterizations."""
    return write_site(shown, tmp_path_factory.mktemp("characterized")).parent


def profiles_of(shown: ReportContents) -> list[tuple[int, Profile]]:
    """Each with its vCPUs, in the order of the table."""
    found = []
    for view in views(shown.contents.characterizations):
        if view.record.kind in ("sweep", "chain") and view.record.profile and view.record.sweep:
            found.append((sum(vnf.vcpus for vnf in view.record.sweep.vnfs), view.record.profile))
    return found


def test_plots_far_below_the_window_wait_for_the_reader(browser: Browser, site: Path) -> None:
    browser.look(1280, 600)
    browser.open(site / "profiles.html")
    browser.wait("window.Plotly")  # also before the reader prints
    undrawn = "[...document.querySelectorAll('figure.plot')].filter((one) => !one.querySelector('svg.main-svg')).length"
    assert browser.value(undrawn) > 2


def fill(browser: Browser, loss: float | None, delay: float | None, rate: str | None = None) -> None:
    """Fill the form as a reader does."""
    for name, value in (("loss", loss), ("delay", delay), ("rate", rate)):
        browser.enter(f"document.forms.quality.elements['{name}']", "" if value is None else str(value))


@WINDOWS
def test_all_pages_are_silent_and_as_wide_as_the_window(browser: Browser, site: Path, width: int, dark: bool) -> None:
    browser.plots_in_window((site / f"{name}.html" for name in PAGES), width, dark=dark)


def test_what_was_not_measured_is_no_choice(browser: Browser, tmp_path: Path) -> None:
    def without_delay(record: SweepRecord) -> SweepRecord:
        assert record.sweep is not None
        points = tuple(point.model_copy(update={"delay_s": None}) for point in record.sweep.points)
        return record.model_copy(update={"sweep": record.sweep.model_copy(update={"points": points})})

    records = [without_delay(record) for record in one_of_each()[:2]]
    page = write_site(ReportContents(InMemory(dataset_of(*records))), tmp_path).parent / "profiles.html"
    browser.open(page)
    browser.show_all()
    plot = "document.querySelector('figure.plot[data-figure=sweeps-1-loads]')"
    assert browser.value(f"{plot}.querySelectorAll('.legend .traces').length") == 2
    choices = browser.value(f"[...{plot}.querySelectorAll('.choices button')].map((one) => one.textContent)")
    assert "loss" in choices and "delay" not in choices


def test_a_point_a_function_and_the_saturation_have_hover_texts(browser: Browser, site: Path) -> None:
    browser.open(site / "profiles.html")
    plot = "document.querySelector('figure.plot[data-figure$=-throughput] .canvas')"
    browser.value(f"{plot}.scrollIntoView({{ block: 'center' }})")
    browser.wait(f"{plot}.querySelector('svg.main-svg')")
    mean = f"{plot}.querySelectorAll('.scatterlayer .trace')[1].querySelectorAll('path.point')[3]"
    browser.point(mean)
    browser.wait(f"{plot}.querySelector('.hoverlayer .hovertext')")
    said = browser.value(f"{plot}.querySelector('.hoverlayer').textContent")
    assert " pps (0.0" in said and "Gbit/s)" in said
    for below in (-30, 0):
        browser.point(f"{plot}.querySelector('.annotation .cursor-pointer, .annotation rect')", below=below)
    browser.wait(f"{plot}.querySelector('.hoverlayer').textContent.includes('uses all of its CPUs')")


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_the_form_answers_as_the_profiling_does(
    browser: Browser, site: Path, shown: ReportContents, bounds: QualityBounds
) -> None:
    browser.open(site / "profiles.html")
    rate = 0.11
    fill(browser, bounds.loss_percent, bounds.delay_ms, f"{rate} Gbit/s")
    found = profiles_of(shown)
    lines = browser.value(CELLS)
    assert len(lines) == len(found) == 10
    for (raw, limited, carries), (vcpus, profile) in zip(lines, found, strict=True):
        (answer,) = answers([ProfiledFlavor("x", vcpus, profile)], bounds, rate)
        best = answer.highest
        assert (float(raw) if raw else None) == (pytest.approx(best.rate * 1e9, rel=1e-5) if best.rate else None)
        assert limited.split()[0] == (best.limited_by.value if best.limited_by else DASH)
        assert carries == {True: "yes", False: "no", None: "unknown"}[answer.carries]
    text = browser.value("document.querySelector('.quality-best').textContent")
    able = [vcpus for line, (vcpus, _) in zip(lines, found, strict=True) if line[2] == "yes"]
    assert (f"fewest vCPUs ({min(able)})" in text) if able else ("No service here is known" in text)


def test_every_curve_of_the_catalogue_is_known_to_the_page(browser: Browser, site: Path) -> None:
    browser.open(site / "profiles.html")
    for curve in CURVES:
        of_capacity = {"excess": {"d": 0.4, "g": 0.1}, "fixed capacity": {"d": 0.4}}
        values = of_capacity.get(curve.name, {"a": 0.02, "b": 0.3, "c": 1.5})
        if curve.name == "hyperbola with a pole":
            values["c"] = 3.0
        profile = one_metric(
            curve.name, values, ProfileMetric.LOSS if curve.only is ProfileMetric.LOSS else ProfileMetric.DELAY
        )
        for bound in (0.1, 0.4, 2.0, 30.0):
            bounds = QualityBounds(loss_percent=bound, delay_ms=bound)
            best = highest_rate(profile, bounds)
            found = browser.value(
                f"csit.highestRate({json.dumps(plain(profile))}, [['loss', {bound}], ['delay', {bound}]])"
            )
            assert found["rate"] == (pytest.approx(best.rate, rel=2e-6) if best.rate else None), curve.name
            assert found["limitedBy"] == (best.limited_by.value if best.limited_by else None), curve.name


def test_the_interval_on_the_page_is_that_of_the_profile(browser: Browser, site: Path) -> None:
    """Rate and ends are means of those of two functions of the loss, by their weights."""
    browser.open(site / "profiles.html")
    profile = profile_of("s", simulated(1, 0.05).points, {"vnf": 1})
    loss = profile.of(ProfileMetric.LOSS)
    assert loss is not None and loss.sat is not None and loss.sat.rival is not None
    best = highest_rate(profile, QualityBounds(loss_percent=5.0))
    found = browser.value(f"csit.highestRate({json.dumps(plain(profile))}, [['loss', 5]])")
    assert (found["low"], found["rate"], found["high"]) == pytest.approx((best.low, best.rate, best.high), rel=1e-5)


def one_metric(name: str, coefficients: dict[str, float], metric: ProfileMetric) -> Profile:
    """One curve of a metric up to 0.9 Gbit/s, saturated from 1 on with a straight line; the other metric is zero."""
    below, above = fit(name, coefficients, 0.1, 0.9), fit("linear", {"a": 1.0, "b": 5.0}, 1.0, 2.0)
    nothing = fit("constant", {"a": 0.0}, 0.1, 0.9), fit("constant", {"a": 0.0}, 1.0, 2.0)
    metrics = tuple(
        MetricProfile(
            metric=each, nonsat=below if each is metric else nothing[0], sat=above if each is metric else nothing[1]
        )
        for each in (ProfileMetric.LOSS, ProfileMetric.DELAY)
    )
    point = BreakPoint(rate=1.0, vnf="x", cpus_used=1, cpus_there=1, reason="")
    return Profile(name=name, break_point=point, metrics=metrics)


def fit(name: str, coefficients: dict[str, float], first: float, last: float) -> Fit:
    return Fit(
        function=name, formula="", coefficients=coefficients, standard_error=0, relative_error=0, points=5,
        first_rate=first, last_rate=last,
    )  # fmt: skip


def test_what_was_asked_is_in_the_address(browser: Browser, site: Path, shown: ReportContents) -> None:
    browser.open(site / "profiles.html", "#within=0,0.06,")
    first = browser.value(CELLS)[0]
    best = highest_rate(profiles_of(shown)[0][1], QualityBounds(0.0, 0.06))
    assert best.rate is not None
    assert float(first[0]) == pytest.approx(best.rate * 1e9, rel=1e-5)
    assert first[2] == DASH, "no rate was asked for"
    carries = "document.querySelector('tr[data-profile] .carries').hidden"
    assert browser.value(carries)
    vcpus, profile = profiles_of(shown)[0]
    for packets in (20, 2000):  # kpps, of 64 B
        fill(browser, 0.1, 2, f"{packets}kpps")
        assert not browser.value(carries)
        (answer,) = answers([ProfiledFlavor("x", vcpus, profile)], QualityBounds(0.1, 2.0), packets * 512e-6)
        assert browser.value(CELLS)[0][2] == ("yes" if answer.carries else "no")
    fill(browser, 0.1, 2)
    assert browser.value("location.hash") == "#within=0.1,2,"


def test_links_lead_from_the_overview_to_every_section(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    places = browser.value(
        "[...document.querySelectorAll('#overview-characterizations a')].map((link) => link.getAttribute('href'))"
    )
    assert len(places) == 14
    for place in (places[0], places[4], places[-1]):
        file, anchor = place.split("#")
        browser.open(site / file, f"#{anchor}")
        top = browser.value(f"document.getElementById('{anchor}').getBoundingClientRect().top")
        assert -5 <= top < 500, place
    chain = next(place for place in places if "chains" in place)
    browser.open(site / "chains.html", f"#{chain.split('#')[1]}")
    profile = browser.value(
        "document.querySelector('.part section:nth-of-type(2) a[href*=profiles]').getAttribute('href')"
    )
    assert profile.endswith("-profile")
    browser.open(site / "profiles.html", f"#{profile.split('#')[1]}")
    assert browser.value(f"document.getElementById('{profile.split('#')[1]}') !== null")


def test_tables_are_saved_with_raw_numbers(browser: Browser, site: Path) -> None:
    browser.open(site / "sizings.html")
    name, text, *_ = browser.saved("document.querySelectorAll('.saves button')[0].click()")
    assert name == "sizings-overview.csv"
    assert text.splitlines()[0] == "service,mode,pinning,sizes,best,vcpus,capacity,stopped"
    assert ",500.0," in text
