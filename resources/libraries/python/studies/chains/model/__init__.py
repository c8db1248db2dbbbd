"""Record of a chain study: features each second, state transitions, and what stands out (Probius, Nam et al.)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from resources.libraries.python.model.base import Frozen, first_error, is_empty, is_none
from resources.libraries.python.model.findings import Coverage
from resources.libraries.python.model.measurements.features import FeatureSeries, StateGraph
from resources.libraries.python.model.measurements.stacks import Stacks, described
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Workload


class Summary(Frozen):
    """Mean and standard deviation of a feature, extraordinary seconds filtered out by the interquartile range."""

    owner: str
    """A VNF of the chain, CHAIN, HOST or VSWITCH of `behaviour`."""
    feature: str
    mean: float
    stdev: float
    samples: int
    """Seconds that are left after the filter."""
    filtered: int


class Statistic(Summary):
    """The same, with what it was measured of."""

    chain: Chain
    workload: Workload


class OfRun(Frozen):
    """All features of one chain under one workload. In a record; everywhere else there are statistics."""

    chain: Chain
    workload: Workload
    features: tuple[Summary, ...]


class _Head(Frozen):
    """Common part of the features of a run."""

    chain: Chain
    workload: Workload
    features: tuple[dict[str, Any], ...]


def _grouped(statistics: Iterable[Statistic]) -> tuple[OfRun, ...]:
    """In their order: a run whose features are not in one row is said more than once."""
    return tuple(
        OfRun(chain=chain, workload=workload, features=tuple(features))
        for (chain, workload), features in groupby(statistics, lambda each: (each.chain, each.workload))
    )


def _flat(value: object) -> object:
    return list(_each(value)) if isinstance(value, list | tuple) else value


def _each(parts: Iterable[Any]) -> Iterator[Any]:
    for number, part in enumerate(parts):
        if isinstance(part, Statistic):
            yield part
            continue
        try:
            head = _Head.model_validate(part)  # once: checking it in each statistic takes most of the time
        except ValidationError as error:
            where, reason = first_error(error)
            raise ValueError(f"{number}.{where}: {reason}") from error
        yield from ({**row, "chain": head.chain, "workload": head.workload} for row in head.features)


Statistics = Annotated[
    tuple[Statistic, ...],
    BeforeValidator(_flat, json_schema_input_type=tuple[OfRun, ...]),
    PlainSerializer(_grouped, return_type=tuple[OfRun, ...]),
]
"""Statistics, which a record groups by run."""


MEAN_DISTANCE = "mean distance"
"""Rule: the mean of a chain's distances is above the mean of their thresholds (Probius, section 6.2)."""
WORSE = "worse than predicted"
"""Rule: a quantity is worse than the VNFs alone predict, see `analysis.prediction`."""
RULES = (MEAN_DISTANCE, WORSE)


Step = Literal["deploy and remove", "sample features", "read kernel events", "analyse"]
"""Steps of a study of chains that take time of a CPU beside what is measured."""


class StepCost(Frozen):
    """Cost of a step of a study; generator, vSwitch and VNFs are not in it."""

    step: Step
    cpu_s: float
    """Processor time of this program, and of what reads for it."""
    lasted_s: float


class PartLoss(Frozen):
    """Packets that a part of a chain lost, located by the counters of all hops."""

    owner: str
    """A VNF of the chain, or VSWITCH."""
    cause: Literal["queue", "inside", "link"]
    """As of `HopLoss`: its receive queue was full, it did not send on what it received, or a link lost them."""
    ratio: float
    """Share of the packets that were sent into the chain, in [0, 1]."""


class PartDelay(Frozen):
    """Delay of one part of a chain without load, in a trial after that of the latency.

    What belongs to a part is at `HopDelay`; all parts of a chain add up to the time between the hops that are visible.
    """

    owner: str
    """A VNF of the chain, VSWITCH, LINK (to the port of the generator), or several joined by JOINT where no packet can
    be seen between them."""
    mean_s: float
    """One way, of the packets of both directions together."""
    median_s: float
    """Mean of the medians of both directions: what a pause of the machine, which hits few packets, does not change."""
    packets: int


