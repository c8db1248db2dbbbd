"""How evenly the built-in generator sends, seen by the kernel that receives; beside it trafgen."""

import mmap
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from csit_utils.bench import generator
from csit_utils.bench.veth import veth_pair
from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside

_RATE_PPS = 100_000
_ROUNDS = 5
_ROUND_S = 0.5
_GOAL = 1.1
_NOMINAL_NS = 1_000_000_000 // _RATE_PPS
_TRIAL = TrialSpec(_RATE_PPS, _ROUND_S, (64,), 0.0)
_PAGE, _SLOT = 4096, 128
_SLOTS = 1 << 17
_STAMP = np.dtype([("status", "=u4"), ("lengths", "=u4", (2,)), ("offsets", "=u2", (2,)), ("s", "=u4"), ("ns", "=u4")])


def measure_gap_p99(rounds: int = _ROUNDS) -> dict[str, Any]:
    """99th percentile of the time between two frames at 100 kpps, by the time stamps of the kernel that receives them.

    Each frame is received at once on the sender's CPU: a data thread on another one would have to be woken up for each,
    and its jitter would be what is measured. Medians of rounds of half a second.

    Returns:
        `ours` (XDP live frames where they work here), `ring` and `peer` (trafgen) in nanoseconds; `ratio` is ours to
        trafgen's, `to_nominal` ours to 10 us.

    Raises:
        Unsupported: no root, or fewer than two CPUs.
    """
    trafgen = shutil.which("trafgen")
    ours, ring, peer = (_Rounds() for _ in range(3))
    sending = ""
    with (
        veth_pair(generator.NAMESPACE, generator.PORTS, napi=True),
        generator.worker_beside("auto") as best,
        generator.worker_beside("ring") as other,
        generator.trafgen_frames() as config,
    ):
        for _ in range(rounds):
            with ours.recorded():
                sending = best(_TRIAL).sending
            with ring.recorded():
                other(_TRIAL)
            if trafgen:
                with peer.recorded():
                    generator.run_trafgen(trafgen, config, _ROUND_S, ("-t", "10us"))
    found: dict[str, Any] = {
        "name": "generator_gap_p99",
        "ours": ours.p99_ns,
        "ring": ring.p99_ns,
        "peer": peer.p99_ns if trafgen else None,
        "goal": _GOAL * _NOMINAL_NS,
        "to_nominal": ours.p99_ns / _NOMINAL_NS,
        "ratio": ours.p99_ns / peer.p99_ns if trafgen else None,
        "unit": "ns",
    }
    rate = f"; trafgen, which sent {peer.rate_pps / 1000:.0f} kpps" if trafgen else "; trafgen is not installed"
    note = f"by {sending}, {found['to_nominal']:.2f} x nominal (goal {_GOAL}); our TX ring {ring.p99_ns:.0f}{rate}"
    return {**found, "note": note}


class _Rounds:
    """Gaps of some rounds."""

    def __init__(self) -> None:
        self._p99_ns: list[float] = []
        self._rates: list[float] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """One round."""
        with _arrivals() as stamps:
            yield
            gaps_ns = np.diff(np.sort(stamps()))
        self._p99_ns.append(float(np.percentile(gaps_ns, 99)))
        self._rates.append(len(gaps_ns) / (float(gaps_ns.sum()) / 1e9))

    @property
    def p99_ns(self) -> float:
        return median(self._p99_ns)

    @property
    def rate_pps(self) -> float:
        return median(self._rates)


@contextmanager
def _arrivals() -> Iterator[Callable[[], NDArray[np.int64]]]:
    """When each frame came, as a function: nanoseconds since the epoch."""
    sock = aside(_open)
    try:
        with mmap.mmap(sock.fileno(), _SLOTS * _SLOT) as memory:

            def stamps() -> NDArray[np.int64]:
                area = np.frombuffer(bytes(memory), dtype=np.uint8).reshape(_SLOTS, _SLOT)
                headers = area[:, : _STAMP.itemsize].copy().view(_STAMP)[:, 0]
                used = headers[headers["status"] & 1 > 0]
                times_ns: NDArray[np.int64] = used["s"].astype(np.int64) * 1_000_000_000 + used["ns"]
                return times_ns

            yield stamps
    finally:
        sock.close()


def _open() -> socket.socket:
    kernel.enter_namespace(generator.NAMESPACE)
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    kernel.make_ring(sock, kernel.PACKET_RX_RING, _PAGE, _SLOT, _SLOTS)
    sock.bind((generator.PORTS[1], kernel.ETH_P_IP))
    return sock
