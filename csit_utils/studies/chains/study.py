"""Chain studies in reports: their page, records, and explanations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report import figures
from csit_utils.report.characterizations import page_of_records
from csit_utils.report.details.flames import FlameGraph
from csit_utils.report.explanations import Explanation
from csit_utils.report.figures import DASHES, Figure, Json, axes, scatter, step_of, thinned_words
from csit_utils.report.stack_sides import grown
from csit_utils.report.study import QueriedTables, RecordKind, Study, View
from csit_utils.report.units import bandwidth
from csit_utils.studies.chains.behaviour_figures import (
    chains_figure,
    classes_figure,
    furthest,
    name_of,
    sizes_words,
    workload_words,
)
from csit_utils.studies.chains.event_figures import events_figure, extra_cpu_figure, graphs_figure, steps_figure
from csit_utils.studies.chains.part_figures import parts_figure
from csit_utils.studies.chains.suspect_stacks import stacks_of, stacks_of_suspects
from csit_utils.studies.chains.volume_figures import distances_figure, resources_figure, throughput_figure
from resources.libraries.python.studies.chains.analysis import tables
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.analysis.sentences import (
    bound_in_words,
    cause_in_words,
    verdict_in_words,
)
from resources.libraries.python.studies.chains.model.record import (
    ChainRun,
    ChainsRecord,
    ChainStudy,
    FeatureDeviation,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import Chain, load_chains
from resources.libraries.python.studies.chains.planning.chain_generation import cost, generate

EXPLANATIONS = (
    Explanation(
        "cooks-distance",
        "Cook's distance",
        "Influence of a chain on the regression line through all chains: feature against volume.",
        "No unit. Above 4/n (n points) a point is influential; a chain whose mean over all features is above it is a "
        "suspect.",
        "For each feature of each VNF a line of feature against offered volume is fitted through the means of all "
        "chains with that VNF; the distance is that of Probius (Nam et al.). Extraordinary seconds are left out by the "
        "interquartile range.",
        "It finds differences, not faults: if half of the chains are slow, the fast ones are "
        "suspects too. With few chains or volumes almost any point is influential; see the reasons and the baselines.",
    ),
    Explanation(
        "worse-than-predicted",
        "Worse than predicted",
        "A quantity of a chain is worse than its VNFs alone predict: throughput, loss, latency, or a VNF's waiting for "
        "a CPU, throttled time, reads from storage, CPU time per packet.",
        "The excess over the prediction, with a 95 % interval by the spread of repeated runs; relative for throughput "
        "and CPU time per packet.",
        "Throughput is predicted by the slowest VNF and the busiest CPU, loss by the VNFs' losses, latency by their "
        "sum less the path that each of them contains. Chains that deviate are measured again, with their VNFs, and "
        "only these runs decide: Student's t at 1 % over all comparisons of a study.",
        "It needs the VNFs alone. Where VNFs share CPUs, only larger excesses count, and latency under load is not "
        "compared. Where a VNF is saturated, only throughput, losses inside VNFs and their accounts are.",
    ),
    Explanation(
        "cause",
        "Common cause",
        "What the chains with the same excess have in common, and the others have not: a VNF, its place, what it "
        "follows, its resources, its CPU, the length.",
        "The excess is a mean with a 95 % interval. Chance: the share of all choices of as many chains that have "
        "something in common as well.",
        "The smallest set of descriptions that holds for all chains with the excess and for no other, by exact search.",
        "Descriptions of the same chains cannot be told apart. With few chains most choices have something in common.",
    ),
    Explanation(
        "ground-truth",
        "Baseline of a VNF",
        "The behaviour of a VNF in a chain of its own, with which longer chains are compared.",
        "Unit of the feature; a value outside of the mean plus or minus three standard deviations has changed.",
        "Chains of one VNF are always measured, under the same workloads.",
        "In a longer chain less traffic may reach a VNF, which changes its features. On few cores, where "
        "VNFs share CPUs, all features change; results are marked accordingly.",
    ),
    Explanation(
        "workflow-class",
        "Workflow classes",
        "Activity of the threads of a VNF by pairs of kernel events: initialization, hard and soft "
        "switches, computation, memory access, interrupts, I/O, idleness, and other.",
        "Share of the traced time; times a second.",
        "Of virtual machines by events of KVM (Table 2 of Probius), of network namespaces by scheduling, interrupt, "
        "NAPI and network events, by a mapping that docs/methodology.md defines.",
        "Shares of the two sources are not comparable. A polling thread always computes.",
    ),
)
MAX_CHANGED = 12
"""Changed features of a suspect, the furthest first."""
MAX_EXPLAINED = 20
"""Suspects with reasons and changed features; others are in the table, and in the CSV files."""


@dataclass(frozen=True)
class ChangedFeature:
    """A feature of a VNF that is not as when the VNF was alone."""

    row: FeatureDeviation
    meaning: str
    unit: str

    @property
    def ratio(self) -> float | None:
        """Change against the VNF alone; None from nothing."""
        return self.row.here / self.row.alone - 1 if self.row.alone else None


@dataclass(frozen=True)
class SuspectView:
    """A suspect on the page."""

    id: str
    """Id of its reasons and evidence, for links."""
    rank: int
    suspect: Suspect
    changed: tuple[ChangedFeature, ...]
    grown: tuple[str, ...] = ()
    """Functions that take more time than in the reference."""
    flames: FlameGraph | None = None
    unsampled: str | None = None
    """Reason why its call stacks, or those of its reference, are not shown, where they were asked for."""

    @property
    def is_explained(self) -> bool:
        """Whether its reasons and evidence are on the page."""
        return self.rank <= MAX_EXPLAINED and bool(self.suspect.reasons or self.changed)


@dataclass(frozen=True)
class StudiedChains:
    """A study on the page."""

    view: View
    chains: Figure | None
    parts: Figure | None
    """Delay and loss by part, of suspects."""
    compared: tuple[Figure, ...]
    """Throughput, distances and resources against the volume; samples over time."""
    traced: tuple[Figure, ...]
    """Figures of what was traced: workflow classes, events and state transitions."""
    suspects: tuple[SuspectView, ...]
    runs: tuple[ChainRun, ...]
    failed: tuple[ChainRun, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that the page's script needs."""
        return (*filter(None, (self.chains, self.parts)), *self.compared, *self.traced)


