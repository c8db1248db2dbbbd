"""CPU time of the thread that receives a packet from a veth pair, by what the kernel does in it."""

import os
import re
import select
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from csit_utils.bench.traffic.generator import PORTS, worker
from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.probes.stacks.perf import why_unsampled
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported

_LOAD_PPS = 20e6
"""More than a CPU can send: the receiving thread is never without packets."""
_ROUND_S = 1.0
_PLAIN = TrialSpec(_LOAD_PPS, _ROUND_S, (64,), 0.0)
_COUNTED = TrialSpec(_LOAD_PPS, _ROUND_S, (64,), 0.0, losses=True, mark=512)
_ROUNDS = 5
_HZ = 4999
_LEAST_SAMPLES = 200
_END_S = 30.0
_PARTS = {
    "packet memory": r"page|kmem|slab|alloc|free|build_skb|head_frag|memcg|release|memset|memcpy",
    "XDP program": r"bpf|xdp_do|dev_map|htab|array_map",
    "protocols": r"receive_skb|ip_|ipv6|eth_type|packet_rcv|tpacket|nf_|sock|skb",
    "veth and NAPI": r"veth|napi|ptr_ring|xdp|gro|net_rx|poll|dev_",
}
"""Functions of each part, first match first."""
REST = "rest"


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the CPU time of the thread that receives 64 B frames of a veth pair, per packet, and where it goes.

    One CPU sends as many frames as it can, another one has the receiving thread. The kernel makes a socket buffer of
    each frame and drops it behind the protocols; or an XDP program at the port counts the frame and drops it before
    that. The two take turns. The time is that of the thread, so other work of the machine does not count; its parts are
    shares of perf's samples by function.

    Returns:
        `ours` and `peer`: ns per packet with the XDP program and with a socket buffer, their `ratio`; `parts` and
        `peer_parts`: ns by part of the kernel; `functions`: the most expensive ones with a socket buffer, in ns.

    Raises:
        Unsupported: Not root, fewer than two CPUs, or perf cannot sample.
        CsitError: perf took too few samples.
    """
    if reason := why_unsampled():
        raise Unsupported(str(reason))
    plain, counted = _Costs(), _Costs()
    with worker("auto") as ask, tempfile.TemporaryDirectory() as folder:
        thread = data_threads.find(PORTS)[PORTS[1]]
        for _ in range(rounds):
            for costs, spec in ((plain, _PLAIN), (counted, _COUNTED)):
                file = Path(folder) / "perf.data"
                with _sampled(file):
                    before_ns = _used_ns(thread)
                    (flow,) = ask(spec).flows
                    used_ns = _used_ns(thread) - before_ns
                costs.add(used_ns / max(1, flow.received), _samples(file, thread))
    ours_ns, peer_ns = counted.packet_ns, plain.packet_ns
    return {
        "name": "receive_cost",
        "ours": ours_ns,
        "peer": peer_ns,
        "ratio": ours_ns / peer_ns,
        "unit": "ns",
        "parts": counted.parts(),
        "peer_parts": plain.parts(),
        "functions": dict(plain.functions(12)),
        "note": f"CPU time to receive a packet that an XDP program counts and drops ({_words(counted.parts())}), over "
        f"that with a socket buffer ({_words(plain.parts())})",
    }


class _Costs:
    """CPU time per packet and samples of all rounds."""

    def __init__(self) -> None:
        self._packet_ns: list[float] = []
        self._samples: Counter[str] = Counter()

    def add(self, packet_ns: float, samples: Counter[str]) -> None:
        self._packet_ns.append(packet_ns)
        self._samples += samples

    @property
    def packet_ns(self) -> float:
        """Median of all rounds."""
        return median(self._packet_ns)

    def functions(self, most: int | None = None) -> list[tuple[str, float]]:
        """CPU time per packet by function, most first."""
        each_ns = self.packet_ns / self._samples.total()
        return [(name, round(number * each_ns, 1)) for name, number in self._samples.most_common(most)]

    def parts(self) -> dict[str, float]:
        """CPU time per packet by part of the kernel, most first."""
        found: Counter[str] = Counter()
        for name, number in self._samples.items():
            found[part_of(name)] += number
        each_ns = self.packet_ns / self._samples.total()
        return {name: round(number * each_ns, 1) for name, number in found.most_common()}


def part_of(function: str) -> str:
    """Return the part of the kernel that a function belongs to."""
    return next((part for part, names in _PARTS.items() if re.search(names, function)), REST)


def _words(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.0f}" for name, value in parts.items())


def _used_ns(thread: int) -> int:
    """CPU time of a kernel thread."""
    return int(Path(f"/proc/{thread}/schedstat").read_text(encoding="ascii").split()[0])


@contextmanager
def _sampled(file: Path) -> Iterator[None]:
    """Sample all CPUs meanwhile. perf says when it has begun: it reads all processes of the machine before.

    Raises:
        NotReady: It does not begin in time.
        CsitError: It ends before.
    """
    file.unlink(missing_ok=True)
    asked, answers = os.pipe(), os.pipe()
    argv = ("perf", "record", "-q", "-e", "cpu-clock", "-F", str(_HZ), "-a", "-D", "-1", "-o", str(file))
    control = ("--control", f"fd:{asked[0]},{answers[1]}")
    with (
        os.fdopen(asked[1], "w", encoding="ascii") as orders,
        os.fdopen(answers[0], "rb", buffering=0) as answer,
        subprocess.Popen(
            (*argv, *control), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(asked[0], answers[1])
        ) as perf,
    ):
        os.close(asked[0])
        os.close(answers[1])
        try:
            print("enable", file=orders, flush=True)
            if not select.select([answer], [], [], _END_S)[0]:
                raise NotReady("perf", _END_S, "no answer")
            if not answer.read(4):
                raise CsitError("perf ended before it took samples; perf 5.10 or newer is needed")
            yield
        finally:
            perf.terminate()
            try:
                perf.wait(_END_S)
            except subprocess.TimeoutExpired:
                perf.kill()


def _samples(file: Path, thread: int) -> Counter[str]:
    """Samples of a thread by function.

    Raises:
        CommandFailed: perf cannot read its file.
        NotReady: It takes too long.
        CsitError: There are too few.
    """
    argv = ("perf", "script", "-i", str(file), "-F", "tid,ip,sym")
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_END_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotReady("perf script", _END_S, f"{file.stat().st_size / 1e6:.0f} MB of samples") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr[-500:])
    found: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        tid, _, *symbol = line.split(maxsplit=2)
        if tid == str(thread):
            found[symbol[0] if symbol else "[unknown]"] += 1
    if found.total() < _LEAST_SAMPLES:
        raise CsitError(f"perf took {found.total()} samples of the receiving thread, {_LEAST_SAMPLES} needed")
    return found
