"""Systems under test that no constant of the search was fitted to: four classes with a memory, two of uncommon losses.

Each class has a system whose figures were seen while constants were chosen, and a blind one, which was written
afterwards, with other parameters or another mechanism.

Each is made anew for every search. In a trial it is one of the simulator's models, or one of its own, which depends on
what happened before. Rates are aggregates in packets per second; NDR is for trials of 1 s.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from random import Random
from typing import ClassVar

from resources.libraries.python.drivers.sim.models import Model, Sharp, Stall, TrialPart, forward


@dataclass(slots=True)
class SearchedSystem(ABC):
    capacity_pps: float

    def trial(
        self, load_pps: float, duration_s: float, rng: Random, abort_loss_ratio: float | None = None
    ) -> TrialPart:
        """Run one trial; see `forward`."""
        part = forward(self._model(load_pps, duration_s, rng), load_pps, duration_s, rng, abort_loss_ratio)
        self._remember(load_pps, part)
        return part

    def truth_pps(self, loss_ratio: float) -> float:
        """Return the load up to which most trials lose no more than `loss_ratio`."""
        return self.capacity_pps / (1 - loss_ratio)

    @abstractmethod
    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:
        """What it is in the next trial."""

    def _remember(self, load_pps: float, part: TrialPart) -> None:  # noqa: B027 - most systems remember nothing
        """Change the state by what a trial did."""


class Memoryless(SearchedSystem):
    """A model of the simulator."""

    def __init__(self, model: Model) -> None:
        self._same = model

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        return self._same

    def truth_pps(self, loss_ratio: float) -> float:
        """See `SearchedSystem`."""
        return self._same.truth_pps(loss_ratio)


class HeldOut(StrEnum):
    CORRELATED = "correlated"
    STICKY = "sticky"
    EXHAUSTED = "exhausted"
    STAIRS = "stairs"
    DRIFT = "drift"
    RARE_LOSS = "rare_loss"
    SLOW_WANDER = "slow_wander"
    LONG_BAND = "long_band"
    BACKLOG = "backlog"
    TWO_STEPS = "two_steps"
    WARM_UP = "warm_up"
    PERIODIC_LOSS = "periodic_loss"


BLIND = frozenset(list(HeldOut)[6:])
"""Systems that were measured once, after the last change of the search."""


def held_out(name: HeldOut, capacity_pps: float) -> SearchedSystem:
    return _SYSTEMS[name](capacity_pps)


@dataclass(slots=True)
class _Correlated(SearchedSystem):
    """Capacities of successive trials are correlated: an autoregressive process of the first order."""

    coefficient: ClassVar[float] = 0.8
    deviation: ClassVar[float] = 0.02
    _offset: float | None = None
    """Deviation of the last trial, relative."""

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        fresh = rng.gauss(0.0, self.deviation)
        if self._offset is None:
            self._offset = fresh
        else:
            self._offset = self.coefficient * self._offset + (1 - self.coefficient**2) ** 0.5 * fresh
        return Sharp(self.capacity_pps * (1 + self._offset))


class _SlowWander(_Correlated):
    """Capacity wanders by less, and stays for longer."""

    coefficient: ClassVar[float] = 0.95
    deviation: ClassVar[float] = 0.015


@dataclass(slots=True)
class _Sticky(SearchedSystem):
    """Runs in a high or a low band of capacity, and stays there for several trials."""

    low_band: ClassVar[float] = 0.97
    to_low: ClassVar[float] = 0.05
    to_high: ClassVar[float] = 0.2
    """Probability of a change of band from trial to trial; a fifth of the trials is in the low one."""
    _low: bool = False

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        if rng.random() < (self.to_high if self._low else self.to_low):
            self._low = not self._low
        return Sharp(self.capacity_pps * (self.low_band if self._low else 1.0))


class _LongBand(_Sticky):
    """Rarely in a low band that is nearer, for twice as long; a sixth of the trials."""

    low_band: ClassVar[float] = 0.985
    to_low: ClassVar[float] = 0.02
    to_high: ClassVar[float] = 0.1


@dataclass(slots=True)
class _Exhausted(SearchedSystem):
    """After overload a trial has less capacity: by a tenth of the loss ratio before, and at most by 3 %."""

    _less: float = 0.0

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        return Sharp(self.capacity_pps * (1 - self._less))

    def _remember(self, load_pps: float, part: TrialPart) -> None:  # noqa: ARG002
        self._less = min(0.03, 0.1 * (1 - part.received / part.sent))


@dataclass(frozen=True, slots=True)
class _Leaky:
    """Forwards up to its capacity, and loses some packets of a trial besides."""

    capacity_pps: float
    lost: int

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:  # noqa: ARG002
        sent = round(load_pps * duration_s)
        return sent, max(0, min(sent, round(self.capacity_pps * duration_s)) - self.lost)

    def truth_pps(self, loss_ratio: float) -> float:
        return self.capacity_pps / (1 - loss_ratio)


@dataclass(slots=True)
class _Backlog(SearchedSystem):
    """A trial loses as many packets as overload in the trial before has left in queues of 4,000 packets."""

    _left: int = 0

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        return _Leaky(self.capacity_pps, self._left)

    def _remember(self, load_pps: float, part: TrialPart) -> None:
        self._left = min(4000, max(0, round((load_pps - self.capacity_pps) * part.duration_s)))


@dataclass(slots=True)
class _PeriodicLoss(SearchedSystem):
    """Loses 50 packets after every 8 s of traffic, at any load."""

    _since_s: float = 0.0
    _due: bool = False

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        self._due = self._since_s + duration_s >= 8.0
        return _Leaky(self.capacity_pps, 50 * self._due)

    def _remember(self, load_pps: float, part: TrialPart) -> None:  # noqa: ARG002
        self._since_s = 0.0 if self._due else self._since_s + part.duration_s


@dataclass(frozen=True, slots=True)
class _Stairs:
    """The loss ratio is a staircase of the load: 0, 0.2 %, 0.4 %, 0.8 %, and 1.6 % up to the capacity."""

    capacity_pps: float
    steps: ClassVar[tuple[tuple[float, float], ...]] = ((0.97, 0.016), (0.93, 0.008), (0.88, 0.004), (0.8, 0.002))
    """Share of the capacity above which a loss ratio holds, from above."""

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:  # noqa: ARG002
        taken_pps = min(load_pps, self.capacity_pps)
        loss_ratio = next((loss for share, loss in self.steps if load_pps > share * self.capacity_pps), 0.0)
        sent = round(load_pps * duration_s)
        return sent, min(sent, round(taken_pps * (1 - loss_ratio) * duration_s))

    def truth_pps(self, loss_ratio: float) -> float:
        return self.capacity_pps * min(share for share, loss in self.steps if loss > loss_ratio)


class _TwoSteps(_Stairs):
    """Loses 0.1 % from 0.9 of the capacity on, and 2 % shortly below it."""

    steps: ClassVar[tuple[tuple[float, float], ...]] = ((0.985, 0.02), (0.9, 0.001))


@dataclass(slots=True)
class _Drift(SearchedSystem):
    """Heats up by the time it forwards: capacity falls by 2 %, with a time constant of 30 s."""

    heat: ClassVar[float] = 0.02
    constant_s: ClassVar[float] = 30.0
    _busy_s: float = 0.0

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        return Sharp(self.capacity_pps * (1 - self.heat * (1 - exp(-self._busy_s / self.constant_s))))

    def _remember(self, load_pps: float, part: TrialPart) -> None:  # noqa: ARG002
        self._busy_s += part.duration_s

    def truth_pps(self, loss_ratio: float) -> float:
        """When it is hot."""
        return self.capacity_pps * (1 - self.heat) / (1 - loss_ratio)


class _WarmUp(_Drift):
    """Capacity rises by 1.5 % as caches fill, with a time constant of 20 s."""

    heat: ClassVar[float] = -0.015
    constant_s: ClassVar[float] = 20.0


@dataclass(slots=True)
class _RareLoss(SearchedSystem):
    """Forwards up to its capacity, and loses one packet in 10^7 at any load."""

    loss_ratio: ClassVar[float] = 1e-7

    def _model(self, load_pps: float, duration_s: float, rng: Random) -> Model:  # noqa: ARG002
        return Stall(self.capacity_pps, self.loss_ratio * load_pps, 1)

    def truth_pps(self, loss_ratio: float) -> float:
        """Half of the trials of 1 s lose nothing at a rate of ln(2) losses per second."""
        if loss_ratio <= self.loss_ratio:
            return min(self.capacity_pps, log(2) / self.loss_ratio)
        return self.capacity_pps / (1 - loss_ratio)


_SYSTEMS: Mapping[HeldOut, Callable[[float], SearchedSystem]] = {
    HeldOut.CORRELATED: _Correlated,
    HeldOut.STICKY: _Sticky,
    HeldOut.EXHAUSTED: _Exhausted,
    HeldOut.STAIRS: lambda capacity_pps: Memoryless(_Stairs(capacity_pps)),
    HeldOut.DRIFT: _Drift,
    HeldOut.RARE_LOSS: _RareLoss,
    HeldOut.SLOW_WANDER: _SlowWander,
    HeldOut.LONG_BAND: _LongBand,
    HeldOut.BACKLOG: _Backlog,
    HeldOut.TWO_STEPS: lambda capacity_pps: Memoryless(_TwoSteps(capacity_pps)),
    HeldOut.WARM_UP: _WarmUp,
    HeldOut.PERIODIC_LOSS: _PeriodicLoss,
}
