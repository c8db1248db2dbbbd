"""The page: everything derived, everything escaped, simulated never beside measured."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, Environment
from jinja2.nodes import Template
from markupsafe import escape

from csit_utils.dataset.items import Problem, Status, Unrecorded
from csit_utils.report.html import CompiledTemplates, html_templates, script, style
from csit_utils.report.report_context import _listed
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import Affinity, Verdict, VerdictKind
from resources.libraries.python.redaction import outgoing
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import NDR, PDR, does_not_fit, goal_result, mrr_result, result
from tests.unit.csit_utils.datasets import dataset_of, html_of, plain
from tests.unit.csit_utils.rendered_pages import Page, page_of

CSC, CSP = ServiceType.CSC, ServiceType.CSP
HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'`{{7*7}}"


def test_the_summary_says_it_in_words() -> None:
    page = page_of(plain(1, 1, 212e3, 230e3), plain(2, 1, 180e3, 230.1e3))
    assert (
        "CSC, 1 to 2 instances: from 1x1 to 2x1 NDR goes from 212 kpps to 180 kpps (\N{MINUS SIGN}15 %), "
        "PDR stays at 230 kpps, within the resolution of the search." in page.text
    )


def test_a_page_alone_and_offline() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1)))
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "embed", "base")]
    assert not [attributes for _, attributes in page.tags if attributes.get("src")]
    inside = ("#", "data:application/json;base64,")
    assert all(str(attributes["href"]).startswith(inside) for tag, attributes in page.tags if tag == "a")
    assert "default-src 'none'" in html
    assert len(page.ids) == len(set(page.ids)), "an id is there once"


def test_every_link_has_a_target() -> None:
    failed = Unrecorded("S.t", "t", ("CSC", "1R2C", "64B"), "output.xml", Status.FAIL, "broken")
    made = dataset_of(result(CSC, 1, 1), does_not_fit(CSC, 2, 1), mrr_result(CSC, 1, 1), unrecorded=(failed,))
    page = Page(html_of(made))
    links = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    targets = {link[1:] for link in links if not link.startswith("data:")}
    assert targets <= set(page.ids)


_SPECIAL = st.sampled_from("<>&'\"\r\n\t\x1b\x7f\xad\u202e\u2028\ufeff\ud800µ")


@given(st.text(st.characters() | _SPECIAL) | st.integers() | st.floats())
def test_values_are_escaped_and_visible(value: str | float) -> None:
    page = html_templates().from_string("{{ value }}").render(value=value)
    assert page == escape(outgoing(value) if isinstance(value, str) else value)


def test_numbers_of_packets_are_grouped_and_losses_marked() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1)))
    for cell in ('data-v="838900">838,900<', ' lost" data-v="467">467<', '" data-v="0">0<'):
        assert f'<td class="num{cell}' in html or f'<td class="num" {cell}' in html
    assert ' lost" data-v="0"' not in html


def test_a_template_is_compiled_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    generate = Environment._generate

    def counting(environment: Environment, source: Template, name: str, *args: Any, **options: Any) -> str:
        compiled.append(name)
        return generate(environment, source, name, *args, **options)

    def rendered(source: str, folder: Path) -> str:
        environment = html_templates()
        environment.bytecode_cache = CompiledTemplates(folder)
        environment.loader = DictLoader({"page": source})
        return environment.get_template("page").render(x="<")

    monkeypatch.setattr(Environment, "_generate", counting)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert [rendered("a {{ x }}", tmp_path) for _ in range(2)] == ["a &lt;"] * 2
    assert compiled == ["page"]
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o644, "other users can read it too"
    assert rendered("b {{ x }}", tmp_path) == "b &lt;"
    assert compiled == ["page"] * 2
    assert [rendered("b {{ x }}", tmp_path / "missing") for _ in range(2)] == ["b &lt;"] * 2
    assert compiled == ["page"] * 4


def test_an_included_template_is_written_in_its_place_with_what_it_escapes() -> None:
    environment = html_templates()
    line = "<li>{{ name }}{% if name == last %} end{% endif %}</li>"
    each = "{% for name in names %}{% include 'line' %}{% endfor %}"
    whole = f"<ul>{each}</ul>{{% macro m(x) %}}[{{{{ x }}}}]{{% endmacro %}}{{{{ m(3) }}}}"
    environment.loader = DictLoader({"line": line, "whole": whole})
    html = environment.get_template("whole").render(names=["<a>", "b"], last="b")
    assert html == "<ul><li>&lt;a&gt;</li><li>b end</li></ul>[3]"


def test_markup_in_names_stays_text() -> None:
    verdict = Verdict(kinds=(VerdictKind.FAILED,), evidence=(HOSTILE,))
    affinity = (Affinity(owner=HOSTILE, interface=HOSTILE, planned_cpu=1, actual_cpus=()),)
    one = result(
        CSC,
        1,
        1,
        test_name=HOSTILE,
        test_id=HOSTILE,
        testbed=HOSTILE,
        verdict=verdict,
        affinity=affinity,
        drivers={"generator": HOSTILE},
        tags=(HOSTILE,),
    )
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
    sections = [
        attributes for tag, attributes in page.tags if tag == "section" and "system" in str(attributes.get("class"))
    ]
    assert [str(attributes["class"]) for attributes in sections] == ["system", "system is-simulated"]
    assert "Some results on this page come from a model" in page.text
    tips = [tip for tip in page.tips() if "NDR (no packet lost)" in tip]
    assert len(tips) == 3
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
    assert "1 of 2 tests ran oversubscribed" in page.text
    assert "Oversubscribed: 2x1." in page.text
    assert "shared" in page.text
    assert '"circle-open"' in html or '"diamond-open"' in html


def test_empty_cells_say_why() -> None:
    failed = Unrecorded("S.t", "t", ("CSC", "2R1C", "64B", "NDRPDR"), "output.xml", Status.FAIL, "nf-2-1 is down")
    skipped = Unrecorded("S.u", "u", ("CSC", "4R1C", "64B", "NDRPDR"), "output.xml", Status.SKIP, "needs VPP")
    made = dataset_of(result(CSC, 1, 1), does_not_fit(CSC, 8, 2), unrecorded=(failed, skipped))
    tips = Page(html_of(made)).tips()
    for said in (
        "CSC 2x1: failed\nnf-2-1 is down",
        "CSC 4x1: skipped\nneeds VPP",
        "CSC 8x2: does not fit\nneeds 33 cores on NUMA 0, 28 available",
        "CSC 1x2: not run\nno test of this cell in the files read",
    ):
        assert tips.count(said) == 2, said


def test_limits_are_written_as_limits() -> None:
    unlimited = goal_result(NDR, 9e5).model_copy(update={"upper_pps": None})
    none = goal_result(PDR, 1.0).model_copy(update={"lower_pps": None, "upper_pps": None, "lowest_tried_pps": 9e3})
    page = page_of(result(CSC, 1, 1, ndr=unlimited, pdr=none, histograms=False))
    assert "\N{GREATER-THAN OR EQUAL TO} 900 kpps" in page.text
    assert "< 9.00 kpps" in page.text
    assert "generator could offer no more" in page.text


def test_the_summary_compares_with_limits_as_limits() -> None:
    none = goal_result(NDR, 1.0).model_copy(update={"lower_pps": None, "upper_pps": None, "lowest_tried_pps": 29e3})
    page = page_of(plain(1, 1, 56e3), plain(1, 2, 50e3).model_copy(update={"ndr": none}))
    assert "from 1x1 to 1x2 NDR goes from 56.0 kpps to below 29.0 kpps, PDR from 56.0 kpps to 50.0 kpps" in page.text


def test_core_map_shows_lost_affinity() -> None:
    lost = (
        Affinity(owner="nf-1-1", interface="csn1x1i1", planned_cpu=4, actual_cpus=(0, 1)),
        Affinity(owner="vswitch", interface="csv1p1", planned_cpu=3, actual_cpus=(3,)),
    )
    page = page_of(result(CSC, 1, 1, affinity=lost))
    assert "1 of 2 data threads ran on their planned CPU" in page.text
    assert "NOT as planned" in page.text
    assert {"vswitch data 0", "nf-1-1 data 0", "generator data 0"} <= {word.strip() for word in page.words}


def test_differing_environments_stand_side_by_side() -> None:
    one, other = plain(1, 1, 2e5), plain(2, 1, 2e5)
    changed = other.environment.model_copy(update={"kernel": "6.19.0"})
    html = html_of(dataset_of(one, other.model_copy(update={"environment": changed})))
    assert html.count('<tr class="differs"') == 1
    assert re.search(r"differs</span></th><td>6\.18\.4-amd64</td><td>6\.19\.0</td>", html)


def test_the_nodes_of_a_lab_stand_beside_each_other() -> None:
    row = plain(1, 1, 2e5)
    tg = row.environment.model_copy(update={"hostname": "tg7", "cpu_model": "Other CPU", "kernel": "5.15.0"})
    page = page_of(row.model_copy(update={"environment": row.environment.model_copy(update={"nodes": {"TG": tg}})}))
    assert f"TG: Other CPU, {tg.cpus_online} CPUs, Linux 5.15.0" in page.text
    assert "TG.host tg7" in page.text


def test_nothing_but_failures_makes_a_page_too() -> None:
    failed = Unrecorded("S.t", "t", (), "output.xml", Status.FAIL, "all is lost")
    page = Page(html_of(Dataset(unrecorded=[failed], problems=[Problem("b.xml", "b.xml: broken off")])))
    assert "all is lost" in page.text
    assert "b.xml: broken off" in page.text
    assert "No test has a result record." in page.text


def test_many_runs_are_named_by_the_first_and_the_last() -> None:
    assert _listed(["monday", "tuesday"]) == "monday, tuesday"
    assert _listed(["sim 08:30"] * 36) == "sim 08:30"
    assert _listed([str(number) for number in range(9)]) == "0, 1, 2, 3, …, 8"


@pytest.mark.parametrize("text", [script(), style()], ids=["script", "style"])
def test_own_files_name_no_place_outside(text: str) -> None:
    assert "http" not in text
    assert "@import" not in text
