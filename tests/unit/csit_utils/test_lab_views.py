"""Labs in the plan command, its page and the report: machine by machine, and no node is reached."""

import json
from pathlib import Path

import pytest

from csit_utils.report.details.coremap import core_map
from csit_utils.studies.density.preview.duration import times
from csit_utils.studies.density.preview.page import page_data, render_plan
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import TOPOLOGIES, plan
from tests.unit.csit_utils.rendered_pages import dataset_of, page_of
from tests.unit.planning.labs import lab

KERNEL = (TOPOLOGIES / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8")
LSCPU = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu % 8},0,0\n" for cpu in range(16))


@pytest.fixture
def unknown(tmp_path: Path) -> str:
    """A lab whose DUT was never looked at."""
    path = tmp_path / "lab.yaml"
    path.write_text(KERNEL.replace("cpus:\n      - {cpus: 0-15, cores: 0-15}", "cpus: discover"), encoding="utf-8")
    return str(path)


def test_cpus_that_are_not_known_are_asked_for(capsys: pytest.CaptureFixture[str], unknown: str) -> None:
    with pytest.raises(ConfigError, match=r"lab-2n-kernel: nodes\.DUT1\.cpus unknown: .* --cpus DUT1=FILE"):
        plan(capsys, unknown)


def test_cpus_are_given_as_lscpu_prints_them(capsys: pytest.CaptureFixture[str], unknown: str, tmp_path: Path) -> None:
    printed = tmp_path / "dut1.txt"
    printed.write_text(LSCPU, encoding="utf-8")
    said = plan(capsys, unknown, "--cpus", f"DUT1={printed}", "--cell", "CSC 2x1 0.5c")
    assert "5 physical cores of 8 on NUMA 0, SMT on" in said
    assert "Thread to core map of TG" in said
    for wrong, expected in (
        (f"DUT9={printed}", "expected NODE=FILE, with NODE one of TG, DUT1"),
        (f"DUT1={tmp_path / 'none'}", "none: cannot be read: No such file"),
        (f"DUT1={unknown}", "CPUs of DUT1: line 4 is no row of"),
    ):
        with pytest.raises(ConfigError, match=expected):
            plan(capsys, unknown, "--cpus", wrong)


def test_the_table_says_that_cables_run_out(capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, str(TOPOLOGIES / "available" / "lab-2n-kernel.yaml"), "--types", "CSC", "--cells", "1-3x1")
    assert "Not enough: S SMT for half cores, L cables." in said
    assert "needs 3 cable pairs, one for each instance" in said


def test_the_page_has_a_core_map_for_each_machine() -> None:
    topology = lab(2)
    rows = list(candidates(topology, {}, parse_selection(service_types="CSC", cells="1x2", nf_sizes="1c")))
    (lines,) = page_data(rows)["maps"]
    assert len(lines) == 5 + 2 * 6
    assert lines[3] == "0|1|2|3|4|5"
    assert (lines[5], lines[9], lines[11]) == ("DUT2", "0|1|2|3|4|5", "TG")
    assert lines[10].startswith("system:s0 vswitch-2:m1 vswitch-2:d2 nf-1-3:m3 nf-1-3:d4")
    assert lines[16] == "system:s0 generator:m2,3 generator:d1"
    assert "Core map" in render_plan(topology, None, rows, times(topology, rows, LADDER, list(TestType)))


def in_a_lab(duts: int) -> DensityRecord:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2)
    return result(ServiceType.CSC, 1, 2).model_copy(update={"plan": make_plan(lab(duts), cell, {})})


def test_the_report_never_mixes_cpus_of_machines() -> None:
    view = core_map(in_a_lab(2))
    assert [machine.name for machine in view.machines] == ["DUT1", "DUT2", "TG"]
    on_cpu_2 = [[thread.label for thread in machine.cpus[2].threads] for machine in view.machines]
    assert on_cpu_2 == [["vswitch data 0"], ["vswitch-2 data 0"], ["generator main 0"]]
    assert {thread.tone for machine in view.machines[:2] for thread in machine.cpus[2].threads} == {"vswitch"}
    assert not any(cpu.shared for machine in view.machines for cpu in machine.cpus if cpu.cpu != 3)
    text = page_of(in_a_lab(2)).text
    assert "Core map of DUT1" in text
    assert "Core map of TG" in text


def test_nfs_that_instances_share_have_a_colour_of_their_own() -> None:
    topology = lab(1, 2, vswitch="linux_bridge", containers="linux_router")
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=3, shared_nodes=(1, 3))
    shown = result().model_copy(update={"plan": make_plan(topology, cell, {}), "cell": cell})
    view = core_map(shown)
    tones = {thread.label: thread.tone for row in view.machines[0].cpus for thread in row.threads}
    assert {tones[f"nf-0-{node} data 0"] for node in (1, 3)} == {"shared"}
    assert (tones["nf-1-2 data 0"], tones["nf-2-2 data 0"]) == ("nf0", "nf1")
    assert ("shared", "NFs of all instances") in view.tones
    assert "NFs of all instances" in page_of(shown).text


@pytest.mark.parametrize("duts", [1, 2])
def test_cores_are_counted_on_one_dut(duts: int) -> None:
    (row,) = rows_of_tests(dataset_of(in_a_lab(duts)))
    assert row.real_cores == 6


def test_a_cell_of_a_lab_has_a_highest_rate(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(TOPOLOGIES / "available" / "lab-2n-kernel.yaml")
    said = " ".join(plan(capsys, path, "--cell", "CSC 2x1", "--frames", "64B,1518B").split())
    assert (
        "64B: at most 59.5 Mpps, 14.9 Mpps for each instance and direction (DUT1.port1: 10 Gb/s are 14.9 Mpps of 64B)"
        in said
    )
    assert "1518B: at most 3.25 Mpps" in said
    assert "at most" not in plan(capsys, str(TOPOLOGIES / "sim.yaml"), "--cell", "CSC 2x1")


def test_a_core_of_the_generator_that_counts_all_packets_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the table, for a cell, in the summary and on the page; NICs that count themselves are no trouble."""
    path, page = str(TOPOLOGIES / "available" / "lab-2n-vpp.yaml"), tmp_path / "plan.html"
    bound = "by its one receiving core, by its documentation about 5 Mpps in all directions together"
    few = ("--types", "CSC", "--cells", "1x1")
    for options in ((*few, "--html", str(page)), ("--cell", "CSC 1x1")):
        assert bound in " ".join(plan(capsys, path, *options).split())
    assert bound in page.read_text(encoding="utf-8")
    assert bound in json.loads(plan(capsys, path, *few, "--format", "json").splitlines()[-1])["generator_warning"]
    counted = tmp_path / "lab.yaml"
    nics = Path(path).read_text(encoding="utf-8").replace("Intel-E810CQ", "Intel-XL710").replace("ice,", "i40e,")
    counted.write_text(nics, encoding="utf-8")
    assert "receiving core" not in plan(capsys, str(counted), *few)
    assert (
        json.loads(plan(capsys, str(counted), *few, "--format", "json").splitlines()[-1])["generator_warning"] is None
    )