class ChainRun(Frozen):
    """One chain under one workload."""

    chain: Chain
    workload: Workload
    offered_bps: float | None
    """L2 bits per second that were sent, one way; None where nothing was measured."""
    throughput_bps: float | None
    """L2 bits per second that arrived, one way, as the receiver counted; None where nothing was measured."""
    loss_ratio: float | None
    """In [0, 1]; None where the protocol repairs losses or nothing was sent."""
    latency_s: float | None
    """Mean, one way, under the load; None where it was not measured."""
    idle_latency_s: float | None
    """The same without load."""
    delays: tuple[PartDelay, ...] | None = Field(default=None, exclude_if=is_none)
    """Where packets spend their time without load; None where that was not measured."""
    series: tuple[FeatureSeries, ...]
    cpus: Mapping[str, float] = Field(default_factory=dict)
    """CPUs that each VNF may use: those of its data threads, or its limit where that is less."""
    placed: Mapping[str, tuple[int, ...]] = Field(default_factory=dict, exclude_if=is_empty)
    """Logical CPUs of the data threads of each VNF and of VSWITCH."""
    losses: tuple[PartLoss, ...] | None = Field(default=None, exclude_if=is_none)
    """By part, those that lost nothing left out; None where hops were not counted."""
    graphs: tuple[StateGraph, ...] = ()
    planted: str | None = None
    """The fault planted in it; None where none was."""
    failed: str | None = None
    """Reason why it was not measured; None where it was."""

    @model_validator(mode="after")
    def _rates_are_known(self) -> Self:
        if self.failed is None and (self.offered_bps is None or self.throughput_bps is None):
            raise ValueError("a run without throughput needs a reason")
        return self

    @property
    def share(self) -> float | None:
        """Share of sent packets that arrived, in [0, 1]; None where nothing was sent."""
        return None if self.throughput_bps is None or not self.offered_bps else self.throughput_bps / self.offered_bps


class Distance(Frozen):
    """Cook's distance of one chain and workload in one feature of one owner."""

    chain: Chain
    owner: str
    workload: Workload
    feature: str
    distance: float
    threshold: float
    """4/n."""
    expected: float
    """Value of the regression line through all chains at this volume."""
    measured: float


class Excess(Frozen):
    """A quantity of a chain that is worse than the VNFs alone predict."""

    chain: Chain
    owner: str
    """The VNF or VSWITCH where it arises; CHAIN where that is not known."""
    workload: Workload
    feature: str
    measured: float
    """Mean of the runs that decide."""
    expected: float
    """Prediction from the VNFs alone."""
    excess: float
    """Measured beyond expected, for the worse positive; relative for throughput and CPU time per packet."""
    low: float
    """95 % confidence interval of the excess, by the spread of repeated runs; the excess itself where none are."""
    high: float
    least: float
    """Smallest excess that is reported."""
    runs: int
    """Runs of the chain that decide: the repeated ones, or the only one."""

    @property
    def strength(self) -> float:
        """Ratio of the excess to the smallest one that is reported."""
        return self.excess / self.least


class CommonCause(Frozen):
    """What chains with the same excess have in common, and the other chains have not."""

    owner: str
    """As of the excess."""
    feature: str
    what: str
    """In words: `every chain in which nat follows gateway`."""
    chains: tuple[Chain, ...]
    """Chains with the excess."""
    others: int
    """Chains that were judged and do not have it."""
    excess: float
    """Mean over the chains, of the workload at which it is largest in each, as of `Excess`."""
    low: float
    """95 % confidence interval of the mean; of one or two chains, of both together."""
    high: float
    smallest: float
    """Of all chains and workloads that have it."""
    same: tuple[str, ...] = ()
    """Other descriptions of the same chains, which this study cannot tell apart from `what`."""
    chance: float | None = None
    """Probability that any of the descriptions considered fits as many chains, chosen at random; None for one chain."""
    only_under: tuple[Workload, ...] = Field(default=(), exclude_if=is_empty)
    """Workloads under which the chains have the excess, where that is not under all."""


class FeatureDeviation(Frozen):
    """A feature outside of what the VNF shows alone: mean plus or minus three standard deviations."""

    owner: str
    workload: Workload
    feature: str
    alone: float
    alone_stdev: float
    here: float


class VnfBound(Frozen):
    """What bounds a VNF alone, at the highest volume that it was offered."""

    vnf: str
    bound: Literal["CPU", "network", "disk", "none"]
    evidence: str


class ChangedChain(Frozen):
    """A chain that is no suspect, and features of its VNFs that are not as alone."""

    chain: Chain
    deviations: tuple[FeatureDeviation, ...]
    """The largest changes, the largest first."""


class ClassPortion(Frozen):
    """Share of a VNF's traced time (or of its events) in one of the nine workflow classes of Table 2."""

    owner: str
    workflow: str
    """A name of `behaviour.classes`."""
    count_per_s: float
    time_ratio: float
    """Share of the traced time, in [0, 1]."""
    alone_count_per_s: float | None
    """The same VNF alone; None where it was not measured alone."""
    alone_time_ratio: float | None


class Reference(Frozen):
    """A chain that is no suspect, with which the call stacks of a suspect are compared."""

    chain: Chain
    workload: Workload
    """That under which the suspect stands out most."""
    relation: str
    """Its difference from the suspect: `the same VNFs in another order`, or `without nat`."""


