"""Which settings a node needs, with values from its topology, and the line for its boot loader."""

from typing import Any

import pytest

from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.preparation import Preparation, changes, prepare
from tests.builders import cell_of
from tests.unit.testbed.node.node_facts import NO_PAGES, facts, two_nodes

CPU = "/sys/devices/system/cpu"
PAGES = "/sys/devices/system/node/node{}/hugepages/hugepages-{}kB/nr_hugepages"
FILES = {
    PAGES.format(0, 2048): "4096", PAGES.format(1, 2048): "4096", PAGES.format(0, 2**20): "0",
    **{f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in range(16)},
    **{f"{CPU}/cpu{cpu}/cpufreq/scaling_available_governors": "performance powersave" for cpu in range(16)},
    f"{CPU}/cpufreq/boost": "1", "/proc/irq/default_smp_affinity": "ffff", "/proc/irq/24/smp_affinity_list": "0-15",
    "/proc/irq/25/smp_affinity_list": "2", "/proc/irq/26/smp_affinity_list": "4-7",
    "/proc/sys/vm/max_map_count": "65530", "/proc/sys/vm/swappiness": "60", "/proc/sys/kernel/nmi_watchdog": "1",
    "/proc/sys/kernel/watchdog_cpumask": "0-15", "/proc/sys/kernel/numa_balancing": "1",
    "/proc/sys/kernel/randomize_va_space": "2",
    "/etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX="console=ttyS0 isolcpus=5"\n',
}  # fmt: skip


def prepared(topology: Topology | None = None, files: dict[str, str] | None = None, **changes: Any) -> Preparation:
    return prepare(topology or two_nodes(), "DUT1", facts(**changes), FILES if files is None else files)


def lines(of: Preparation, files: dict[str, str] | None = None) -> list[str]:
    known = FILES if files is None else files
    return [str(each) for each in changes([(s.path, known[s.path], s.value) for s in of.settings], of.settings)]


def test_all_that_can_be_set_at_run_time() -> None:
    found = prepared(machine={"irqbalance": True})
    assert [line.partition(" (away")[0].partition(" (the")[0] for line in lines(found)[:5]] == [
        "governor of CPUs 0-15: powersave -> performance",
        "boost: 1 -> 0",
        "CPUs of interrupt 24: 0-15 -> 0,4-8,12-15",
        "CPUs of interrupt 25: 2 -> 0,4-8,12-15",
        "CPUs of new interrupts (mask): ffff -> f1f1",
    ]
    assert [line.partition(" (")[0] for line in lines(found)[5:]] == [
        "kernel.numa_balancing: 1 -> 0",
        "kernel.nmi_watchdog: 1 -> 0",
        "kernel.randomize_va_space: 2 -> 0",
        "kernel.watchdog_cpumask: 0-15 -> 0,4-8,12-15",
        "vm.swappiness: 60 -> 0",
    ]
    assert found.stop_irqbalance and found.unavailable == ()
    values = {setting.path: setting.value for setting in found.settings}
    assert prepared(files={**FILES, **values}).settings == (), "nothing is left to do afterwards"


def test_what_a_virtual_machine_does_not_have_and_intel_has_the_other_way_round() -> None:
    few = {path: text for path, text in FILES.items() if "cpufreq" not in path and "watchdog" not in path}
    found = prepared(files=few, machine={"memory": {"swap_total_mb": 0}})
    assert found.unavailable == (
        "governor: not available here, the kernel does not set frequencies",
        "boost: not available here",
    )
    assert not [setting for setting in found.settings if "swappiness" in setting.path or "watchdog" in setting.path]
    files = {**FILES, f"{CPU}/intel_pstate/no_turbo": "0"}
    assert [line for line in lines(prepared(files=files), files) if "boost" in line or "turbo" in line] == [
        "no_turbo: 0 -> 1 (the frequency does not depend on how many cores are busy)"
    ]


@pytest.mark.parametrize(("free", "value"), [(0, 4096 + 556), (100, 4096 + 456), (556, None)])
def test_as_many_huge_pages_as_the_smallest_cell_takes_on_top_of_those_in_use(free: int, value: int | None) -> None:
    memory = [{**row, "hugepages": [{"size_kb": 2048, "total": 4096, "free": free}]} for row in NO_PAGES]
    found = prepared(two_nodes(dut={"vms": None}), machine={"memory": {"nodes": memory}})
    assert [s.value for s in found.settings if s.path == PAGES.format(0, 2048)] == ([str(value)] if value else [])
    assert not [s for s in found.settings if s.path == PAGES.format(1, 2048)]


