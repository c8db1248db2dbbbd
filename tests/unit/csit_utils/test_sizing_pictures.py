"""Pictures of sizings over time and side by side: what is drawn of which records."""

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from csit_utils.report import figures as report_figures
from csit_utils.report.figures import Figure, Panel, stacked
from csit_utils.studies.sizing import study as sizings
from resources.libraries.python.model.service.spec import Offered
from resources.libraries.python.model.service.workload import Option
from resources.libraries.python.studies.sizing.model import SizingRecord
from tests.unit.csit_utils.characterization_records import sized, traced
from tests.unit.csit_utils.characterized_pages import made


def drawn(end: str, *records: SizingRecord) -> list[Figure]:
    """Figures of the page whose identities end so."""
    return [one for one in made(sizings.PAGE, *records).figures if one.identity.endswith(end)]


def changed(record: SizingRecord, name: str, **parts: Mapping[str, object]) -> SizingRecord:
    """The same sizing under another name, with other parts of its deployment or workload."""
    update = {part: getattr(record.sizing, part).model_copy(update=keys) for part, keys in parts.items()}
    more = {"test_name": name, "test_id": name, "sizing": record.sizing.model_copy(update=update)}
    return record.model_copy(update=more)


def test_indicator_and_cpus_of_three_loads_stand_one_after_the_other() -> None:
    (figure,) = drawn("-traces", traced(sized()))
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
    layout = variant["layout"]
    assert [mark["text"] for mark in layout["annotations"]] == [
        "100 calls/s",
        "300 calls/s, capacity",
        "500 calls/s, overload",
    ]
    assert layout["xaxis"]["ticktext"][:3] == ["0", "2", "4"] and layout["xaxis"]["tickvals"][3] == 4.24
    assert layout["xaxis"]["anchor"] == "y2"


def with_loads(record: SizingRecord, made: Callable[[Offered], Offered]) -> SizingRecord:
    """The same sizing with other rows of loads."""
    sizes = tuple(size.model_copy(update={"offered": tuple(map(made, size.offered))}) for size in record.sizing.sizes)
    return record.model_copy(update={"sizing": record.sizing.model_copy(update={"sizes": sizes})})


def inspected(share: int, test_name: str, **workload: object) -> SizingRecord:
    """A sizing with a share of malicious traffic, of which 1 % is not detected for each 100 of the load."""
    options = {"malicious": Option(values=("0", "25", "50", "a"), value=str(share))}
    record = changed(sized(), test_name, workload={"options": options, **workload})
    return with_loads(record, partial(_judged, share))


def _judged(share: int, row: Offered) -> Offered:
    detected = {"detected": 1 - row.load / 1e4} if share else {}
    return row.model_copy(update={"figures": {"hits": share * row.load, **detected}})


def test_figures_of_the_script_are_in_a_plot_and_in_the_table_of_loads() -> None:
    page = made(sizings.PAGE, inspected(25, "a"))
    (plot,) = [figure for figure in page.figures if figure.identity.endswith("-reported")]
    first, _ = plot.variants["detected"]["data"]
    assert plot.selectors == (("hits", "detected"),) and first["y"] == [0.99, 0.98, 0.97, 0.96, 0.95]
    assert '<td class="num" data-v="12500.0">' in page.html and '<td class="num" data-v="0.95">' in page.html
    assert not [figure for figure in page.figures if "option" in figure.identity], "one share is no series"
    assert not drawn("-reported", sized())


def test_figures_of_the_script_are_drawn_over_the_share_of_malicious_traffic() -> None:
    shares = [inspected(share, f"{share}") for share in (50, 0, 25)]
    other = inspected(25, "other", repeat=3)
    (plot,) = drawn("option-1", *shares, other, sized())
    assert set(plot.selectors[1]) == {"hits", "detected", "indicator"} and plot.selectors[0][0] == "500 calls/s"
    lines = plot.variants["500 calls/s|detected"]["data"]
    assert (lines[0]["x"], lines[0]["y"]) == ([25, 50], [0.95, 0.95]), "without malicious traffic there is no share"
    assert plot.variants["100 calls/s|hits"]["data"][0]["y"] == [0, 2500, 5000]
    assert plot.variants["100 calls/s|hits"]["data"][0]["x"] == [0, 25, 50]
    assert plot.variants["500 calls/s|indicator"]["data"][0]["y"] == [300, 300, 300]