class Suspect(Frozen):
    """A chain that stands out, with the reasons."""

    chain: Chain
    mean_distance: float
    """Over all features and workloads."""
    threshold: float
    """Mean of 4/n: a chain with a larger mean distance is a suspect."""
    distances: tuple[Distance, ...]
    """Those above the threshold, largest first."""
    worse: tuple[Excess, ...] = Field(default=(), exclude_if=is_empty)
    """The largest excess of each owner and feature, the largest first."""
    deviations: tuple[FeatureDeviation, ...] = ()
    portions: tuple[ClassPortion, ...] = ()
    """Portions of its VNFs, under the workload at which it stands out most."""
    reasons: tuple[str, ...] = ()
    """Plain sentences with their evidence, the strongest first."""
    planted: str | None = None
    reference: Reference | None = Field(default=None, exclude_if=is_none)
    """None where no other chain or VNF alone is known to be well."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules by which it is a suspect."""
        by_mean = (MEAN_DISTANCE,) if self.distances and self.mean_distance > self.threshold else ()
        return (*by_mean, *([WORSE] if self.worse else []))

    @property
    def strength(self) -> float:
        """Ratio to the limit of its strongest rule; suspects are ranked by it."""
        by_mean = self.mean_distance / self.threshold if self.distances else 0.0
        return max(by_mean, *(each.strength for each in self.worse), 0.0)


class ChainStacks(Frozen):
    """Call stacks of a chain under one workload, in a trial after all others and in a deployment of its own."""

    chain: Chain
    workload: Workload
    throughput_bps: float | None = None
    """As of a run, in this trial."""
    stacks: Stacks | None = None
    """The owner of a stack is a VNF of the chain, VSWITCH or SOFTIRQ."""
    failed: str | None = None
    """Reason why they were not sampled; None where they were."""

    @property
    def sampled(self) -> str:
        """Samples, or the reason why there are none."""
        return described(self.stacks) if self.stacks is not None else f"not sampled: {self.failed}"


class DroppedChains(Frozen):
    """Chains that a policy forbids."""

    policy: str
    count: int
    examples: tuple[tuple[str, ...], ...]


class ChainStudy(Frozen):
    """Part of a record: the chains of a policy, measured and compared."""

    spec: ChainStudySpec
    chains: int
    """Measured or to be measured, resource combinations included."""
    dropped: tuple[DroppedChains, ...] = ()
    runs: tuple[ChainRun, ...] = ()
    """One for each chain and workload."""
    repeated: tuple[ChainRun, ...] = Field(default=(), exclude_if=is_empty)
    """Runs of the chains that deviated from their VNFs alone, of these and of the path, once more."""
    path: tuple[ChainRun, ...] = Field(default=(), exclude_if=is_empty)
    """Runs of the path without VNFs."""
    statistics: Statistics = ()
    suspects: tuple[Suspect, ...] = Field(default=())
    """By falling strength."""
    causes: tuple[CommonCause, ...] = Field(default=(), exclude_if=is_empty)
    """What the chains that are worse than predicted have in common, the largest excess first."""
    judged: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Sentences: what was judged with which error, and what could not be judged."""
    bounds: tuple[VnfBound, ...] = Field(default=(), exclude_if=is_empty)
    """What bounds each VNF alone."""
    changed: tuple[ChangedChain, ...] = Field(default=(), exclude_if=is_empty)
    """Chains that are no suspects, with what changed in them."""
    trace_source: str = ""
    """Traced events, and the reason why others were not; empty where nothing was traced."""
    notes: tuple[str, ...] = ()
    """Measurements that are missing, with reasons."""
    costs: tuple[StepCost, ...] = ()
    """Costs of all chains together."""
    stacks: tuple[ChainStacks, ...] = Field(default=(), exclude_if=is_empty)
    """Of the first suspects and their references, where they were asked for."""

    def stacks_of(self, suspect: Suspect) -> tuple[ChainStacks, ChainStacks] | None:
        """Return what was sampled of a suspect's reference and of the suspect; None where it was not tried."""
        reference = suspect.reference
        if reference is None:
            return None
        found = {(each.chain, each.workload): each for each in self.stacks}
        pair = found.get((reference.chain, reference.workload)), found.get((suspect.chain, reference.workload))
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])

    @property
    def is_judged(self) -> bool:
        """Whether any chain of two and more VNFs could be compared with these alone."""
        measured = {(run.chain, run.workload) for run in self.runs if run.failed is None}
        return any(
            all((Chain(members=(member,)), workload) in measured for member in chain.members)
            for chain, workload in measured
            if len(chain.members) > 1
        )

    @property
    def coverage(self) -> Coverage:
        """Chains under one workload each."""
        measured = sum(run.failed is None for run in self.runs)
        return Coverage(measured, self.chains * len(self.spec.workloads))


class ChainsRecord(Record):
    """A study of chains."""

    study: Literal["chains"] = "chains"
    chain_study: Annotated[ChainStudy | None, PACKED] = None
