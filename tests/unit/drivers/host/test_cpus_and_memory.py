"""CPUs and memory of made-up machines: cores, kinds, caches, idle states, SMT; threads, affinity and rights; pages."""

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.cpu import core_facts, data_threads, smt
from resources.libraries.python.drivers.host.cpu import memory as pages
from resources.libraries.python.drivers.host.cpu.cpu import check, discover, kept_awake, kinds_of, smt_control
from resources.libraries.python.drivers.host.cpu.data_threads import affinity, find_all
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on, took, where
from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.drivers.host.nics.ethtool import Channels
from resources.libraries.python.drivers.host.ownership import preflight
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.findings import Severity
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryNode
from resources.libraries.python.model.testbed.nodes import CpuGroup
from resources.libraries.python.testbed.kinds.factory import refuse_without_basics
from tests.builders import SIM, shipped
from tests.unit.planning.labs import lab
from tests.unit.testbed.node.machine_trees import tree

Row = tuple[int, str, int, int | None]
"""CPU, its siblings as the kernel writes them, package, NUMA node or none."""


def machine(root: Path, online: str, rows: Iterable[Row]) -> Path:
    """A tree like /sys/devices/system."""
    files = {"cpu/online": online}
    for cpu, siblings, package, node in rows:
        facts = {"thread_siblings_list": siblings, "physical_package_id": str(package)}
        facts["core_id"] = "0"  # as useless as in real life
        files |= {f"cpu/cpu{cpu}/topology/{name}": text for name, text in facts.items()}
        if node is not None:
            (root / f"cpu/cpu{cpu}/node{node}").mkdir(parents=True)
    return tree(root, files)


