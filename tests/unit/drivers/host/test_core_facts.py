"""Kinds of cores and last-level caches, as the kernel shows them, for plans and for the doctor."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import core_check, core_facts
from resources.libraries.python.drivers.host.cpu.cpu import discover, kinds_of
from resources.libraries.python.model.findings.check_finding import Severity
from resources.libraries.python.model.testbed.nodes import CpuGroup
from tests.unit.planning.labs import lab

DUT = lab(cpus="discover").dut


def machine(root: Path, cpus: int, files: dict[str, str]) -> Path:
    """A tree like /sys/devices."""
    for cpu in range(cpus):
        files |= {
            f"system/cpu/cpu{cpu}/topology/thread_siblings_list": str(cpu),
            f"system/cpu/cpu{cpu}/topology/physical_package_id": "0",
        }
    for name, text in {**files, "system/cpu/online": f"0-{cpus - 1}"}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="ascii")
    return root


def test_kinds_are_those_of_the_units_and_of_frequencies_in_a_unit(tmp_path: Path) -> None:
    khz = {0: 5_100_000, 1: 4_900_000, 2: 3_800_000, 3: 3_800_000, 4: 2_500_000}
    files = {f"system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq": str(each) for cpu, each in khz.items()}
    root = machine(tmp_path, 5, {**files, "cpu_core/cpus": "0-1", "cpu_atom/cpus": "2-4"})
    found = discover(root / "system", allowed=range(5))
    assert found.kinds == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}
    (finding,) = core_check.check("nodes.DUT1", DUT, core_facts.answer({"devices": str(root)}))
    assert finding.what == (
        "2 CPUs of performance cores, 2 CPUs of efficiency cores, 1 CPUs of low-power efficiency cores: "
        "data threads of a cell are on one kind, the fastest that has enough"
    )


def test_a_unit_of_low_power_cores_tells_kinds_without_frequencies(tmp_path: Path) -> None:
    units = {"cpu_core/cpus": "0", "cpu_atom/cpus": "1", "cpu_lowpower/cpus": "2"}
    assert kinds_of(core_facts.answer({"devices": str(machine(tmp_path, 3, units))})) == {0: 0, 1: 1, 2: 2}


def test_the_capacity_of_arm_cores_tells_kinds(tmp_path: Path) -> None:
    files = {f"system/cpu/cpu{cpu}/cpu_capacity": text for cpu, text in enumerate(["446", "446", "1024"])}
    assert kinds_of(core_facts.answer({"devices": str(machine(tmp_path, 3, files))})) == {0: 1, 1: 1, 2: 0}


def test_caches_of_the_last_level_are_groups(tmp_path: Path) -> None:
    files = {}
    for cpu in range(4):
        for index, (level, shared) in enumerate([("1", str(cpu)), ("2", str(cpu)), ("3", "0-1" if cpu < 2 else "2-3")]):
            files[f"system/cpu/cpu{cpu}/cache/index{index}/level"] = level
            files[f"system/cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"] = shared
    root = machine(tmp_path, 4, files)
    assert discover(root / "system", allowed=range(4)).last_caches == {0: 0, 1: 0, 2: 2, 3: 2}
    assert discover(root / "system", allowed=range(2)).last_caches == {}, "one for all is none to choose from"
    (finding,) = core_check.check("nodes.DUT1", DUT, core_facts.answer({"devices": str(root)}))
    assert finding.what.startswith("2: data threads of a service instance share one")
    (finding,) = core_check.check("nodes.DUT1", lab().dut, core_facts.answer({"devices": str(root)}))
    assert finding.level is Severity.WARNING, "the file lists CPUs, and states nothing of their caches"


@pytest.mark.parametrize(
    ("groups", "places"),
    [
        ([("0-1", 1, "performance"), ("2-3", 1, "efficiency")], []),
        ([("0-2", 1, "performance"), ("3", 1, "efficiency")], ["kinds of cores"]),
        ([("0", 1, "efficiency"), ("1-2", 1, "performance"), ("3", 1, "low-power efficiency")], ["kinds of cores"] * 3),
        ([("0-1", 2, "performance"), ("2-3", 2, "efficiency")], ["last-level caches"] * 4),
        ([("0-3", 4, "performance")], ["kinds of cores", *["last-level caches"] * 4]),
    ],
)
def test_stated_kinds_and_caches_are_compared_with_the_machine(
    tmp_path: Path, groups: list[tuple[str, int, str]], places: list[str]
) -> None:
    """A machine with a cache for each of its two performance cores and two efficiency cores."""
    files = {f"system/cpu/cpu{cpu}/cache/index3/{name}": text
             for cpu in range(4) for name, text in [("level", "3"), ("shared_cpu_list", str(cpu))]}  # fmt: skip
    root = machine(tmp_path, 4, {**files, "cpu_core/cpus": "0-1", "cpu_atom/cpus": "2-3"})
    listed = [{"cpus": cpus, "cores": cpus, "cores_per_cache": cores, "kind": kind} for cpus, cores, kind in groups]
    node = lab().dut.model_copy(update={"cpus": tuple(map(CpuGroup.model_validate, listed))})
    answer = core_facts.answer({"devices": str(root)})
    findings = list(core_check.check("nodes.DUT1", node, answer))
    assert [each.check for each in findings if each.level is Severity.PROBLEM] == places
    assert all("cpus" in each.place for each in findings if each.level is Severity.PROBLEM)
    unknown = {"units": {}, "khz": {}, "last_caches": {}}
    assert not list(core_check.check("nodes.DUT1", node, unknown)), "what the machine does not show is not judged"


def test_a_machine_that_shows_nothing_has_one_kind(tmp_path: Path) -> None:
    root = machine(tmp_path, 2, {})
    found = discover(root / "system", allowed=range(2))
    assert (found.kinds, found.last_caches) == ({}, {})
    assert not list(core_check.check("nodes.DUT1", DUT, core_facts.answer({"devices": str(root)})))
