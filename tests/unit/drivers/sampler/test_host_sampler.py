"""The kernel's accounts are read right."""

import os
import threading
import time
from pathlib import Path

from resources.libraries.python.drivers.sampler.host import HostSampler
from resources.libraries.python.model.counters import CpuTime, ThreadTime

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
    found = HostSampler({1}, lambda: {"csv1p1": [77], "gone": [78]}, tmp_path).read()
    assert found.threads == {"csv1p1": ThreadTime(123456789, 987)}
    assert found.cpus == {1: CpuTime(30 * tick_ns, 30 * tick_ns, 130 * tick_ns, 80 * tick_ns)}
    assert (found.backlog_dropped, found.squeezed) == (3, 17)


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
