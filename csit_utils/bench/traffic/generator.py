"""Rate, pacing error and inter-frame gaps of the built-in generator, against trafgen where it is installed."""

import array
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.arrivals import ArrivalRing
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowSpec,
    Sending,
    TrialReport,
    TrialSpec,
    WorkerSpec,
    trial_report,
)
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, NotReady, Unsupported

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
"""trafgen sets this itself, but is not permitted to in a namespace, and exits at the first full socket buffer."""
_MOST_FRAMES = 100_000_000
"""Frames after which trafgen ends by itself, should the benchmark be killed: half a minute at its highest rate."""
_TRAFGEN_WITHIN_S = 30.0
"""Deadline for its first frame, and for its end after an interrupt."""
_AHEAD = ("nice", "-n", "-20")
"""The priority of our worker on a CPU of its own."""
_TRAFGEN_SAYS = re.compile(r"(\d{1,12}) sec, (\d+) usec on CPU\d+ \((\d+) packets\)")
_UNPACED = TrialSpec(None, _ROUND_S, (_FRAME_BYTES,), 0.0)
_FLOW = FlowSpec(*PORTS, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")
_REMOVED_WITHIN_S = 10.0
_SIOCETHTOOL = 0x8946
_ETHTOOL_STSO, _ETHTOOL_SGRO = 0x1F, 0x2C


def measure_pps(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the rate of unpaced 64 B frames of one sender on one CPU: ours, our TX ring and trafgen, in turns.

    All bypass the queueing discipline and send the same frames into the same veth pair; a data thread on the other CPU
    receives. Rates are medians of all rounds, by the counters of the sending interface: they include frames that the
    receiver dropped.

    Returns:
        `ours` (XDP live frames where supported), `ring` and `peer` in pps, and the ratio of ours to the peer's;
        `ours_delivered` and `peer_delivered` count received frames only.

    Raises:
        Unsupported: Not root, or fewer than two CPUs.
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
                peer.append(trafgen_round(trafgen, config))
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
    note = f"by {sending}; peer is trafgen (goal {_PPS_GOAL} x); frames handed to the interface; received frames: "
    return {**found, "note": f"{note}{delivered_ratio:.2f} x; our TX ring {found['ring'] / found['peer']:.2f} x"}


def measure_rate_error(trial_s: float = 1.0) -> dict[str, Any]:
    """Measure the worst error of rate and duration of paced trials from 1 to 200 kpps.

    Returns:
        `ours`: relative error of the rate, against the goal of 0.1 %; `duration_error_s`.

    Raises:
        Unsupported: Not root, or fewer than two CPUs.
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
        "note": f"no peer, ratio to the goal; largest error of the duration {max(durations_s) * 1e3:.3f} ms "
        f"(goal {_DURATION_GOAL_S * 1e3:.0f} ms)",
    }


@contextmanager
def worker(sending: Sending) -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """Make a veth pair with a worker that sends through it; yield a function that runs a trial."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Unsupported("needs two CPUs, one each for sender and receiver; 1 available")
    with veth_pair(NAMESPACE, PORTS, receive_cpu=_RECEIVE_CPU), worker_beside(sending) as ask:
        yield ask


@contextmanager
def worker_beside(sending: Sending) -> Iterator[Callable[[TrialSpec], TrialReport]]:
    """Start another worker on the existing veth pair; yield a function that runs a trial."""
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


def _rates(report: TrialReport) -> tuple[float, float]:
    """Offered and delivered pps."""
    (flow,) = report.flows
    return flow.sent / report.offered_s, flow.received / report.offered_s


def _statistics() -> tuple[int, int]:
    """Frames handed to the sending interface, dropped ones included, and frames that passed."""
    done = subprocess.run(
        ("ip", "netns", "exec", NAMESPACE, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith(f"{PORTS[0]}:"))
    numbers = [int(number) for number in line.partition(":")[2].split()]
    passed, dropped = numbers[9], numbers[11]
    return passed + dropped, passed


def trafgen_round(trafgen: str, config: Path) -> tuple[float, float]:
    """Offered and delivered pps."""
    before = _statistics()
    seconds = run_trafgen(trafgen, config, _ROUND_S)
    after = _statistics()
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def run_trafgen(trafgen: str, config: Path, duration_s: float, options: tuple[str, ...] = ()) -> float:
    """Run trafgen on the sender's CPU with our worker's priority; return the duration that it reports, in seconds.

    Args:
        trafgen: The program.
        config: Its frames.
        duration_s: From its first frame on, in seconds.
        options: More of its options.

    Raises:
        NotReady: It sent no frame, or did not exit.
        CommandFailed: It printed no duration.
    """
    before, _ = _statistics()
    argv = (trafgen, "-P", "1", "-n", str(_MOST_FRAMES), "-i", str(config), "-o", PORTS[0], *options)
    process = subprocess.Popen(
        ("ip", "netns", "exec", NAMESPACE, "taskset", "-c", str(_SEND_CPU), *_AHEAD, *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with suppress(OSError):  # as our worker does; the file is missing in kernels without autogroup
        Path(f"/proc/{process.pid}/autogroup").write_text("-20", encoding="ascii")

    def not_sent() -> str:
        return "" if _statistics()[0] > before or process.poll() is not None else "no frame"

    try:
        wait_until("the first frame of trafgen", not_sent, _TRAFGEN_WITHIN_S, pause_s=0.01)
        output = _output_after(process, duration_s)
    finally:
        with suppress(ProcessLookupError):  # what it has started outlives it
            os.killpg(process.pid, signal.SIGKILL)
    match = _TRAFGEN_SAYS.search(output)
    if match is None:
        raise CommandFailed(argv, process.returncode, output[-500:])
    return int(match[1]) + int(match[2]) / 1e6


def _output_after(process: "subprocess.Popen[str]", duration_s: float) -> str:
    """Interrupt trafgen after some seconds, unless it has ended; return what it printed."""
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=duration_s)[0]
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=_TRAFGEN_WITHIN_S)[0]
    except subprocess.TimeoutExpired as error:
        raise NotReady("the end of trafgen", _TRAFGEN_WITHIN_S, "it is running") from error


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


_GAP_RATE_PPS = 100_000
_ROUNDS = 5
_GAP_ROUND_S = 0.5
_GAP_GOAL = 1.1
_NOMINAL_NS = 1_000_000_000 // _GAP_RATE_PPS
_GAP_TRIAL = TrialSpec(_GAP_RATE_PPS, _GAP_ROUND_S, (64,), 0.0)


def measure_gap_p99(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the 99th percentile of inter-frame gaps at 100 kpps, by the kernel's receive time stamps.

    Frames are received on the sender's CPU: a data thread on another CPU would have to be woken up for each frame, and
    its jitter would dominate. Values are medians of rounds of half a second.

    Returns:
        `ours` (XDP live frames where supported), `ring` and `peer` (trafgen) in nanoseconds; `ratio` is ours over
        trafgen's, `to_nominal` ours over 10 us.

    Raises:
        Unsupported: Not root.
    """
    trafgen = shutil.which("trafgen")
    ours, ring, peer = (_Rounds() for _ in range(3))
    sending = ""
    with (
        veth_pair(NAMESPACE, PORTS, napi=True),
        worker_beside("auto") as best,
        worker_beside("ring") as other,
        trafgen_frames() as config,
    ):
        for _ in range(rounds):
            with ours.recorded():
                sending = best(_GAP_TRIAL).sending
            with ring.recorded():
                other(_GAP_TRIAL)
            if trafgen:
                with peer.recorded():
                    run_trafgen(trafgen, config, _GAP_ROUND_S, ("-t", "10us"))
    found: dict[str, Any] = {
        "name": "generator_gap_p99",
        "ours": ours.p99_ns,
        "ring": ring.p99_ns,
        "peer": peer.p99_ns if trafgen else None,
        "goal": _GAP_GOAL * _NOMINAL_NS,
        "to_nominal": ours.p99_ns / _NOMINAL_NS,
        "ratio": ours.p99_ns / peer.p99_ns if trafgen else None,
        "unit": "ns",
    }
    rate = f"; trafgen at {peer.rate_pps / 1000:.0f} kpps" if trafgen else "; trafgen is not installed"
    note = (
        f"by {sending}, {found['to_nominal']:.2f} x nominal (goal {_GAP_GOAL}); our TX ring {ring.p99_ns:.0f} ns{rate}"
    )
    return {**found, "note": note}


class _Rounds:
    """Gaps of the rounds of one sender."""

    def __init__(self) -> None:
        self._p99_ns: list[float] = []
        self._rates: list[float] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record one round."""
        with closing(aside(_open)) as ring:
            yield
            gaps_ns = np.diff(ring.stamps_ns())
        self._p99_ns.append(float(np.percentile(gaps_ns, 99)))
        self._rates.append(len(gaps_ns) / (float(gaps_ns.sum()) / 1e9))

    @property
    def p99_ns(self) -> float:
        return median(self._p99_ns)

    @property
    def rate_pps(self) -> float:
        return median(self._rates)


def _open() -> ArrivalRing:
    kernel.enter_namespace(NAMESPACE)
    return ArrivalRing(PORTS[1])


def run(*argv: str) -> None:
    """Run a command.

    Raises:
        Unsupported: It is not installed.
        CommandFailed: It failed.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unsupported(f"{argv[0]} is not installed") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def set_feature(namespace: str, interface: str, request: int, value: int) -> None:
    """Turn an offload of an interface on or off, as `ethtool -K` does."""

    def work() -> None:
        enter_namespace(namespace)
        wanted = array.array("I", (request, value))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            address, _ = wanted.buffer_info()
            fcntl.ioctl(sock, _SIOCETHTOOL, struct.pack("=16sQ16x", interface.encode(), address))

    aside(work)


def receive_by_napi(namespace: str, interface: str) -> None:
    """Make a veth interface receive by NAPI: that takes GRO on and TSO off."""
    set_feature(namespace, interface, _ETHTOOL_STSO, 0)
    set_feature(namespace, interface, _ETHTOOL_SGRO, 1)


@contextmanager
def veth_pair(
    namespace: str, names: tuple[str, str], *, mtu: int = 9000, receive_cpu: int | None = None, napi: bool = False
) -> Iterator[None]:
    """Make a veth pair in a new namespace, and remove both at the end.

    Args:
        namespace: Its name.
        names: Of the interfaces.
        mtu: In bytes.
        receive_cpu: CPU of the data threads of both ends; None: frames are received on the sender's CPU.
        napi: Receive by NAPI without threads too, as XDP frames require.

    Raises:
        Unsupported: Not root, or `ip` is not installed.
        CommandFailed: The kernel rejected a request.
    """
    if os.geteuid() != 0:
        raise Unsupported("network namespaces need root")
    remove_left(namespace)
    _wait_gone(names)  # the kernel removes the threads of an earlier pair after the command has ended
    run("ip", "netns", "add", namespace)
    try:
        inside = ("ip", "-n", namespace)
        quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "netns", "exec", namespace, "sysctl", "-qw", *quiet)
        left, right = names
        run(*inside, "link", "add", left, "mtu", str(mtu), "type", "veth", "peer", "name", right, "mtu", str(mtu))
        for name in names:
            run(*inside, "link", "set", name, "up")
            if receive_cpu is not None or napi:
                receive_by_napi(namespace, name)
            if receive_cpu is not None:
                switch = f"/sys/class/net/{name}/threaded"
                run("ip", "netns", "exec", namespace, "sh", "-c", f"echo 1 >{switch}")
        if receive_cpu is not None:
            for thread in data_threads.find(names).values():
                data_threads.pin(thread, receive_cpu)
        yield
    finally:
        run("ip", "netns", "del", namespace)


def _wait_gone(names: tuple[str, str]) -> None:
    def left() -> str:
        return ", ".join(data_threads.running(names))

    wait_until("the data threads of an earlier benchmark to end", left, _REMOVED_WITHIN_S)


def remove_left(namespace: str) -> None:
    """Remove the namespace of a benchmark that was killed, with the processes in it. Nothing happens without one."""
    found = subprocess.run(("ip", "netns", "pids", namespace), capture_output=True, text=True, check=False)
    if found.returncode == 0:
        for pid in map(int, found.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run("ip", "netns", "del", namespace)
