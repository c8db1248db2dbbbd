"""Rate of the built-in generator with and without counting packets one by one."""

import shutil
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from csit_utils.bench.traffic.generator import trafgen_frames, trafgen_round, worker
from resources.libraries.python.drivers.generators.builtin.wire import TrialReport, TrialSpec

_LOAD_PPS = 20e6
"""More than a CPU can send: the rate is the sender's maximum."""
_ROUND_S = 0.25
_PLAIN = TrialSpec(_LOAD_PPS, _ROUND_S, (64,), 0.0)
_COUNTED = TrialSpec(_LOAD_PPS, _ROUND_S, (64,), 0.0, losses=True, mark=512)
_ROUNDS = 15
_GOAL, _ARRIVED_GOAL = 0.95, 3.0


@dataclass
class _Rates:
    """Packets per second of each round."""

    sent: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)

    def add(self, report: TrialReport) -> None:
        (flow,) = report.flows
        self.sent.append(flow.sent / report.offered_s)
        self.arrived.append(flow.received / report.offered_s)


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure the cost of counting packets one by one: rates of 64 B frames with and without it, and trafgen's.

    One CPU sends as many frames as it can into a veth pair, and another one receives. The three take turns.
    Figures are medians of rounds, ratios those of the ratios in a round.

    Returns:
        `ours` and `peer`: pps sent with and without counting, `ratio` (goal 0.95); `arrived` pps with counting, its
        `arrived_ratio` to those without, and `to_trafgen`, that to trafgen's (goal 3).

    Raises:
        Unsupported: Not root, or fewer than two CPUs.
    """
    trafgen = shutil.which("trafgen")
    plain, counted = _Rates(), _Rates()
    peer: list[float] = []
    with worker("auto") as ask, trafgen_frames() as config:
        for number in range(rounds):
            turns = ((plain, _PLAIN), (counted, _COUNTED))
            for rates, spec in turns if number % 2 else turns[::-1]:
                rates.add(ask(spec))
            if trafgen:
                peer.append(trafgen_round(trafgen, config)[1])
    arrived_ratio = _ratio(counted.arrived, plain.arrived)
    to_trafgen = _ratio(counted.arrived, peer) if peer else None
    text = f"{to_trafgen:.2f} x trafgen's (goal {_ARRIVED_GOAL:g})" if to_trafgen else "trafgen is not installed"
    return {
        "name": "counting_cost",
        "ours": median(counted.sent),
        "peer": median(plain.sent),
        "ratio": _ratio(counted.sent, plain.sent),
        "goal": _GOAL,
        "unit": "pps",
        "arrived": median(counted.arrived),
        "arrived_ratio": arrived_ratio,
        "to_trafgen": to_trafgen,
        "note": f"sent while each packet is counted, over sent without (goal {_GOAL:g}); packets that arrive: "
        f"{arrived_ratio:.2f} x those without, {text}",
    }


def _ratio(ours: list[float], others: list[float]) -> float:
    return median(mine / other for mine, other in zip(ours, others, strict=True))
