"""Specification and record of a study of outages: impact of events on every service instance."""

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, at_most_items, of_form
from resources.libraries.python.model.bounds import (
    HIGHEST_PPS,
    LONGEST_WINDOW_S,
    MAX_DISTURBED_INSTANCES,
    MAX_EVENTS,
    MAX_REPETITIONS,
)
from resources.libraries.python.model.findings import Coverage, LeastMeasured
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import FrameByName
from resources.libraries.python.model.request.kinds import NfKind, are_vms
from resources.libraries.python.model.request.nf_size import NfSize

VSWITCH = "vswitch"
"""Target that all instances share."""
CONTROL = "no event"
"""Name of trials without an event: what is lost in these is lost in any trial."""


class TargetedEvent(Frozen):
    """An event, and the part that it happens to."""

    event: PartEvent
    target: Annotated[
        str,
        of_form(
            r"nf-[1-9]\d{0,2}-[1-9]\d{0,2}|instance-[1-9]\d{0,2}|vswitch",
            "a target such as nf-1-1, instance-1 or vswitch",
        ),
    ] = "nf-1-1"
    """An NF as `nf-<instance>-<node>`, all NFs of a service instance as `instance-<instance>`, or `vswitch`."""
    hold_s: Annotated[float, Field(ge=0), at_most(LONGEST_WINDOW_S)] = 0.2
    """Duration of a pause."""

    @property
    def name(self) -> str:
        """PartEvent and target: `pause nf-1-1`."""
        return f"{self.event} {self.target}"

    @property
    def instance(self) -> int | None:
        """The service instance that is hit; None for the vSwitch, which all of them have."""
        return None if self.target == VSWITCH else int(self.target.split("-")[1])

    @property
    def node(self) -> int | None:
        """Place of the NF that is hit in its chain; None for all NFs of an instance, and for the vSwitch."""
        return int(self.target.split("-")[2]) if self.target.startswith("nf-") else None


class OutageSpec(Frozen):
    """All that a study of outages is asked."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    instances: Annotated[int, Field(ge=2), at_most(MAX_DISTURBED_INSTANCES)]
    nf_kinds: Annotated[tuple[NfKind, ...], Field(min_length=1), at_most_items(16)]
    """NFs of each instance in the order of the chain."""
    size: NfSize = NfSize.ONE
    frame: FrameByName
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the NDR of the deployment, which is searched first."""
    rate_pps: Annotated[float, Field(gt=0), at_most(HIGHEST_PPS)] | None = None
    """Rate of each instance and direction; None for the share of NDR."""
    search: str = "quick,width=0.1,sum=1"
    """Profile of that search."""
    events: Annotated[tuple[TargetedEvent, ...], Field(min_length=1), at_most_items(MAX_EVENTS)]
    control: bool = True
    """Whether each repetition has a trial without an event."""
    quarantine_loss: Annotated[float, Field(ge=0, le=1)] = 0.005
    """Share of the packets of an instance; a trial that loses more before its event, and a repetition whose trial
    without an event loses more, is left out of the effects. 1 keeps all."""
    repetitions: Annotated[int, Field(ge=1), at_most(MAX_REPETITIONS)] = 5
    before_s: Annotated[float, Field(ge=0.2), at_most(LONGEST_WINDOW_S)] = 1.0
    """Traffic before the event."""
    after_s: Annotated[float, Field(ge=0.2), at_most(LONGEST_WINDOW_S)] = 2.0
    """Traffic after the event."""
    bin_s: Annotated[float, Field(ge=0.0001, le=0.001)] = 0.001
    """Resolution of the receiver."""
    least_measured: LeastMeasured = 1.0
    """Required share of all trials; with less the test fails, and its record has what there is."""
    seed: int = 1
    """Seed of the order of events, which is shuffled in each repetition."""

    @model_validator(mode="after")
    def _cell_exists(self) -> Self:
        """See that kinds and sizes make a cell: of some kinds each network function needs a program."""
        self.cell  # noqa: B018 - raises
        return self

    @model_validator(mode="after")
    def _targets_exist(self) -> Self:
        for strike in self.events:
            if (strike.instance or 1) > self.instances or (strike.node or 1) > len(self.nf_kinds):
                raise ValueError(
                    f"{strike.target} is not among {self.instances} instances of {len(self.nf_kinds)} network functions"
                )
            if strike.event is PartEvent.PAUSE and strike.hold_s >= self.after_s:
                raise ValueError(
                    f"{strike.name} takes {strike.hold_s:g} s, and traffic ends {self.after_s:g} s after it began"
                )
        if twice := [name for name, count in Counter(strike.name for strike in self.events).items() if count > 1]:
            raise ValueError(f"{', '.join(twice)} more than once")
        return self

    @property
    def cell(self) -> Cell:
        """Cell that is deployed for each trial."""
        return Cell(
            service_type=ServiceType.VSC if are_vms(self.nf_kinds) else ServiceType.CSC,
            nf_chains=self.instances,
            nf_nodes=len(self.nf_kinds),
            nf_sizes=(self.size,),
            nf_kinds=self.nf_kinds,
        )

    @property
    def duration_s(self) -> float:
        """Duration of one trial."""
        return self.before_s + self.after_s

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the events, the control first."""
        return (*([CONTROL] if self.control else []), *(strike.name for strike in self.events))


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