def test_sizings_share_the_bound_of_their_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_figures, "MAX_VALUES", 36)
    (alone,) = drawn("-traces", traced(sized()))
    assert "samples" not in alone.title
    figures = drawn("-traces", traced(sized()), changed(traced(sized()), "Another"))
    assert [one.title[-26:] for one in figures] == ["(every 2nd of 36 samples)".rjust(26)] * 2
    lines = [line for one in figures for line in one.variants["front 1 s, back 1 s"]["data"]]
    sampled = [line for line in lines if line["name"] != "offered load"]
    assert sum(x is not None for line in sampled for x in line["x"]) == 36


def test_a_script_that_reports_no_seconds_leaves_the_cpus_alone_in_the_picture() -> None:
    def silent(row: Offered) -> Offered:
        return row.model_copy(update={"trace": row.trace and row.trace.model_copy(update={"indicators": ()})})

    (figure,) = drawn("-traces", with_loads(traced(sized()), silent))
    variant = figure.variants["front 1 s, back 1 s"]
    assert [trace["name"] for trace in variant["data"]] == ["front-1", "back-1"]
    assert "yaxis2" not in variant["layout"] and variant["layout"]["yaxis"]["domain"] == [0, 1]


def test_sizings_side_by_side_are_distinguished_by_script_name_or_options_and_units_are_separate() -> None:
    def names(*records: SizingRecord) -> list[str]:
        (figure,) = drawn("sizings-1", sized(), *records)
        return [trace["name"].removeprefix("front 1 s, back 1 s, ") for trace in figure.variants["indicator"]["data"]]

    malicious = changed(sized(), "Malicious", workload={"generator": "scripts/malicious-50.sh"})
    apart = changed(sized(), "Packets", workload={"unit": "kpps"})
    assert names(malicious, apart)[::2] == ["load", "malicious-50"]
    assert names(changed(sized(), "Once More", workload={"repeat": 3}))[2] == "Once More", "nothing else tells"

    def with_options(engine: str, share: str) -> SizingRecord:
        workers = Option(values=("1", "2"), value="1")
        chosen = {"engine": Option(values=("ids", "ips"), value=engine), "workers": workers}
        workload = {"options": {"malicious": Option(values=("0", "50"), value=share)}}
        return changed(sized(), f"{engine} {share}", deployment={"options": chosen}, workload=workload)

    options = [("ids", "0"), ("ids", "50"), ("ips", "50")]
    (figure,) = drawn("sizings-1", *(with_options(*each) for each in options))
    found = [trace["name"] for trace in figure.variants["indicator"]["data"]][::2]
    assert found == [f"front 1 s, back 1 s, engine {engine}, malicious {share}" for engine, share in options]


def test_panels_share_lines_in_the_legend_and_leave_out_what_has_no_values() -> None:
    def panel(title: str, alone: float | None, chain: float | None) -> Panel:
        lines = [{"name": name, "x": [0], "y": [y]} for name, y in (("alone", alone), ("chain", chain))]
        return Panel({"title": title}, lines)

    panels = (panel("throughput", 1.0, 2.0), panel("delay", None, None), panel("loss", None, 0.0))
    variant = stacked(panels, {"title": "rate"})
    assert [(trace["name"], trace.get("yaxis"), trace["showlegend"]) for trace in variant["data"]] == [
        ("alone", None, True),
        ("chain", None, True),
        ("chain", "y2", False),
    ]
    layout = variant["layout"]
    assert layout["yaxis2"]["title"] == "loss" and "yaxis3" not in layout
    assert layout["yaxis"]["domain"][0] > layout["yaxis2"]["domain"][1] and layout["yaxis2"]["domain"][0] == 0
