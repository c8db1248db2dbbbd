"""The kernel's accounts of CPU time, memory, queues and sockets are read right, and what is missing is left out."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.sockets import program_sockets
from resources.libraries.python.drivers.probes.sampler import accounts, costs, features
from resources.libraries.python.drivers.probes.sampler.accounts import Amounts, PortAccount
from resources.libraries.python.drivers.probes.sampler.costs import LinuxCostMeter, PerfCounters, PerfEvent
from resources.libraries.python.drivers.probes.sampler.host import HostSampler, available_bytes, memory_of
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks, tasks_of, threads_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import CpuTime, HostState, TaskTime, ThreadTime
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.chains.analysis.features import FEATURES
from tests.builders import cell_of, shipped

NAMES = {feature.name for feature in FEATURES}
TICK = 100 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SWITCHES = "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\nx86_Thread_features:\t\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def stat(pid: int, parent: int, name: str = "a (b", user: int = 0, system: int = 0) -> str:
    fields = ["S", str(parent), *["0"] * 9, str(user), str(system), *["0"] * 4, "3", "0", "0", "0", "10", *["0"] * 5]
    return f"{pid} ({name}) {' '.join(fields)}\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A process 10 with threads 10 and 11, and a thread 20 of the kernel."""
    write(tmp_path / "10" / "stat", stat(10, 1, user=7, system=5))
    write(tmp_path / "10" / "io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 512\n")
    for thread, name in ((10, "qemu\n"), (11, "CPU 0/KVM\n")):
        write(tmp_path / "10" / "task" / str(thread) / "comm", name)
        write(tmp_path / str(thread) / "comm", name)
    for thread, times in ((10, (9, 2)), (11, (30_000_000, 3)), (20, (50_000_000, 10_000_000))):
        write(tmp_path / str(thread) / "schedstat", f"{times[0]} {times[1]} 1\n")
        write(tmp_path / str(thread) / "status", SWITCHES.format(thread, 1))
    return tmp_path


def test_processes_and_the_threads_that_work_for_them_are_added_up(proc: Path) -> None:
    found = accounts.TaskAccount(Tasks((10,), (20,)), proc).read()
    assert found.keys() <= NAMES
    times = {"user": 7 * TICK, "system": 5 * TICK, "helper": 5.0, "cpu": 12 * TICK + 5.0, "waiting": 10_000_005 / 1e7}
    counts = {"voluntary_switches": 41, "involuntary_switches": 3, "threads": 4, "memory_bytes": 10 * PAGE}
    rates = {"read_bytes_per_s": 4096, "written_bytes_per_s": 512}
    assert found == {**{f"{name}_percent": pytest.approx(time) for name, time in times.items()}, **counts, **rates}


def test_of_an_owner_without_tasks_nothing_is_known_and_a_process_that_has_ended_leaves_the_others(proc: Path) -> None:
    assert accounts.TaskAccount(Tasks(), proc).read() == {}
    assert "memory_bytes" not in accounts.TaskAccount(Tasks(helpers=(20,)), proc).read()
    assert accounts.TaskAccount(Tasks((99,), (20,)), proc).read()["cpu_percent"] == pytest.approx(5.0)
    assert threads_of(99, proc) == ()
    vcpus = Tasks((10,)).vcpus(proc)
    assert vcpus == (11,)
    assert accounts.VcpuAccount(vcpus, proc).read() == {"guest_cpu_percent": pytest.approx(3.0)}


