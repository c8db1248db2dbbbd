"""The built-in generator against trafgen, and against the clock."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from csit_utils.bench.veth import veth_pair
from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowSpec,
    Sending,
    TrialReport,
    TrialSpec,
    WorkerSpec,
    trial_report,
)
from resources.libraries.python.errors import CommandFailed, Unsupported

NAMESPACE = "csit-gen-bench"
PORTS = ("genbench0", "genbench1")
_SEND_CPU, _RECEIVE_CPU = 0, 1
_ROUNDS = 5
_ROUND_S = 1.0
_FRAME_BYTES = 64
_RATES_PPS = (1_000.0, 10_000.0, 50_000.0, 100_000.0, 200_000.0)
_PPS_GOAL = 3.0
_GOAL = 0.001
_DURATION_GOAL_S = 0.001
_DEFAULT_SOCKET = Path("/proc/sys/net/core/wmem_default")
_TRAFGEN_SOCKET_BYTES = 4 << 20
"""trafgen sets this itself, but may not from within a namespace, and ends with an error at the first full socket."""
_AHEAD = ("nice", "-n", "-20")
"""As our worker does where it has a CPU to itself."""
_TRAFGEN_SAYS = re.compile(r"(\d+) sec, (\d+) usec on CPU\d+ \((\d+) packets\)")
_UNPACED = TrialSpec(None, _ROUND_S, (_FRAME_BYTES,), 0.0)
_FLOW = FlowSpec(*PORTS, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")


def measure_pps(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Unpaced 64 B frames of one sender on one CPU, ours, our TX ring's and trafgen's in turns; medians of all rounds.

    All bypass the queueing discipline, send the same frames into the same veth pair, and a data thread on the other
    CPU receives. A rate is what the sender handed to its interface, by the interface's counters: frames that the
    receiver had no room for are among them.

    Returns:
        `ours` (XDP live frames where they work here), `ring`, `peer` and the ratio of ours to the peer's;
        `ours_delivered` and `peer_delivered` count what arrived only.

    Raises:
        Unsupported: no root, or fewer than two CPUs.
    """
    ours: list[tuple[float, float]] = []
    ring: list[tuple[float, float]] = []
    peer: list[tuple[float, float]] = []
    sending = ""
    trafgen = shutil.which("trafgen")
    with worker("auto") as best, worker_beside("ring") as other, trafgen_frames() as config:
        for _ in range(rounds):
            report = best(_UNPACED)
            sending = report.sending
            ours.append(_rates(report))
            ring.append(_rates(other(_UNPACED)))
            if trafgen:
                peer.append(_trafgen_round(trafgen, config))
    found: dict[str, Any] = {
        "name": "generator_pps",
        "ours": median(offered for offered, _ in ours),
        "ours_delivered": median(delivered for _, delivered in ours),
        "ring": median(offered for offered, _ in ring),
        "peer": None,
        "ratio": None,
        "goal": _PPS_GOAL,
        "unit": "pps",
    }
    if not trafgen:
        return {**found, "note": f"by {sending}; trafgen is not installed"}
    found["peer"] = median(offered for offered, _ in peer)
    found["peer_delivered"] = median(delivered for _, delivered in peer)
    found["ratio"] = found["ours"] / found["peer"]
    delivered_ratio = found["ours_delivered"] / found["peer_delivered"]
    note = f"by {sending}, trafgen (goal {_PPS_GOAL} x); handed to the interface; of those that arrived "
    return {**found, "note": f"{note}{delivered_ratio:.2f} x; our TX ring {found['ring'] / found['peer']:.2f} x"}


def measure_rate_error(trial_s: float = 1.0) -> dict[str, Any]:
    """The worst relative error of the rate, and of the duration, of paced trials from 1 to 200 kpps.

    Returns:
        `ours` against the goal of 0.1 %, `duration_error_s`.

    Raises:
        Unsupported: no root, or fewer than two CPUs.
    """
    errors, durations_s = [], []
    with worker("auto") as ask:
        for rate_pps in _RATES_PPS:
            report = ask(TrialSpec(rate_pps, trial_s, (_FRAME_BYTES,), 0.0))
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
def worker(sending: Sending) -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """A veth pair, and a worker that sends through it, as a function."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("sender and receiver need a CPU each, and there is one")
    with veth_pair(NAMESPACE, PORTS, receive_cpu=_RECEIVE_CPU), worker_beside(sending) as ask:
        yield ask


@contextmanager
def worker_beside(sending: Sending) -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """Another worker on the veth pair that is there."""
    process = WorkerProcess()
    try:
        process.tell(WorkerSpec(NAMESPACE, (_SEND_CPU,), alone=True, flows=(_FLOW,), sending=sending))
        process.answer("worker", 10.0)

        def ask(spec: TrialSpec) -> TrialReport:
            process.tell({"prepare": {name: getattr(spec, name) for name in TrialSpec.__slots__}})
            process.answer("worker's frames", 10.0)
            process.tell({"do": "go"})
            return trial_report(process.answer("worker's report", spec.duration_s + 10.0))

        yield ask
    finally:
        process.close()


def _rates(report: TrialReport) -> tuple[float, float]:
    """Offered and delivered pps."""
    (flow,) = report.flows
    return flow.sent / report.offered_s, flow.received / report.offered_s


def _statistics() -> tuple[int, int]:
    """Frames handed to the sending interface, those dropped included, and frames that passed."""
    done = subprocess.run(
        ("ip", "netns", "exec", NAMESPACE, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith(f"{PORTS[0]}:"))
    numbers = [int(number) for number in line.partition(":")[2].split()]
    passed, dropped = numbers[9], numbers[11]
    return passed + dropped, passed


def _trafgen_round(trafgen: str, config: Path) -> tuple[float, float]:
    """Offered and delivered pps."""
    before = _statistics()
    seconds = run_trafgen(trafgen, config, _ROUND_S)
    after = _statistics()
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def run_trafgen(trafgen: str, config: Path, duration_s: float, options: tuple[str, ...] = ()) -> float:
    """Let trafgen send for some time on the sender's CPU, with our worker's priority; the seconds that it says it took.

    Raises:
        CommandFailed: it did not come to an end, or said something else.
    """
    argv = (trafgen, "-P", "1", "-i", str(config), "-o", PORTS[0], *options)
    process = subprocess.Popen(
        ("ip", "netns", "exec", NAMESPACE, "taskset", "-c", str(_SEND_CPU), *_AHEAD, *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with suppress(OSError):  # as our worker does; there is no such file where the kernel does not group sessions
        Path(f"/proc/{process.pid}/autogroup").write_text("-20", encoding="ascii")
    try:
        said, _ = process.communicate(timeout=duration_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=10.0)
    match = _TRAFGEN_SAYS.search(said)
    if match is None:
        raise CommandFailed(argv, process.returncode, said[-500:])
    return int(match[1]) + int(match[2]) / 1e6


@contextmanager
def trafgen_frames() -> Iterator[Path]:
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