def test_as_many_huge_pages_as_the_cells_take() -> None:
    known = facts(machine={"memory": {"nodes": NO_PAGES}})
    cells = [cell_of("CSC", rows, nf_sizes=(NfSize.ONE,)) for rows in (1, 4)]

    def pages(cells: list[Cell]) -> int:
        settings = prepare(two_nodes(), "DUT1", known, FILES, cells).settings
        return next(int(setting.value) for setting in settings if setting.path == PAGES.format(0, 2048))

    assert 2 * pages(cells) >= 2 * pages(cells[:1]) + 3 * 500


def test_huge_pages_that_the_topology_declares_are_set_never_lowered_and_need_areas() -> None:
    memory = [
        {"node": 0, "total_mb": 65536, "hugepages_2mb": 8192, "hugepages_1gb": 4},
        {"node": 1, "total_mb": 65536, "hugepages_2mb": 1024},
    ]
    found = prepared(two_nodes(dut={"memory": memory}))
    assert [line for line in lines(found) if "huge pages of" in line] == [
        "huge pages of 2 MB on NUMA 0: 4096 -> 8192 (as the topology declares)",
        "huge pages of 1 GB on NUMA 0: 0 -> 4 (as the topology declares)",
    ]
    assert "default_hugepagesz=2M hugepagesz=1G hugepages=4" in found.boot
    without = {path: text for path, text in FILES.items() if "1048576kB" not in path}
    missing = prepared(two_nodes(dut={"memory": memory}), without).unavailable
    assert "huge pages of 1 GB on NUMA 0: not available here" in missing
    memory = [{"node": 0, "total_mb": 262144, "hugepages_2mb": 40960}]
    found = prepared(two_nodes(dut={"memory": memory}))
    assert f"vm.max_map_count: 65530 -> {65530 + 2 * (40960 + 4096)}" in lines(found)[-1]


def test_interrupts_stay_where_no_cpu_is_left_and_masks_have_the_form_of_the_kernel() -> None:
    rows = [[cpu, cpu, 0, 0] for cpu in range(4)]
    cpus = [{"cpus": "0-3", "cores": "0-3", "socket": 0, "node": 0}]
    topology = two_nodes(dut={"cpus": cpus, "core_sharing": {"system_cores": 0}})
    found = prepared(topology, machine={"cpu": {"rows": rows}})
    assert not [setting for setting in found.settings if "/irq/" in setting.path or "cpumask" in setting.path]
    assert found.unavailable[0].startswith("interrupts: they stay, as every CPU is planned")
    rows = [[cpu, cpu, 0, 0] for cpu in range(72)]
    cpus = [{"cpus": "0-71", "cores": "0-71", "socket": 0, "node": 0}]
    files = {**FILES, "/proc/irq/default_smp_affinity": "ff,ffffffff,ffffffff"}
    found = prepared(two_nodes(dut={"cpus": cpus}), files, machine={"cpu": {"rows": rows}})
    assert [s.value for s in found.settings if "default_smp" in s.path] == ["00,00000000,00000001"]


def test_the_line_of_the_boot_loader_keeps_what_else_is_in_it_and_wider_isolation() -> None:
    assert prepared().boot == (
        'GRUB_CMDLINE_LINUX="console=ttyS0 isolcpus=1-3,9-11 nohz_full=1-3,9-11 rcu_nocbs=1-3,9-11 '
        'intel_iommu=on iommu=pt"'
    )
    booted = "quiet isolcpus=1-3,9-11 nohz_full=1-3,9-11 rcu_nocbs=1-3,9-11 intel_iommu=on iommu=pt"
    assert prepared(machine={"command_line": booted}).boot == ""
    flags, more = "isolcpus=managed_irq,domain,1-3,9-15", "nohz_full=1-3,9-15 rcu_nocbs=1-3,9-15"
    there = {"command_line": f"{flags} {more} intel_iommu=on iommu=pt", "cpu": {"isolated": "1-3,9-15"}}
    found = prepared(machine=there)
    assert found.boot == ""
    assert "CPUs of interrupt 24: 0-15 -> 0,4-8" in [line.partition(" (away")[0] for line in lines(found)]
    assert "kernel.watchdog_cpumask: 0-15 -> 0,4-8 (its timer interrupts no CPU of data threads)" in lines(found)
    part = {"command_line": "isolcpus=1-5 intel_iommu=on iommu=pt"}
    assert "isolcpus=1-5,9-11 nohz_full=1-3,9-11" in prepared(machine=part).boot