def test_the_machines_accounts_are_parsed(tmp_path: Path) -> None:
    write(tmp_path / "stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 99 1 2\nctxt 77\n")
    write(tmp_path / "softirqs", "       CPU0  CPU1\nNET_TX: 1 2\nNET_RX: 3 4\nRCU: 9 9\n")
    queued = f"00000010 00000002 0000000a{' 00000000' * 8} 00000011\n"
    write(tmp_path / "net" / "softnet_stat", queued + "00000010 00000001 00000001\n")
    write(tmp_path / "meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n")
    found = accounts.MachineAccount(tmp_path).read()
    assert found.keys() <= NAMES
    ticks = {"user": 3, "system": 3, "idle": 9, "interrupt": 6, "softirq": 7, "stolen": 8}
    counts = {"interrupts": 99, "switches": 77, "net_tx_softirqs": 3, "net_rx_softirqs": 7}
    assert found == {
        **{f"all_{name}_percent": pytest.approx(number * TICK) for name, number in ticks.items()},
        **{f"all_{name}": number for name, number in counts.items()},
        "backlog_drops": 3, "backlog_packets": 17, "time_squeezes": 11, "memory_used_bytes": 60 * 1024,
    }  # fmt: skip
    assert accounts.MachineAccount(tmp_path / "none").read() == {}


def test_what_was_started_for_an_owner_is_found_by_its_name_and_what_was_not_is_left_alone(tmp_path: Path) -> None:
    rows = {10: (1, "other nf-7-1"), 50: (1, "robot"), 51: (50, "qemu -name nf-7-1 -m 64"), 52: (50, "x nf-7-10")}
    for pid, (parent, command) in rows.items():
        write(tmp_path / str(pid) / "stat", stat(pid, parent))
        write(tmp_path / str(pid) / "cmdline", command.replace(" ", "\0"))
    write(tmp_path / "60" / "stat", stat(60, 2, name="vhost-51"))
    found = tasks_of(["nf-7-1", "nf-7-2"], {"nf-7-1": [20]}, tmp_path, mine=50)
    assert found == {"nf-7-1": Tasks((51,), (20, 60)), "nf-7-2": Tasks()}


@pytest.mark.parametrize(
    ("version", "mine", "its", "found"),
    [
        (1, "4:memory:/job\n1:cpu:/\n", "4:memory:/job\n1:cpu:/csit-nf-1-1\n", True),
        (1, "4:memory:/job\n1:cpu:/\n", "4:memory:/job\n1:cpu:/\n", False),
        (2, "0::/job\n", "0::/csit-nf-1-1\n", True),
        (2, "0::/job\n", "0::/\n", False),
    ],
)
def test_only_groups_made_for_owners_count(tmp_path: Path, version: int, mine: str, its: str, *, found: bool) -> None:
    write(tmp_path / "50" / "cgroup", mine)
    write(tmp_path / "51" / "cgroup", its)
    roots = dict.fromkeys(("cpu", "cpuacct", "memory"), tmp_path / "groups")
    controllers = Controllers(1 if version == 1 else 2, roots)
    group = features.group_of(Tasks((51,)), controllers, tmp_path, mine=50)
    assert (group is not None) is found
    if group is not None:
        assert group.folders == (tmp_path / "groups" / "csit-nf-1-1",)


def test_each_second_has_what_was_gained_in_it_and_levels_as_they_are() -> None:
    readings = [
        (0.0, {"nf": {"cpu_percent": 10.0, "memory_bytes": 5.0}}),
        (1.001, {"nf": {"cpu_percent": 60.05, "memory_bytes": 7.0}}),
        (2.001, {"nf": {"cpu_percent": 60.05, "memory_bytes": 6.0}}),
    ]
    found = {row.feature: row.values for row in features.series_of(readings)}
    assert found["cpu_percent"] == pytest.approx((50.0, 0.0))
    assert found["memory_bytes"] == (7.0, 6.0)


def test_a_second_without_both_of_its_readings_is_unknown() -> None:
    """A reading came too late, a feature vanished, or there is no whole second."""
    late = [(0.0, {"nf": {"rx_pps": 0.0}}), (1.7, {"nf": {"rx_pps": 170.0}}), (3.0, {"nf": {"rx_pps": 430.0}})]
    assert features.series_of(late)[0].values == (None, None, pytest.approx(200.0))
    nothing: Amounts = {}
    vanished = [(0.0, {"nf": {"rx_pps": 0.0}}), (1.0, {"nf": {"rx_pps": 5.0}}), (2.0, {"nf": nothing})]
    assert features.series_of(vanished)[0].values == (5.0, None)
    assert features.series_of([]) == ()
    assert features.series_of(late[:1])[0].values == ()


