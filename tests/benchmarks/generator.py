"""Rate, pacing error and inter-frame gaps of the built-in generator, against trafgen and xdp-trafficgen where they run.

One CPU sends 64 B frames into a veth pair, or into one of two joined ports of NICs. All senders bypass the queueing
discipline, send the same frames and take turns; figures are medians of rounds.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
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
from tests.veth_pair import run, veth_pair

NAMESPACE = "csit-gen-bench"
PORTS = ("genbench0", "genbench1")
_SEND_CPU, _RECEIVE_CPU = 0, 1
_ROUNDS, _ROUND_S = 5, 1.0
_FRAME_BYTES = 64
_TO_MAC = "02:00:00:00:00:02"
_UNPACED = TrialSpec(None, _ROUND_S, (_FRAME_BYTES,), 0.0)
_ALL_PPS = 20e6
"""More than a CPU can send: the rate is the sender's maximum."""
_UNCOUNTED = TrialSpec(_ALL_PPS, _ROUND_S, (_FRAME_BYTES,), 0.0)
_COUNTED = TrialSpec(_ALL_PPS, _ROUND_S, (_FRAME_BYTES,), 0.0, losses=True, mark=512)
_RATES_PPS = (1_000.0, 10_000.0, 50_000.0, 100_000.0, 200_000.0)
_GAP_PPS = 100_000
_GAP_TRIAL_S = 0.5
_PPS_GOAL, _COUNTED_GOAL, _ERROR_GOAL, _GAP_GOAL = 3.0, 0.95, 0.001, 1.1
_DEFAULT_SOCKET = Path("/proc/sys/net/core/wmem_default")
_TRAFGEN_SOCKET_BYTES = 4 << 20
"""trafgen sets this itself, but is not permitted to in a namespace, and exits at the first full socket buffer."""
_MAX_FRAMES = 100_000_000
"""Frames after which trafgen ends by itself, should the benchmark be killed: half a minute at its highest rate."""
_FIRST_WITHIN_S = 30.0
"""Deadline for a peer's first frame."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A pair of ports: a veth pair in a namespace of its own, or joined ports of NICs in the present one (empty)."""

    namespace: str = NAMESPACE
    ports: tuple[str, str] = PORTS

    @property
    def inside(self) -> tuple[str, ...]:
        """Beginning of a command there. `ip netns exec` would hide file systems below /sys that XDP programs need."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}", "--") if self.namespace else ()

    @property
    def flow(self) -> FlowSpec:
        """Of the frames."""
        return FlowSpec(*self.ports, "02:00:00:00:00:01", _TO_MAC, "10.0.0.1", 254, "20.0.0.1")

    @contextmanager
    def up(self, receive_cpu: int | None = None, *, napi: bool = False) -> Iterator[None]:
        """Make the pair, or set the ports up."""
        if self.namespace:
            with veth_pair(self.namespace, self.ports, receive_cpu=receive_cpu, napi=napi):
                yield
            return
        try:
            for port in self.ports:
                run("ip", "link", "set", port, "up", "promisc", "on")
            yield
        finally:
            for port in self.ports:
                run("ip", "link", "set", port, "down", "promisc", "off")

    @contextmanager
    def takes_xdp(self) -> Iterator[None]:
        """Load a program for a peer's sake: NICs send XDP frames only while they have one."""
        if self.namespace:
            yield
            return
        with suppress(CommandFailed):  # our worker has loaded one
            run("xdp-filter", "load", "-m", "native", self.ports[0])
        try:
            yield
        finally:
            with suppress(CommandFailed):
                run("xdp-filter", "unload", self.ports[0])


VETH = Cable()


class _Rate(NamedTuple):
    """Packets per second of a round: handed to the sending interface, and received."""

    offered: float
    arrived: float


