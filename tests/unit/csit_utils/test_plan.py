"""The plan command: table, JSON and page say the same, for every testbed and lab, and no node is reached."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csit_utils.cli import make_app
from csit_utils.report.details.coremap import core_map
from csit_utils.studies.density.plan_command import parse_cell
from csit_utils.studies.density.plan_page import key_of, page_data, render_plan
from csit_utils.studies.density.plan_table import times
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import SIM
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import CSC, result
from tests.unit.csit_utils.datasets import TOPOLOGIES, dataset_of, plan
from tests.unit.csit_utils.rendered_pages import Page, page_of
from tests.unit.planning.labs import lab


def objects(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in plan(capsys, *options, "--format", "json").splitlines()]


SIM_PATH, KERNEL_LAB = str(TOPOLOGIES / "sim.yaml"), str(TOPOLOGIES / "available" / "lab-2n-kernel.yaml")


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_testbed_has_a_plan(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    *cells, summary = objects(capsys, str(path), "--cells", "{1,2}x{1,2}")
    assert summary["cells"] == len(cells) == 4 * 3 * 2
    for cell in cells:
        assert cell["fits"] == (not cell["reasons"])
        assert cell["runs"] == (cell["cores"] is not None) == (cell["balance"] is not None)
        assert cell["runs"] or cell["reason"]
    assert "cells:" in plan(capsys, str(path), "--cells", "1x1")


def test_the_draft_grid_on_28_cores_with_several_reasons_and_the_imbalance(capsys: pytest.CaptureFixture[str]) -> None:
    *cells, summary = objects(capsys, SIM_PATH)
    fits = Counter(cell["service_type"] for cell in cells if cell["fits"])
    assert fits == dict.fromkeys(("VSC", "CSC", "CSP"), 19 + 23)
    assert (summary["cells"], summary["cells_fit"], summary["cells_refused"]) == (216, 126, 90)
    assert summary["tests"] == sum(suite["tests"] for suite in summary["suites"]) == 126 * 3
    assert sum(suite["seconds"] for suite in summary["suites"]) == pytest.approx(summary["seconds"])
    assert summary["seconds_are_virtual"]
    big, _ = objects(capsys, SIM_PATH, "--types", "VSC", "--cells", "10x10", "--nf-sizes", "1c")
    assert [reason["limit"] for reason in big["reasons"]] == ["cores", "hugepages"]
    small, _ = objects(capsys, SIM_PATH, "--types", "CSC", "--cells", "1x2", "--nf-sizes", "2c", "--vswitch", "2")
    assert small["balance"]["vswitch"] == {"queues": 6, "threads": 4, "least": 1, "most": 2}
    assert small["balance"]["nfs"] == {"2c": {"queues": 2, "threads": 4, "least": 0, "most": 1}}
    assert not small["balance"]["even"]


def test_a_cell_that_runs_oversubscribed_is_no_refused_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, text = tmp_path / "small.yaml", Path(SIM_PATH).read_text(encoding="utf-8")
    path.write_text(text.replace("vswitch: sim\n", "vswitch: sim\n    oversubscribe: true\n"), encoding="utf-8")
    for topology, heading, refused in ((path, "Oversubscribed", False), (SIM_PATH, "Why not", True)):
        said = plan(capsys, str(topology), "--types", "CSC", "--cells", "5x5", "--nf-sizes", "1c")
        assert f"  {heading}: CSC 5x5 NF-1c vSwitch-1c: needs 41 cores" in said
        assert ("Why not" in said) is ("Not enough: C cores." in said) is refused


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
    by_option = plan(capsys, SIM_PATH, "--cells", "1x2", "--nf-sizes", "2c", "--search", "quick")
    variables = {"TOPOLOGY": SIM_PATH, "CELLS": "1x2", "NF_SIZES": "2c", "SEARCH": "quick"}
    assert plan(capsys, *given(variables)) == by_option
    known = ("CELLS", "NF_SIZES", "NF_KINDS", "VSWITCH", "FRAMES", "SEARCH")
    spelled = given({name: VARIABLES[name].default for name in known})
    assert plan(capsys, SIM_PATH, *spelled) == plan(capsys, SIM_PATH), "without options: what would run"


def given(variables: dict[str, object]) -> list[str]:
    return [word for name, value in variables.items() for word in ("-v", f"{name}:{value}")]


def test_a_choice_of_the_suites_is_refused_by_its_bounds() -> None:
    with pytest.raises(ConfigError, match=r"ENERGY '0\.1': expected 1 to 600 seconds"):
        make_app(["plan"])(["plan", "-v", "ENERGY:0.1"], standalone_mode=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
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
    said = plan(capsys, SIM_PATH, "--cell", "CSC 2x2 0.5c vswitch-4c")
    for fact in ("12 receive queues on 8 data threads", "CPU 36: nf-2-1 data 0", "csv1x1i2 - csv1x2i1"):
        assert fact in said
    refused = plan(capsys, SIM_PATH, "--cell", "CSC 10x10 1c")
    assert "needs 153 cores on NUMA 0, 28 available" in refused and "Links" not in refused


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


def test_markup_and_control_characters_in_a_testbeds_name_stay_text() -> None:
    """On a page of reasons that have the name in them, of which scripts draw some."""
    hostile = "</script><img src=x onerror=alert(1)>\x1b[2J\u202eno \\u202e \U0001f600"
    metadata = SIM.metadata.model_copy(update={"name": hostile, "description": hostile})
    bare = SIM.dut.model_copy(update={"vms": None})
    testbed = SIM.model_copy(update={"metadata": metadata, "nodes": {**SIM.nodes, "DUT1": bare}})
    rows = list(candidates(testbed, SIM.dut.layout, parse_selection(cells="1x1")))
    html = render_plan(testbed, None, rows, times(testbed, rows, LADDER, list(TestType)))
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert html.count("</script>") == 2
    assert "testbed </script><img src=x onerror=alert(1)>" in page.text
    data = html.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    drawn = json.dumps(json.loads(data), ensure_ascii=False)
    assert "\\\\x1b[2J\\\\u202eno \\\\u202e \U0001f600" in drawn


def test_cpus_are_given_as_lscpu_prints_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """For a lab whose DUT was never looked at."""
    printed, unknown = tmp_path / "dut1.txt", str(tmp_path / "lab.yaml")
    rows = "".join(f"{cpu},{cpu % 8},0,0\n" for cpu in range(16))
    printed.write_text(f"# CPU,Core,Socket,Node\n{rows}", encoding="utf-8")
    text = Path(KERNEL_LAB).read_text(encoding="utf-8")
    text = text.replace("cpus:\n      - {cpus: 0-15, cores: 0-15}", "cpus: discover")
    Path(unknown).write_text(text, encoding="utf-8")
    said = plan(capsys, unknown, "--cpus", f"DUT1={printed}", "--cell", "CSC 2x1 0.5c")
    assert "5 physical cores of 8 on NUMA 0, SMT on" in said
    for wrong, expected in (
        ((), r"lab-2n-kernel: nodes\.DUT1\.cpus unknown: .* --cpus DUT1=FILE"),
        (("--cpus", f"DUT9={printed}"), "expected NODE=FILE, with NODE one of TG, DUT1"),
        (("--cpus", f"DUT1={tmp_path / 'none'}"), "none: cannot be read: No such file"),
        (("--cpus", f"DUT1={unknown}"), "CPUs of DUT1: line 4 is no row of"),
    ):
        with pytest.raises(ConfigError, match=expected):
            plan(capsys, unknown, *wrong)


def in_a_lab(duts: int) -> DensityRecord:
    cell = Cell(service_type=CSC, nf_chains=1, nf_nodes=2)
    return result(CSC, 1, 2).model_copy(update={"plan": make_plan(lab(duts), cell, {})})


def test_the_report_never_mixes_cpus_of_machines() -> None:
    view = core_map(in_a_lab(2))
    assert [machine.name for machine in view.machines] == ["DUT1", "DUT2", "TG"]
    on_cpu_2 = [[thread.label for thread in machine.cpus[2].threads] for machine in view.machines]
    assert on_cpu_2 == [["vswitch data 0"], ["vswitch-2 data 0"], ["generator main 0"]]
    assert {thread.tone for machine in view.machines[:2] for thread in machine.cpus[2].threads} == {"vswitch"}
    assert not any(cpu.shared for machine in view.machines for cpu in machine.cpus if cpu.cpu != 3)
    text = page_of(in_a_lab(2)).text
    assert "Core map of DUT1" in text and "Core map of TG" in text
    for duts in (1, 2):
        (row,) = rows_of_tests(dataset_of(in_a_lab(duts)))
        assert row.real_cores == 6, "of one DUT"


def test_a_cell_of_a_lab_has_a_highest_rate(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(plan(capsys, KERNEL_LAB, "--cell", "CSC 2x1", "--frames", "64B,1518B").split())
    assert "64B: at most 59.5 Mpps, 14.9 Mpps for each instance and direction (DUT1.port1: 10 Gb/s are" in said
    assert "1518B: at most 3.25 Mpps" in said
    assert "at most" not in plan(capsys, SIM_PATH, "--cell", "CSC 2x1")


def test_a_generator_core_that_counts_all_packets_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """NICs that count themselves are no trouble."""
    path = str(TOPOLOGIES / "available" / "lab-2n-vpp.yaml")
    bound = "by its one receiving core, by its documentation about 5 Mpps in all directions together"
    few = ("--types", "CSC", "--cells", "1x1")
    assert bound in " ".join(plan(capsys, path, *few).split())
    assert bound in objects(capsys, path, *few)[-1]["generator_warning"]
    counted = tmp_path / "lab.yaml"
    nics = Path(path).read_text(encoding="utf-8").replace("Intel-E810CQ", "Intel-XL710").replace("ice,", "i40e,")
    counted.write_text(nics, encoding="utf-8")
    assert objects(capsys, str(counted), *few)[-1]["generator_warning"] is None
