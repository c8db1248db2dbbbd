"""One trial: what was intended, what was offered, what came back."""

from enum import StrEnum

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty, is_none
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol


class Direction(StrEnum):
    """Direction in which a flow crosses the service."""

    FORWARD = "forward"
    """From TG port 1 to TG port 2."""
    REVERSE = "reverse"
    """From TG port 2 to TG port 1."""


class Trial(Frozen):
    """Traffic for one trial. Every instance and direction gets an equal share of the load."""

    load_pps: float
    """Intended load, aggregate of all instances and both directions. Zero sends probe frames only."""
    duration_s: float
    frame: Frame
    probe_pps: float = 0.0
    """Latency probe frames per instance and direction, on top of the load."""
    abort_loss_ratio: float | None = None
    """Stop as soon as more than this share of the intended packets is lost for certain, in [0, 1); 0.0 stops at the
    first lost packet, None never stops early."""
    purpose: str = "search"
    """Purpose of the trial, a word of the search or study that runs it: `connectivity`, `search`, `mrr`, `outage`."""
    protocol: Protocol | None = Field(default=None, exclude_if=is_none)
    """Protocol of the packets; None for the generator's default."""
    departures: Departures = Field(
        default=Departures.CONSTANT, exclude_if=lambda departures: departures is Departures.CONSTANT
    )
    """Times between two packets of a flow."""
    sessions: int | None = Field(default=None, exclude_if=is_none)
    """TCP connections or UDP flows of a service instance, from a generator that makes such; None for one. Others take
    the plan's number of source addresses."""
    timeline_s: float | None = Field(default=None, exclude_if=is_none)
    """Number and time-stamp every packet of the load, and report what became of each, in bins of this length."""
    count_losses: bool = Field(default=False, exclude_if=is_empty)
    """Number every packet of the load, and report losses, duplicates and reordering of each flow."""
    measure_gaps: bool = Field(default=False, exclude_if=is_empty)
    """Time-stamp every packet of the load where it arrives, and report the gaps between two of a flow."""
    only: Direction | None = Field(default=None, exclude_if=is_none)
    """The direction that all of the load goes in; None for both."""
    on_off_s: tuple[float, float] | None = Field(default=None, exclude_if=is_none)
    """Bursts: how long the load is on, and then off, again and again; None for a load that is always on."""


class Interval(Frozen):
    """One second of a trial, or its shorter last part: all flows of one way, mean of both ways."""

    duration_s: float
    sent: float
    received: float
    delay_ns: float | None
    """Mean one-way delay of the packets that arrived."""


class HighestLoads(Frozen):
    """The highest loads of a deployed path, aggregate of all instances and both directions."""

    offered_pps: float
    """Line rate, or the most that the generator can send where that is less or no line rate is known."""
    search_pps: float
    """First load of a search: less, where so much would only show how an overloaded system collapses."""


class SessionFigures(Frozen):
    """All sessions of one instance in one direction together, as their receiver saw them."""

    instance: int
    direction: Direction
    sessions: int
    goodput_bps: float
    """Bits per second of payload."""
    jitter_ns: float | None = None
    """Jitter of UDP, as RFC 3550 has it: mean over the sessions."""
    retransmits: int | None = None
    """Retransmits of TCP: segments that were sent again."""


class FlowCount(Frozen):
    """Packets of one instance in one direction, probe frames not counted."""

    instance: int
    direction: Direction
    sent: int
    received: int


class FlowGaps(Frozen):
    """Gaps between the arrivals of two packets of one instance in one direction, in nanoseconds."""

    instance: int
    direction: Direction
    packets: int
    """Packets with a time stamp."""
    p50_ns: int
    p99_ns: int
    p999_ns: int


class FlowLatency(Frozen):
    """One-way latency of one instance in one direction, in nanoseconds."""

    instance: int
    direction: Direction
    sent: int
    received: int
    min_ns: int | None
    mean_ns: float | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    histogram: str | None
    """HDR histogram of nanoseconds, V2 compressed, base64."""


