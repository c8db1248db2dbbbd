"""Rate, pacing error and inter-frame gaps of the built-in generator, against trafgen and xdp-trafficgen where they run.

One CPU sends 64 B frames into a veth pair. All senders bypass the queueing discipline, send the same frames and take
turns; figures are medians of rounds.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.arrivals import ArrivalRing
from resources.libraries.python.drivers.generators.builtin.driver import trial_report
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowSpec,
    Sending,
    TrialReport,
    TrialSpec,
    WorkerSpec,
)
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, Unsupported
from tests.veth_pair import veth_pair

NAMESPACE = "csit-gen-bench"
PORTS = ("genbench0", "genbench1")
_SEND_CPU, _RECEIVE_CPU = 0, 1
_ROUNDS, _ROUND_S = 5, 1.0
_FRAME_BYTES = 64
_FLOW = FlowSpec(*PORTS, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")
_UNPACED = TrialSpec(None, _ROUND_S, (_FRAME_BYTES,), 0.0)
_ALL_PPS = 20e6
"""More than a CPU can send: the rate is the sender's maximum."""
_UNCOUNTED = TrialSpec(_ALL_PPS, _ROUND_S, (_FRAME_BYTES,), 0.0)
_COUNTED = TrialSpec(_ALL_PPS, _ROUND_S, (_FRAME_BYTES,), 0.0, losses=True, mark=512)
_RATES_PPS = (1_000.0, 10_000.0, 50_000.0, 100_000.0, 200_000.0)
_GAP_PPS = 100_000
_GAP_TRIAL = TrialSpec(_GAP_PPS, 0.5, (_FRAME_BYTES,), 0.0)
_NOMINAL_NS = 1_000_000_000 // _GAP_PPS
_PPS_GOAL, _COUNTED_GOAL, _ERROR_GOAL, _GAP_GOAL = 3.0, 0.95, 0.001, 1.1
_DEFAULT_SOCKET = Path("/proc/sys/net/core/wmem_default")
_TRAFGEN_SOCKET_BYTES = 4 << 20
"""trafgen sets this itself, but is not permitted to in a namespace, and exits at the first full socket buffer."""
_MAX_FRAMES = 100_000_000
"""Frames after which trafgen ends by itself, should the benchmark be killed: half a minute at its highest rate."""
_FIRST_WITHIN_S = 30.0
"""Deadline for a peer's first frame."""
_XDP_TRAFFICGEN = ("xdp-trafficgen", "udp", PORTS[0], "-m", _FLOW.destination_mac, "-n", str(_MAX_FRAMES))


class _Rate(NamedTuple):
    """Packets per second of a round: handed to the sending interface, and received."""

    offered: float
    arrived: float


