"""When each packet is due: an even schedule over all flows, and how a sender that fell behind comes back. Pure."""

import math
from dataclasses import dataclass

_SLACK_S = 250e-6
_SLACK_PACKETS = 32
"""A lag up to this time, or this many packets per flow, is caught up at once: it fits a veth queue (256 packets)."""
_CATCH_UP = 1.1
_CATCH_UP_LIMIT = 2.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Packets at equal distances; packet `i` belongs to flow `i mod flows`."""

    rate_pps: float
    """Aggregate of all flows."""
    flows: int
    per_flow: int
    """Packets of each flow, fixed before the first is sent."""

    @classmethod
    def of(cls, rate_pps: float, flows: int, duration_s: float) -> "Schedule":
        """The schedule of a load.

        Args:
            rate_pps: aggregate rate.
            flows: number of flows that share it equally.
            duration_s: how long.
        """
        return cls(rate_pps, flows, round(rate_pps / flows * duration_s))

    @property
    def total(self) -> int:
        """Packets of all flows."""
        return self.per_flow * self.flows

    @property
    def length_s(self) -> float:
        """From the first packet's slot to the end of the last one's."""
        return self.total / self.rate_pps if self.total else 0.0

    def due(self, elapsed_s: float) -> int:
        """Packets whose time has come, in [0, total]."""
        return min(self.total, math.floor(elapsed_s * self.rate_pps) + 1) if elapsed_s >= 0 else 0

    def time_of(self, index: int) -> float:
        """When packet `index` is due, in seconds after the start."""
        return index / self.rate_pps

    def share(self, flow: int, packets: int) -> int:
        """How many of the first `packets` packets belong to a flow."""
        return (packets - flow + self.flows - 1) // self.flows


class Pacer:
    """Says how many packets may be out by now.

    On time that is what the schedule says. After a stall longer than a queue could hide, the missing packets are not
    thrown at the system under test in one burst, which it would have to drop: the sender goes on at 1.1 to 2 times the
    rate, as needed to be on time at the end, until it meets the schedule again.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._slack = max(schedule.flows * _SLACK_PACKETS, math.ceil(schedule.rate_pps * _SLACK_S))
        self._speed_pps = 0.0
        self._anchor_s = 0.0
        self._anchor = 0
        self.worst_lag_s = 0.0
        """The longest that the sender was behind."""

    def allowed(self, elapsed_s: float, sent: int) -> int:
        """Packets that may have been sent by now.

        Args:
            elapsed_s: time since the start of the schedule.
            sent: packets sent so far.
        """
        due = self._schedule.due(elapsed_s)
        if sent < due:
            self.worst_lag_s = max(self.worst_lag_s, elapsed_s - self._schedule.time_of(sent))
        if due - sent <= self._slack and not self._speed_pps:
            return due
        if self._speed_pps:
            caught = self._anchor + int((elapsed_s - self._anchor_s) * self._speed_pps)
            if caught >= due and due - sent <= self._slack:
                self._speed_pps = 0.0
                return due
            if caught - sent <= self._slack:
                return min(caught, due)
        return self._fall_behind(elapsed_s, sent, due)

    def _fall_behind(self, elapsed_s: float, sent: int, due: int) -> int:
        schedule = self._schedule
        left_s = schedule.length_s - elapsed_s
        needed_pps = (schedule.total - sent) / left_s if left_s > 0 else math.inf
        slowest, fastest = _CATCH_UP * schedule.rate_pps, _CATCH_UP_LIMIT * schedule.rate_pps
        self._speed_pps = min(max(slowest, needed_pps), fastest)
        self._anchor_s, self._anchor = elapsed_s, sent + self._slack
        return min(self._anchor, due)