def counted(*rows: tuple[int, int, int, int]) -> PortAccount:
    """Ports that were read before: received, sent, dropped coming in, dropped going out."""
    names = ("rx_pps", "tx_pps", "rx_dropped_pps", "tx_dropped_pps")
    readings = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    return cast(PortAccount, Mock(read=Mock(side_effect=[*readings, {}])))


def test_what_came_in_and_neither_went_out_nor_was_dropped_waits() -> None:
    account = features.QueueAccount(counted((100, 90, 0, 0), (1000, 704, 4, 30)))
    assert account.read() == {"queued_packets": 0.0}, "what was lost before counts for nothing"
    assert account.read() == {"queued_packets": 256.0}
    assert account.read() == {}, "its programs have ended"
    account = features.QueueAccount(counted((0, 0, 0, 0), (100, 103, 0, 0)))
    account.read()
    assert account.read() == {"queued_packets": 0.0}, "counters are not read at one moment"


def test_what_waits_in_physical_ports_is_not_known() -> None:
    for testbed, known in (("sim", 4), ("available/lab-2n-kernel", 0)):
        plan = make_plan(shipped(testbed), cell_of("CSC"), {})
        assert len(features.forwarding(plan, VSWITCH)) == known


def answering(*answers: bytes) -> socket.socket:
    """A socket whose options have known values, of which it gives as many bytes as are asked for, like the kernel."""
    row = iter(answers)
    return cast(socket.socket, SimpleNamespace(getsockopt=lambda _level, _option, length: next(row)[:length]))


def test_a_count_of_32_bits_that_begins_again_goes_on_growing() -> None:
    """What a packet socket dropped is the last of its numbers; 4608 bytes wait."""
    rows = [(4608, 212992, 0, 212992, 3584, 0, 0, 0, dropped) for dropped in (2**32 - 5, 3, 3)]
    of_packets = answering(*(struct.pack("=9I", *row) for row in rows))
    count = program_sockets.Count(of_packets, program_sockets.refused_by_packet_socket)
    assert [count.read() for _ in range(3)] == [2**32 - 5, 2**32 + 3, 2**32 + 3]


@pytest.mark.parametrize("said", [struct.pack("=6Q", 7, 1, 2, 5000, 9, 4), struct.pack("=3Q", 5007, 1, 2)])
def test_a_socket_of_af_xdp_drops_where_its_ring_is_full_or_it_has_no_buffer(said: bytes) -> None:
    """Before Linux 5.9 a full ring is among what was dropped."""
    assert program_sockets.refused_by_xdp_socket(answering(said)) == 5007


STAT = """cpu  9 9 9 9 9 9 9 9 0 0
cpu0 1 2 3 400 5 6 7 8 0 0
cpu1 10 20 30 400 50 60 70 80 0 0
cpu10 1 1 1 1 1 1 1 1 0 0
intr 1 2 3
"""
SOFTNET = "00001000 00000002 00000010 00000000\n00001000 00000001 00000001 00000000\n"


def test_accounts_are_parsed(tmp_path: Path) -> None:
    write(tmp_path / "stat", STAT)
    write(tmp_path / "net" / "softnet_stat", SOFTNET)
    write(tmp_path / "77" / "schedstat", "123456789 987 5\n")
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    found = HostSampler({1}, lambda: {"csv1p1": [77], "gone": [78]}, root=tmp_path).read()
    assert found.threads == {"csv1p1": ThreadTime(123456789, 987)}
    assert found.cpus == {1: CpuTime(30 * tick_ns, 30 * tick_ns, 130 * tick_ns, 80 * tick_ns)}
    assert (found.backlog_dropped, found.squeezed) == (3, 17)


