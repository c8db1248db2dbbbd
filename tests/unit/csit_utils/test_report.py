"""The page: everything derived, everything escaped, simulated never beside measured, large ones packed."""

import base64
import json
import re
import sys
import zlib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader
from markupsafe import escape
from plotly.colors import get_colorscale, sample_colorscale

from csit_utils.dataset.items import Problem, Status, Unrecorded
from csit_utils.report.cell_maps import colour, scale_of
from csit_utils.report.html import CompiledTemplates, html_templates, own_file, script, style
from csit_utils.report.report_context import _listed
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import Affinity, VerdictKind
from resources.libraries.python.redaction import outgoing
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import NDR, PDR, goal_result, result, verdict_with
from tests.unit.csit_utils.datasets import dataset_of, html_of, plain
from tests.unit.csit_utils.rendered_pages import Page, page_of

CSC, CSP = ServiceType.CSC, ServiceType.CSP
HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'`{{7*7}}"


def test_a_page_alone_and_offline() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1)))
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "embed", "base")]
    assert not [attributes for _, attributes in page.tags if attributes.get("src")]
    inside = ("#", "data:application/json;base64,")
    links = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    assert all(link.startswith(inside) for link in links) and any(link.startswith(inside[1]) for link in links)
    assert "default-src 'none'" in html and 'id="packed-' not in html
    assert len(page.ids) == len(set(page.ids)), "an id is there once"
    assert "plotly.js v" in unpacked(html, "plotly")[:200]


_SPECIAL = st.sampled_from("<>&'\"\r\n\t\x1b\x7f\xad\u202e\u2028\ufeff\ud800µ")


@given(st.text(st.characters() | _SPECIAL) | st.integers() | st.floats())
def test_values_are_escaped_and_visible(value: str | float) -> None:
    page = html_templates().from_string("{{ value }}").render(value=value)
    assert page == escape(outgoing(value) if isinstance(value, str) else value)


def test_a_template_is_compiled_again_when_it_changed_or_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rendered(source: str, folder: Path) -> str:
        environment = html_templates()
        environment.bytecode_cache = CompiledTemplates(folder)
        environment.loader = DictLoader({"page": source})
        return environment.get_template("page").render(x="<")

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert [rendered("a {{ x }}", tmp_path) for _ in range(2)] == ["a &lt;"] * 2
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o644, "other users can read it too"
    assert rendered("b {{ x }}", tmp_path) == "b &lt;"
    assert rendered("b {{ x }}", tmp_path / "missing") == "b &lt;"


def test_markup_in_names_stays_text() -> None:
    verdict = verdict_with(VerdictKind.FAILED, HOSTILE)
    affinity = (Affinity(owner=HOSTILE, interface=HOSTILE, planned_cpu=1, actual_cpus=()),)
    names = dict.fromkeys(("test_name", "test_id", "testbed"), HOSTILE)
    drivers = {"generator": HOSTILE}
    one = result(CSC, 1, 1, verdict=verdict, affinity=affinity, drivers=drivers, tags=(HOSTILE,), **names)
    failed = Unrecorded(HOSTILE, HOSTILE, (HOSTILE,), HOSTILE, Status.FAIL, HOSTILE)
    made = dataset_of(one, unrecorded=(failed,), source=HOSTILE)
    made.add(Problem(HOSTILE, HOSTILE))
    html = html_of(made)
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    scripts = [tag for tag, _ in page.tags if tag == "script"]
    assert len(scripts) == html.count("</script>") == html_of(dataset_of(result(CSC, 1, 1))).count("</script>")
    assert HOSTILE in page.text
    assert "{{7*7}}" in page.text, "a name is no template"


def test_simulated_and_measured_never_meet() -> None:
    page = page_of(plain(1, 1, 2e5), result(CSC, 1, 1, simulated=True), result(CSC, 2, 1, simulated=True))
    classes = [str(attributes.get("class")) for tag, attributes in page.tags if tag == "section"]
    assert [each for each in classes if "system" in each] == ["system", "system is-simulated"]
    assert "come from a model" in page.text
    tips = [tip for tip in page.tips() if "NDR (no packet lost)" in tip]
    assert ["SIMULATED" in tip for tip in tips] == [False, True, True]


def test_a_simulated_report_says_so_at_its_head_across_its_pages_and_in_its_figures() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1, simulated=True), result(CSC, 2, 1, simulated=True)))
    assert "<title>SIMULATED: " in html
    assert 'class="all-simulated"' in html and "No packet was sent" in html
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', html)[0])
    assert len(figures) > 2
    assert all(figure["simulated"] for figure in figures.values()), "figures are marked inside too"
    measured = re.sub(r"<(script|style).*?</\1>", "", html_of(dataset_of(result(CSC, 1, 1))), flags=re.S)
    assert "SIMULATED" not in measured.split('id="reading"')[0]


def test_oversubscribed_is_marked_wherever_its_number_is() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1), result(CSC, 2, 1, oversubscribed=True)))
    page = Page(html)
    assert len(re.findall(r'class="c-value over"', html)) == 2
    assert sum("OVERSUBSCRIBED: data threads shared cores" in tip for tip in page.tips()) == 2
    assert "1 of 2 tests ran oversubscribed" in page.text and "Oversubscribed: 2x1." in page.text
    assert '"circle-open"' in html or '"diamond-open"' in html


