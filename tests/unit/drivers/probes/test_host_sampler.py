"""The kernel's accounts are read right."""

import os
import threading
import time
from pathlib import Path

import pytest

from resources.libraries.python.drivers.probes.sampler.host import HostSampler
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_of
from resources.libraries.python.model.measurements.counters import CpuTime, HostState, TaskTime, ThreadTime

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