def test_interrupts_of_data_cpus_counters_of_ports_and_sensors_are_read(tmp_path: Path) -> None:
    write(
        tmp_path / "interrupts",
        "           CPU0       CPU1\n"
        " 29:          7         12  PCI-MSIX-0000:41:00.0   1-edge      ice-ens1-TxRx-3\n"
        " 30:          7          0  PCI-MSIX-0000:41:00.0   2-edge      ice-ens1-TxRx-4\n"
        "LOC:    1014498    1156057   Local timer interrupts\n"
        "ERR:          0\n",
    )
    write(tmp_path / "softirqs", "                    CPU0       CPU1\n      NET_RX:          3       99\n")
    for name, text in (("name", "coretemp"), ("temp1_input", "51500"), ("temp2_input", "none")):
        write(tmp_path / "class" / "hwmon" / "hwmon0" / name, f"{text}\n")
    write(tmp_path / "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2900000\n")
    statistics = {"rx_queue_0_drops of csv1p1": 5}
    found = HostSampler({1}, dict, root=tmp_path, devices=tmp_path, statistics=lambda: statistics).state()
    assert found.counts == {
        "interrupts of 29 ice-ens1-TxRx-3 on CPU 1": 12,
        "interrupts of LOC on CPU 1": 1156057,
        "softirqs NET_RX on CPU 1": 99,
        **statistics,
    }
    assert found.levels == {"temperature of coretemp temp1 in °C": 51.5, "clock rate of CPU 1 in MHz": 2900}
    assert HostSampler({1}, dict, root=tmp_path / "none", devices=tmp_path / "none").state() == HostState()


def test_vcpus_and_vhost_threads_of_a_guest_are_read_with_the_cpus_of_their_affinity(tmp_path: Path) -> None:
    """As a kernel before 6.4 shows it: vhost-<pid> is a thread of the kernel, not one of QEMU's."""
    write(tmp_path / "stat", STAT)
    rows = {500: ("qemu-system-x86", 1, "1-2"), 501: ("CPU 0/KVM", 70, "1"), 601: ("vhost-500", 30, "2")}
    for thread, (name, running, allowed) in rows.items():
        folders = [tmp_path / str(thread), tmp_path / "500" / "task" / str(thread)]
        for folder in folders[: 1 if thread == 601 else 2]:
            write(folder / "comm", f"{name}\n")
            write(folder / "schedstat", f"{running} {running // 10} 5\n")
            write(folder / "status", f"Name:\t{name}\nCpus_allowed:\t6\nCpus_allowed_list:\t{allowed}\n")
        write(folders[0] / "stat", stat(thread, 2 if thread == 601 else 7, name))
        write(folders[0] / "cmdline", "" if thread == 601 else "qemu-system-x86_64\0-name\0nf-1-1,x\0")
    tasks = tasks_of(["nf-1-1"], {}, tmp_path, mine=7)["nf-1-1"]
    assert tasks.vcpus(tmp_path) == (501,)
    found = HostSampler({1}, dict, tasks=lambda: {"nf-1-1": [*tasks.threads(tmp_path), 999]}, root=tmp_path).read()
    assert found.tasks == {
        "nf-1-1": {
            500: TaskTime(ThreadTime(1, 0), frozenset({1, 2})),
            501: TaskTime(ThreadTime(70, 7), frozenset({1})),
            601: TaskTime(ThreadTime(30, 3), frozenset({2})),
        }
    }


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Two processes, and the memory of the machine."""
    write(tmp_path / "10" / "statm", "900 30 5 1 0 20 0\n")
    write(tmp_path / "11" / "statm", "900 12 5 1 0 20 0\n")
    write(tmp_path / "meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\nHugePages_Total: 0\n")
    write(tmp_path / "stat", "cpu 1 1 1 1 1 1 1 1 0 0\n")
    return tmp_path


def test_an_owner_has_the_memory_of_its_group_or_the_resident_memory_of_its_processes(memory: Path) -> None:
    assert memory_of(Tasks((10, 11)), None, memory) == 42 * PAGE
    assert memory_of(Tasks((10, 999)), None, memory) == 30 * PAGE, "one has ended"
    assert memory_of(Tasks((999,)), None, memory) is None
    group = ControlGroup(Controllers(2, {"memory": memory / "groups"}), "nf-1-1")
    assert memory_of(Tasks((10,)), group, memory) == 30 * PAGE, "it cannot be read"
    write(memory / "groups" / "nf-1-1" / "memory.current", "50000\n")
    write(memory / "groups" / "nf-1-1" / "memory.stat", "anon 40000\ninactive_file 10000\n")
    assert memory_of(Tasks((10,)), group, memory) == 40_000
    assert memory_of(Tasks(helpers=(20,)), group, memory) is None


def test_a_sample_has_the_memory_of_owners_and_what_is_left_on_the_machine(memory: Path) -> None:
    found = HostSampler({0}, dict, root=memory, memory=lambda: {"nf-1-1": 7}).read()
    assert (found.memory_bytes, found.available_bytes) == ({"nf-1-1": 7}, 40 * 1024)
    assert available_bytes(memory / "none") is None


TASK_CLOCK = PerfEvent("nanoseconds on a CPU", 1, 1)  # a software event, which every machine can count
IMPOSSIBLE = PerfEvent("unknown events", 0, 1 << 20)


def can_count() -> bool:
    try:
        PerfCounters({"me": [threading.get_native_id()]}, TASK_CLOCK).close()
    except Unsupported:
        return False
    return True


needs_perf = pytest.mark.skipif(not can_count(), reason="this process may not count perf events")


def spin(seconds: float) -> int:
    """Use that much CPU time of this thread; return the nanoseconds that were used."""
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < seconds * 1e9:
        pass
    return time.thread_time_ns() - begin


@needs_perf
def test_threads_that_have_ended_are_left_out() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    counters = PerfCounters({"a": [ended.native_id or 0]}, TASK_CLOCK)
    assert counters.read() == {"a": 0}
    counters.close()
    counters.close()


@pytest.fixture
def meter_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[PerfEvent], LinuxCostMeter]:
    """A meter whose only NF beside the vSwitch is the present thread, as a data thread of the kernel's would be."""
    found: Mapping[str, Tasks] = {
        "nf-1-1": Tasks(helpers=(threading.get_native_id(),)), "nf-2-1": Tasks(), "vswitch": Tasks(processes=(1,)),
    }  # fmt: skip
    monkeypatch.setattr(costs, "tasks_on", lambda *_: found)
    return lambda event: LinuxCostMeter(cast(Plan, None), cast(Fabric, SimpleNamespace()), event)


