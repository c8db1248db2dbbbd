"""The kernel's accounts of CPU time and memory, and costs of NFs."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.probes.sampler import costs
from resources.libraries.python.drivers.probes.sampler.costs import LinuxCostMeter, PerfCounters, PerfEvent
from resources.libraries.python.drivers.probes.sampler.host import HostSampler, available_bytes, memory_of
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks, tasks_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import CpuTime, HostState, TaskTime, ThreadTime
from resources.libraries.python.model.plan import Plan

STAT = """cpu  9 9 9 9 9 9 9 9 0 0
cpu0 1 2 3 400 5 6 7 8 0 0
cpu1 10 20 30 400 50 60 70 80 0 0
cpu10 1 1 1 1 1 1 1 1 0 0
intr 1 2 3
"""
SOFTNET = "00001000 00000002 00000010 00000000\n00001000 00000001 00000001 00000000\n"


def test_accounts_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "softnet_stat").write_text(SOFTNET)
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "schedstat").write_text("123456789 987 5\n")
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    found = HostSampler({1}, lambda: {"csv1p1": [77], "gone": [78]}, root=tmp_path).read()
    assert found.threads == {"csv1p1": ThreadTime(123456789, 987)}
    assert found.cpus == {1: CpuTime(30 * tick_ns, 30 * tick_ns, 130 * tick_ns, 80 * tick_ns)}
    assert (found.backlog_dropped, found.squeezed) == (3, 17)


def test_interrupts_of_data_cpus_counters_of_ports_and_sensors_are_read(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    (proc / "interrupts").write_text(
        "           CPU0       CPU1\n"
        " 29:          7         12  PCI-MSIX-0000:41:00.0   1-edge      ice-ens1-TxRx-3\n"
        " 30:          7          0  PCI-MSIX-0000:41:00.0   2-edge      ice-ens1-TxRx-4\n"
        "LOC:    1014498    1156057   Local timer interrupts\n"
        "ERR:          0\n"
    )
    (proc / "softirqs").write_text("                    CPU0       CPU1\n      NET_RX:          3       99\n")
    chip = sys / "class" / "hwmon" / "hwmon0"
    chip.mkdir(parents=True)
    (chip / "name").write_text("coretemp\n")
    (chip / "temp1_input").write_text("51500\n")
    (chip / "temp2_input").write_text("none\n")
    clock = sys / "devices" / "system" / "cpu" / "cpu1" / "cpufreq"
    clock.mkdir(parents=True)
    (clock / "scaling_cur_freq").write_text("2900000\n")
    statistics = {"rx_queue_0_drops of csv1p1": 5}
    found = HostSampler({1}, dict, root=proc, devices=sys, statistics=lambda: statistics).state()
    assert found.counts == {
        "interrupts of 29 ice-ens1-TxRx-3 on CPU 1": 12,
        "interrupts of LOC on CPU 1": 1156057,
        "softirqs NET_RX on CPU 1": 99,
        **statistics,
    }
    assert found.levels == {"temperature of coretemp temp1 in °C": 51.5, "clock rate of CPU 1 in MHz": 2900}
    assert HostSampler({1}, dict, root=tmp_path, devices=tmp_path).state() == HostState()


def test_vcpus_and_vhost_threads_of_a_guest_are_read_with_the_cpus_of_their_affinity(tmp_path: Path) -> None:
    """As a kernel before 6.4 shows it: vhost-<pid> is a thread of the kernel, not one of QEMU's."""
    (tmp_path / "stat").write_text(STAT)
    rows = {500: ("qemu-system-x86", 1, "1-2"), 501: ("CPU 0/KVM", 70, "1"), 601: ("vhost-500", 30, "2")}
    for thread, (name, running, allowed) in rows.items():
        for folder in (tmp_path / str(thread), tmp_path / "500" / "task" / str(thread)):
            if folder.parent == tmp_path or thread != 601:
                folder.mkdir(parents=True)
                (folder / "comm").write_text(f"{name}\n")
                (folder / "schedstat").write_text(f"{running} {running // 10} 5\n")
                (folder / "status").write_text(f"Name:\t{name}\nCpus_allowed:\t6\nCpus_allowed_list:\t{allowed}\n")
        parent = 2 if thread == 601 else 7
        (tmp_path / str(thread) / "stat").write_text(f"{thread} ({name}) S {parent} 1 1\n")
        (tmp_path / str(thread) / "cmdline").write_text(
            "" if thread == 601 else "qemu-system-x86_64\0-name\0nf-1-1,x\0"
        )
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