class Gap(Frozen):
    """Consecutive packets of a flow that were all lost."""

    first: int
    """Number of the first one, from 0."""
    packets: int
    begin_ns: int
    """Arrival of the last packet before, since the epoch; departure of the first lost packet where there is none."""
    end_ns: int | None
    """Arrival of the next packet; None where none came any more."""

    def moved(self, by_ns: int) -> "Gap":
        """Return the gap by another clock, which is that far ahead."""
        end_ns = None if self.end_ns is None else self.end_ns + by_ns
        return self.model_copy(update={"begin_ns": self.begin_ns + by_ns, "end_ns": end_ns})


class FlowTimeline(Frozen):
    """Outcome of the numbered packets of one instance in one direction, by the time at which they were sent."""

    instance: int
    direction: Direction
    begin_ns: int
    """Departure of the first packet, in nanoseconds since the epoch, by the controller's clock."""
    bin_s: float
    sent: tuple[int, ...]
    """Packets sent in each bin."""
    received: tuple[int, ...]
    """Those of them that arrived."""
    delay_ns: tuple[int | None, ...]
    """Mean one-way delay of those that arrived."""
    worst_ns: tuple[int | None, ...]
    """Longest one-way delay of those that arrived."""
    silence_ns: tuple[int | None, ...]
    """Longest time without any arrival just before one of those that arrived; of the first arrival of all, the time
    since the departure of the first packet."""
    gaps: tuple[Gap, ...]
    """In the order of their packets; the 1000 with the most packets."""
    more_gaps: int = 0
    """Gaps that are not listed."""
    duplicates: int = 0
    arrivals_ns: tuple[int, int] | None = None
    """First and last arrival; None where nothing arrived."""
    clock_error_s: float = 0.0
    """How far off the controller's clock these times may be; 0 on one machine."""

    def moved(self, by_ns: int, error_s: float) -> "FlowTimeline":
        """Return the timeline by another clock."""
        return self.model_copy(
            update={
                "begin_ns": self.begin_ns + by_ns,
                "gaps": tuple(gap.moved(by_ns) for gap in self.gaps),
                "arrivals_ns": self.arrivals_ns and tuple(at_ns + by_ns for at_ns in self.arrivals_ns),
                "clock_error_s": error_s,
            }
        )


class Reordering(Frozen):
    """Order of the packets of a flow; histograms have pairs of a value and how often it occurs, ascending.

    Values beyond 64 are the lower edges of bins, 32 to a doubling.
    """

    reordered: int | None
    """Packets that arrived after one with a higher number (RFC 4737); None where the order is unknown."""
    extents: tuple[tuple[int, int], ...] = ()
    """Packets from the first one with a higher number to each reordered one (RFC 4737, reordering extent)."""
    degrees: tuple[tuple[int, int], ...] = ()
    """Packets directly before each reordered one with higher numbers (RFC 4737, n-reordering), 64 at most."""
    displacements: tuple[tuple[int, int], ...] = ()
    """Places by which packets arrived later (> 0) or earlier than in order (RFC 5236, reorder density)."""
    buffer_occupancy: tuple[tuple[int, int], ...] = ()
    """Packets that a buffer restoring the order holds after each arrival (RFC 5236)."""
    unknown: str | None = None
    """Why the order, or the histograms, are unknown."""


class FlowLosses(Frozen):
    """Losses, duplicates and reordering of one instance in one direction, from the number of every packet."""

    instance: int
    direction: Direction
    sent: int
    received: int
    """Duplicates not counted."""
    duplicates: int
    duration_s: float
    """Duration of sending."""
    loss_periods: int
    """Runs of consecutive lost packets (RFC 3357)."""
    longest: int
    """Packets of the longest loss period."""
    run_lengths: tuple[tuple[int, int], ...]
    """Loss periods by their packets, as histogram; see `Reordering`."""
    distances: tuple[tuple[int, int], ...]
    """Packets received between two loss periods, as histogram."""
    listed: tuple[tuple[int, int, int], ...]
    """The first loss periods, at most 500: nanoseconds after the first packet was sent, first lost number, length."""
    longest_s: float
    """Duration of the longest loss period, between two packets sent."""
    runs_z: float | None
    """Normal deviate that is as unlikely as so many (> 0) or so few loss periods of independent losses (test of Wald
    and Wolfowitz), exact and within 37.5 of 0 unless more than 200,000 are possible; None for fewer than 10 losses."""
    dispersion: float | None
    """Index of dispersion of losses in windows of packets: 1 of independent losses; None for too few losses."""
    dispersion_z: float | None
    """Normal deviate that is as unlikely."""
    bursts: int
    """Groups of losses with fewer than 16 packets received between two (Gmin of RFC 3611)."""
    burst_packets: tuple[int, int, int] | None
    """Size of the burst that a lost packet belongs to: 10th, 50th and 90th percentile over lost packets."""
    burst_s: float | None
    """Median duration of a burst."""
    burst_interval_s: tuple[float, float, float] | None
    """Time from the start of a burst to that of the next: 10th, 50th and 90th percentile."""
    period_s: float | None
    """Period of losses over time, where the periodogram has one (false alarm 1e-4)."""
    period_share: float | None
    """How far losses follow it, in [0, 1]."""
    order: Reordering
    foreign: int = Field(default=0, exclude_if=is_empty)
    """Packets of other flows that arrived where those of this one do, and late ones of earlier trials."""

    @property
    def lost(self) -> int:
        """Lost packets."""
        return self.sent - self.received


