"""Rate of the built-in generator with and without counting packets one by one, on a cable and through a bridge."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from csit_utils.bench.generator import (
    NAMESPACE,
    PORTS,
    RECEIVE_CPU,
    receive_by_napi,
    run,
    trafgen_frames,
    trafgen_round,
    veth_pair,
    worker_beside,
)
from resources.libraries.python.drivers.generators.builtin.wire import TrialReport, TrialSpec
from resources.libraries.python.drivers.host.cpu import data_threads

_LOAD_PPS = 20e6
"""More than a CPU can send: the rate is the sender's maximum."""
_PLAIN = TrialSpec(_LOAD_PPS, 0.5, (64,), 0.0, udp=True)
_COUNTED = TrialSpec(_LOAD_PPS, 0.5, (64,), 0.0, losses=True, mark=512)
_ROUNDS = 7
_GOAL, _ARRIVED_GOAL = 0.95, 3.0
_INNER = ("bencha", "benchb")


@dataclass
class _Rates:
    """Packets per second of rounds."""

    offered: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)

    def add(self, offered_pps: float, arrived_pps: float) -> None:
        self.offered.append(offered_pps)
        self.arrived.append(arrived_pps)

    def add_trial(self, report: TrialReport) -> None:
        (flow,) = report.flows
        self.add(flow.sent / report.offered_s, flow.received / report.offered_s)


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure what counting packets one by one costs: rates of 64 B frames with and without it, in turns.

    One CPU sends as many UDP datagrams as it can. Another one receives them: on one veth pair, and behind a Linux
    bridge whose threads are on the receiving CPU too. Rates are medians of rounds of half a second.

    Returns:
        `ours` and `peer`: pps sent with and without counting on the pair, `ratio` (goal 0.95); `arrived_ratio` of
        received packets, `bridged_ratio` of those that a bridge forwards; `to_trafgen`, received packets over those of
        trafgen.

    Raises:
        Unsupported: Not root, or fewer than two CPUs.
    """
    trafgen = shutil.which("trafgen")
    peer = _Rates()
    with veth_pair(NAMESPACE, PORTS, receive_cpu=RECEIVE_CPU), worker_beside("auto") as ask, trafgen_frames() as config:

        def other() -> None:
            if trafgen:
                peer.add(*trafgen_round(trafgen, config))

        plain, counted = _in_turns(ask, rounds, other)
    with _bridge(), worker_beside("auto") as ask:
        bridged_plain, bridged = _in_turns(ask, rounds)
    ours_pps, without_pps = median(counted.offered), median(plain.offered)
    arrived_ratio = median(counted.arrived) / median(plain.arrived)
    bridged_ratio = median(bridged.arrived) / median(bridged_plain.arrived)
    to_trafgen = median(counted.arrived) / median(peer.arrived) if trafgen else None
    text = f"{to_trafgen:.2f} x trafgen's (goal {_ARRIVED_GOAL:g})" if to_trafgen else "trafgen is not installed"
    return {
        "name": "counting_cost",
        "ours": ours_pps,
        "peer": without_pps,
        "ratio": ours_pps / without_pps,
        "goal": _GOAL,
        "unit": "pps",
        "arrived": median(counted.arrived),
        "arrived_ratio": arrived_ratio,
        "bridged": median(bridged.arrived),
        "bridged_ratio": bridged_ratio,
        "to_trafgen": to_trafgen,
        "note": f"sent with over without counting each packet (goal {_GOAL:g}); arrived on one veth pair "
        f"{median(counted.arrived) / 1e6:.2f} Mpps, {arrived_ratio:.2f} x those without, {text}; forwarded by a bridge "
        f"{bridged_ratio:.2f} x",
    }


def _in_turns(
    ask: Callable[[TrialSpec], TrialReport], rounds: int, other: Callable[[], object] = lambda: None
) -> tuple[_Rates, _Rates]:
    """Rates without and with counting."""
    plain, counted = _Rates(), _Rates()
    for number in range(rounds):
        pair = [(plain, _PLAIN), (counted, _COUNTED)]
        for rates, spec in pair if number % 2 else pair[::-1]:
            rates.add_trial(ask(spec))
        other()
    return plain, counted


@contextmanager
def _bridge() -> Iterator[None]:
    """Two veth pairs joined by a Linux bridge, with all receiving threads on one CPU."""
    left, right = PORTS
    near, far = _INNER
    inside = ("ip", "-n", NAMESPACE, "link")
    with veth_pair(NAMESPACE, (left, near), receive_cpu=RECEIVE_CPU):
        run(*inside, "add", far, "type", "veth", "peer", "name", right)
        run(*inside, "add", "bench0", "type", "bridge", "mcast_snooping", "0")
        for name in (near, far):
            run(*inside, "set", name, "master", "bench0")
        for name in ("bench0", far, right):
            run(*inside, "set", name, "up")
        for name in (far, right):
            receive_by_napi(NAMESPACE, name)
            run("ip", "netns", "exec", NAMESPACE, "sh", "-c", f"echo 1 >/sys/class/net/{name}/threaded")
        for thread in data_threads.find((far, right)).values():
            data_threads.pin(thread, RECEIVE_CPU)
        yield
