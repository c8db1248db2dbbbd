"""Six systems under test of known truth, each a pure function of load, duration and random numbers.

The six of the study in which search algorithms were compared: `sharp` loses exactly what exceeds its capacity; `noisy`
has another capacity in each trial; `stall` rarely loses a few packets whatever the load; `knee` begins to lose well
below its capacity; `two_band` runs in one of two bands in each trial; `sag` forwards the less the more it is
overloaded. Rates are aggregates in packets per second.

A trial can be aborted early: counters are polled in virtual time, as a generator polls its own. Losses of overload are
spread evenly over a trial; those of a stall occur at one instant. The outcome of a whole trial is drawn first, so that
a trial takes the same random numbers with and without an abort (but for the instants of stalls).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp
from random import Random

from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation

_MIN_FORWARDED = 0.2
"""Even a sagging system keeps forwarding this share of its capacity."""


@dataclass(frozen=True, slots=True)
class Model(ABC):
    """A system under test."""

    capacity_pps: float

    @abstractmethod
    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:
        """Run one trial; return packets sent and received, received never above sent."""

    def truth_pps(self, loss_ratio: float) -> float:
        """The load up to which most trials lose no more than `loss_ratio`."""
        return self.capacity_pps / (1 - loss_ratio)


def _counts(load_pps: float, forwarded_pps: float, duration_s: float) -> tuple[int, int]:
    sent = round(load_pps * duration_s)
    return sent, max(0, min(sent, round(forwarded_pps * duration_s)))


@dataclass(frozen=True, slots=True)
class Sharp(Model):
    """Forwards up to its capacity, always the same."""

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:  # noqa: ARG002
        return _counts(load_pps, min(load_pps, self.capacity_pps), duration_s)


@dataclass(frozen=True, slots=True)
class Noisy(Model):
    """The capacity of a trial is normally distributed."""

    noise: float

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:
        capacity_pps = self.capacity_pps * (1 + rng.gauss(0.0, self.noise))
        return _counts(load_pps, min(load_pps, capacity_pps), duration_s)


@dataclass(frozen=True, slots=True)
class Stall(Model):
    """Sharp, with rare stalls that each lose a few packets."""

    stall_hz: float
    stall_packets: int

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:
        sent, received = _counts(load_pps, min(load_pps, self.capacity_pps), duration_s)
        lost = _poisson(self.stall_hz * duration_s, rng) * self.stall_packets
        return sent, max(0, received - lost)

    def stalls(self, load_pps: float, duration_s: float, lost: int) -> int:
        """How many stalls a trial had that lost so many packets, overload included."""
        sent, received = _counts(load_pps, min(load_pps, self.capacity_pps), duration_s)
        return max(0, lost - (sent - received)) // self.stall_packets


@dataclass(frozen=True, slots=True)
class Knee(Model):
    """Loss ratio grows linearly from 0 at `knee` of the capacity to `knee_loss` at the capacity."""

    knee: float
    knee_loss: float

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:  # noqa: ARG002
        taken_pps = min(load_pps, self.capacity_pps)
        above = max(0.0, taken_pps / self.capacity_pps - self.knee) / (1 - self.knee)
        return _counts(load_pps, taken_pps * (1 - self.knee_loss * above), duration_s)

    def truth_pps(self, loss_ratio: float) -> float:
        if loss_ratio > self.knee_loss:
            return self.capacity_pps * (1 - self.knee_loss) / (1 - loss_ratio)
        return self.capacity_pps * (self.knee + (1 - self.knee) * loss_ratio / self.knee_loss)


@dataclass(frozen=True, slots=True)
class TwoBand(Model):
    """Most trials have the whole capacity, some only `low_band` of it: other threads take the rest of the CPU time."""

    low_band: float
    low_band_share: float

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:
        capacity_pps = self.capacity_pps * (self.low_band if rng.random() < self.low_band_share else 1.0)
        return _counts(load_pps, min(load_pps, capacity_pps), duration_s)

    def is_low(self, forwarded_pps: float, load_pps: float) -> bool:
        """Whether a trial that forwarded so much was in the low band; below its capacity the bands do not differ."""
        return forwarded_pps < (1 + self.low_band) / 2 * self.capacity_pps and forwarded_pps < load_pps * 0.999


@dataclass(frozen=True, slots=True)
class Sag(Model):
    """In overload each packet too many takes `sag` packets from those that are forwarded."""

    sag: float

    def forward(self, load_pps: float, duration_s: float, rng: Random) -> tuple[int, int]:  # noqa: ARG002
        excess_pps = max(0.0, load_pps - self.capacity_pps)
        forwarded_pps = max(self.capacity_pps * _MIN_FORWARDED, self.capacity_pps - self.sag * excess_pps)
        return _counts(load_pps, min(load_pps, forwarded_pps), duration_s)

    def truth_pps(self, loss_ratio: float) -> float:
        return self.capacity_pps * (1 + self.sag) / (1 - loss_ratio + self.sag)


def make_model(simulation: Simulation, capacity_pps: float) -> Model:
    """The system that a simulation asks for."""
    match simulation.model:
        case ModelName.SHARP:
            return Sharp(capacity_pps)
        case ModelName.NOISY:
            return Noisy(capacity_pps, simulation.noise)
        case ModelName.STALL:
            return Stall(capacity_pps, simulation.stall_hz, simulation.stall_packets)
        case ModelName.KNEE:
            return Knee(capacity_pps, simulation.knee, simulation.knee_loss)
        case ModelName.TWO_BAND:
            return TwoBand(capacity_pps, simulation.low_band, simulation.low_band_share)
        case ModelName.SAG:
            return Sag(capacity_pps, simulation.sag)


def _poisson(mean: float, rng: Random) -> int:
    """A Poisson variate by Knuth's product of uniforms; means here are a few at most."""
    limit, product, count = exp(-mean), rng.random(), 0
    while product > limit:
        product *= rng.random()
        count += 1
    return count


POLL_S = 0.1
"""Virtual seconds from one look at the counters to the next."""


@dataclass(frozen=True, slots=True)
class TrialPart:
    """Packets sent and received in a trial, or in the part of it before the abort."""

    sent: int
    received: int
    duration_s: float
    aborted: bool


def forward(
    model: Model, load_pps: float, duration_s: float, rng: Random, abort_loss_ratio: float | None = None
) -> TrialPart:
    """Run one trial on a model.

    `load_pps`: Aggregate.
    `abort_loss_ratio`: as `Trial.abort_loss_ratio`: ends the trial at the first poll by which more than this share of
    the packets of the whole trial is lost.
    """
    sent, received = model.forward(load_pps, duration_s, rng)
    lost = sent - received
    if abort_loss_ratio is None or lost <= abort_loss_ratio * sent:
        return TrialPart(sent, received, duration_s, aborted=False)
    stalls = model.stalls(load_pps, duration_s, lost) if isinstance(model, Stall) else 0
    steady = lost - stalls * model.stall_packets if isinstance(model, Stall) else lost
    instants = [rng.random() * duration_s for _ in range(stalls)]
    poll = 1
    while (now_s := poll * POLL_S) < duration_s - POLL_S / 2:
        share = now_s / duration_s
        stalled = sum(instant <= now_s for instant in instants)
        lost_by_now = int(steady * share) + (lost - steady) * stalled // max(1, stalls)
        if lost_by_now > abort_loss_ratio * sent:
            sent_by_now = round(sent * share)
            return TrialPart(sent_by_now, sent_by_now - min(lost_by_now, sent_by_now), now_s, aborted=True)
        poll += 1
    return TrialPart(sent, received, duration_s, aborted=False)
