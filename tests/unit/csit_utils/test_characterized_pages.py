"""Pages of profiles, chains, bursts and sizings: what they say and draw of which records."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from csit_utils.report import figures as report_figures
from csit_utils.report.figures import Figure
from csit_utils.report.messages import message_parts
from csit_utils.report.site import OVERVIEW, RenderedPage
from csit_utils.studies.registry import views
from csit_utils.studies.sizing import study as sizings
from csit_utils.studies.sweep import predictions, profiles
from csit_utils.studies.sweep.predictions import PartMeasurements, chain_figures, share_of
from csit_utils.studies.sweep.study import BURSTS, on_periods
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.service.spec import Offered
from resources.libraries.python.model.service.workload import Option
from resources.libraries.python.studies.sizing.model import SizingRecord
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath
from resources.libraries.python.studies.sweep.analysis.flavors import smt_gains
from resources.libraries.python.studies.sweep.analysis.sentences import chain_words
from resources.libraries.python.studies.sweep.model import Vnf
from tests.unit.csit_utils.builders import CSP, result
from tests.unit.csit_utils.characterization_records import (
    FIREWALL,
    burst,
    chained,
    dataset_of,
    one_of_each,
    record,
    sized,
    sweep_of,
    swept,
    traced,
)
from tests.unit.csit_utils.characterized_pages import made, shown, words

PAGES = (profiles.PAGE, predictions.PAGE, BURSTS, sizings.PAGE)


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
    packets = drawn(page, "-throughput", "kpps|by kpps")
    assert [trace["x"][0] * 512e-6 for trace in packets] == [
        pytest.approx(trace["x"][0], rel=1e-4) for trace in (second, mean, flagged, below, above)
    ]


def test_sizes_and_frames_of_one_service_stand_side_by_side() -> None:
    page = made(profiles.PAGE, *one_of_each())
    lines = drawn(page, "sweeps-1-loads", "throughput, kpps|by kpps")
    assert [line["name"] for line in lines] == ["firewall, 64B, 1c", "firewall, 512B, 1c", "firewall, 64B, 2c"]
    assert max(lines[0]["y"]) == pytest.approx(200), "kpps against kpps"
    assert max(drawn(page, "sweeps-1-loads", "throughput, Gbit/s|by Gbit/s")[0]["y"]) == pytest.approx(0.1024)
    assert "64B: firewall 1c (1 vCPU) to firewall 2c (2 vCPUs): break-point +95.0 %" in words(page)
    beside = [figure.identity for figure in made(profiles.PAGE, one_of_each()[3], one_of_each()[0]).figures]
    assert not [name for name in beside if re.match(r"sweeps-\d", name)], "each has nothing beside it"


def test_a_vnf_in_one_of_two_branches_gets_half() -> None:
    kinds = (NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_router"))
    cell = Cell(service_type=CSP, nf_chains=2, nf_nodes=3, nf_kinds=kinds, shared_nodes=(1, 3))
    assert chain_words(cell) == "router → firewall | firewall → router"
    split = chained().sweep.model_copy(update={"cell": cell})
    vnfs = [Vnf(name=name, kind=NfKind("linux_router"), vcpus=1) for name in ("nf-0-1", "nf-1-2", "nf-2-2")]
    assert [share_of(split, vnf) for vnf in vnfs] == [1.0, 0.5, 0.5]


def test_both_delays_of_a_prediction_are_shown_where_the_path_was_measured() -> None:
    page = made(predictions.PAGE, chained(MeasuredPath("path", (0.01, 0.1), (0.02, 0.02))))
    names = ["measured", "predicted by the bottleneck VNF", "plain sum of delays, by the bottleneck VNF"]
    delays, throughput = drawn(page, "-chain-delay", "logarithmic"), drawn(page, "-chain-throughput", "")
    assert [each["name"] for each in delays] == names
    assert delays[2]["y"][0] - delays[1]["y"][0] == pytest.approx(0.02, abs=1e-4)
    assert [each["name"] for each in throughput] == names[:2]


def test_delays_of_the_path_and_the_vnfs_add_up_along_the_chain() -> None:
    record, firewall = chained(), sweep_of("firewall", FIREWALL)
    alone = {"router": sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5), "firewall": firewall}
    points = tuple(point.model_copy(update={"delay_s": 2e-5, "cpu": {}}) for point in firewall.points)
    path = firewall.model_copy(update={"vnfs": (), "points": points})
    with_path, without = (
        next(one for one in chain_figures("a", record, parts) if one.identity == "a-delays")
        for parts in (PartMeasurements(alone, path), PartMeasurements(alone))
    )
    lines = with_path.variants["below saturation"]["data"]
    names = ["path without VNFs", "nf-1-1 (router)", "nf-1-2 (firewall)", "the chain, measured"]
    assert [trace["name"] for trace in lines] == names
    rate_pps = record.sweep.points[2].input_pps
    # Alone a VNF takes 50 us and 20 us more as its CPU fills: the path's 20 us come off.
    expected = [0.02, *(0.05 + 0.02 * rate_pps / capacity - 0.02 for capacity in (4e5, 2e5))]
    assert [trace["y"][2] for trace in lines[:3]] == pytest.approx(expected, abs=2e-3)
    whole = without.variants["below saturation"]["data"][0]["y"][2]
    assert whole == pytest.approx(lines[1]["y"][2] + 0.02, abs=1e-6), "without a path each has all of its delay"


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
    plan = result(CSP, 1, 1).plan
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


def test_both_profiles_are_side_by_side_and_the_one_without_smt_says_what_smt_adds() -> None:
    with_smt, without = sweep_of("firewall", FIREWALL), sweep_of("firewall", FIREWALL, capacity_pps=1.5e5)
    one, other = swept("With", with_smt), swept("Without", without)
    gains = smt_gains(one.profile, other.profile)
    page = made(profiles.PAGE, one, other.model_copy(update={"smt_off": True, "smt_gains": gains}))
    html = str(page.html)
    assert "Side by side: firewall on local" in html
    assert "firewall, 64B, 1c, SMT off" in html
    assert "SMT changes the break-point by +33." in html
    assert "SMT changes the saturated throughput by +33." in html
    assert "of 2 vCPUs" not in html and "Gains of more vCPUs" not in html


def drawn_of(end: str, *records: SizingRecord) -> list[Figure]:
    """Figures of the page whose identities end so."""
    return [one for one in made(sizings.PAGE, *records).figures if one.identity.endswith(end)]


def changed(record: SizingRecord, name: str, **parts: Mapping[str, object]) -> SizingRecord:
    """The same sizing under another name, with other parts of its deployment or workload."""
    update = {part: getattr(record.sizing, part).model_copy(update=keys) for part, keys in parts.items()}
    more = {"test_name": name, "test_id": name, "sizing": record.sizing.model_copy(update=update)}
    return record.model_copy(update=more)


def test_indicator_and_cpus_of_three_loads_stand_one_after_the_other() -> None:
    (figure,) = drawn_of("-traces", traced(sized()))
    assert list(figure.variants) == ["front 1 s, back 1 s"]
    variant = figure.variants["front 1 s, back 1 s"]
    by_name = {trace["name"]: trace for trace in variant["data"]}
    assert list(by_name) == ["offered load", "indicator", "front-1", "back-1"]
    # 4 s for each load, and a gap that no line crosses.
    assert by_name["indicator"]["y"] == [100, 90, 100, 100, None, 300, 290, 300, 300, None, 300, 290, 300, 300]
    assert by_name["indicator"]["x"][:6] == [1, 2, 3, 4, None, 5.24]
    assert by_name["offered load"]["y"] == [100, 100, None, 300, 300, None, 500, 500]
    assert by_name["front-1"]["y"][:5] == [10, 10, 10, None, None], "in percent; what was not read is a gap"
    assert (by_name["indicator"].get("yaxis", "y"), by_name["front-1"]["yaxis"]) == ("y", "y2")
    marks = [mark["text"] for mark in variant["layout"]["annotations"]]
    assert marks == ["100 calls/s", "300 calls/s, capacity", "500 calls/s, overload"]


def inspected(share: int, test_name: str, **workload: object) -> SizingRecord:
    """A sizing with a share of malicious traffic, of which 1 % is not detected for each 100 of the load."""
    options = {"malicious": Option(values=("0", "25", "50", "a"), value=str(share))}
    record = changed(sized(), test_name, workload={"options": options, **workload})

    def judged(row: Offered) -> Offered:
        detected = {"detected": 1 - row.load / 1e4} if share else {}
        return row.model_copy(update={"figures": {"hits": share * row.load, **detected}})

    sizes = tuple(each.model_copy(update={"offered": tuple(map(judged, each.offered))}) for each in record.sizing.sizes)
    return record.model_copy(update={"sizing": record.sizing.model_copy(update={"sizes": sizes})})


def test_figures_of_the_script_are_drawn_over_the_share_of_malicious_traffic() -> None:
    shares = [inspected(share, f"{share}") for share in (50, 0, 25)]
    other = inspected(25, "other", repeat=3)
    (plot,) = drawn_of("option-1", *shares, other, sized())
    assert set(plot.selectors[1]) == {"hits", "detected", "indicator"} and plot.selectors[0][0] == "500 calls/s"
    lines = plot.variants["500 calls/s|detected"]["data"]
    assert (lines[0]["x"], lines[0]["y"]) == ([25, 50], [0.95, 0.95]), "without malicious traffic there is no share"
    assert plot.variants["100 calls/s|hits"]["data"][0]["y"] == [0, 2500, 5000]
    assert plot.variants["100 calls/s|hits"]["data"][0]["x"] == [0, 25, 50]
    assert plot.variants["500 calls/s|indicator"]["data"][0]["y"] == [300, 300, 300]


def test_sizings_share_the_bound_of_their_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_figures, "MAX_VALUES", 36)
    (alone,) = drawn_of("-traces", traced(sized()))
    assert "samples" not in alone.title
    figures = drawn_of("-traces", traced(sized()), changed(traced(sized()), "Another"))
    assert [one.title[-26:] for one in figures] == ["(every 2nd of 36 samples)".rjust(26)] * 2
    lines = [line for one in figures for line in one.variants["front 1 s, back 1 s"]["data"]]
    sampled = [line for line in lines if line["name"] != "offered load"]
    assert sum(x is not None for line in sampled for x in line["x"]) == 36


def test_sizings_side_by_side_are_distinguished_by_script_name_or_options_and_units_are_separate() -> None:
    def names(*records: SizingRecord) -> list[str]:
        (figure,) = drawn_of("sizings-1", sized(), *records)
        return [trace["name"].removeprefix("front 1 s, back 1 s, ") for trace in figure.variants["indicator"]["data"]]

    malicious = changed(sized(), "Malicious", workload={"generator": "scripts/malicious-50.sh"})
    apart = changed(sized(), "Packets", workload={"unit": "kpps"})
    assert names(malicious, apart)[::2] == ["load", "malicious-50"]

    def with_options(engine: str, share: str) -> SizingRecord:
        workers = Option(values=("1", "2"), value="1")
        chosen = {"engine": Option(values=("ids", "ips"), value=engine), "workers": workers}
        workload = {"options": {"malicious": Option(values=("0", "50"), value=share)}}
        return changed(sized(), f"{engine} {share}", deployment={"options": chosen}, workload=workload)

    options = [("ids", "0"), ("ids", "50"), ("ips", "50")]
    (figure,) = drawn_of("sizings-1", *(with_options(*each) for each in options))
    found = [trace["name"] for trace in figure.variants["indicator"]["data"]][::2]
    assert found == [f"front 1 s, back 1 s, engine {engine}, malicious {share}" for engine, share in options]
