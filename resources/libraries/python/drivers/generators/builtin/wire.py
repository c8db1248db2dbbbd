"""Records that driver and worker of the generator exchange, one JSON object per line (`dialogue`)."""

from dataclasses import dataclass
from typing import Any, Literal

from resources.libraries.python.drivers.generators.losses import LossReport

Sending = Literal["auto", "xdp", "af_xdp", "ring"]
"""How to send: `xdp` by XDP live frames, `af_xdp` by AF_XDP sockets, `ring` out of a TX ring, `auto` by live frames
where the machine can do it, else out of a TX ring."""


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One flow, as a worker needs to know it."""

    tx_interface: str
    rx_interface: str
    source_mac: str
    destination_mac: str
    source_ip: str
    """The first of `sources` consecutive addresses."""
    sources: int
    destination_ip: str

    @property
    def ipv6(self) -> bool:
        """Whether its packets are IPv6."""
        return ":" in self.source_ip


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Flows of a worker, its CPUs, and the way it sends."""

    namespace: str
    """Network namespace with the ports; empty for the one it is started in, where physical ports are."""
    cpus: tuple[int, ...]
    """Logical CPUs to stay on; none means anywhere."""
    alone: bool
    """Whether nothing else that is under test has its place on these CPUs."""
    flows: tuple[FlowSpec, ...]
    sending: Sending = "auto"
    capture: str = ""
    """The file whose packets can be a load, Base64; empty for none."""


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One trial as one worker runs it."""

    load_pps: float | None
    """Aggregate of the worker's flows; None means as fast as possible."""
    duration_s: float
    frame_bytes: tuple[int, ...]
    """L2 frame sizes with FCS, in the order in which they are sent, over and over."""
    probe_pps: float
    """Per flow."""
    most_lost: int | None = None
    """Sending ends early when more packets than this are lost for certain; None: never."""
    timeline_ns: int = 0
    """Every load frame has a number and a time stamp, and the report has a timeline in bins of this length; 0: not."""
    losses: bool = False
    """Every load frame has a number, and the receiver counts what became of each."""
    mark: int = 0
    """Mark of the numbered frames of the first flow, a number of 32 bits; the next ones follow. 0: that of probes."""
    gaps: bool = False
    """The times of arrival of load frames are kept, and the report has the gaps between them."""
    udp: bool = False
    """Load frames are UDP datagrams, each source address with a port of its own; else packets without ports."""
    tcp: bool = False
    """Load frames are TCP segments that belong to no connection."""
    flows: int = 0
    """5-tuples of each flow; each frame has the next one, and after the last comes the first. 0: one for each source
    address."""

    captured: bool = False
    """Load frames are those of the capture; `frame_bytes` are the sizes of probes."""

    @property
    def numbered(self) -> bool:
        """Whether load frames have numbers."""
        return self.losses or bool(self.timeline_ns)

    def mark_of(self, flow: int) -> int:
        """Return the mark of the numbered frames of a flow; 0: that of probes."""
        return self.mark and self.mark + flow


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Latency of one flow in nanoseconds, as far as it is known."""

    min_ns: int | None = None
    mean_ns: float | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    max_ns: int | None = None
    histogram: str | None = None


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """Outcome of the numbered load frames of one flow; see `model.measurements.trial.FlowTimeline`."""

    begin_ns: int
    sent: list[int]
    received: list[int]
    delay_ns: list[int | None]
    worst_ns: list[int | None]
    silence_ns: list[int | None]
    gaps: list[tuple[int, int, int, int | None]]
    more_gaps: int
    duplicates: int
    arrivals_ns: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class GapReport:
    """Gaps between the arrivals of two frames of a flow, in nanoseconds."""

    packets: int
    p50_ns: int
    p99_ns: int
    p999_ns: int


@dataclass(frozen=True, slots=True)
class FlowReport:
    """Outcome of one flow."""

    sent: int
    """Load frames handed to the interface, those included that a full queue on the far side dropped at once."""
    received: int
    """Load frames that came back."""
    refused: int = 0
    """Load frames among `sent` that a full queue on the far side dropped at once."""
    probes_sent: int = 0
    probes_received: int = 0
    latency: LatencyReport | None = None
    unstamped: int = 0
    """Received probes without a usable pair of time stamps."""
    timeline: TimelineReport | None = None
    losses: LossReport | None = None
    gaps: GapReport | None = None


@dataclass(frozen=True, slots=True)
class TrialReport:
    """Outcome of one trial of one worker."""

    planned: int
    """Load frames the schedule asked for; 0 when unpaced."""
    offered_s: float
    """First to end of the last sending slot."""
    expected_s: float
    """Requested value of `offered_s`."""
    worst_lag_s: float
    """The furthest that sending fell behind its schedule."""
    settled: bool
    """Whether the counters had stopped moving when they were read."""
    flows: tuple[FlowReport, ...]
    sending: str = ""
    """How it was sent, in words."""
    fallback: str | None = None
    """Why it was not sent in the preferred way."""
    aborted: bool = False
    """Whether sending ended early for loss."""


def worker_spec(plain: dict[str, Any]) -> WorkerSpec:
    """A worker's specification from its line."""
    flows = tuple(FlowSpec(**flow) for flow in plain["flows"])
    return WorkerSpec(**{**plain, "cpus": tuple(plain["cpus"]), "flows": flows})


def trial_spec(plain: dict[str, Any]) -> TrialSpec:
    """A trial's specification from its line."""
    return TrialSpec(**{**plain, "frame_bytes": tuple(plain["frame_bytes"])})