def test_the_summary_has_rates_and_changes_and_limits_are_written_as_limits() -> None:
    page = page_of(plain(1, 1, 212e3, 230e3), plain(2, 1, 180e3, 230.1e3))
    assert "from 1x1 to 2x1 NDR goes from 212 kpps to 180 kpps (\N{MINUS SIGN}15 %), PDR stays at 230 kpps" in page.text
    unlimited = goal_result(NDR, 9e5).model_copy(update={"upper_pps": None})
    none = {"lower_pps": None, "upper_pps": None, "lowest_tried_pps": 9e3}
    below = goal_result(PDR, 1.0).model_copy(update=none)
    page = page_of(result(CSC, 1, 1, ndr=unlimited, pdr=below, histograms=False))
    assert "\N{GREATER-THAN OR EQUAL TO} 900 kpps" in page.text and "< 9.00 kpps" in page.text
    ndr = below.model_copy(update={"goal": NDR})
    page = page_of(plain(1, 1, 56e3), plain(1, 2, 50e3).model_copy(update={"ndr": ndr}))
    assert "from 1x1 to 1x2 NDR goes from 56.0 kpps to below 9.00 kpps, PDR from 56.0 kpps to 50.0 kpps" in page.text


def test_core_map_shows_lost_affinity() -> None:
    lost = (
        Affinity(owner="nf-1-1", interface="csn1x1i1", planned_cpu=4, actual_cpus=(0, 1)),
        Affinity(owner="vswitch", interface="csv1p1", planned_cpu=3, actual_cpus=(3,)),
    )
    page = page_of(result(CSC, 1, 1, affinity=lost))
    assert "1 of 2 data threads ran on their planned CPU" in page.text and "NOT as planned" in page.text
    assert {"vswitch data 0", "nf-1-1 data 0", "generator data 0"} <= {word.strip() for word in page.words}


def test_the_nodes_of_a_lab_stand_beside_each_other() -> None:
    row = plain(1, 1, 2e5)
    tg = row.environment.model_copy(update={"hostname": "tg7", "cpu_model": "Other CPU", "kernel": "5.15.0"})
    page = page_of(row.model_copy(update={"environment": row.environment.model_copy(update={"nodes": {"TG": tg}})}))
    assert f"TG: Other CPU, {tg.cpus_online} CPUs, Linux 5.15.0" in page.text and "TG.host tg7" in page.text


def test_nothing_but_failures_makes_a_page_too() -> None:
    failed = Unrecorded("S.t", "t", (), "output.xml", Status.FAIL, "all is lost")
    page = Page(html_of(Dataset(unrecorded=[failed], problems=[Problem("b.xml", "b.xml: broken off")])))
    for said in ("all is lost", "b.xml: broken off", "No test has a result record."):
        assert said in page.text


def unpacked(html: str, identity: str) -> str:
    """A text as the page's script reads it."""
    found = re.search(rf'<script type="text/plain" id="{identity}" data-deflated>([^<]*)</script>', html)
    assert found, identity
    return zlib.decompress(base64.b64decode(found[1])).decode()


@pytest.mark.slow
def test_names_cannot_end_what_a_large_file_holds_back() -> None:
    tests = [result(CSC, 2, 2, test_name=HOSTILE), *(plain(1, 1, 2e5 + n, test_id=f"S.{n}") for n in range(129))]
    html = html_of(dataset_of(*tests))
    assert "data-into=" in html and HOSTILE not in html
    assert html.count("<script") == html.count("</script>")
    assert len(re.findall(r'<details class="test[^>]* id=', html)) == 130, "each once, in the page or held back"


def test_a_scale_ends_at_the_values_and_keeps_nearly_equal_ones_alike() -> None:
    assert (scale_of([2.0, 5.0, 3.0]).low, scale_of([2.0, 5.0, 3.0]).high) == (2.0, 5.0)
    for lower_is_better, ends in ((False, (80.0, 100.0)), (True, (pytest.approx(123.75), 99.0))):
        scale = scale_of([99.0, 100.0], lower_is_better=lower_is_better)
        assert (scale.low, scale.high) == ends, "low is the dark end"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.77, 1.0])
def test_the_scale_is_cividis_without_its_ends_and_ink_is_readable(share: float) -> None:
    assert colour(share)[0] == sample_colorscale(get_colorscale("Cividis"), [0.06 + 0.9 * share])[0]
    assert share not in {0, 1} or colour(share)[1] == {0: "#ffffff", 1: "#000000"}[share]


@pytest.mark.parametrize("name", ["plan.css", "plan.js", "script", "style"])
def test_own_files_name_no_place_outside(name: str) -> None:
    text = {"script": script, "style": style}.get(name, partial(own_file, name))()
    assert "http" not in text and "@import" not in text


def test_many_runs_are_named_by_the_first_and_the_last() -> None:
    assert _listed(["monday", "tuesday"]) == "monday, tuesday"
    assert _listed(["sim 08:30"] * 36) == "sim 08:30"
    assert _listed([str(number) for number in range(9)]) == "0, 1, 2, 3, …, 8"