class TrialResult(Frozen):
    """Result of one trial. Rates are aggregates of all instances and both directions."""

    trial: Trial
    started_at: str
    """UTC, ISO 8601."""
    offered_duration_s: float
    """From the first to the end of the last sending slot, as the generator measured it."""
    total_duration_s: float
    """Wall time of the trial with all waiting and reading (virtual time in a simulated world)."""
    flows: tuple[FlowCount, ...]
    latency: tuple[FlowLatency, ...] = ()
    aborted: bool = False
    """Ended early by `Trial.abort_loss_ratio`; counts and `offered_duration_s` are of the part that was sent."""
    generator_limited: bool = False
    """The generator could not offer the intended load: the trial says nothing about the system under test, unless what
    was not sent is charged."""
    unsent: int | None = Field(default=None, exclude_if=is_none)
    """Packets of the intended load that the generator did not send, charged as lost after repeated trials fell short as
    well; None where nothing is charged."""
    note: str | None = None
    intervals: tuple[Interval, ...] = Field(default=(), exclude_if=is_empty)
    """Second by second, from a generator that keeps such a log; empty from others."""
    sessions: tuple[SessionFigures, ...] = Field(default=(), exclude_if=is_empty)
    """From a generator that makes sessions; empty from others."""
    timelines: tuple[FlowTimeline, ...] = Field(default=(), exclude_if=is_empty)
    """Timelines of a trial with `Trial.timeline_s`; empty from generators that number no packets."""
    losses: tuple[FlowLosses, ...] = Field(default=(), exclude_if=is_empty)
    """Losses of a trial with `Trial.count_losses`; empty from generators that number no packets."""
    gaps: tuple[FlowGaps, ...] = Field(default=(), exclude_if=is_empty)
    """Gaps of a trial with `Trial.measure_gaps`, of flows of which two packets or more arrived."""
    interface_sent: int | None = Field(default=None, exclude_if=is_none)
    """Packets of both ways that left the sender's network interfaces in the trial, where a generator checks itself."""

    @property
    def sent(self) -> int:
        """Packets offered, all flows."""
        return sum([flow.sent for flow in self.flows])

    @property
    def received(self) -> int:
        """Packets that came back, all flows."""
        return sum([flow.received for flow in self.flows])

    @property
    def loss_ratio(self) -> float | None:
        """Lost share of the packets offered, in [0, 1]; None when nothing was offered."""
        sent = received = 0
        for flow in self.flows:  # once: searches ask for this ratio of every trial again and again
            sent += flow.sent
            received += flow.received
        return max(0.0, 1.0 - received / sent) if sent else None

    @property
    def is_evidence(self) -> bool:
        """Whether it counts in a search: the generator offered the load, or what it did not send is charged."""
        return not self.generator_limited or self.unsent is not None

    @property
    def charged_loss_ratio(self) -> float | None:
        """Lost share of the packets intended, those charged as lost included; `loss_ratio` where nothing is charged."""
        if not self.unsent:
            return self.loss_ratio
        return (max(0, self.sent - self.received) + self.unsent) / (self.sent + self.unsent)

    @property
    def offered_pps(self) -> float:
        """Load that was really offered."""
        return self.sent / self.offered_duration_s if self.offered_duration_s > 0 else 0.0

    @property
    def forwarded_pps(self) -> float:
        """Rate at which packets came back."""
        return self.received / self.offered_duration_s if self.offered_duration_s > 0 else 0.0