def measure_pps(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the rate of unpaced frames: ours, with each packet counted (`losses`), by AF_XDP, and trafgen's.

    A data thread on the other CPU receives. Offered frames include those that the receiver dropped.

    Returns:
        `ours` and `peer`: offered pps; `arrived_ratio`: that of received ones; `counted_ratio`: offered pps with
        counting over those without; `af_xdp_ratio`: that of frames sent by AF_XDP sockets over the peer's;
        `xdp_trafficgen_ratio`: ours over those of xdp-trafficgen, where it runs.
    """
    ours, uncounted, counted, sockets, peer, xdp = (list[_Rate]() for _ in range(6))
    sending, trafgen = "", shutil.which("trafgen")
    with _worker() as ask, _worker_on_pair("af_xdp") as ask_af_xdp, trafgen_frames() as config:
        for number in range(rounds):
            turns = ((ours, _UNPACED), (uncounted, _UNCOUNTED), (counted, _COUNTED), (sockets, _UNPACED))
            for rates, spec in turns if number % 2 else turns[::-1]:
                report = (ask_af_xdp if rates is sockets else ask)(spec)
                (flow,), sending = report.flows, sending if rates is sockets else report.sending
                rates.append(_Rate(flow.sent / report.offered_s, flow.received / report.offered_s))
            if trafgen:
                peer.append(_run_peer(_trafgen(config)))
            with suppress(CommandFailed):  # not installed, or the kernel has no BTF
                xdp.append(_run_peer(_XDP_TRAFFICGEN))
    counted_ratio = median(one.offered / other.offered for one, other in zip(counted, uncounted, strict=True))
    found: dict[str, Any] = {
        "ours": median(each.offered for each in ours),
        "peer": median(each.offered for each in peer) if peer else None,
        "ratio": None,
        "goal": _PPS_GOAL,
        "unit": "pps",
        "counted_ratio": counted_ratio,
    }
    note = f"by {sending}; with each packet counted {counted_ratio:.2f} x of the rate without (goal {_COUNTED_GOAL:g})"
    if not peer:
        return {**found, "note": f"{note}; trafgen is not installed"}
    found["ratio"] = median(mine.offered / other.offered for mine, other in zip(ours, peer, strict=True))
    found["arrived_ratio"] = median(mine.arrived / other.arrived for mine, other in zip(ours, peer, strict=True))
    found["af_xdp_ratio"] = median(mine.offered / other.offered for mine, other in zip(sockets, peer, strict=True))
    note += f"; peer is trafgen (goal {_PPS_GOAL:g} x); received frames: {found['arrived_ratio']:.2f} x"
    note += f"; by AF_XDP {found['af_xdp_ratio']:.2f} x"
    if xdp:
        found["xdp_trafficgen_ratio"] = median(each.offered for each in ours) / median(each.offered for each in xdp)
        note += f"; {found['xdp_trafficgen_ratio']:.2f} x xdp-trafficgen"
    return {**found, "note": note}


def measure_rate_error(trial_s: float = 1.0) -> dict[str, Any]:
    """Measure the worst error of rate and duration of paced trials from 1 to 200 kpps."""
    errors, durations_s = [], []
    with _worker() as ask:
        for rate_pps in _RATES_PPS:
            report = ask(TrialSpec(rate_pps, trial_s, (_FRAME_BYTES,), 0.0))
            sent = sum(flow.sent for flow in report.flows)
            errors.append(abs(sent / report.offered_s / rate_pps - 1))
            durations_s.append(abs(report.offered_s - report.expected_s))
    return {
        "ours": max(errors),
        "peer": _ERROR_GOAL,
        "ratio": max(errors) / _ERROR_GOAL,
        "unit": "ratio",
        "duration_error_s": max(durations_s),
        "note": f"peer is the goal; largest error of the duration {max(durations_s) * 1e3:.3f} ms (goal 1 ms)",
    }


def measure_gap_p99(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the 99th percentile of inter-frame gaps at 100 kpps, in ns, by the kernel's receive time stamps.

    Frames are received on the sender's CPU: a data thread on another CPU would have to be woken up for each frame, and
    its jitter would dominate.
    """
    trafgen = shutil.which("trafgen")
    ours, peer = list[float](), list[float]()
    sending, peer_pps = "", 0.0
    with veth_pair(NAMESPACE, PORTS, napi=True), _worker_on_pair() as ask, trafgen_frames() as config:
        for _ in range(rounds):
            with closing(aside(_open)) as ring:
                sending = ask(_GAP_TRIAL).sending
                ours.append(float(np.percentile(np.diff(ring.stamps_ns()), 99)))
            if trafgen:
                with closing(aside(_open)) as ring:
                    _run_peer(_trafgen(config, "-t", "10us"), _GAP_TRIAL.duration_s)
                    gaps_ns = np.diff(ring.stamps_ns())
                peer.append(float(np.percentile(gaps_ns, 99)))
                peer_pps = 1e9 / float(gaps_ns.mean())
    ours_ns, peer_ns = median(ours), median(peer) if peer else None
    rate = f"; trafgen at {peer_pps / 1000:.0f} kpps" if peer else "; trafgen is not installed"
    return {
        "ours": ours_ns,
        "peer": peer_ns,
        "ratio": ours_ns / peer_ns if peer_ns else None,
        "unit": "ns",
        "note": f"by {sending}, {ours_ns / _NOMINAL_NS:.2f} x the nominal gap (goal {_GAP_GOAL}){rate}",
    }


def _open() -> ArrivalRing:
    kernel.enter_namespace(NAMESPACE)
    return ArrivalRing(PORTS[1])


@contextmanager
def _worker() -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """Make a veth pair with a worker that sends through it; yield a function that runs a trial."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("needs two CPUs, one each for sender and receiver; 1 available")
    with veth_pair(NAMESPACE, PORTS, receive_cpu=_RECEIVE_CPU), _worker_on_pair() as ask:
        yield ask


@contextmanager
def _worker_on_pair(sending: Sending = "auto") -> Iterator[Callable[[TrialSpec], TrialReport]]:
    process = WorkerProcess()
    try:
        process.send(asdict(WorkerSpec(NAMESPACE, (_SEND_CPU,), alone=True, flows=(_FLOW,), sending=sending)))
        process.answer("worker", 10.0)

        def ask(spec: TrialSpec) -> TrialReport:
            process.send({"prepare": asdict(spec)})
            process.answer("worker's frames", 10.0)
            process.send({"do": "go"})
            return trial_report(process.answer("worker's report", spec.duration_s + 10.0))

        yield ask
    finally:
        process.close()


@contextmanager
def trafgen_frames() -> Iterator[Path]:
    """Write our frames as a configuration of trafgen, and enlarge its socket buffer meanwhile; yield the path."""
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


def _sent() -> _Rate:
    """Frames handed to the sending interface so far, dropped ones included, and frames that passed."""
    done = subprocess.run(
        ("ip", "netns", "exec", NAMESPACE, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith(f"{PORTS[0]}:"))
    numbers = [int(number) for number in line.partition(":")[2].split()]
    passed, dropped = numbers[9], numbers[11]
    return _Rate(passed + dropped, passed)


def _trafgen(config: Path, *options: str) -> tuple[str, ...]:
    return ("trafgen", "-P", "1", "-n", str(_MAX_FRAMES), "-i", str(config), "-o", PORTS[0], *options)


def _run_peer(argv: Sequence[str], duration_s: float = _ROUND_S) -> _Rate:
    """Run a program on the sender's CPU with our worker's priority, and count its frames from the first one on.

    Raises:
        NotReady: It sent no frame.
        CommandFailed: It ended by itself.
    """
    before = _sent().offered
    process = subprocess.Popen(
        ("ip", "netns", "exec", NAMESPACE, "taskset", "-c", str(_SEND_CPU), "nice", "-n", "-20", *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with suppress(OSError):  # as our worker does; the file is missing in kernels without autogroup
        Path(f"/proc/{process.pid}/autogroup").write_text("-20", encoding="ascii")

    def not_sent() -> str:
        return "" if _sent().offered > before or process.poll() is not None else "no frame"

    try:
        wait_until(f"the first frame of {argv[0]}", not_sent, _FIRST_WITHIN_S, pause_s=0.01)
        begin, begin_s = _sent(), time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            output = process.communicate(timeout=duration_s)[0]
            raise CommandFailed(argv, process.returncode, output[-500:])
        end, seconds = _sent(), time.monotonic() - begin_s
    finally:
        with suppress(ProcessLookupError):  # what it has started outlives it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _Rate((end.offered - begin.offered) / seconds, (end.arrived - begin.arrived) / seconds)
