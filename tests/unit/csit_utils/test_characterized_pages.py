"""Pages of profiles, chains, bursts and sizings: what they say and draw of which records."""

import re
from typing import Any

import pytest

from csit_utils.report.exports.messages import message_parts
from csit_utils.report.pages import overview
from csit_utils.report.site import RenderedPage, single_file
from csit_utils.studies.registry import views
from csit_utils.studies.sizing import study as sizings
from csit_utils.studies.sweep.pages import predictions, profiles
from csit_utils.studies.sweep.pages.predictions import share_of
from csit_utils.studies.sweep.study import BURSTS, on_periods
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath
from resources.libraries.python.studies.sweep.analysis.sentences import chain_words
from resources.libraries.python.studies.sweep.model.record import Vnf
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterization_records import burst, chained, dataset_of, one_of_each, record, sized
from tests.unit.csit_utils.characterized_pages import made, shown, words

PAGES = (profiles.PAGE, predictions.PAGE, BURSTS, sizings.PAGE)


SIZES = ("front 1 s, back 1 s", "front 1 m, back 1 s")


def drawn(page: RenderedPage, name: str, key: str) -> list[dict[str, Any]]:
    """Traces of the first figure whose identity ends so."""
    figure = next(one for one in page.figures if one.identity.endswith(name))
    data: list[dict[str, Any]] = figure.variants[key]["data"]
    return data


def test_points_lie_at_the_real_rate_with_functions_on_either_side_of_the_saturation() -> None:
    page = made(profiles.PAGE, *one_of_each())
    second, mean, flagged, below, above = drawn(page, "-throughput", "Gbit/s|by Gbit/s")
    assert (len(second["x"]), len(mean["x"]), len(flagged["x"])) == (24, 11, 1)
    assert mean["x"][0] == pytest.approx(2e5 / 8 * 512 / 1e9)
    assert "flagged: input 3 % below" in flagged["text"][0]
    assert below["x"][-1] < above["x"][0]
    figure = next(one for one in page.figures if one.identity.endswith("-throughput"))
    layouts = [figure.variants[key]["layout"] for key in ("Gbit/s|by Gbit/s", "kpps|by kpps")]
    line, in_packets = (layout["shapes"][0] for layout in layouts)
    assert below["x"][-1] < line["x0"] <= above["x"][0]
    assert layouts[0]["annotations"][0]["hovertext"].count("nf-1-1 uses all") == 1
    assert in_packets["x0"] * 512e-6 == pytest.approx(line["x0"])
    packets = drawn(page, "-throughput", "kpps|by kpps")
    assert [trace["x"][0] * 512e-6 for trace in packets] == [
        pytest.approx(trace["x"][0], rel=1e-4) for trace in (second, mean, flagged, below, above)
    ]
    assert packets[3]["y"][0] * 512e-6 == pytest.approx(below["y"][0], rel=1e-4)


def test_cpu_is_shown_of_each_vnf_and_of_each_vcpu() -> None:
    page = made(profiles.PAGE, chained())
    assert [trace["name"] for trace in drawn(page, "-cpu", "per VNF|by kpps")] == [
        "nf-1-1 (router)",
        "nf-1-2 (firewall)",
    ]
    two = one_of_each()[2]
    threads = drawn(made(profiles.PAGE, two), "-cpu", "per vCPU|by kpps")
    assert [trace["name"] for trace in threads] == ["nf-1-1 (firewall), vCPU 1", "nf-1-1 (firewall), vCPU 2"]


def test_sizes_and_frames_of_one_service_stand_side_by_side() -> None:
    page = made(profiles.PAGE, *one_of_each())
    lines = drawn(page, "sweeps-1-loads", "throughput, kpps|by kpps")
    assert [line["name"] for line in lines] == ["firewall, 64B, 1c", "firewall, 512B, 1c", "firewall, 64B, 2c"]
    assert max(lines[0]["y"]) == pytest.approx(200), "kpps against kpps"
    assert max(drawn(page, "sweeps-1-loads", "throughput, Gbit/s|by Gbit/s")[0]["y"]) == pytest.approx(0.1024)
    assert "64B: firewall 1c (1 vCPU) to firewall 2c (2 vCPUs): break-point +95.0 %" in words(page)
    assert not [figure for figure in page.figures if figure.identity == "sweeps-2-loads"], (
        "the router has nothing beside it"
    )


def test_a_prediction_is_laid_beside_what_was_measured() -> None:
    page = made(predictions.PAGE, *one_of_each())
    points, line = drawn(page, "-chain-delay", "logarithmic")
    assert (points["name"], line["name"]) == ("measured", "predicted by the bottleneck VNF")
    assert line["y"][0] == pytest.approx(2 * points["y"][0], rel=0.2), "delays of two VNFs alone, added up"
    assert [trace["name"] for trace in drawn(page, "-chain-cpu", "")] == [
        "nf-1-1 (router)",
        "nf-1-2 (firewall)",
        "router alone",
        "firewall alone",
    ]


