"""What ITGDec makes of the logs of a run. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PACKET = re.compile(
    r"^Flow>\s*(\d+) .*? txTime>(\d+):(\d+):([\d.]+)\s+rxTime>(\d+):(\d+):([\d.]+)\s+Size>\s*\d+$", re.MULTILINE
)
_DAY_S = 86400.0
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets of a log. Times are in seconds of the day, local time, of one clock."""

    flow: NDArray[np.int64]
    """D-ITG's number of the flow, from 1."""
    sent_s: NDArray[np.float64]
    arrived_s: NDArray[np.float64]

    def __len__(self) -> int:
        """Number of packets."""
        return len(self.sent_s)

    @property
    def delay_s(self) -> NDArray[np.float64]:
        """From sending to arrival; over midnight too."""
        return (self.arrived_s - self.sent_s) % _DAY_S


def packets(text: str) -> Packets:
    """Read the text form of a log.

    Raises:
        ValueError: Not every line of it is a packet.
    """
    rows = np.array(_PACKET.findall(text), dtype=np.float64).reshape(-1, 7)
    if len(rows) != (lines := text.count("\n")):
        raise ValueError(f"{len(rows)} packets in {lines} lines")
    clock = np.array([3600.0, 60.0, 1.0])
    return Packets(rows[:, 0].astype(np.int64), rows[:, 1:4] @ clock, rows[:, 4:7] @ clock)


def nothing() -> Packets:
    """A log without packets."""
    return packets("")


def of_flows(log: Packets, flows: Sequence[int]) -> Packets:
    """Packets of some flows only."""
    chosen = np.isin(log.flow, flows)
    return Packets(log.flow[chosen], log.sent_s[chosen], log.arrived_s[chosen])


def one_way_ns(returned: Packets) -> NDArray[np.int64]:
    """Half of each round trip in nanoseconds, sorted.

    The paper (Troia et al., III-A) does so, since the clocks of two machines do not agree.
    """
    return np.sort((returned.delay_s * (_HALF * 1e9)).astype(np.int64))


def mean_one_way_ns(returned: Packets, edges_s: Sequence[float]) -> tuple[float | None, ...]:
    """Mean one-way delay of the packets that were sent between two moments each, None where there were none.

    Args:
        returned: Packets that came back to the sender.
        edges_s: Moments, rising but for midnight; one more than there are means.
    """
    first = edges_s[0]
    edges = np.array([(edge - first) % _DAY_S for edge in edges_s])
    index = np.searchsorted(edges, (returned.sent_s - first) % _DAY_S, side="right") - 1
    inside = index < len(edges) - 1
    counts = np.bincount(index[inside], minlength=len(edges) - 1)
    sums = np.bincount(index[inside], weights=returned.delay_s[inside], minlength=len(edges) - 1)
    return tuple(
        float(total * _HALF * 1e9 / count) if count else None for total, count in zip(sums, counts, strict=True)
    )
