"""Common part of all senders: when each packet is due, when a trial ends early, and what is said of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec


@dataclass(frozen=True, slots=True)
class SentTraffic:
    """Packets that were sent in a trial, and when."""

    packets: tuple[int, ...]
    """Per flow, probes not counted."""
    probes: tuple[int, ...]
    """Per flow."""
    offered_s: float
    """From the first packet to the end of the last one's slot."""
    worst_lag_s: float
    """The furthest that sending fell behind its schedule."""
    aborted: bool = False
    """Whether it ended early for loss."""
    stamps_ns: Sequence[NDArray[np.int64]] | None = None
    """When each probe of a flow left, nanoseconds since the epoch, 0 when not known; None: it is in the frames."""


EVERY_S = 0.1
"""Between two looks. A packet that has been on its way for longer is lost."""


class LossWatch:
    """Compares what had been sent at the look before with what has come back by now.

    Nothing is guessed from a rate: a packet counts as lost when it had been sent at the look before and the counter
    of its flow has not gone that far. So what is said to be lost is lost, and a trial that is not ended early
    is measured as without the check.
    """

    def __init__(
        self,
        received: Callable[[], Sequence[int]],
        before: Sequence[int],
        most_lost: int | None,
        stop_asked: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start watching.

        `received`: Counters of the packets that came back, per flow.
        `before`: What they were before the trial.
        `most_lost`: How many may be lost; None: any number.
        `stop_asked`: Whether another worker has ended the trial.
        """
        self._received = received
        self._most_lost = most_lost
        self._stop_asked = stop_asked
        self._before = before
        self._sent: Sequence[int] = [0] * len(before)

    @property
    def needed(self) -> bool:
        """Whether any check is needed."""
        return self._most_lost is not None

    def ends_it(self, sent: Sequence[int]) -> bool:
        """Look; to be called every 0.1 s and not more often.

        `sent`: Packets sent so far per flow, probes included.
        """
        if self._most_lost is None:
            return False
        received = self._received()
        lost = sum(
            max(0, earlier - (now - before))
            for earlier, now, before in zip(self._sent, received, self._before, strict=True)
        )
        self._sent = tuple(sent)
        return lost > self._most_lost or self._stop_asked()


class Sender(Protocol):
    """Sends the load and the probes of a worker's flows."""

    name: str
    """In words, for results."""
    numbers: bool
    """Whether it numbers load frames; else numbered ones are sent one by one, as probes."""

    def prepare(self, spec: TrialSpec) -> None:
        """Make all ready for a trial, so that `send` starts at once.

        Raises:
            Unsupported: this way of sending cannot do such a trial.
            CsitError: a port is gone or refuses the frames.
        """

    def send(self, watch: LossWatch) -> SentTraffic:
        """Send what was prepared.

        Raises:
            CsitError: a port does not send.
        """

    def close(self) -> None:
        """Give everything back."""


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

        `flows`: Number of flows that share it equally.
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

    `spec`: The trial; one without a pace has no packets in its load's schedule.
    """
    load = Schedule.of(spec.load_pps or 0.0, flows, spec.duration_s)
    return load, Schedule.of(spec.probe_pps * flows, flows, spec.duration_s)