def test_both_delays_of_a_prediction_are_shown_where_the_path_was_measured() -> None:
    path = MeasuredPath("path", (0.01, 0.1), (0.02, 0.02))
    page = made(predictions.PAGE, chained(path))
    points, once, summed = drawn(page, "-chain-delay", "logarithmic")
    assert [each["name"] for each in (points, once, summed)] == [
        "measured",
        "predicted by the bottleneck VNF",
        "plain sum of delays, by the bottleneck VNF",
    ]
    assert summed["y"][0] - once["y"][0] == pytest.approx(0.02, abs=1e-4)
    throughput = drawn(page, "-chain-throughput", "")
    assert [each["name"] for each in throughput] == ["measured", "predicted by the bottleneck VNF"]


def test_a_vnf_in_one_of_two_branches_gets_half() -> None:
    kinds = (NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_router"))
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=3, nf_kinds=kinds, shared_nodes=(1, 3))
    assert chain_words(cell) == "router → firewall | firewall → router"
    chain = chained().sweep
    split = chain.model_copy(update={"cell": cell})
    names = ("nf-0-1", "nf-1-2", "nf-2-2")
    vnfs = [Vnf(name=name, kind=NfKind("linux_router"), vcpus=1) for name in names]
    assert [share_of(split, vnf) for vnf in vnfs] == [1.0, 0.5, 0.5]


def test_a_burst_is_shaded_from_its_first_second_to_its_last() -> None:
    made_burst = burst()
    assert on_periods(made_burst.sweep.samples) == [(0, 2), (3, 5)]
    page = made(BURSTS, made_burst)
    (loss,) = drawn(page, "-loss", "")
    # Each value is drawn to the next one: the last one of a burst has its end, and nothing is drawn while idle.
    assert list(zip(loss["x"], loss["y"], strict=True))[:4] == [(0, pytest.approx(20)), (1, 0.0), (2, 0.0), (2, None)]
    assert loss["x"][-1] == len(made_burst.sweep.samples)
    shapes = page.figures[0].variants[""]["layout"]["shapes"]
    assert [(shape["x0"], shape["x1"]) for shape in shapes] == [(0, 2), (3, 5)]


def test_every_size_has_a_line_and_the_search_steps_are_shown() -> None:
    page = made(sizings.PAGE, sized())
    lines = drawn(page, "-indicator", "")
    assert [line["name"] for line in lines] == ["indicator = offered load", "threshold, 90 %", *SIZES]
    assert lines[1]["y"] == [0, 450]
    (bars,) = drawn(page, "-capacity", "capacity per vCPU")
    assert bars["y"] == [150, pytest.approx(500 / 3, rel=1e-4)]
    assert bars["marker"]["pattern"]["shape"] == ["", "/"], "the other one carried the highest load"
    assert [line["name"] for line in drawn(page, "-use", f"{SIZES[1]}|CPU")] == ["front", "back"]
    assert max(drawn(page, "-oscillation", "")[0]["y"]) == 20


def test_what_shared_cores_says_so_wherever_it_is_named() -> None:
    plan = result(ServiceType.CSP, 1, 1).plan
    cores = plan.cores.model_copy(update={"oversubscribed": True})
    crowded = one_of_each(plan=plan.model_copy(update={"cores": cores}))
    # Profiles: a line and a section for each of five, and one comparison; the sizing has no part in them.
    for page, places in ((profiles.PAGE, 11), (predictions.PAGE, 2), (BURSTS, 1), (overview.PAGE, 7)):
        assert str(made(page, *crowded).html).count('class="mark over"') == places, page.name
        assert 'class="mark over"' not in made(page, *one_of_each()).html


def test_the_overview_has_a_sentence_and_a_link_for_each() -> None:
    page = made(overview.PAGE, *one_of_each())
    anchors = re.findall(r'href="#([a-z]+-[0-9a-f]{12})"', str(page.html))
    assert len(anchors) == 7
    html = single_file(shown(*one_of_each()))
    assert all(f'id="{anchor}"' in html for anchor in anchors)


def test_a_skipped_one_is_not_called_failed() -> None:
    bare = [
        record(kind, f"Bare {kind}", passed=False, skipped=True, message="needs 33 cores")
        for kind in ("sweep", "chain", "bursts", "sizing")
    ]
    for page in (*PAGES, overview.PAGE):
        html = made(page, *bare).html
        assert ">skipped</span>" in html and ">failed</span>" not in html, page.name
    (studies,) = [part for part in message_parts(shown(*bare), lambda _: None) if part.heading == "Studies"]
    assert [each.text.endswith(": skipped") for each in studies.lines] == [True] * 4


def test_of_the_same_test_the_newest_is_shown_and_others_are_counted() -> None:
    later = burst(started_at="2026-01-02T00:00:00+00:00")
    (view,) = views(dataset_of(burst(), later).characterizations)
    assert (view.record, view.older) == (later, 1)
    assert len(views(dataset_of(burst(), burst(testbed="other")).characterizations)) == 2
    others = {"bursts": later.sweep.spec.bursts.model_copy(update={"rate_pps": 3e5})}
    spec = later.sweep.spec.model_copy(update=others)
    louder = later.model_copy(update={"sweep": later.sweep.model_copy(update={"spec": spec})})
    assert len(views(dataset_of(burst(), louder).characterizations)) == 1, "loads are chosen anew each time"
