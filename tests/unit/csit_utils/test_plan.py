"""The plan command: table, JSON and page say the same, for every testbed that comes with the project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from csit_utils.cli import make_app
from csit_utils.report.html import own_file
from csit_utils.studies.density.commands.plan import parse_cell
from csit_utils.studies.density.preview.duration import times
from csit_utils.studies.density.preview.page import key_of, page_data, render_plan
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from tests.builders import SIM
from tests.unit.csit_utils.datasets import TOPOLOGIES, plan
from tests.unit.csit_utils.rendered_pages import Page


def objects(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in plan(capsys, *options, "--format", "json").splitlines()]


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_testbed_has_a_plan(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    *cells, summary = objects(capsys, str(path), "--cells", "{1,2}x{1,2}")
    assert summary["cells"] == len(cells) == 4 * 3 * 2
    for cell in cells:
        assert cell["fits"] == (not cell["reasons"])
        assert cell["runs"] == (cell["cores"] is not None) == (cell["balance"] is not None)
        assert cell["runs"] or cell["reason"]
    assert "cells:" in plan(capsys, str(path), "--cells", "1x1")


@pytest.mark.parametrize("columns", ["0", "1", "-5", "wide"])
def test_the_width_of_a_terminal_hides_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = "".join(plan(capsys, str(TOPOLOGIES / "sim.yaml"), "--cells", "1x1").split())
    assert "cells:" in said
    assert all(kind in said for kind in ("VSC", "CSC", "CSP"))


def test_the_draft_grid_on_28_cores(capsys: pytest.CaptureFixture[str]) -> None:
    *cells, summary = objects(capsys, str(TOPOLOGIES / "sim.yaml"))
    fits = [cell["service_type"] for cell in cells if cell["fits"]]
    assert {kind: fits.count(kind) for kind in set(fits)} == dict.fromkeys(("VSC", "CSC", "CSP"), 19 + 23)
    assert (summary["cells"], summary["cells_fit"], summary["cells_refused"]) == (216, 126, 90)
    assert summary["tests"] == 126 * 3
    assert sum(suite["seconds"] for suite in summary["suites"]) == pytest.approx(summary["seconds"])
    assert sum(suite["tests"] for suite in summary["suites"]) == 126 * 3
    assert summary["seconds_are_virtual"]


def test_several_reasons_and_the_imbalance_are_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    sim = str(TOPOLOGIES / "sim.yaml")
    big, _ = objects(capsys, sim, "--types", "VSC", "--cells", "10x10", "--nf-sizes", "1c")
    assert [reason["limit"] for reason in big["reasons"]] == ["cores", "hugepages"]
    small, _ = objects(capsys, sim, "--types", "CSC", "--cells", "1x2", "--nf-sizes", "2c", "--vswitch", "2")
    assert small["balance"]["vswitch"] == {"queues": 6, "threads": 4, "least": 1, "most": 2}
    assert small["balance"]["nfs"] == {"2c": {"queues": 2, "threads": 4, "least": 0, "most": 1}}
    assert not small["balance"]["even"]


def test_a_cell_that_runs_oversubscribed_is_no_cell_that_does_not_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = (TOPOLOGIES / "sim.yaml").read_text(encoding="utf-8")
    path = tmp_path / "small.yaml"
    path.write_text(text.replace("vswitch: sim\n", "vswitch: sim\n    oversubscribe: true\n"), encoding="utf-8")
    for topology, heading, letters in ((path, "Oversubscribed", False), (TOPOLOGIES / "sim.yaml", "Why not", True)):
        said = plan(capsys, str(topology), "--types", "CSC", "--cells", "5x5", "--nf-sizes", "1c")
        assert f"  {heading}: CSC 5x5 NF-1c vSwitch-1c: needs 41 cores" in said
        assert ("Why not" in said) is letters
        assert ("Not enough: C cores." in said) is letters


def test_kinds_of_cores_and_caches_are_in_the_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [f"{cpu},{cpu},0,0,,{cpu},{cpu},{cpu},{cpu // 4}" for cpu in range(32)]
    path = tmp_path / "lscpu.txt"
    path.write_text("\ufeff# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\r\n" + "\r\n".join(rows), encoding="utf-16")
    lab = [str(TOPOLOGIES / "available" / "lab-2n-vpp.yaml"), "--cpus", f"DUT1={path}", "--types", "CSC"]
    note = "the data threads of each service instance share a last-level cache"
    assert f"  Cores: CSC 2x2 NF-1c vSwitch-1c: {note}" in plan(capsys, *lab, "--cells", "2x2", "--nf-sizes", "1c")
    cell, _ = objects(capsys, *lab, "--cells", "2x2", "--nf-sizes", "1c")
    assert cell["core_notes"] == [note]


def test_options_are_the_variables_of_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    by_option = plan(capsys, str(TOPOLOGIES / "sim.yaml"), "--cells", "1x2", "--nf-sizes", "2c", "--search", "quick")
    variables = {"TOPOLOGY": str(TOPOLOGIES / "sim.yaml"), "CELLS": "1x2", "NF_SIZES": "2c", "SEARCH": "quick"}
    given = [word for name, value in variables.items() for word in ("-v", f"{name}:{value}")]
    assert plan(capsys, *given) == by_option
    default = plan(capsys, str(TOPOLOGIES / "sim.yaml"))
    spelled = [word for name in KNOWN for word in ("-v", f"{name}:{VARIABLES[name].default}")]
    assert plan(capsys, str(TOPOLOGIES / "sim.yaml"), *spelled) == default, "without options: what would run"


KNOWN = ("CELLS", "NF_SIZES", "NF_KINDS", "VSWITCH", "FRAMES", "SEARCH")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["-v", "CELL:1x1"], "'CELL:1x1': expected NAME:value"),
        (["--tests", "SOAKING"], "no test type 'SOAKING'"),
        (["-v", "ENERGY:0.1"], "ENERGY '0.1': expected 1 to 600 seconds"),
        (["--cells", "0x1"], "rows and columns count from 1"),
        (["--cell", "CSC"], "no cell 'CSC'"),
        (["--cell", "CSC 1x2 1c+2c+1c"], "selects 0 cells"),
    ],
)
def test_a_wrong_word_is_one_sentence(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        make_app(["plan"])(["plan", *options], standalone_mode=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CSC 2x4 1c", ("CSC", 2, 4, "1c", 1)),
        ("vsc 10 x 1", ("VSC", 10, 1, "1c", 1)),
        ("CSC 2R4C NF-1c vSwitch-1c", ("CSC", 2, 4, "1c", 1)),
        ("CSP 1x2 NF-1c+0.5c vswitch-4c", ("CSP", 1, 2, "1c+0.5c", 4)),
    ],
)
def test_a_cell_in_words(text: str, found: tuple[str, int, int, str, int]) -> None:
    (cell,) = parse_cell(text).cells()
    assert (cell.service_type, cell.nf_chains, cell.nf_nodes, cell.size_name, cell.vs_dtc) == found


def test_all_of_one_cell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = plan(capsys, str(TOPOLOGIES / "sim.yaml"), "--cell", "CSC 2x2 0.5c vswitch-4c")
    for fact in (
        "CSC 2x2 NF-0.5c vSwitch-4c: fits",
        "12 receive queues on 8 data threads, 1 to 2 per thread",
        "CPU 36: nf-2-1 data 0",  # the sibling of CPU 8
        "csv1x1i2 - csv1x2i1",  # the segment between the NFs
        "Receive queues",
        "10.2.0.1 and 253 more",
    ):
        assert fact in said
    refused = plan(capsys, str(TOPOLOGIES / "sim.yaml"), "--cell", "CSC 10x10 1c")
    assert "does not fit" in refused
    assert "needs 153 cores on NUMA 0, 28 available" in refused
    assert "Links" not in refused


def test_times_add_up_by_suite_and_frame() -> None:
    def rows_of(frames: str) -> list[Candidate]:
        asked = parse_selection(service_types="CSC", cells="1x1,10x10", nf_sizes="1c", frames=frames)
        return list(candidates(SIM, SIM.dut.layout, asked))

    rows = rows_of("64B")
    once = times(SIM, rows, LADDER, [TestType.MRR])
    assert [(suite.suite, suite.tests) for suite in once.suites] == [("csc-mrr", 1)]
    assert once.seconds == pytest.approx(15.7)
    assert times(SIM, rows_of("64B,128B,IMIX"), LADDER, [TestType.MRR]).seconds == pytest.approx(3 * 15.7)
    assert times(SIM, rows, LADDER, list(TestType)).seconds > once.seconds
    more = Extras(energy_trial_s=10.0)
    search_s = times(SIM, rows, LADDER, [TestType.NDRPDR]).seconds
    assert times(SIM, rows, LADDER, [TestType.NDRPDR], extras=more).seconds == pytest.approx(search_s + 5 * 10.5)


@pytest.mark.parametrize(
    ("cells", "number"), [("1-4x1-4", 432), pytest.param("1-10x1-10", 2700, marks=pytest.mark.slow)]
)
def test_the_page_carries_every_cell_and_core_map_once(cells: str, number: int) -> None:
    selection = parse_selection(cells=cells, nf_sizes="0.5c,1c,2c", vswitch="1,2,4")
    rows = list(candidates(SIM, SIM.dut.layout, selection))
    data = page_data(rows)
    assert len(data["cells"]) == len({key_of(row) for row in rows}) == number
    running = [row for row in rows if row.runs]
    # Three service types share a map, and what does not run has none.
    assert len(data["maps"]) == len(running) // 3
    for row in running[:: len(running) // 50]:
        node, needed, there, physical, threads = data["maps"][data["cells"][key_of(row)][5]]
        assert (int(node), int(needed), int(there)) == (0, row.cores.cores_needed, 28)
        cores = tuple(tuple(map(int, core.split(","))) for core in physical.split("|"))
        assert cores == row.cores.physical
        placed = [cpu for part in threads.split(" ") for cpu in map(int, part.split(":")[1][1:].split(","))]
        assert sorted(placed) == sorted(thread.cpu for thread in row.cores.threads)
    html = render_plan(SIM, None, rows, times(SIM, rows, LADDER, list(TestType)))
    assert len(html) < 1_000_000
    page = Page(html)
    assert sum(tag == "button" and "data-k" in attributes for tag, attributes in page.tags) == number
    assert not [attributes for _, attributes in page.tags if attributes.get("src") or attributes.get("href")]
    assert "default-src 'none'" in html


def test_markup_in_a_testbeds_name_stays_text() -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    metadata = SIM.metadata.model_copy(update={"name": hostile, "description": hostile})
    testbed = SIM.model_copy(update={"metadata": metadata})
    bare = testbed.dut.model_copy(update={"vms": None})
    testbed = testbed.model_copy(update={"nodes": {**testbed.nodes, "DUT1": bare}})
    rows = list(candidates(testbed, SIM.dut.layout, parse_selection(cells="1x1")))
    html = render_plan(testbed, None, rows, times(testbed, rows, LADDER, list(TestType)))
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert html.count("</script>") == 2
    assert f"testbed {hostile} has no driver for VMs" in page.text


def test_control_characters_of_a_name_are_visible_where_scripts_draw_it() -> None:
    metadata = SIM.metadata.model_copy(update={"name": "\x1b[2J\u202eno \\u202e \U0001f600"})
    testbed = SIM.model_copy(update={"metadata": metadata})
    bare = testbed.dut.model_copy(update={"vms": None})
    testbed = testbed.model_copy(update={"nodes": {**testbed.nodes, "DUT1": bare}})
    rows = list(candidates(testbed, SIM.dut.layout, parse_selection(cells="1x1")))
    html = render_plan(testbed, None, rows, times(testbed, rows, LADDER, list(TestType)))
    data = html[html.index(mark := '<script type="application/json" id="data">') + len(mark) :].partition("</script>")[
        0
    ]
    drawn = json.dumps(json.loads(data), ensure_ascii=False)
    assert "\\\\x1b[2J\\\\u202eno \\\\u202e \U0001f600" in drawn


@pytest.mark.parametrize("name", ["plan.css", "plan.js"])
def test_own_files_name_no_place_outside(name: str) -> None:
    text = str(own_file(name))
    assert "http" not in text
    assert "@import" not in text
