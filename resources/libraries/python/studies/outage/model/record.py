"""The record of a study of outages: impact of events on every service instance."""

from typing import Annotated, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.findings.coverage import Coverage
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.studies.outage.model.spec import OutageSpec


class Delays(Frozen):
    """One-way delay of the packets sent in a period, both directions."""

    mean_ns: float | None
    """None where none arrived."""
    worst_ns: int | None


class Impact(Frozen):
    """Impact of one trial on one service instance, both directions together."""

    instance: int
    sent: int
    """In the whole trial."""
    lost: int
    """Packets lost from the event on; where there was none, from the time on at which one would have begun."""
    lost_before: int
    """Packets lost before the event."""
    outage_s: float
    """Lost packets over the offered rate (RFC 6201, frame-loss method), of the direction that lost more."""
    gap_s: float
    """Longest time without an arrival in one direction, from the event on (time-stamp method of RFC 6201)."""
    recovery_s: float | None
    """From the event until the last gap is over; 0 without a loss, None where losses go on to the end of the trial."""
    first_packet_s: float | None
    """From the event to the first packet after its largest gap; None where there was no gap, or none came any more."""
    before: Delays
    during: Delays
    after: Delays
    duplicates: int = 0


class InstanceTrace(Frozen):
    """Course of a trial at one service instance, both directions, in wider bins."""

    instance: int
    begin_s: float
    """Begin of the first bin, relative to the event."""
    bin_s: float
    lost: tuple[int, ...]
    sent: tuple[int, ...]
    delay_ns: tuple[float | None, ...]
    """Mean."""


class EventTrial(Frozen):
    """One trial."""

    number: int
    """Its place in the order, from 0."""
    repetition: int
    event: str
    """Event and target, or `no event`."""
    event_s: float | None
    """How long the event itself took; None without one."""
    done: str
    """Action that was taken, in words."""
    impacts: tuple[Impact, ...]
    traces: tuple[InstanceTrace, ...] = ()
    """Traces of the first repetition."""
    clock_error_s: float | None = None
    """How wrong times between event and packets may be, as their machines have clocks of their own; None on one."""
    note: str | None = None
    """Note of the generator."""


class MeanInterval(Frozen):
    """Mean of a quantity over repetitions with its 95 % confidence interval (Student)."""

    mean: float
    low: float | None
    high: float | None
    """None with one repetition."""
    samples: int


class Effect(Frozen):
    """Effect of an event on an instance over all repetitions."""

    event: str
    instance: int
    is_target: bool
    """Whether the event happened to this instance, or to the vSwitch."""
    lost: MeanInterval
    outage_s: MeanInterval
    gap_s: MeanInterval
    excess: MeanInterval | None
    """Packets lost beyond trials without an event; None without such trials."""
    control: MeanInterval | None = None
    """Packets lost in trials without an event; None without such trials, and for the effect of these."""
    recovery_s: MeanInterval | None
    """Recovery time in the repetitions in which it recovered."""
    recovered: int
    """Repetitions in which it did."""
    first_packet_s: MeanInterval | None
    before_ns: MeanInterval | None
    during_ns: MeanInterval | None
    after_ns: MeanInterval | None
    """Mean one-way delay."""
    worst_ns: int | None
    """Longest one-way delay from the event on."""

    @property
    def is_significant(self) -> bool:
        """Whether it loses more packets than without an event, beyond the 95 % confidence interval."""
        return self.excess is not None and self.excess.low is not None and self.excess.low > 0


class Quarantined(Frozen):
    """A trial that the effects leave out, because the host lost packets without the event."""

    trial: int
    """Its number."""
    reason: str


class Outage(Frozen):
    """Part of a record: events, and what they did."""

    spec: OutageSpec
    rate_pps: float
    """Offered to each instance in each direction."""
    ndr_pps: float | None
    """NDR of the deployment, aggregate; None where the rate was given."""
    trials: tuple[EventTrial, ...]
    effects: tuple[Effect, ...]
    quarantined: tuple[Quarantined, ...] = ()
    refused: dict[str, str] = Field(default_factory=dict)
    """Events that are not possible with a driver, and why."""
    asked: int
    """Trials that the specification asks for, without those refused."""
    notes: tuple[str, ...] = ()

    @property
    def coverage(self) -> Coverage:
        """Trials measured, of all."""
        return Coverage(len(self.trials), self.asked)


class OutageRecord(Record):
    """A study of outages."""

    study: Literal["outage"] = "outage"
    outage: Annotated[Outage | None, PACKED] = None