def _studied(view: View) -> StudiedChains:
    study = view.record.chain_study
    if study is None:
        return StudiedChains(view, None, None, (), (), (), (), ())
    over = (throughput_figure, distances_figure, resources_figure, extra_cpu_figure, series_figure, steps_figure)
    compared = (make(view.anchor, study, simulated=view.simulated) for make in over)
    of_traces = (classes_figure, events_figure, graphs_figure)
    traced = (make(view.anchor, study, simulated=view.simulated) for make in of_traces)
    return StudiedChains(
        view,
        chains_figure(view.anchor, study, simulated=view.simulated),
        parts_figure(view.anchor, study, simulated=view.simulated),
        tuple(figure for figure in compared if figure is not None),
        tuple(figure for figure in traced if figure is not None),
        tuple(_suspected(view, study, rank, suspect) for rank, suspect in enumerate(study.suspects, 1)),
        tuple(run for run in study.runs if run.failed is None),
        tuple(run for run in study.runs if run.failed is not None),
    )


def _suspected(view: View, study: ChainStudy, rank: int, suspect: Suspect) -> SuspectView:
    found = SuspectView(f"{view.anchor}-suspect-{rank}", rank, suspect, _changed(suspect))
    if not study.stacks or rank > MAX_EXPLAINED:
        return found
    if cell := stacks_of(study, suspect, simulated=view.simulated):
        return replace(found, grown=grown(cell), flames=cell.graph(f"Call stacks: {cell.name}, per packet"))
    return replace(found, unsampled=_unsampled(study, suspect))


def _unsampled(study: ChainStudy, suspect: Suspect) -> str:
    if suspect.reference is None:
        return "there is no chain to compare it with that is no suspect"
    pair = study.stacks_of(suspect) or ()
    failed = [f"{each.chain.name} was {each.sampled}" for each in pair if each.stacks is None]
    empty = [f"no packet or no sample of {each.chain.name}" for each in pair if each.stacks is not None]
    return "; ".join(failed or empty) or "it is not among the first suspects"


def _changed(suspect: Suspect) -> tuple[ChangedFeature, ...]:
    rows = sorted(suspect.deviations, key=lambda row: -abs(row.here - row.alone) / (row.alone_stdev or 1e-12))
    known = ((row, feature(row.feature)) for row in rows[:MAX_CHANGED])
    return tuple(ChangedFeature(row, one.meaning, one.unit) for row, one in known)


def _highest_throughput(record: ChainsRecord, figure: PublishedFigure) -> float | None:
    """Return the highest throughput of a VNF of the same kind and mode alone, Mbit/s."""
    study = record.chain_study
    if study is None:
        return None
    names = {vnf.name for vnf in study.spec.vnfs if f"{vnf.kind} {vnf.mode}" == figure.match}
    rates = [
        run.throughput_bps
        for run in study.runs
        if len(run.chain.members) == 1 and run.chain.order[0] in names and run.throughput_bps is not None
    ]
    return max(rates) / 1e6 if rates else None


PAGE = page_of_records(
    "chain_study",
    "Chain study",
    "chains",
    "studies",
    _studied,
    published=_highest_throughput,
    workload_words=workload_words,
    cause_in_words=cause_in_words,
    bound_in_words=bound_in_words,
    sizes_words=sizes_words,
)
"""Shown where there is a study of chains."""


