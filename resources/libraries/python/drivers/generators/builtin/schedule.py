"""When each packet is due: an even schedule over all flows. Pure."""

import math
from dataclasses import dataclass

from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec

_SLACK_S = 250e-6
_SLACK_PACKETS = 32
GRACE_S = 0.0008
"""Sending goes on this long after the planned end if something is still due."""


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

    @property
    def slack(self) -> int:
        """Packets that a sender may be late and send at once: they fit a veth queue, which holds 256."""
        return max(self.flows * _SLACK_PACKETS, math.ceil(self.rate_pps * _SLACK_S))

    def due(self, elapsed_s: float) -> int:
        """Packets whose time has come, in [0, total]."""
        return min(self.total, math.floor(elapsed_s * self.rate_pps) + 1) if elapsed_s >= 0 else 0

    def time_of(self, index: int) -> float:
        """When packet `index` is due, in seconds after the start."""
        return index / self.rate_pps

    def share(self, flow: int, packets: int) -> int:
        """How many of the first `packets` packets belong to a flow."""
        return (packets - flow + self.flows - 1) // self.flows


def schedules(spec: TrialSpec, flows: int) -> tuple[Schedule, Schedule]:
    """Those of a trial's load and of its probes.

    Args:
        spec: the trial; one without a pace has no packets in its load's schedule.
        flows: how many share the load.
    """
    load = Schedule.of(spec.load_pps or 0.0, flows, spec.duration_s)
    return load, Schedule.of(spec.probe_pps * flows, flows, spec.duration_s)
