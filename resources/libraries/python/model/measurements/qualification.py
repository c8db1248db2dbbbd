"""Qualification of a traffic generator: measured with its ports joined to each other and no system under test."""

from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.quantities import counted

_Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Ns = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Word = Annotated[str, Field(max_length=200)]


class QualificationKey(Frozen):
    """Conditions under which a qualification is valid: when one of them changes, it has to be repeated."""

    generator: _Word
    """Name of the driver."""
    version: _Word
    """Version of the program, or digest of the sources."""
    nic: _Word
    """Kind of the ports: `veth`, or the model of the NIC; `simulated` where no packet is sent."""
    machine: _Word
    """Host name and CPU of the traffic generator's machine."""
    kernel: _Word
    cpus: Annotated[int, Field(ge=1, le=1024)]
    """Logical CPUs that send."""

    def __str__(self) -> str:
        """In words."""
        return f"{self.generator} {self.version} on {self.nic}, {counted(self.cpus, 'CPU')} of {self.machine}"


class QualifiedPoint(Frozen):
    """Figures for one frame size and number of flows. Rates are aggregates of all flows."""

    frame: Frame
    flows: Annotated[int, Field(ge=1, le=1024)]
    """Each has a port that sends and a port that receives."""
    loss_free_pps: _Rate | None
    """Highest rate at which a trial lost nothing; None where every trial lost something."""
    highest_pps: _Rate | None
    """Highest rate at which a trial lost no more than `Qualification.loss_ratio`."""
    offered_pps: _Rate
    """The most that it sent."""
    received_pps: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The most of all trials that arrived."""
    counted_pps: _Rate | None = None
    """The most that arrived where a program at the receiving port counts each frame before the kernel makes a packet of
    it; None where there is no such program."""
    rate_error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    """Largest error of the rate in trials that were not short, relative; None where all were."""
    gap_load_pps: _Rate | None = None
    """Load at which gaps were measured."""
    gap_p50_ns: _Ns | None = None
    """Time between the arrivals of two frames of a flow: percentiles of the worst flow; None where not measured."""
    gap_p99_ns: _Ns | None = None
    gap_p999_ns: _Ns | None = None
    floor_ns: _Ns | None = None
    """Shortest latency of a probe frame; None where latency was not measured."""
    floor_p50_ns: _Ns | None = None
    """Median latency of probe frames without load."""

    def rate_for(self, loss_ratio: float, allowed: float) -> float | None:
        """Highest rate for a goal.

        `allowed`: Loss ratio of `highest_pps`.
        """
        return self.highest_pps if loss_ratio >= allowed else self.loss_free_pps


class Qualification(Frozen):
    """Qualification of a generator. A simulated one says so."""

    key: QualificationKey
    measured_at: Annotated[str, Field(max_length=64)]
    """UTC, ISO 8601."""
    sending: _Word = ""
    """How frames were sent, in words; empty where the driver does not say."""
    way: _Word | None = None
    """Driver that sends in place of the testbed's, as it is faster on these ports; None where it sends itself."""
    loss_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.005
    """Loss that `highest_pps` allows."""
    trial_s: Annotated[float, Field(gt=0)]
    points: Annotated[tuple[QualifiedPoint, ...], Field(max_length=1000)]
    notes: tuple[Annotated[str, Field(max_length=500)], ...] = ()
    """Notes for readers, such as CPUs that were shared."""
    simulated: bool = False

    def bound(self, frame: Frame, flows: int) -> QualifiedPoint | None:
        """Return the point that bounds results of a frame and a number of flows; None where there is none.

        Longer frames and more flows have lower rates, so the next smaller ones bound them from above: a mix is bounded
        by its shortest frame.
        """
        shortest = min(part.frame_bytes for part in frame.parts)
        exact = [point for point in self.points if point.frame.parts == frame.parts]
        fitting = [
            point
            for point in exact or self.points
            if point.flows <= flows and (exact or point.frame.largest_bytes <= shortest)
        ]
        return max(fitting, key=lambda point: (point.frame.largest_bytes, point.flows), default=None)