@pytest.mark.slow  # the kernel brings its accounts up to date at ticks
def test_a_real_thread_is_charged_with_the_time_it_ran() -> None:
    sampler = HostSampler(os.sched_getaffinity(0), lambda: {"me": [threading.get_native_id()]})
    before, began = sampler.read(), time.thread_time_ns()
    while time.thread_time_ns() - began < 50_000_000:
        pass
    ended, after = time.thread_time_ns(), sampler.read()
    ran_ns = after.threads["me"].running_ns - before.threads["me"].running_ns
    assert ended - began <= ran_ns + 5_000_000
    assert ran_ns < (ended - began) * 1.5
    assert set(after.cpus) == set(os.sched_getaffinity(0))


PAGE = os.sysconf("SC_PAGE_SIZE")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Two processes, and the memory of the machine."""
    write(tmp_path / "10" / "statm", "900 30 5 1 0 20 0\n")
    write(tmp_path / "11" / "statm", "900 12 5 1 0 20 0\n")
    write(tmp_path / "meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\nHugePages_Total: 0\n")
    write(tmp_path / "stat", "cpu 1 1 1 1 1 1 1 1 0 0\n")
    return tmp_path


def group_of_version(version: int, root: Path) -> ControlGroup:
    """A group with 50 kB in use, 10 kB of which are file pages that have not been used lately."""
    name = "memory.current" if version == 2 else "memory.usage_in_bytes"
    write(root / "nf-1-1" / name, "50000\n")
    write(root / "nf-1-1" / "memory.stat", "anon 40000\ninactive_file 10000\n")
    return ControlGroup(Controllers(2 if version == 2 else 1, {"memory": root}), "nf-1-1")


def test_an_owner_without_a_group_has_the_resident_memory_of_its_processes(proc: Path) -> None:
    assert memory_of(Tasks((10, 11)), None, proc) == 42 * PAGE
    assert memory_of(Tasks((10, 999)), None, proc) == 30 * PAGE, "one has ended"
    assert memory_of(Tasks((999,)), None, proc) is None


@pytest.mark.parametrize("version", [1, 2])
def test_an_owner_with_a_group_has_that_of_the_group(proc: Path, version: int) -> None:
    group = group_of_version(version, proc / "groups")
    assert memory_of(Tasks((10,)), group, proc) == 40_000
    unreadable = ControlGroup(Controllers(2, {"memory": proc / "none"}), "nf-1-1")
    assert memory_of(Tasks((10,)), unreadable, proc) == 30 * PAGE


def test_the_memory_of_threads_of_the_kernel_is_unknown(proc: Path) -> None:
    assert memory_of(Tasks(helpers=(20,)), group_of_version(2, proc / "groups"), proc) is None


def test_a_sample_has_the_memory_of_owners_and_what_is_left_on_the_machine(proc: Path) -> None:
    memory: Callable[[], dict[str, int]] = lambda: {"nf-1-1": 7}  # noqa: E731
    found = HostSampler({0}, dict, root=proc, memory=memory).read()
    assert (found.memory_bytes, found.available_bytes) == ({"nf-1-1": 7}, 40 * 1024)
    assert available_bytes(proc / "none") is None


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


@pytest.mark.slow
@needs_perf
def test_a_thread_that_works_is_counted_and_one_that_waits_is_not() -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    counters = PerfCounters({"busy": [threading.get_native_id()], "idle": [other.native_id or 0]}, TASK_CLOCK)
    begin_ns = time.monotonic_ns()
    before = counters.read()
    used_ns = spin(0.02)
    after = counters.read()
    took_ns = time.monotonic_ns() - begin_ns
    over.set()
    other.join()
    counters.close()
    counters.close()
    # The kernel's two clocks of a thread differ by some microseconds, and by what a hypervisor takes away meanwhile.
    assert 0.9 * used_ns <= after["busy"] - before["busy"] < 1.1 * took_ns
    assert after["idle"] - before["idle"] < 0.1 * used_ns


@needs_perf
def test_threads_that_have_ended_are_left_out() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    counters = PerfCounters({"a": [ended.native_id or 0]}, TASK_CLOCK)
    assert counters.read() == {"a": 0}
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
    meter = meter_of(TASK_CLOCK)
    begin_ns = time.monotonic_ns()
    meter.start()
    used_ns = spin(0.03)
    found = meter.stop()
    took_ns = time.monotonic_ns() - begin_ns
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
