"""The built-in generator against trafgen, and against the clock."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from csit_utils.bench.veth import veth_pair
from resources.libraries.python.drivers.generator.ring import frames
from resources.libraries.python.drivers.generator.ring.process import WorkerProcess
from resources.libraries.python.drivers.generator.ring.wire import (
    FlowSpec,
    TrialReport,
    TrialSpec,
    WorkerSpec,
    trial_report,
)
from resources.libraries.python.errors import CommandFailed, Unsupported

_NAMESPACE = "csit-ring-bench"
_PORTS = ("ringbench0", "ringbench1")
_SEND_CPU, _RECEIVE_CPU = 0, 1
_ROUNDS = 5
_ROUND_S = 1.0
_FRAME_BYTES = 64
_RATES_PPS = (1_000.0, 10_000.0, 50_000.0, 100_000.0, 200_000.0)
_GOAL = 0.001
_DURATION_GOAL_S = 0.001
_DEFAULT_SOCKET = Path("/proc/sys/net/core/wmem_default")
_TRAFGEN_SOCKET_BYTES = 4 << 20
"""trafgen sets this itself, but may not from within a namespace, and ends with an error at the first full socket."""
_AHEAD = ("nice", "-n", "-20")
"""As our worker does where it has a CPU to itself."""
_TRAFGEN_SAYS = re.compile(r"(\d+) sec, (\d+) usec on CPU\d+ \((\d+) packets\)")
_FLOW = FlowSpec(*_PORTS, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")


def measure_pps() -> dict[str, Any]:
    """Unpaced 64 B frames of one sender on one CPU, ours and trafgen's in turns; medians of five rounds.

    Both bypass the queueing discipline, send the same frames into the same veth pair, and a data thread on the other
    CPU receives. A rate is what the sender handed to its interface, by the interface's counters: frames that the
    receiver had no room for are among them.

    Returns:
        `ours`, `peer` and their `ratio`; `ours_delivered` and `peer_delivered` count what arrived only.

    Raises:
        Unsupported: no root, or fewer than two CPUs.
    """
    ours: list[tuple[float, float]] = []
    peer: list[tuple[float, float]] = []
    trafgen = shutil.which("trafgen")
    with _worker() as ask, _trafgen_frames() as config:
        for _ in range(_ROUNDS):
            ours.append(_ring_round(ask))
            if trafgen:
                peer.append(_trafgen_round(trafgen, config))
    found: dict[str, Any] = {
        "name": "generator_pps",
        "ours": median(offered for offered, _ in ours),
        "ours_delivered": median(delivered for _, delivered in ours),
        "peer": None,
        "ratio": None,
        "unit": "pps",
    }
    if not trafgen:
        return {**found, "note": "trafgen is not installed"}
    found["peer"] = median(offered for offered, _ in peer)
    found["peer_delivered"] = median(delivered for _, delivered in peer)
    found["ratio"] = found["ours"] / found["peer"]
    delivered_ratio = found["ours_delivered"] / found["peer_delivered"]
    return {**found, "note": f"trafgen; handed to the interface; of those that arrived {delivered_ratio:.2f} x"}


def measure_rate_error() -> dict[str, Any]:
    """The worst relative error of the rate, and of the duration, of paced trials of 1 s from 1 to 200 kpps.

    Returns:
        `ours` against the goal of 0.1 %, `duration_error_s`.

    Raises:
        Unsupported: no root, or fewer than two CPUs.
    """
    errors, durations_s = [], []
    with _worker() as ask:
        for rate_pps in _RATES_PPS:
            report = ask(TrialSpec(rate_pps, 1.0, (_FRAME_BYTES,), 0.0))
            sent = sum(flow.sent for flow in report.flows)
            errors.append(abs(sent / report.offered_s / rate_pps - 1))
            durations_s.append(abs(report.offered_s - report.expected_s))
    return {
        "name": "generator_rate_error",
        "ours": max(errors),
        "peer": None,
        "goal": _GOAL,
        "ratio": max(errors) / _GOAL,
        "unit": "ratio",
        "duration_error_s": max(durations_s),
        "note": f"no peer, ratio to the goal; duration at most {max(durations_s) * 1e3:.3f} ms off "
        f"(goal {_DURATION_GOAL_S * 1e3:.0f} ms)",
    }


@contextmanager
def _worker() -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """A worker that sends through a veth pair, as a function."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("sender and receiver need a CPU each, and there is one")
    with veth_pair(_NAMESPACE, _PORTS, receive_cpu=_RECEIVE_CPU):
        worker = WorkerProcess()
        try:
            worker.tell(WorkerSpec(_NAMESPACE, (_SEND_CPU,), alone=True, flows=(_FLOW,)))
            worker.answer("worker", 10.0)

            def ask(spec: TrialSpec) -> TrialReport:
                worker.tell({"prepare": {name: getattr(spec, name) for name in TrialSpec.__slots__}})
                worker.answer("worker's frames", 10.0)
                worker.tell({"do": "go"})
                return trial_report(worker.answer("worker's report", spec.duration_s + 10.0))

            yield ask
        finally:
            worker.close()


def _ring_round(ask: Callable[[TrialSpec], TrialReport]) -> tuple[float, float]:
    """Offered and delivered pps."""
    report = ask(TrialSpec(None, _ROUND_S, (_FRAME_BYTES,), 0.0))
    (flow,) = report.flows
    return flow.sent / report.offered_s, flow.received / report.offered_s


def _statistics() -> tuple[int, int]:
    """Frames handed to the sending interface, those dropped included, and frames that passed."""
    done = subprocess.run(
        ("ip", "netns", "exec", _NAMESPACE, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith(f"{_PORTS[0]}:"))
    numbers = [int(number) for number in line.partition(":")[2].split()]
    passed, dropped = numbers[9], numbers[11]
    return passed + dropped, passed


def _trafgen_round(trafgen: str, config: Path) -> tuple[float, float]:
    """Offered and delivered pps."""
    before = _statistics()
    argv = (trafgen, "-P", "1", "-i", str(config), "-o", _PORTS[0])
    process = subprocess.Popen(
        ("ip", "netns", "exec", _NAMESPACE, "taskset", "-c", str(_SEND_CPU), *_AHEAD, *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        said, _ = process.communicate(timeout=_ROUND_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=10.0)
    after = _statistics()
    match = _TRAFGEN_SAYS.search(said)
    if match is None:
        raise CommandFailed(argv, process.returncode, said[-500:])
    seconds = int(match[1]) + int(match[2]) / 1e6
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


@contextmanager
def _trafgen_frames() -> Iterator[Path]:
    """The same frames as ours as a configuration of trafgen, and room for its socket."""
    area = np.zeros((_FLOW.sources, _FRAME_BYTES - frames.FCS_BYTES), dtype=np.uint8)
    frames.load_frames(_FLOW, (_FRAME_BYTES,), area)
    text = "".join(f"{{ {', '.join(f'0x{byte:02x}' for byte in row)} }}\n" for row in area.tolist())
    before = _DEFAULT_SOCKET.read_text()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "frames.cfg"
        path.write_text(text)
        _DEFAULT_SOCKET.write_text(str(_TRAFGEN_SOCKET_BYTES))
        try:
            yield path
        finally:
            _DEFAULT_SOCKET.write_text(before)
