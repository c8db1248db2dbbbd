"""Hardware counters count the threads that they are told of, and what NFs use is added up from start to stop."""

import threading
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.probes.sampler import costs
from resources.libraries.python.drivers.probes.sampler.costs import LinuxCostMeter, PerfCounters, PerfEvent
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Plan

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
    assert (found["nf-2-1"].cpu_s, found["nf-2-1"].cache_misses) == (None, None), "nobody works for it"
    assert meter.facts() == {}
    assert meter.stop() == {}


def test_without_counters_all_else_is_reported(meter_of: Callable[[PerfEvent], LinuxCostMeter]) -> None:
    meter = meter_of(IMPOSSIBLE)
    meter.start()
    found = meter.stop()
    assert found["nf-1-1"].cpu_s is not None
    assert found["nf-1-1"].cache_misses is None
    assert meter.facts()["cache misses"].startswith("this machine does not count unknown events")