def series_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """A choice for each chain and each feature, suspects first; lines are owners and workloads."""
    runs: dict[Chain, list[ChainRun]] = {}
    for run in study.runs:
        if run.series and run.failed is None:
            runs.setdefault(run.chain, []).append(run)
    ranked = [chain for chain in reversed(furthest(study)) if chain in runs]
    chosen = _fitting(ranked, runs)
    if not chosen:
        return None
    samples = sum(_samples(runs[chain]) for chain in chosen)
    step = step_of(samples)
    names = list(dict.fromkeys(each.feature for chain in chosen for run in runs[chain] for each in run.series))
    variants: Json = {}
    for chain in chosen:
        for name in names:
            unit = feature(name).unit
            variants[f"{name_of(chain, chosen)}|{name}"] = {
                "data": list(_series_lines(runs[chain], name, step)),
                "layout": axes("time, s", f"{name}, {unit}" if unit else name),
            }
    selectors = (tuple(name_of(chain, chosen) for chain in chosen), tuple(names))
    left = f" ({len(chosen)} of {len(runs)} chains)" if len(chosen) < len(runs) else ""
    title = f"Sampled features over time{left}{thinned_words(step, samples)}"
    return Figure(f"{anchor}-series", title, simulated, selectors, variants)


def _fitting(ranked: Sequence[Chain], runs: dict[Chain, list[ChainRun]]) -> list[Chain]:
    """Chains until the page has enough; the first one in any case."""
    chosen: list[Chain] = []
    total = 0
    for chain in ranked:
        total += _samples(runs[chain])
        if chosen and total > figures.MAX_VALUES:
            break
        chosen.append(chain)
    return chosen


def _samples(runs: Sequence[ChainRun]) -> int:
    return sum(len(each.values) for run in runs for each in run.series)


def _loads(runs: Sequence[ChainRun]) -> list[str]:
    """Label that distinguishes the runs of a chain: nothing, the volume, or the whole workload."""
    volumes = [bandwidth(run.workload.volume_bps) for run in runs]
    if len(runs) == 1:
        return [""]
    return volumes if len(set(volumes)) == len(runs) else [workload_words(run.workload) for run in runs]


def _series_lines(runs: Sequence[ChainRun], name: str, step: int) -> Iterator[Json]:
    """A colour for each owner, a dash for each workload."""
    owners = list(dict.fromkeys(each.owner for run in runs for each in run.series))
    loads = _loads(runs)
    for number, run in enumerate(runs):
        for each in run.series:
            if each.feature == name:
                text = ", ".join(filter(None, (each.owner, loads[number])))
                yield scatter(
                    text,
                    islice(enumerate(each.values, 1), 0, None, step),
                    owners.index(each.owner),
                    hover=f"{escape(text)}, second %{{x}}: %{{y:.4~g}}",
                    line={"width": 2, "dash": DASHES[number % len(DASHES)]},
                    marker={"size": 4},
                )


def headline(study: ChainStudy) -> str:
    """Return the number of measured chains, and the first suspect with its reason."""
    measured = len({run.chain for run in study.runs if run.failed is None})
    failed = len({run.chain for run in study.runs if run.failed is not None})
    begin = f"{measured} of {study.chains} chains were measured" if measured < study.chains else f"{measured} chains"
    failures = f", {failed} failed" if failed else ""
    if not study.suspects:
        return f"{begin}{failures}; {verdict_in_words(study)}"
    if study.causes:
        return f"{begin}{failures}; {cause_in_words(study.causes[0])}"
    first = study.suspects[0]
    planted = " (a fault was planted in it)" if first.planted else ""
    reason = f": {first.reasons[0]}" if first.reasons else ""
    suspects = f"{len(study.suspects)} suspect{'s' * (len(study.suspects) != 1)}"
    return f"{begin}{failures}; {suspects}, first {first.chain.name}{planted}{reason}"


def _lines(study: ChainStudy) -> Iterator[str]:
    yield from map(cause_in_words, study.causes)
    for rank, suspect in enumerate(study.suspects, 1):
        by = f" ({', '.join(suspect.rules)})" if suspect.rules else ""
        why = "; ".join(suspect.reasons)
        yield f"{rank}. {suspect.chain.name}{by}, mean distance {suspect.mean_distance:.3g}: {why}"
    yield from map(bound_in_words, study.bounds)
    yield from (*study.judged, *study.notes)


_QUERIED = QueriedTables(
    {
        "runs": tables.RUNS,
        "statistics": tables.STATISTICS,
        "suspects": tables.SUSPECTS,
        "causes": tables.CAUSES,
        "reasons": tables.REASONS,
        "references": tables.REFERENCES,
    },
    texts=(
        "chain", "resources", "protocol", "frame", "planted", "failed", "owner", "feature", "unit", "reason", "rules",
        "measure", "reference", "reference_resources", "relation", "what", "same", "names",
    ),
    counts=("sessions", "samples", "filtered", "rank", "chains", "others"),
    prefix="chains_",
)  # fmt: skip
"""Samples, call stacks and transitions, the largest part, are in the record only."""
STUDY = Study(
    order=40,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "chains",
            "Chain study",
            lambda record: record.chain_study,
            lambda study: str(study.spec.name),
            headline,
            lines=_lines,
            tables=tables.chain_tables,
            queried=_QUERIED,
            stacks=stacks_of_suspects,
        ),
    ),
    explanations=EXPLANATIONS,
    preview=lambda path, keys: cost(generate(load_chains(path, keys))),
)
