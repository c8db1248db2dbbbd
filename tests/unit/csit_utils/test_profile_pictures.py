"""Pictures that lay profiles and chains beside each other: which values are drawn."""

from typing import Any

import pytest

from csit_utils.report.figures import Figure
from csit_utils.report.site import RenderedPage
from csit_utils.studies.sweep.figures import below
from csit_utils.studies.sweep.pages import predictions, profiles
from csit_utils.studies.sweep.pages.predictions import PartMeasurements, chain_figures
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.analysis.profile import value_at
from resources.libraries.python.studies.sweep.analysis.smt_gains import smt_gains
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord
from tests.unit.csit_utils.characterization_records import FIREWALL, chained, one_of_each, profiled, sweep_of, swept
from tests.unit.csit_utils.characterized_pages import made

ROUTER = sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5)
ONE = sweep_of("firewall", FIREWALL)
GBPS = 512e-9
"""Of one packet per second of 64 bytes."""


def figures(page: RenderedPage) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Traces by the end of a figure's identity and by variant."""
    return {
        figure.identity: {key: variant["data"] for key, variant in figure.variants.items()} for figure in page.figures
    }


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


def chain_of(record: SweepRecord) -> Sweep:
    assert record.sweep is not None
    return record.sweep


def test_functions_of_all_flavors_lie_in_one_plot_with_their_saturation() -> None:
    found = figures(made(profiles.PAGE, *one_of_each()))["sweeps-1-functions"]["throughput"]
    lines = [trace for trace in found if trace["mode"] == "lines"]
    names = [f"firewall, {size}, function" for size in ("64B, 1c", "512B, 1c", "64B, 2c")]
    assert [line["name"] for line in lines] == names
    profile = profiled(sweep_of("firewall", FIREWALL, capacity_pps=2e5))
    first = lines[1]
    for rate, value in list(zip(first["x"], first["y"], strict=True))[::20]:
        expected = value_at(profile, ProfileMetric.THROUGHPUT, rate / 8)
        assert value == pytest.approx(8 * expected, rel=0.02), "512 B frames have eight times the bits"
    (saturated,) = (trace["x"] for trace in found if trace["name"] == "firewall, 64B, 2c, saturation")
    two = one_of_each()[2]
    assert isinstance(two, SweepRecord) and two.profile is not None and two.profile.break_point is not None
    assert saturated == [pytest.approx(two.profile.break_point.rate)]
    assert {trace["meta"]["facets"]["frame"] for trace in found} == {"64B", "512B"}


def test_below_saturation_only_loads_below_it_are_drawn() -> None:
    found = figures(made(profiles.PAGE, *one_of_each()))["sweeps-1-delays"]
    one = profiled(ONE).break_point
    (line,) = (trace for trace in found["below saturation|by Gbit/s"] if trace["name"] == "firewall, 64B, 2c")
    assert max(line["y"]) < 0.1, "in milliseconds; saturated loads have 2"
    assert [row["rate"] for row in below(profiled(ONE), ONE, 0.5)] == [
        pytest.approx(point.input_pps * GBPS) for point in ONE.points if point.input_pps * GBPS < 0.5 * one.low
    ]
    assert len(below(None, ONE, 1.0)) == len(ONE.points), "what never saturates is below everywhere"


def test_profiles_of_one_service_only_are_not_laid_beside_anything() -> None:
    page = made(profiles.PAGE, swept("Firewall", ONE))
    assert not [figure for figure in page.figures if "functions" in figure.identity or "delays" in figure.identity]


def test_a_chain_lies_beside_its_vnfs_alone_in_three_panels() -> None:
    found = figures(made(predictions.PAGE, *one_of_each()))
    (traces,) = (each[""] for name, each in found.items() if name.endswith("-parts"))
    assert [(trace["name"], trace.get("yaxis", "y")) for trace in traces] == [
        (name, axis) for axis in ("y", "y2", "y3") for name in ("the chain", "router alone", "firewall alone")
    ]
    chain = chain_of(chained())
    assert traces[0]["x"] == [pytest.approx(point.input_pps * GBPS) for point in chain.points]
    assert traces[1]["y"] == [pytest.approx(point.output_pps * GBPS) for point in ROUTER.points]
    assert max(traces[6]["y"]) == pytest.approx(100 * max(point.loss_ratio or 0 for point in chain.points), rel=1e-4)


def test_what_was_not_measured_alone_is_left_out_and_nothing_alone_is_no_picture() -> None:
    record = chained()
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
    rate_pps = chain_of(record).points[at].input_pps
    # Alone a VNF takes 50 us and 20 us more as its CPU fills: the path's 20 us come off.
    assert router["y"][at] == pytest.approx(0.05 + 0.02 * rate_pps / 4e5 - 0.02, abs=2e-3)
    assert firewall["y"][at] == pytest.approx(0.05 + 0.02 * rate_pps / 2e5 - 0.02, abs=2e-3)
    plain = of_chain("delays", record, PartMeasurements({"router": ROUTER, "firewall": ONE}))
    whole = plain.variants["below saturation"]["data"][0]["y"][at]
    assert whole == pytest.approx(router["y"][at] + 0.02, abs=1e-6), "without a path each has all of its delay"
    assert len(figure.variants["below half of it"]["data"][0]["x"]) < len(path["x"])


def test_both_profiles_are_side_by_side_and_the_one_without_smt_says_what_smt_adds() -> None:
    one, other = swept("With", ONE), swept("Without", sweep_of("firewall", FIREWALL, capacity_pps=1.5e5))
    assert one.profile is not None and other.profile is not None
    gains = smt_gains(one.profile, other.profile)
    page = made(profiles.PAGE, one, other.model_copy(update={"smt_off": True, "smt_gains": gains}))
    html = str(page.html)
    assert "Side by side: firewall on local" in html
    assert "firewall, 64B, 1c, SMT off" in html
    assert "SMT changes the break-point by +33." in html
    assert "SMT changes the saturated throughput by +33." in html
    assert "of 2 vCPUs" not in html and "Gains of more vCPUs" not in html


def test_a_part_without_smt_is_not_compared_with_a_chain_that_has_it() -> None:
    off = swept("Without", ONE).model_copy(update={"smt_off": True})
    assert not [name for name in figures(made(predictions.PAGE, chained(), off)) if name.endswith("-parts")]
    assert [name for name in figures(made(predictions.PAGE, chained(), swept("With", ONE))) if name.endswith("-parts")]
