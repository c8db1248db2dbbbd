"""Figures of the packed part of a density record that the row of a test has, counted when the record is written."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.libraries.python.model.core_map import GENERATOR
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import LatencyAtLoad

if TYPE_CHECKING:
    from resources.libraries.python.studies.density.model.record import DensityRecord


@dataclass(frozen=True, slots=True)
class WorstLatency:
    """Percentiles of latency at one load, each the highest of all instances and directions."""

    label: str
    """As `LatencyAtLoad.label`."""
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None


@dataclass(frozen=True, slots=True)
class Counted:
    """Figures of the packed part of a record that the row of a test has."""

    digest: str
    """SHA-256 of the record's whole JSON: equal for one record, wherever it was written."""
    environment: str
    """Digest of the environment."""
    version: str
    revision: str | None
    planned: bool
    oversubscribed: bool
    """As planned; the verdict may say so too."""
    real_cores: float | None
    """None where there was no plan."""
    trials: int
    trials_s: float
    latency: tuple[WorstLatency, ...]
    """A part for each load at which it was measured."""


def counted(result: "DensityRecord", digest: str) -> Counted:
    """Count what rows need of a record with a digest."""
    return Counted(
        digest=digest,
        environment=result.environment.digest,
        version=result.version,
        revision=result.environment.revision,
        planned=result.plan is not None,
        oversubscribed=result.plan is not None and result.plan.cores.oversubscribed,
        real_cores=_real_cores(result.plan),
        trials=len(result.trials),
        trials_s=sum(trial.total_duration_s for trial in result.trials),
        latency=tuple(map(_worst, result.latency)),
    )


def _worst(found: LatencyAtLoad) -> WorstLatency:
    def highest(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    return WorstLatency(
        found.label,
        highest(flow.p50_ns for flow in found.flows),
        highest(flow.p99_ns for flow in found.flows),
        highest(flow.p999_ns for flow in found.flows),
    )


def _real_cores(plan: Plan | None) -> float | None:
    """Of the (first) DUT, as data cores are counted. A generator on it has one thread on each of its cores."""
    if plan is None:
        return None
    return float(plan.cores.cores_needed - sum(thread.owner == GENERATOR for thread in plan.cores.on(None)))