def measure_pps(rounds: int = _ROUNDS, cable: Cable = VETH) -> dict[str, Any]:
    """Measure the rate of unpaced frames: ours, with each packet counted (`losses`), by AF_XDP, and trafgen's.

    A data thread on the other CPU receives. Offered frames include those that the receiver dropped.

    Returns:
        `ours` and `peer`: offered pps; `arrived_ratio`: that of received ones; `counted_ratio`: offered pps with
        counting over those without; `af_xdp_ratio`: that of frames sent by AF_XDP sockets over the peer's;
        `xdp_trafficgen_ratio`: ours over those of xdp-trafficgen, where it runs; `senders`: offered and received pps.
    """
    ours, uncounted, counted, sockets, peer, xdp = (list[_Rate]() for _ in range(6))
    sending, trafgen = "", shutil.which("trafgen")
    xdp_trafficgen = ("xdp-trafficgen", "udp", cable.ports[0], "-m", _TO_MAC, "-n", str(_MAX_FRAMES))
    with _worker(cable) as ask, _worker_on(cable, "af_xdp") as ask_af_xdp, trafgen_frames(cable) as config:
        for number in range(rounds):
            turns = ((ours, _UNPACED), (uncounted, _UNCOUNTED), (counted, _COUNTED), (sockets, _UNPACED))
            for rates, spec in turns if number % 2 else turns[::-1]:
                report = (ask_af_xdp if rates is sockets else ask)(spec)
                (flow,), sending = report.flows, sending if rates is sockets else report.sending
                rates.append(_Rate(flow.sent / report.offered_s, flow.received / report.offered_s))
            if trafgen:
                peer.append(_run_peer(cable, _trafgen(cable, config)))
            with suppress(CommandFailed), cable.takes_xdp():  # not installed, or the kernel has no BTF
                xdp.append(_run_peer(cable, xdp_trafficgen))
    counted_ratio = median(one.offered / other.offered for one, other in zip(counted, uncounted, strict=True))
    by_sender = {sending: ours, "AF_XDP": sockets, "trafgen": peer, "xdp-trafficgen": xdp}
    senders = {name: _Rate(*map(median, zip(*rates, strict=True))) for name, rates in by_sender.items() if rates}
    found: dict[str, Any] = {
        "ours": senders[sending].offered,
        "peer": senders["trafgen"].offered if peer else None,
        "ratio": None,
        "goal": _PPS_GOAL,
        "unit": "pps",
        "counted_ratio": counted_ratio,
        "senders": senders,
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
        found["xdp_trafficgen_ratio"] = senders[sending].offered / senders["xdp-trafficgen"].offered
        note += f"; {found['xdp_trafficgen_ratio']:.2f} x xdp-trafficgen"
    return {**found, "note": note}


def measure_rate_error(
    trial_s: float = 1.0, rates_pps: Sequence[float] = _RATES_PPS, cable: Cable = VETH
) -> dict[str, Any]:
    """Measure the worst error of rate and duration of paced trials, also by AF_XDP (`af_xdp`)."""
    durations_s = list[float]()
    with _worker(cable) as ask, _worker_on(cable, "af_xdp") as ask_af_xdp:

        def error(ask: Callable[[TrialSpec], TrialReport], rate_pps: float) -> float:
            report = ask(TrialSpec(rate_pps, trial_s, (_FRAME_BYTES,), 0.0))
            durations_s.append(abs(report.offered_s - report.expected_s))
            return abs(sum(flow.sent for flow in report.flows) / report.offered_s / rate_pps - 1)

        ours, sockets = (max(error(each, rate_pps) for rate_pps in rates_pps) for each in (ask, ask_af_xdp))
    return {
        "ours": ours,
        "peer": _ERROR_GOAL,
        "ratio": ours / _ERROR_GOAL,
        "unit": "ratio",
        "af_xdp": sockets,
        "duration_error_s": max(durations_s),
        "note": f"peer is the goal; by AF_XDP {sockets:.2g}; largest error of "
        f"the duration {max(durations_s) * 1e3:.3f} ms (goal 1 ms)",
    }


def measure_gap_p99(rounds: int = _ROUNDS, rate_pps: int = _GAP_PPS, cable: Cable = VETH) -> dict[str, Any]:
    """Measure the 99th percentile of inter-frame gaps in ns, by the kernel's receive time stamps.

    Frames are received on the sender's CPU: a data thread on another CPU would have to be woken up for each frame, and
    its jitter would dominate.
    """
    trafgen, trial = shutil.which("trafgen"), TrialSpec(rate_pps, _GAP_TRIAL_S, (_FRAME_BYTES,), 0.0)
    ours, sockets, peer = (list[float]() for _ in range(3))
    sending, peer_pps = "", 0.0
    with ExitStack() as stack:
        stack.enter_context(cable.up(napi=True))
        ask, ask_af_xdp = (stack.enter_context(_worker_on(cable, each)) for each in ("auto", "af_xdp"))
        config = stack.enter_context(trafgen_frames(cable))
        for _ in range(rounds):
            with closing(aside(lambda: _open(cable))) as ring:
                sending = ask(trial).sending
                ours.append(float(np.percentile(np.diff(ring.stamps_ns()), 99)))
            with closing(aside(lambda: _open(cable))) as ring:
                ask_af_xdp(trial)
                sockets.append(float(np.percentile(np.diff(ring.stamps_ns()), 99)))
            if trafgen:
                with closing(aside(lambda: _open(cable))) as ring:
                    _run_peer(cable, _trafgen(cable, config, "-t", f"{1e6 / rate_pps:g}us"), trial.duration_s)
                    gaps_ns = np.diff(ring.stamps_ns())
                peer.append(float(np.percentile(gaps_ns, 99)))
                peer_pps = 1e9 / float(gaps_ns.mean())
    ours_ns, peer_ns = median(ours), median(peer) if peer else None
    own, other = (median(each) * rate_pps / 1e9 for each in (ours, sockets))
    rate = f"; trafgen at {peer_pps / 1000:.0f} kpps" if peer else "; trafgen is not installed"
    return {
        "ours": ours_ns,
        "peer": peer_ns,
        "ratio": ours_ns / peer_ns if peer_ns else None,
        "unit": "ns",
        "af_xdp": median(sockets),
        "note": f"by {sending}, {own:.2f} x the nominal gap (goal {_GAP_GOAL}), by AF_XDP {other:.2f} x{rate}",
    }


def _open(cable: Cable) -> ArrivalRing:
    if cable.namespace:
        kernel.enter_namespace(cable.namespace)
    return ArrivalRing(cable.ports[1])


@contextmanager
def _worker(cable: Cable) -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """Make the pair with a worker that sends through it; yield a function that runs a trial."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("needs two CPUs, one each for sender and receiver; 1 available")
    with cable.up(_RECEIVE_CPU), _worker_on(cable) as ask:
        yield ask


@contextmanager
def _worker_on(cable: Cable, sending: Sending = "auto") -> Iterator[Callable[[TrialSpec], TrialReport]]:
    process = WorkerProcess()
    try:
        process.send(
            asdict(WorkerSpec(cable.namespace, (_SEND_CPU,), alone=True, flows=(cable.flow,), sending=sending))
        )
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
def trafgen_frames(cable: Cable = VETH) -> Iterator[Path]:
    """Write our frames as a configuration of trafgen, and enlarge its socket buffer meanwhile; yield the path."""
    area = np.zeros((cable.flow.sources, _FRAME_BYTES - frames.FCS_BYTES), dtype=np.uint8)
    frames.load_frames(cable.flow, (_FRAME_BYTES,), area)
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


def _sent(cable: Cable) -> _Rate:
    """Frames handed to the sending interface so far, dropped ones included, and frames that the other one received."""
    done = subprocess.run((*cable.inside, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True)
    rows = {
        name.strip(): numbers.split() for name, _, numbers in (line.partition(":") for line in done.stdout.splitlines())
    }
    sender, receiver = (rows[port] for port in cable.ports)
    return _Rate(int(sender[9]) + int(sender[11]), int(receiver[1]))


def _trafgen(cable: Cable, config: Path, *options: str) -> tuple[str, ...]:
    return ("trafgen", "-P", "1", "-n", str(_MAX_FRAMES), "-i", str(config), "-o", cable.ports[0], *options)


def _run_peer(cable: Cable, argv: Sequence[str], duration_s: float = _ROUND_S) -> _Rate:
    """Run a program on the sender's CPU with our worker's priority, and count its frames from the first one on.

    Raises:
        NotReady: It sent no frame.
        CommandFailed: It ended by itself.
    """
    before = _sent(cable).offered
    process = subprocess.Popen(
        (*cable.inside, "taskset", "-c", str(_SEND_CPU), "nice", "-n", "-20", *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with suppress(OSError):  # as our worker does; the file is missing in kernels without autogroup
        Path(f"/proc/{process.pid}/autogroup").write_text("-20", encoding="ascii")

    def not_sent() -> str:
        return "" if _sent(cable).offered > before or process.poll() is not None else "no frame"

    try:
        wait_until(f"the first frame of {argv[0]}", not_sent, _FIRST_WITHIN_S, pause_s=0.01)
        begin, begin_s = _sent(cable), time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            output = process.communicate(timeout=duration_s)[0]
            raise CommandFailed(argv, process.returncode, output[-500:])
        end, seconds = _sent(cable), time.monotonic() - begin_s
    finally:
        with suppress(ProcessLookupError):  # what it has started outlives it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _Rate((end.offered - begin.offered) / seconds, (end.arrived - begin.arrived) / seconds)
