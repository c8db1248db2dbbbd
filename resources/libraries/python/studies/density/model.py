"""The records of a density test (every trial, the answers and why to trust them) and of a cell that does not fit."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.model.base import ON_FIRST_USE, Frozen, is_empty, is_none
from resources.libraries.python.model.findings import ItemizedFigure, LocatedLosses
from resources.libraries.python.model.measurements.energy import Energy
from resources.libraries.python.model.measurements.node_costs import CostByNode, NodeCosts
from resources.libraries.python.model.measurements.stacks import Stacks
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.goal import GoalResult, SearchRecord
from resources.libraries.python.model.result import (
    Affinity,
    AtRate,
    BackToBack,
    LatencyAtLoad,
    LossesAtLoad,
    MeasurementRequest,
    ReceiveRate,
    Verdict,
)

_MAX_NODES = 64
"""Nodes of a row, those that take the most time; the packed part has all, by thread."""


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
    costs: tuple[CostByNode, ...]
    vswitch_clocks: float | None
    """Clocks of the vSwitch for each packet that came back; None where it counts none."""
    latency: tuple[WorstLatency, ...]
    """A part for each load at which it was measured."""


class DensityRecord(Record):
    """One cell with one frame size and test type."""

    study: Literal["density"] = "density"
    asked: MeasurementRequest
    unfit: bool = Field(default=False, exclude_if=is_empty)
    """Whether it does not fit on the testbed, as planning found. A test may fail before it is planned."""
    verdict: Verdict
    trials: Annotated[tuple[TrialResult, ...], PACKED]
    ndr: GoalResult | None = None
    pdr: GoalResult | None = None
    soak: GoalResult | None = None
    """The load that keeps a small loss ratio over minutes."""
    search: SearchRecord | None = None
    """Course of the throughput search; None without one."""
    mrr: ReceiveRate | None = None
    """Maximum receive rate: at line rate, or at the most that the generator can send."""
    orr: ReceiveRate | None = Field(default=None, exclude_if=is_none)
    """Overload receive rate: at the load where a search begins, at most four times the best that was seen to come back.
    None where that is the load of MRR."""
    at_rate: AtRate | None = Field(default=None, exclude_if=is_none)
    """Trials at a rate that was asked for, in the place of a search."""
    latency: Annotated[tuple[LatencyAtLoad, ...], PACKED] = ()
    losses: Annotated[tuple[LossesAtLoad, ...], PACKED] = Field(default=(), exclude_if=is_empty)
    """Losses, duplicates and reordering of every packet, where they were asked for."""
    loss_patterns: dict[str, str] = Field(default_factory=dict, exclude_if=is_empty)
    """Loss patterns of each of these loads, the flow that lost or reordered most, in a sentence."""
    back_to_back: BackToBack | None = Field(default=None, exclude_if=is_none)
    """Longest bursts without a loss, where they were asked for."""
    energy: Energy | None = Field(default=None, exclude_if=is_none)
    """Power of the nodes and energy per packet, where they were asked for."""
    stacks: Annotated[Stacks | None, PACKED] = Field(default=None, exclude_if=is_none)
    """Call stacks of the data CPUs in a trial at the rate that was found, where they were asked for."""
    stacks_sampled: str | None = Field(default=None, exclude_if=is_none)
    """How many of them were sampled and how, in a sentence; None where there are none."""
    costs: Annotated[NodeCosts | None, PACKED] = Field(default=None, exclude_if=is_none)
    """Cost of packets by node, where programs count it or call stacks were sampled."""
    affinity: Annotated[tuple[Affinity, ...], PACKED] = ()
    itemized: Annotated[tuple[ItemizedFigure, ...], PACKED] = ()
    """Throughput figures per instance and direction."""
    located: Annotated[LocatedLosses | None, PACKED] = None
    """Located losses beyond the limit."""

    @property
    def cell(self) -> Cell:
        """The cell that was asked for."""
        return self.asked.cell

    @property
    def file_prefix(self) -> str:
        """The service type, as in CSIT's names of results."""
        return self.cell.service_type

    def anchor(self, digest: str) -> str:
        """As of other records, with the cell."""
        return f"test-{self.cell.service_type}-{self.cell.locator}-{self.asked.test_type}-{digest[:8]}".lower()

    def counted(self, digest: str) -> Mapping[str, Any]:
        """Those of `Counted`."""
        counted = Counted(
            digest=digest,
            environment=self.environment.digest,
            version=self.version,
            revision=self.environment.revision,
            planned=self.plan is not None,
            oversubscribed=self.plan is not None and self.plan.cores.oversubscribed,
            real_cores=None if self.plan is None else _real_cores(self.plan),
            trials=len(self.trials),
            trials_s=sum(trial.total_duration_s for trial in self.trials),
            costs=() if self.costs is None else self.costs.by_node(_MAX_NODES),
            vswitch_clocks=None if self.costs is None else self.costs.vswitch_clocks,
            latency=tuple(map(_worst, self.latency)),
        )
        return asdict(counted)


def _worst(found: LatencyAtLoad) -> WorstLatency:
    def highest(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    return WorstLatency(
        found.label,
        highest(flow.p50_ns for flow in found.flows),
        highest(flow.p99_ns for flow in found.flows),
        highest(flow.p999_ns for flow in found.flows),
    )


def _real_cores(plan: Plan) -> float:
    """Of the (first) DUT, as data cores are counted. A generator on it has one thread on each of its cores."""
    return float(plan.cores.cores_needed - sum(thread.owner == "generator" for thread in plan.cores.on(None)))


class RefusedCell(Frozen):
    """A cell that suites leave out because it does not fit on the testbed."""

    cell: Cell
    reason: str
    """With the numbers: `needs 33 cores on NUMA 0, 28 available`."""


REFUSED_CELLS = TypeAdapter(tuple[RefusedCell, ...], config=ON_FIRST_USE)
"""JSON of those of a suite."""