@pytest.mark.slow
@needs_perf
def test_what_an_nf_uses_is_added_up_from_start_to_stop(meter_of: Callable[[PerfEvent], LinuxCostMeter]) -> None:
    meter, over = meter_of(TASK_CLOCK), threading.Event()
    waits = threading.Thread(target=over.wait)
    waits.start()
    idle = PerfCounters({"a": [waits.native_id or 0]}, TASK_CLOCK)
    begin_ns = time.monotonic_ns()
    meter.start()
    used_ns = spin(0.03)
    found = meter.stop()
    took_ns = time.monotonic_ns() - begin_ns
    assert idle.read()["a"] < 0.1 * used_ns
    over.set()
    waits.join()
    idle.close()
    assert found.keys() == {"nf-1-1", "nf-2-1"}
    cost = found["nf-1-1"]
    assert cost.cpu_s is not None
    assert cost.cache_misses is not None
    assert 0.8 * used_ns <= cost.cpu_s * 1e9 < 1.5 * took_ns, "a running thread's account may be a tick old"
    assert 0.9 * used_ns <= cost.cache_misses < 1.1 * took_ns
    assert cost.memory_bytes is None, "a data thread of the kernel has no memory of its own"
    assert (found["nf-2-1"].cpu_s, found["nf-2-1"].cache_misses) == (None, None), "no thread works for it"
    assert meter.facts() == {}
    assert meter.stop() == {}


def test_without_counters_all_else_is_reported(meter_of: Callable[[PerfEvent], LinuxCostMeter]) -> None:
    meter = meter_of(IMPOSSIBLE)
    meter.start()
    found = meter.stop()
    assert found["nf-1-1"].cpu_s is not None
    assert found["nf-1-1"].cache_misses is None
    assert meter.facts()["cache misses"].startswith("this machine does not count unknown events")
