"""Pages of profiles, chains, bursts and sizings: what they say and draw of which records."""

import re
from typing import Any

import pytest

from csit_utils.report.figures import Figure
from csit_utils.report.messages import message_parts
from csit_utils.report.site import OVERVIEW, RenderedPage
from csit_utils.studies.registry import views
from csit_utils.studies.sizing import study as sizings
from csit_utils.studies.sweep import predictions, profiles
from csit_utils.studies.sweep.figures import below
from csit_utils.studies.sweep.predictions import PartMeasurements, chain_figures, share_of
from csit_utils.studies.sweep.study import BURSTS, on_periods
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath
from resources.libraries.python.studies.sweep.analysis.profile import value_at
from resources.libraries.python.studies.sweep.analysis.sentences import chain_words
from resources.libraries.python.studies.sweep.analysis.smt_gains import smt_gains
from resources.libraries.python.studies.sweep.model import ProfileMetric, Sweep, SweepRecord, Vnf
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterization_records import (
    FIREWALL,
    burst,
    chained,
    dataset_of,
    one_of_each,
    profiled,
    record,
    sweep_of,
    swept,
)
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


def test_sizes_and_frames_of_one_service_stand_side_by_side() -> None:
    page = made(profiles.PAGE, *one_of_each())
    lines = drawn(page, "sweeps-1-loads", "throughput, kpps|by kpps")
    assert [line["name"] for line in lines] == ["firewall, 64B, 1c", "firewall, 512B, 1c", "firewall, 64B, 2c"]
    assert max(lines[0]["y"]) == pytest.approx(200), "kpps against kpps"
    assert max(drawn(page, "sweeps-1-loads", "throughput, Gbit/s|by Gbit/s")[0]["y"]) == pytest.approx(0.1024)
    assert "64B: firewall 1c (1 vCPU) to firewall 2c (2 vCPUs): break-point +95.0 %" in words(page)
    beside = [figure.identity for figure in made(profiles.PAGE, one_of_each()[3], one_of_each()[0]).figures]
    assert not [name for name in beside if re.match(r"sweeps-\d", name)], "each has nothing beside it"


def test_both_delays_of_a_prediction_are_shown_where_the_path_was_measured() -> None:
    page = made(predictions.PAGE, chained(MeasuredPath("path", (0.01, 0.1), (0.02, 0.02))))
    names = ["measured", "predicted by the bottleneck VNF", "plain sum of delays, by the bottleneck VNF"]
    delays, throughput = drawn(page, "-chain-delay", "logarithmic"), drawn(page, "-chain-throughput", "")
    assert [each["name"] for each in delays] == names
    assert delays[2]["y"][0] - delays[1]["y"][0] == pytest.approx(0.02, abs=1e-4)
    assert [each["name"] for each in throughput] == names[:2]


def test_a_vnf_in_one_of_two_branches_gets_half() -> None:
    kinds = (NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_router"))
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=3, nf_kinds=kinds, shared_nodes=(1, 3))
    assert chain_words(cell) == "router → firewall | firewall → router"
    split = chained().sweep.model_copy(update={"cell": cell})
    vnfs = [Vnf(name=name, kind=NfKind("linux_router"), vcpus=1) for name in ("nf-0-1", "nf-1-2", "nf-2-2")]
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


def test_what_shared_cores_says_so_wherever_it_is_named() -> None:
    plan = result(ServiceType.CSP, 1, 1).plan
    cores = plan.cores.model_copy(update={"oversubscribed": True})
    crowded = one_of_each(plan=plan.model_copy(update={"cores": cores}))
    # Profiles: a line and a section for each of five, and one comparison; the sizing has no part in them.
    for page, places in ((profiles.PAGE, 11), (predictions.PAGE, 2), (BURSTS, 1), (OVERVIEW, 7)):
        assert str(made(page, *crowded).html).count('class="mark over"') == places, page.name
        assert 'class="mark over"' not in made(page, *one_of_each()).html


def test_a_skipped_one_is_not_called_failed() -> None:
    bare = [
        record(kind, f"Bare {kind}", passed=False, skipped=True, message="needs 33 cores")
        for kind in ("sweep", "chain", "bursts", "sizing")
    ]
    for page in (*PAGES, OVERVIEW):
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


ROUTER = sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5)
ONE = sweep_of("firewall", FIREWALL)
GBPS = 512e-9
"""Of one packet per second of 64 bytes."""