IN_A_ROW = [(cpu, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}", 0, 0) for cpu in range(4)]
IN_HALVES = [(cpu, f"{cpu % 2},{cpu % 2 + 2}", 0, 0) for cpu in range(4)]
TWO_SOCKETS = [(cpu, str(cpu), cpu // 2, cpu // 2) for cpu in range(4)]


@pytest.mark.parametrize(
    ("online", "rows", "allowed", "cores", "sockets"),
    [
        ("0-3", IN_A_ROW, {0, 1, 2, 3}, {0: ((0, 1), (2, 3))}, [0, 0, 0, 0]),
        ("0-3", IN_A_ROW, {1, 2, 3}, {0: ((1,), (2, 3))}, [0, 0, 0]),
        ("0-3", IN_HALVES, {0, 1, 2, 3}, {0: ((0, 2), (1, 3))}, [0, 0, 0, 0]),
        ("0,2", [(0, "0", 0, 0), (2, "2", 0, 0)], {0, 1, 2, 3}, {0: ((0,), (2,))}, [0, 0]),
        ("0-3", TWO_SOCKETS, {0, 1, 2, 3}, {0: ((0,), (1,)), 1: ((2,), (3,))}, [0, 0, 1, 1]),
        ("0", [(0, "0", -1, None)], {0}, {0: ((0,),)}, [0]),
    ],
    ids=["siblings in a row", "cpuset", "siblings in halves", "SMT off", "sockets", "no NUMA"],
)
def test_cores_are_those_of_siblings_that_are_online_and_allowed(
    tmp_path: Path, *, online: str, rows: list[Row], allowed: set[int], cores: dict[int, object], sockets: list[int]
) -> None:
    found = discover(machine(tmp_path, online, rows), allowed=allowed)
    assert {node: found.cores(node) for node in found.numa_nodes} == cores
    assert [row.socket for row in found.cpus] == sockets
    assert found.smt is any("-" in siblings or "," in siblings for _, siblings, *_ in rows)


def test_nothing_usable_and_no_description_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="online is missing"):
        discover(tmp_path, allowed={0})
    with pytest.raises(Unsupported, match=r"none of the CPUs \[7\]"):
        discover(machine(tmp_path, "0", [(0, "0", 0, 0)]), allowed={7})


def test_zero_microseconds_are_asked_for_where_the_kernel_takes_requests(tmp_path: Path) -> None:
    requests = tmp_path / "cpu_dma_latency"
    with kept_awake(requests):
        assert not requests.exists()
    requests.touch()
    with kept_awake(requests):
        assert requests.read_bytes() == bytes(4)


CPUS = range(8)


class SmtKernel:
    """A tree like /sys/devices/system of 4 cores, CPU 4 to 7 being the second threads, and what the kernel does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.second = {4, 5, 6, 7}
        """Threads that go offline."""
        tree(root, {f"cpu/cpu{cpu}/online": "1" for cpu in CPUS})
        self.write(root, "on")

    def write(self, _: Path, state: str) -> None:
        online = [cpu for cpu in CPUS if state == "on" or cpu not in self.second]
        tree(self.root, {"cpu/smt/control": state})
        siblings = "{0},{1}" if state == "on" else "{0}"
        machine(self.root, ",".join(map(str, online)), [(c, siblings.format(c % 4, c % 4 + 4), 0, None) for c in CPUS])


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmtKernel:
    made = SmtKernel(tmp_path / "system")
    monkeypatch.setattr(smt, "_write", made.write)
    return made


def lock(tmp_path: Path) -> MachineLock:
    return MachineLock(tmp_path / "run", tmp_path / "settings")


def found(kernel: SmtKernel, tmp_path: Path, allowed: range | set[int] = CPUS) -> CpuLayout:
    return discover(kernel.root, allowed=allowed, record=tmp_path / "run/owner.json")


def test_it_is_off_for_a_cell_and_on_record_meanwhile(kernel: SmtKernel, tmp_path: Path) -> None:
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        assert smt_control(kernel.root) == "on"
        part.start()
        assert smt_control(kernel.root) == "off"
        assert held.leftovers() == ["SMT switched off; it was on"]
        part.stop()
        part.stop()  # safe to repeat
        assert smt_control(kernel.root) == "on"
        assert held.leftovers() == []


def test_cpus_that_a_user_had_offline_are_offline_again(kernel: SmtKernel, tmp_path: Path) -> None:
    """Also where a cleanup was killed when SMT was on again; the kernel takes all threads online."""
    (kernel.root / "cpu/online").write_text("0-4,6-7\n")
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        part.start()
        part.stop()
        offline = {cpu: (kernel.root / "cpu" / f"cpu{cpu}" / "online").read_text().strip() for cpu in CPUS}
        assert offline == dict.fromkeys(CPUS, "1") | {5: "0"}
        (kernel.root / "cpu/online").write_text("0-4,6-7\n")
        part.start()
        (kernel.root / "cpu/cpu5/online").write_text("1\n")
        kernel.write(kernel.root, "on")  # and then the end of that process
    with lock(tmp_path) as following:
        assert following.remove_leftovers() == []
    assert (kernel.root / "cpu/cpu5/online").read_text() == "0"


def test_the_next_run_after_a_kill_plans_with_all_threads_and_switches_it_on(kernel: SmtKernel, tmp_path: Path) -> None:
    before = found(kernel, tmp_path)
    with lock(tmp_path) as held:  # whose holder does not come to stopping the part
        SmtOff(before, held, kernel.root).start()
    assert found(kernel, tmp_path) == before, "as it will be when that run has the lock"
    assert found(kernel, tmp_path, {1, 2}).cores(0) == ((1, 5), (2, 6)), "an offline thread may go where its core may"
    with lock(tmp_path) as following:
        (said,) = following.remove_leftovers()
        assert said.startswith("switched SMT on again of pid ")
        assert smt_control(kernel.root) == "on"
        assert following.leftovers() == []


def test_smt_that_a_user_switched_off_stays_off(kernel: SmtKernel, tmp_path: Path) -> None:
    kernel.write(kernel.root, "off")
    layout = found(kernel, tmp_path)
    assert not layout.smt
    with lock(tmp_path) as held:
        part = SmtOff(layout, held, kernel.root)
        with pytest.raises(Unsupported, match=f"^SMT cannot be switched off .*: {kernel.root}/cpu/smt/control says"):
            part.start()
        part.stop()
    assert smt_control(kernel.root) == "off"


@pytest.mark.parametrize("content", ["", "[]", '{"smt": []}', '{"smt": [{"layout": 7}]}'])
def test_a_damaged_record_changes_no_layout(kernel: SmtKernel, tmp_path: Path, content: str) -> None:
    kernel.write(kernel.root, "off")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/owner.json").write_text(content)
    assert [row.cpu for row in found(kernel, tmp_path).cpus] == [0, 1, 2, 3]


def test_a_kernel_that_keeps_other_threads_is_named_and_given_back(kernel: SmtKernel, tmp_path: Path) -> None:
    kernel.second = {0, 1, 2, 3}
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        with pytest.raises(CsitError, match="CPU 0 went offline with SMT, although it is the first thread of its core"):
            part.start()
        part.stop()
        assert smt_control(kernel.root) == "on"


def test_a_kernel_that_refuses_is_named_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "cpu/smt/control").mkdir(parents=True)
    with pytest.raises(CsitError, match=f"^SMT cannot be switched off: {tmp_path}/cpu/smt/control: Is a directory$"):
        smt._write(tmp_path, "off")


DUT = lab(cpus="discover").dut


def shown(root: Path, cpus: int, files: dict[str, str]) -> dict[str, Any]:
    rows = [(cpu, str(cpu), 0, None) for cpu in range(cpus)]
    machine(root / "system", f"0-{cpus - 1}", rows)
    tree(root, files)
    return core_facts.answer({"devices": str(root)})


def test_kinds_are_those_of_the_units_and_of_frequencies_in_a_unit(tmp_path: Path) -> None:
    khz = {0: 5_100_000, 1: 4_900_000, 2: 3_800_000, 3: 3_800_000, 4: 2_500_000}
    files = {f"system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq": str(each) for cpu, each in khz.items()}
    found = shown(tmp_path, 5, {**files, "cpu_core/cpus": "0-1", "cpu_atom/cpus": "2-4"})
    assert discover(tmp_path / "system", allowed=range(5)).kinds == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}
    (finding,) = check("nodes.DUT1", DUT, found)
    assert finding.what.startswith("2 CPUs of performance cores, 2 CPUs of efficiency cores, 1 CPUs of low-power")


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({"cpu_core/cpus": "0", "cpu_atom/cpus": "1", "cpu_lowpower/cpus": "2"}, {0: 0, 1: 1, 2: 2}),
        ({f"system/cpu/cpu{cpu}/cpu_capacity": text for cpu, text in enumerate(("446", "446", "1024"))},
         {0: 1, 1: 1, 2: 0}),
        ({}, {}),
    ],
    ids=["units without frequencies", "capacity of Arm cores", "nothing is shown"],
)  # fmt: skip
def test_kinds_without_frequencies(tmp_path: Path, files: dict[str, str], kinds: dict[int, int]) -> None:
    found = shown(tmp_path, 3, files)
    assert kinds_of(found) == kinds
    assert discover(tmp_path / "system", allowed=range(3)).last_caches == {}
    assert bool(list(check("nodes.DUT1", DUT, found))) is bool(kinds)


def test_caches_of_the_last_level_are_groups(tmp_path: Path) -> None:
    files = {}
    for cpu in range(4):
        for index, (level, shared) in enumerate([("1", str(cpu)), ("2", str(cpu)), ("3", "0-1" if cpu < 2 else "2-3")]):
            files[f"system/cpu/cpu{cpu}/cache/index{index}/level"] = level
            files[f"system/cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"] = shared
    found = shown(tmp_path, 4, files)
    assert discover(tmp_path / "system", allowed=range(4)).last_caches == {0: 0, 1: 0, 2: 2, 3: 2}
    assert discover(tmp_path / "system", allowed=range(2)).last_caches == {}, "one for all is none to choose from"
    (finding,) = check("nodes.DUT1", DUT, found)
    assert finding.what.startswith("2: data threads of a service instance share one")
    (finding,) = check("nodes.DUT1", lab().dut, found)
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
def test_stated_kinds_are_compared(tmp_path: Path, groups: list[tuple[str, int, str]], places: list[str]) -> None:
    """A machine with a cache for each of its two performance cores and two efficiency cores."""
    files = {f"system/cpu/cpu{cpu}/cache/index3/{name}": text
             for cpu in range(4) for name, text in [("level", "3"), ("shared_cpu_list", str(cpu))]}  # fmt: skip
    answer = shown(tmp_path, 4, {**files, "cpu_core/cpus": "0-1", "cpu_atom/cpus": "2-3"})
    listed = [{"cpus": cpus, "cores": cpus, "cores_per_cache": cores, "kind": kind} for cpus, cores, kind in groups]
    node = lab().dut.model_copy(update={"cpus": tuple(map(CpuGroup.model_validate, listed))})
    findings = list(check("nodes.DUT1", node, answer))
    assert [each.check for each in findings if each.level is Severity.PROBLEM] == places
    assert all("cpus" in each.place for each in findings if each.level is Severity.PROBLEM)
    unknown = {"units": {}, "khz": {}, "last_caches": {}}
    assert not list(check("nodes.DUT1", node, unknown)), "what the machine does not show is not judged"


def threads(root: Path, names: dict[int, str]) -> Path:
    (root / "self").mkdir()
    return tree(root, {f"{thread}/comm": name for thread, name in names.items()})


def test_threads_are_found_by_port_also_where_old_kernels_cut_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {7: "napi/csv1p1-8193", 8: "napi/csv1p10-8194", 9: "bash", 10: "napi/other-1", 11: "napi/csv10x10i1"}
    twice = {13: "napi/csv2p1-8193", 14: "napi/csv2p1-8194"}
    root = threads(tmp_path, {**names, 12: "napi/csv1x1i2-8", **twice})
    found = {"csv1p1": 7, "csv1p10": 8, "csv10x10i1": 11, "csv1x1i2": 12}
    assert data_threads.find([*found], root) == found
    monkeypatch.setattr(data_threads, "_DEADLINE_S", 0.0)
    with pytest.raises(Unsupported, match="none for csv3p1, csv3p2, csv3p3 and 1 more in /proc"):
        data_threads.find([f"csv3p{number}" for number in range(1, 5)], root)
    with pytest.raises(CsitError, match="two kernel threads"):
        data_threads.find(["csv2p1"], root)


def test_a_thread_that_is_still_ending_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that was removed just now may have had the name."""
    root = threads(tmp_path, {7: "napi/csv1p1-8193", 8: "napi/csv1p1-8194"})
    looks = []

    def look(thread: int, at: Path) -> str:
        looks.append(thread)
        if len(looks) == 3:
            (root / "7" / "comm").write_text("gone\n")
        return (at / str(thread) / "comm").read_text().strip()

    monkeypatch.setattr(data_threads, "name", look)
    assert data_threads.find(["csv1p1"], root) == {"csv1p1": 8}


def test_a_user_without_rights_gets_one_sentence_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert preflight._missing_capabilities("Name:\tx\nCapEff:\t0000000000000000\n") == [
        "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_SYS_NICE",
    ]  # fmt: skip
    assert preflight._missing_capabilities("CapEff:\t000001ffffdfffff\n") == ["CAP_SYS_ADMIN"]
    assert preflight._missing_capabilities("CapEff:\t000001ffffffffff\n") == []
    monkeypatch.setattr(preflight, "_missing_capabilities", lambda _: ["CAP_NET_ADMIN"])
    (problem,) = map(str, preflight.check())
    assert problem.startswith("CAP_NET_ADMIN missing for ") and "run as root" in problem


def test_linux_is_missing_before_its_rights_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(preflight, "_missing_rights", lambda: pytest.fail("there is no /proc"))
    needs = r"^network namespaces need Linux, this is darwin; use topologies/sim\.yaml here$"
    with pytest.raises(Unsupported, match=needs):
        refuse_without_basics(shipped("local"))
    refuse_without_basics(SIM)


def test_all_threads_of_a_port_are_found_by_either_name(tmp_path: Path) -> None:
    names = {
        7: "napi/csv1p1-8193", 8: "napi/csv1p1-8194", 9: "napi/enp65s0-8195", 10: "napi/csv1p11-1", 11: "bash",
        12: "napi/enp66s0f0n", 13: "napi/enp66s0f1n",  # as kernels before 5.17 show them
    }  # fmt: skip
    threads(tmp_path, names)
    at_home = {"csv1p1": "enp64s0", "csv1p2": "enp65s0", "csv1p3": "enp66s0f0np0", "csv1p4": "enp66s0f1np1"}
    found = find_all(at_home, tmp_path)
    expected = {"csv1p1": [7, 8], "csv1p2": [9], "csv1p3": [12], "csv1p4": [13]}
    assert {name: sorted(row) for name, row in found.items()} == expected
    with pytest.raises(Unsupported, match=r"none for csv9p9 \(enp9s0\) in /proc"):
        find_all({"csv1p1": "enp64s0", "csv9p9": "enp9s0"}, tmp_path)
    gone = 2**22 + 1  # above the highest process id
    assert affinity({"csv1p1": [gone, 0], "csv1p2": []}) == {"csv1p1": frozenset(), "csv1p2": frozenset()}


@pytest.mark.parametrize(("queues", "fewest"), [((0, 0, 8), (0, 0, 1)), ((4, 4, 0), (1, 1, 0)), ((0, 0, 0), (0, 0, 0))])
def test_one_queue_is_asked_for(queues: tuple[int, int, int], fewest: tuple[int, int, int]) -> None:
    wanted = Channels(*queues, 8, 8, 8, 1).one_of_each
    assert (wanted.rx, wanted.tx, wanted.combined) == fewest
    assert (wanted.most_rx, wanted.other) == (8, 1)


def test_a_thread_stays_on_its_cpu_if_there_is_one_and_others_do_not_follow() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend([stay_on(cpu), os.sched_getaffinity(0)]))
    thread.start()
    thread.join()
    assert found == [True, {cpu}]
    assert not stay_on(1 << 14)
    assert not stay_on(None)
    assert os.sched_getaffinity(0) == before
    assert (where(3), where(None)) == ("on CPU 3", "on any CPU")
    assert took(0.002, 4.0) == "0.05 % of a CPU's time"


MEMINFO = """MemTotal:       33554432 kB
MemFree:        20971520 kB
MemAvailable:   25165824 kB
HugePages_Total:     512
HugePages_Free:      500
Hugepagesize:       2048 kB
"""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A folder with the files of a machine of 32 GB that has no nodes yet."""
    return tree(tmp_path, {"nodes/none": "", "cgroup/none": "", "meminfo": MEMINFO})


def look(memory: Path) -> tuple[MemoryNode, ...]:
    return pages.discover_memory(memory / "nodes", memory / "meminfo", memory / "cgroup")


def add_node(memory: Path, number: int, total_kb: int, free_kb: int, *, pages_2mb: int = 0, pages_1gb: int = 0) -> None:
    prefix = f"Node {number} "
    huge_pages(memory / "nodes", number, of_2048=(pages_2mb + 7, pages_2mb), of_1048576=(pages_1gb + 7, pages_1gb))
    (memory / f"nodes/node{number}/meminfo").write_text(
        f"{prefix}MemTotal: {total_kb} kB\n{prefix}MemFree: {free_kb} kB\n"
        f"{prefix}FilePages: 1048576 kB\n{prefix}SReclaimable: 0 kB\n{prefix}HugePages_Total: 9\n"
    )


def huge_pages(root: Path, node: int, **sizes: tuple[int, int]) -> None:
    """Pages of sizes: all, and free ones."""
    for size, (total, free) in sizes.items():
        folder = f"node{node}/hugepages/hugepages-{size.removeprefix('of_')}kB"
        tree(root, {f"{folder}/nr_hugepages": str(total), f"{folder}/free_hugepages": str(free)})


def test_a_kernel_without_nodes_or_with_one_shows_the_whole_machine(memory: Path) -> None:
    assert look(memory) == (MemoryNode(total_mb=32768, hugepages_2mb=500, available_mb=24576),)
    add_node(memory, 0, 4_194_304, 1_048_576, pages_2mb=10, pages_1gb=2)
    assert look(memory) == (MemoryNode(total_mb=32768, hugepages_2mb=10, hugepages_1gb=2, available_mb=24576),)
    (memory / "meminfo").unlink()
    with pytest.raises(Unsupported, match="does not describe the memory"):
        look(memory)


def test_several_nodes_have_their_own_and_no_more_than_the_machine(memory: Path) -> None:
    add_node(memory, 0, 16_777_216, 2_097_152, pages_2mb=100)
    add_node(memory, 1, 16_777_216, 33_554_432, pages_1gb=3)
    add_node(memory, 2, 0, 0)  # a node of processors alone
    assert look(memory) == (
        MemoryNode(node=0, total_mb=16384, hugepages_2mb=100, available_mb=2048 + 1024),
        MemoryNode(node=1, total_mb=16384, hugepages_1gb=3, available_mb=24576),
    )


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
)
def test_a_containers_limit_counts(memory: Path, names: tuple[str, str]) -> None:
    for name, size in zip(names, (4 << 30, 1 << 30), strict=True):
        path = memory / "cgroup" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{size}\n")
    assert look(memory)[0].available_mb == 3072
    (memory / "cgroup" / names[0]).write_text("max\n")
    assert look(memory)[0].available_mb == 24576


def test_huge_pages_of_one_node_are_counted_and_too_few_refused_with_the_command(tmp_path: Path) -> None:
    huge_pages(tmp_path, 0, of_2048=(9, 9))
    huge_pages(tmp_path, 1, of_2048=(300, 256), of_1048576=(2, 1))
    assert pages.free_pages(1, tmp_path) == {2048: 256, 1048576: 1}
    pages.require_huge_pages("VPP", 512 + 1024, 1, tmp_path)
    huge_pages(tmp_path, 2, of_2048=(300, 256))
    with pytest.raises(Unsupported) as caught:
        pages.require_huge_pages("Open vSwitch on DPDK", 1024, 2, tmp_path)
    # 44 are taken, and 512 more are needed than there are.
    file = tmp_path / "node2/hugepages/hugepages-2048kB/nr_hugepages"
    assert str(caught.value) == (
        f"Open vSwitch on DPDK needs 1024 MB of huge pages on NUMA 2, 512 MB are free there; echo 556 > {file}"
    )


def test_files_of_a_program_that_has_ended_are_removed_and_no_others(tmp_path: Path) -> None:
    huge, other = tmp_path / "huge", tmp_path / "other"
    for folder in (huge, other):
        folder.mkdir()
        for name in ("csitmap_0", "csitmap_65536", "rtemap_0", "csit"):
            (folder / name).touch()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"tmpfs {other} tmpfs rw 0 0\nnone {huge} hugetlbfs rw,pagesize=2M 0 0\n")
    assert len(pages.remove_files("csit", mounts)) == 2
    assert sorted(path.name for path in huge.iterdir()) == ["csit", "rtemap_0"]
    assert len(list(other.iterdir())) == 4
