"""Kinds of cores and last-level caches, as the kernel shows them, for plans and for the doctor."""

from pathlib import Path

from resources.libraries.python.drivers.host.cpu import core_check, core_facts
from resources.libraries.python.drivers.host.cpu.cpu import discover, kinds_of
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
    assert (finding.what, finding.fix) == ("2, which plans do not see: the file lists CPUs", "say cpus: discover")


def test_a_machine_that_shows_nothing_has_one_kind(tmp_path: Path) -> None:
    root = machine(tmp_path, 2, {})
    found = discover(root / "system", allowed=range(2))
    assert (found.kinds, found.last_caches) == ({}, {})
    assert not list(core_check.check("nodes.DUT1", DUT, core_facts.answer({"devices": str(root)})))
