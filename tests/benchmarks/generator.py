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
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.arrivals import ArrivalRing
from resources.libraries.python.drivers.generators.builtin.driver import trial_report
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialReport, TrialSpec, WorkerSpec
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, Unsupported
from tests.benchmarks.sides import figures, in_turns
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
_HEADS = ("sender", "offered pps", "received pps", "offered / trafgen", "received / trafgen")
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
    def up(self, receive_cpu: int | None = None) -> Iterator[None]:
        """Make the pair, or set the ports up."""
        if self.namespace:
            with veth_pair(self.namespace, self.ports, receive_cpu=receive_cpu, napi=True):
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


_Ask = Callable[[TrialSpec], TrialReport]
"""Has a worker run a trial."""


def measure_pps(rounds: int = _ROUNDS, cable: Cable = VETH) -> dict[str, Any]:
    """Measure the rate of unpaced frames: ours, with each packet counted (`losses`), by AF_XDP, and those of peers.

    A data thread on the other CPU receives. Offered frames include those that the receiver dropped.

    Returns:
        `ours` and `peer`: offered pps of ours and of trafgen; `counted_ratio`: with counting over without; `senders`:
        of each sender, ours the first, offered and received pps, and both over trafgen's.
    """

    def rate(ask: _Ask, spec: TrialSpec) -> _Rate:
        report = ask(spec)
        (flow,) = report.flows
        return _Rate(flow.sent / report.offered_s, flow.received / report.offered_s)

    def xdp_trafficgen() -> _Rate | None:
        with suppress(CommandFailed), cable.takes_xdp():  # the kernel has no BTF
            return _run_peer(cable, ("xdp-trafficgen", "udp", cable.ports[0], "-m", _TO_MAC, "-n", str(_MAX_FRAMES)))
        return None

    with _workers(cable, _RECEIVE_CPU) as (sending, ask, ask_af_xdp), trafgen_frames(cable) as config:
        uncounted, counted = f"{sending}, paced", f"{sending}, counted"
        sides: dict[str, Callable[[], _Rate | None]] = {
            sending: lambda: rate(ask, _UNPACED),
            uncounted: lambda: rate(ask, _UNCOUNTED),
            counted: lambda: rate(ask, _COUNTED),
            "AF_XDP": lambda: rate(ask_af_xdp, _UNPACED),
            "trafgen": lambda: _run_peer(cable, _trafgen(cable, config)),
            "xdp-trafficgen": xdp_trafficgen,
        }
        found = in_turns(rounds, sides)

    def over(name: str, other: str) -> list[float | None]:
        """Medians of ratios, of offered and of received packets."""
        if other not in found:
            return [None, None]
        return np.median([np.divide(*pair) for pair in zip(found[name], found[other], strict=False)], axis=0).tolist()

    senders = {name: (*np.median(rates, axis=0).tolist(), *over(name, "trafgen")) for name, rates in found.items()}
    ours, peer = senders[sending], senders.get("trafgen", [None])
    counted_ratio, _ = over(counted, uncounted)
    note = f"by {sending}; with each packet counted {counted_ratio:.2f} x of the rate without (goal {_COUNTED_GOAL:g})"
    note += f"; peer is trafgen (goal {_PPS_GOAL:g} x)" if "trafgen" in found else "; trafgen is not installed"
    table = (_HEADS, [(name, *row) for name, row in senders.items()])
    more = {"goal": _PPS_GOAL, "counted_ratio": counted_ratio, "senders": senders, "table": table}
    return figures(ours[0], peer[0], "pps", note, ratio=ours[2], **more)


def measure_rate_error(
    trial_s: float = 1.0, rates_pps: Sequence[float] = _RATES_PPS, cable: Cable = VETH
) -> dict[str, Any]:
    """Measure the worst error of rate and duration of paced trials, of ours and by AF_XDP (`senders`)."""
    durations_s = list[float]()

    def error(ask: _Ask, rate_pps: float) -> float:
        report = ask(TrialSpec(rate_pps, trial_s, (_FRAME_BYTES,), 0.0))
        durations_s.append(abs(report.offered_s - report.expected_s))
        return abs(sum(flow.sent for flow in report.flows) / report.offered_s / rate_pps - 1)

    with _workers(cable, _RECEIVE_CPU) as (sending, *asks):
        ours, sockets = (max(error(ask, rate_pps) for rate_pps in rates_pps) for ask in asks)
    note = f"peer is the goal; by AF_XDP {sockets:.2g}; largest error of the duration {max(durations_s) * 1e3:.3f} ms"
    more = {"senders": {"AF_XDP": sockets, sending: ours}, "duration_error_s": max(durations_s)}
    return figures(ours, _ERROR_GOAL, "ratio", f"{note} (goal 1 ms)", **more)


