"""Reasons of suspects: plain sentences with their evidence, the strongest first.

Each rule looks at one VNF under one workload, here and alone. Its strength is the share of the VNF's time or packets
that it explains, so that rules of different kinds can be put in one order. A rule states only what is outside the
ground truth: what a VNF shows alone as well explains nothing, and neither does what was not measured alone. The rules
are those that section 6.3 of Probius names (computation close to the time given, PAUSE exits as lock contention,
portions of classes), and those of a chain's queues, memory and CPU quotas.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resources.libraries.python.model.measurements.features import StateGraph
from resources.libraries.python.quantities import signed
from resources.libraries.python.studies.chains.analysis.classes import Workflow, pauses_per_s
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.model import ClassPortion, FeatureDeviation
from resources.libraries.python.studies.chains.model.spec import Member

CLOSE = 0.9
"""Share of the time given from which on a VNF is bound by its computation."""
NOTABLE = 0.05
"""Shares below are not worth a sentence."""
MORE_OFTEN = 2.0
"""Times as many, for counts."""
MIN_PER_S = 50.0
"""Counts below cost nothing."""


class WeightedReason(NamedTuple):
    """A sentence, and how much it explains."""

    strength: float
    """Share of time or packets, usually in [0, 1]."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Observations of one VNF of a chain under one workload."""

    member: Member
    here: Mapping[str, float]
    """Means by feature."""
    alone: Mapping[str, float]
    """The same VNF alone; empty where that was not measured."""
    changed: Collection[str] = ()
    """Features outside the ground truth, see `truth.deviations`."""
    cpus: float | None = None
    """That the VNF may use; None in records that do not have it."""
    portions: Sequence[ClassPortion] = ()
    graph: StateGraph | None = None
    graph_alone: StateGraph | None = None

    @property
    def name(self) -> str:
        """Name of the VNF."""
        return self.member.name

    def gain(self, name: str) -> float:
        """More of a feature than alone; 0 for a feature that is within the ground truth."""
        return self.here[name] - self.alone[name] if name in self.changed else 0.0


@dataclass(frozen=True, slots=True)
class QueueDrops:
    """Packets that queues between VNFs dropped, each second."""

    where: str
    """`the vSwitch`."""
    here: float
    alone: float | None
    """At most, with one of the VNFs alone; None where that was not measured."""
    passed_pps: float
    """That came through the chain."""


def reasons(
    evidence: Sequence[Evidence], deviations: Sequence[FeatureDeviation] = (), dropped: Sequence[QueueDrops] = ()
) -> tuple[WeightedReason, ...]:
    """Return the reasons for a chain, strongest first.

    `evidence`: One for each VNF of the chain, under the workload at which it stands out most.
    `deviations`: Of that workload; the largest is named where no rule says anything.
    `dropped`: Outside of the VNFs.
    """
    found = [reason for each in evidence for rule in _RULES for reason in rule(each)]
    found += [reason for each in dropped for reason in _dropped_between(each)]
    if not found and deviations:
        found = [_changed(deviations[0])]
    return tuple(sorted(found, key=lambda each: -each.strength))


def _bound_by_computation(each: Evidence) -> Iterator[WeightedReason]:
    ratio = {portion.workflow: portion.time_ratio for portion in each.portions}
    alone = {portion.workflow: portion.alone_time_ratio for portion in each.portions}
    given = 1 - ratio.get(Workflow.NOT_ASSIGNED, 0.0)
    if ratio and given > NOTABLE and ratio[Workflow.COMPUTATION] / given >= CLOSE:
        before = alone[Workflow.COMPUTATION]
        if before is not None and before < CLOSE * ratio[Workflow.COMPUTATION]:
            yield WeightedReason(
                ratio[Workflow.COMPUTATION],
                f"{each.name} is compute-bound: it computes {100 * ratio[Workflow.COMPUTATION] / given:.0f} % of the "
                f"time that it is given, {100 * before:.0f} % of all time alone",
            )
        return
    if each.cpus is None or each.gain("cpu_percent") <= 0:
        return
    used, before = (row["cpu_percent"] / 100 for row in (each.here, each.alone))
    if used >= CLOSE * each.cpus > before:
        yield WeightedReason(
            min(1.0, used / each.cpus),
            f"{each.name} is compute-bound: it uses {used:.2f} of {each.cpus:g} CPUs, {before:.2f} alone",
        )


