"""The points of a sweep in the units of a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from resources.libraries.python.studies.sweep.model import GIGA, ProfileMetric, SweepPoint

Array = npt.NDArray[np.float64]

SENDER_TOLERANCE = 0.05
"""A point at which generator and network interface of the sender disagree by more than this share has no known rate."""


@dataclass(frozen=True)
class LoadObservation:
    """One load; units as in ProfileMetric, rates in Gbit/s of one way."""

    rate: float
    """Really sent."""
    values: Mapping[ProfileMetric, float | None]
    cpu: Mapping[str, tuple[float, ...]]
    """See model.sweep.CpuUse."""
    busy: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """See model.sweep.SweepSample."""
    memory_mib: Mapping[str, float] = field(default_factory=dict)
    """The same."""

    def wanted(self, vnf: str) -> float | None:
        """CPUs that a VNF had work for, whether it got them or not; None where unknown."""
        return sum(self.busy[vnf]) if vnf in self.busy else None

    def used(self, vnf: str) -> float | None:
        """CPUs that a VNF used, 1.0 for one; None where unknown."""
        return sum(self.cpu[vnf]) if vnf in self.cpu else None


def observe(points: Sequence[SweepPoint]) -> tuple[tuple[LoadObservation, ...], tuple[str, ...]]:
    """Points by rising real input rate, and sentences on those that were left out or are not what was asked for."""
    usable = [point for point in points if point.input_bps > 0]
    known = [
        point
        for point in usable
        if point.sender_pps is None or not abs(point.sender_pps - point.input_pps) > SENDER_TOLERANCE * point.input_pps
    ]
    flagged = sum(point.flagged is not None for point in known)
    notes = (
        _counted(len(points) - len(usable), "in which nothing was sent: left out"),
        _counted(len(usable) - len(known), "at which the sender's interface counted another rate: left out"),
        _counted(flagged, "flagged: counted at the rate actually sent"),
    )
    return tuple(sorted(map(_observed, known), key=lambda each: each.rate)), tuple(filter(None, notes))


def _counted(count: int, what: str) -> str:
    return f"{count} point{'s' if count > 1 else ''} {what}" if count else ""


def _observed(point: SweepPoint) -> LoadObservation:
    return LoadObservation(
        rate=point.input_bps / GIGA,
        values={
            ProfileMetric.THROUGHPUT: point.output_bps / GIGA,
            ProfileMetric.DELAY: None if point.delay_s is None else 1e3 * point.delay_s,
            ProfileMetric.LOSS: None if point.loss_ratio is None else 100 * point.loss_ratio,
        },
        cpu=point.cpu,
        busy=point.busy,
        memory_mib=point.memory_mib,
    )