def traces_of(page: RenderedPage) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Traces by the identity of a figure and by variant."""
    return {one.identity: {key: variant["data"] for key, variant in one.variants.items()} for one in page.figures}


def path_of(delay_s: float) -> Sweep:
    """The service without any VNF: no packet is lost, and each takes the same time."""
    base = sweep_of("path", FIREWALL)
    points = tuple(
        point.model_copy(update={"delay_s": delay_s, "cpu": {}, "output_pps": point.input_pps, "loss_ratio": 0.0})
        for point in base.points
    )
    return base.model_copy(update={"vnfs": (), "points": points})


def of_chain(end: str, record: SweepRecord, alone: PartMeasurements) -> Figure | None:
    """A figure of a chain, by the end of its identity."""
    return next((one for one in chain_figures("a", record, alone) if one.identity == f"a-{end}"), None)


def test_functions_of_all_flavors_lie_in_one_plot_with_their_saturation() -> None:
    found = traces_of(made(profiles.PAGE, *one_of_each()))["sweeps-1-functions"]["throughput"]
    lines = [trace for trace in found if trace["mode"] == "lines"]
    names = [f"firewall, {size}, function" for size in ("64B, 1c", "512B, 1c", "64B, 2c")]
    assert [line["name"] for line in lines] == names
    for rate, value in list(zip(lines[1]["x"], lines[1]["y"], strict=True))[::20]:
        expected = value_at(profiled(ONE), ProfileMetric.THROUGHPUT, rate / 8)
        assert value == pytest.approx(8 * expected, rel=0.02), "512 B frames have eight times the bits"
    (saturated,) = (trace["x"] for trace in found if trace["name"] == "firewall, 64B, 2c, saturation")
    two: Any = one_of_each()[2]
    assert saturated == [pytest.approx(two.profile.break_point.rate)]
    assert {trace["meta"]["facets"]["frame"] for trace in found} == {"64B", "512B"}


def test_below_saturation_only_loads_below_it_are_drawn() -> None:
    found = traces_of(made(profiles.PAGE, *one_of_each()))["sweeps-1-delays"]
    one = profiled(ONE).break_point
    (line,) = (trace for trace in found["below saturation|by Gbit/s"] if trace["name"] == "firewall, 64B, 2c")
    assert max(line["y"]) < 0.1, "in milliseconds; saturated loads have 2"
    assert [row["rate"] for row in below(profiled(ONE), ONE, 0.5)] == [
        pytest.approx(point.input_pps * GBPS) for point in ONE.points if point.input_pps * GBPS < 0.5 * one.low
    ]
    assert len(below(None, ONE, 1.0)) == len(ONE.points), "what never saturates is below everywhere"


def test_a_chain_lies_beside_its_vnfs_alone_in_three_panels() -> None:
    on = swept("With", ONE)
    for alone, is_there in ((on, True), (on.model_copy(update={"smt_off": True}), False)):
        found = traces_of(made(predictions.PAGE, chained(), alone))
        assert any(name.endswith("-parts") for name in found) is is_there, "not beside one without SMT"
    record = chained()
    traces = of_chain("parts", record, PartMeasurements({"router": ROUTER, "firewall": ONE})).variants[""]["data"]
    assert [(trace["name"], trace.get("yaxis", "y")) for trace in traces] == [
        (name, axis) for axis in ("y", "y2", "y3") for name in ("the chain", "router alone", "firewall alone")
    ]
    points = record.sweep.points
    assert traces[0]["x"] == [pytest.approx(point.input_pps * GBPS) for point in points]
    assert traces[1]["y"] == [pytest.approx(point.output_pps * GBPS) for point in ROUTER.points]
    assert max(traces[6]["y"]) == pytest.approx(100 * max(point.loss_ratio or 0 for point in points), rel=1e-4)
    only = of_chain("parts", record, PartMeasurements({"firewall": ONE}))
    assert [trace["name"] for trace in only.variants[""]["data"][:2]] == ["the chain", "firewall alone"]
    assert of_chain("parts", record, PartMeasurements()) is None
    assert of_chain("delays", record, PartMeasurements({"firewall": ONE})) is None, "delays add up of all parts only"


def test_delays_of_the_path_and_the_vnfs_add_up_along_the_chain() -> None:
    record = chained()
    figure = of_chain("delays", record, PartMeasurements({"router": ROUTER, "firewall": ONE}, path_of(2e-5)))
    path, router, firewall, measured = figure.variants["below saturation"]["data"]
    names = ["path without VNFs", "nf-1-1 (router)", "nf-1-2 (firewall)", "the chain, measured"]
    assert [trace["name"] for trace in (path, router, firewall, measured)] == names
    assert set(path["y"]) == {0.02}
    at = 2
    rate_pps = record.sweep.points[at].input_pps
    # Alone a VNF takes 50 us and 20 us more as its CPU fills: the path's 20 us come off.
    assert router["y"][at] == pytest.approx(0.05 + 0.02 * rate_pps / 4e5 - 0.02, abs=2e-3)
    assert firewall["y"][at] == pytest.approx(0.05 + 0.02 * rate_pps / 2e5 - 0.02, abs=2e-3)
    plain = of_chain("delays", record, PartMeasurements({"router": ROUTER, "firewall": ONE}))
    whole = plain.variants["below saturation"]["data"][0]["y"][at]
    assert whole == pytest.approx(router["y"][at] + 0.02, abs=1e-6), "without a path each has all of its delay"
    assert len(figure.variants["below half of it"]["data"][0]["x"]) < len(path["x"])


def test_both_profiles_are_side_by_side_and_the_one_without_smt_says_what_smt_adds() -> None:
    one, other = swept("With", ONE), swept("Without", sweep_of("firewall", FIREWALL, capacity_pps=1.5e5))
    assert other.profile is not None
    gains = smt_gains(one.profile, other.profile)
    page = made(profiles.PAGE, one, other.model_copy(update={"smt_off": True, "smt_gains": gains}))
    html = str(page.html)
    assert "Side by side: firewall on local" in html
    assert "firewall, 64B, 1c, SMT off" in html
    assert "SMT changes the break-point by +33." in html
    assert "SMT changes the saturated throughput by +33." in html
    assert "of 2 vCPUs" not in html and "Gains of more vCPUs" not in html