def _locks(each: Evidence) -> Iterator[WeightedReason]:
    if each.graph is None or each.graph_alone is None:
        return
    here, alone = pauses_per_s(each.graph), pauses_per_s(each.graph_alone)
    if here >= MIN_PER_S and here >= MORE_OFTEN * alone:
        yield WeightedReason(
            1 - alone / here,
            f"{each.name} has lock contention: {here:,.0f} VM exits a second by PAUSE instructions, {alone:,.0f} alone",
        )


def _drops(each: Evidence) -> Iterator[WeightedReason]:
    for name, where, packets in (
        ("rx_dropped_pps", "the queue into", "rx_pps"),
        ("tx_dropped_pps", "the queue behind", "tx_pps"),
    ):
        more = each.gain(name)
        share = more / (more + each.here.get(packets, 0.0)) if more > 0 else 0.0
        if more >= MIN_PER_S and share >= NOTABLE / 10:
            yield WeightedReason(
                share,
                f"{where} {each.name} overflows: {each.here[name]:,.0f} packets a second are dropped, "
                f"{100 * share:.1f} % more than alone",
            )


def _dropped_between(each: QueueDrops) -> Iterator[WeightedReason]:
    share = each.here / (each.here + each.passed_pps) if each.here > 0 else 0.0
    if (
        each.alone is not None
        and each.here >= MIN_PER_S
        and each.here >= MORE_OFTEN * each.alone
        and share >= NOTABLE / 10
    ):
        yield WeightedReason(
            share,
            f"{each.where} drops {each.here:,.0f} packets a second, {each.alone:,.0f} at most with its VNFs alone",
        )


def _switches(each: Evidence) -> Iterator[WeightedReason]:
    """Context switches of the process, and hard switches of Table 2; a count explains less than a share of time."""
    counts: dict[str, tuple[float, float | None]] = {
        f"{how} context switches": (each.here[name], each.alone[name])
        for how, name in (("involuntary", "involuntary_switches"), ("voluntary", "voluntary_switches"))
        if name in each.changed
    }
    for portion in each.portions:
        if portion.workflow in {Workflow.HARD_SWITCH, Workflow.SOFT_SWITCH}:
            counts[f"{portion.workflow}es"] = portion.count_per_s, portion.alone_count_per_s
    for what, (here, alone) in counts.items():
        if alone is not None and here >= MIN_PER_S and here >= MORE_OFTEN * alone:
            yield WeightedReason(
                NOTABLE * (1 - alone / here),
                f"{what} of {each.name} rose to {here:,.1f} a second, {alone:,.1f} alone",
            )


def _portions_changed(each: Evidence) -> Iterator[WeightedReason]:
    for portion in each.portions:
        alone = portion.alone_time_ratio
        if alone is None or abs(portion.time_ratio - alone) < NOTABLE:
            continue
        more, verb = _MEANING.get(portion.workflow, (None, ""))
        if (portion.time_ratio > alone) == more:
            # Of next to nothing any share is thousands of percent more.
            grown = "" if alone < NOTABLE else f" ({signed(100 * (portion.time_ratio / alone - 1))} %)"
            yield WeightedReason(
                abs(portion.time_ratio - alone),
                f"{each.name} {verb}: {100 * portion.time_ratio:.0f} % of the time, {100 * alone:.0f} % alone{grown}",
            )


_MEANING: Mapping[str, tuple[bool, str]] = {
    Workflow.IDLENESS: (True, "spends more time idle"),
    Workflow.COMPUTATION: (False, "spends less time computing"),
    Workflow.IO: (True, "spends more time on I/O"),
    Workflow.INTERRUPT: (True, "spends more time on interrupts"),
    Workflow.MEMORY: (True, "spends more time on memory access"),
    Workflow.HARD_SWITCH: (True, "spends more time preempted"),
    Workflow.NOT_ASSIGNED: (True, "spends more time without a CPU"),
}
"""Whether more of a class than alone is worth a sentence, or less, and its verb."""

_RULES: tuple[Callable[[Evidence], Iterator[WeightedReason]], ...] = (
    _bound_by_computation,
    _locks,
    _drops,
    _switches,
    _portions_changed,
)


def _changed(deviation: FeatureDeviation) -> WeightedReason:
    known = feature(deviation.feature)
    return WeightedReason(
        0.0,
        f"{known.title} of {deviation.owner} ({known.meaning}) is {amount(deviation.here, known.unit)}, "
        f"{amount(deviation.alone, known.unit)} alone",
    )


def amount(value: float, unit: str) -> str:
    """Three digits: `12.3 %`, `90 MB`, `4,000 per second`."""
    for factor, prefix in _PREFIXES if unit in _WITH_PREFIX else ():
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {'per second' if unit == '1/s' else unit}".rstrip()


_WITH_PREFIX = {"B", "B/s", "bit/s", "pps"}
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