def measure_gap_p99(rounds: int = _ROUNDS, rate_pps: int = _GAP_PPS, cable: Cable = VETH) -> dict[str, Any]:
    """Measure the 99th percentile of inter-frame gaps in ns, by the kernel's receive time stamps, of `senders`.

    Frames are received on the sender's CPU: a data thread on another CPU would have to be woken up for each frame, and
    its jitter would dominate.
    """
    trial = TrialSpec(rate_pps, _GAP_TRIAL_S, (_FRAME_BYTES,), 0.0)

    def gaps_ns(send: Callable[[], object]) -> NDArray[np.int64] | None:
        with closing(aside(lambda: _open(cable))) as ring:
            return None if send() is None else np.diff(ring.stamps_ns())

    with _workers(cable) as (sending, ask, ask_af_xdp), trafgen_frames(cable) as config:
        argv = _trafgen(cable, config, "-t", f"{1e6 / rate_pps:g}us")
        sides: dict[str, Callable[[], object]] = {
            sending: lambda: ask(trial),
            "AF_XDP": lambda: ask_af_xdp(trial),
            "trafgen": lambda: _run_peer(cable, argv, _GAP_TRIAL_S),
        }
        found = in_turns(rounds, {name: partial(gaps_ns, send) for name, send in sides.items()})
    p99_ns = {name: median(float(np.percentile(row, 99)) for row in rows) for name, rows in found.items()}
    ours, sockets = (p99_ns[name] * rate_pps / 1e9 for name in (sending, "AF_XDP"))
    rate = f"at {1e6 / found['trafgen'][-1].mean():.0f} kpps" if "trafgen" in found else "is not installed"
    note = f"by {sending}, {ours:.2f} x the nominal gap (goal {_GAP_GOAL}), by AF_XDP {sockets:.2f} x; trafgen {rate}"
    return figures(p99_ns[sending], p99_ns.get("trafgen"), "ns", note, senders=p99_ns)


def _open(cable: Cable) -> ArrivalRing:
    if cable.namespace:
        kernel.enter_namespace(cable.namespace)
    return ArrivalRing(cable.ports[1])


@contextmanager
def _workers(cable: Cable, receive_cpu: int | None = None) -> Iterator[tuple[str, _Ask, _Ask]]:
    """Make the pair with a worker that sends its own way, and one by AF_XDP; yield that way, and what asks each."""
    if receive_cpu is not None and len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("needs two CPUs, one each for sender and receiver; 1 available")
    spec = WorkerSpec(cable.namespace, (_SEND_CPU,), alone=True, flows=(cable.flow,))
    by_af_xdp = replace(spec, sending="af_xdp")
    with cable.up(receive_cpu), _worker(spec) as (sending, ask), _worker(by_af_xdp) as (_, ask_af_xdp):
        yield sending, ask, ask_af_xdp


@contextmanager
def _worker(spec: WorkerSpec) -> Iterator[tuple[str, _Ask]]:
    process = WorkerProcess()
    try:
        process.send(asdict(spec))
        way = process.answer("worker", 10.0)["sending"]

        def ask(trial: TrialSpec) -> TrialReport:
            process.send({"prepare": asdict(trial)})
            process.answer("worker's frames", 10.0)
            process.send({"do": "go"})
            return trial_report(process.answer("worker's report", trial.duration_s + 10.0))

        yield way, ask
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
    rows = {row[0]: row for row in map(str.split, done.stdout.splitlines())}
    sender, receiver = (rows[f"{port}:"] for port in cable.ports)
    return _Rate(int(sender[10]) + int(sender[12]), int(receiver[2]))


def _trafgen(cable: Cable, config: Path, *options: str) -> tuple[str, ...]:
    return ("trafgen", "-P", "1", "-n", str(_MAX_FRAMES), "-i", str(config), "-o", cable.ports[0], *options)


def _run_peer(cable: Cable, argv: Sequence[str], duration_s: float = _ROUND_S) -> _Rate | None:
    """Run a program on the sender's CPU with our worker's priority, and count its frames from the first one on.

    Returns None where it is not installed.

    Raises:
        NotReady: It sent no frame.
        CommandFailed: It ended by itself.
    """
    if not shutil.which(argv[0]):
        return None
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
