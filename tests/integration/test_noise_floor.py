"""The noise floor of a real CPU with interruptions made by a test, beside `oslat` and `cyclictest` of rt-tests."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node.checks.processors import observe
from tests.integration.cpu_pulses import CPU, PAUSE_MS, PULSE_MS, pulses

PER_S = 1000 / (PULSE_MS + PAUSE_MS)
OBSERVED_S = 2.0
LONG_US = 1000
_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("oslat") is None, reason="rt-tests are not installed"),
    pytest.mark.skipif(not _LIMIT.exists(), reason="the kernel has no real-time scheduling"),
]


@pytest.fixture(autouse=True)
def unthrottled() -> Iterator[None]:
    """As in a run: the kernel does not stop real-time threads by itself."""
    before = _LIMIT.read_text(encoding="ascii")
    _LIMIT.write_text("-1", encoding="ascii")
    yield
    _LIMIT.write_text(before, encoding="ascii")


def observed(duration_s: float = OBSERVED_S) -> CpuNoise:
    with closing(LocalConnection()) as here:
        (row,) = observe(here, [CPU], duration_s, python=sys.executable)
    return row


def long_ones(row: CpuNoise) -> int:
    return sum(number for edge, number in row.durations if edge >= LONG_US * 1000)


def oslat() -> tuple[int, int]:
    """Interruptions of 1 ms or more, and the longest in microseconds, as oslat sees them."""
    options = f"-c {CPU} -C {min(os.sched_getaffinity(0))} -D {OBSERVED_S:.0f} -f 95 -b 1024".split()
    done = subprocess.run(["oslat", *options], capture_output=True, text=True, timeout=600, check=True)
    buckets = {int(us): int(count) for us, count in re.findall(r"^\s+(\d+) \(us\):\s+(\d+)", done.stdout, re.MULTILINE)}
    longest = re.search(r"Maximum:\s+(\d+)", done.stdout)
    assert longest is not None, done.stdout[-500:]
    return sum(count for us, count in buckets.items() if us >= LONG_US), int(longest.group(1))


def test_interruptions_are_counted_and_measured_as_by_oslat_and_cyclictest() -> None:
    with pulses():
        row = observed()
        peer_count, peer_longest_us = oslat()
        options = ["-q", "-p", "95", "-a", str(CPU), "-t", "1", "-i", "1000", "-D", "2"]
        latency = subprocess.run(["cyclictest", *options], capture_output=True, text=True, timeout=600, check=True)
    assert row.real_time and row.preemptions >= 0.8 * long_ones(row)
    # At least the pulses: the machine may have interruptions of its own, and others while the peer looks.
    assert min(long_ones(row), peer_count) >= 0.85 * PER_S * OBSERVED_S
    assert min(row.longest_ns, 1000 * peer_longest_us) >= PULSE_MS * 1e6
    worst = re.search(r"Max:\s+(\d+)", latency.stdout)
    assert worst is not None and int(worst.group(1)) >= 0.9 * 1000 * PULSE_MS, "cyclictest waits for a whole pulse, too"
    assert row.share >= PULSE_MS / (PULSE_MS + PAUSE_MS) * 0.9

    quiet = observed()
    assert long_ones(quiet) < long_ones(row) and quiet.interrupts, "the tick at least"
    every = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert f"{sys.executable}\0-I\0-\0".encode() not in every, "the program leaves no process"
