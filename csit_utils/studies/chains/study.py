"""Chain studies in reports: their page, records, and explanations."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from csit_utils.analysis.flames import StackSide
from csit_utils.dataset.measures import Explanation
from csit_utils.dataset.reference import PublishedFigure
from csit_utils.report.details.flames import FlameGraph
from csit_utils.report.record_blocks import Column, DrawnTable, RecordTables, Row, Table, plots
from csit_utils.report.record_page import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.stack_sides import CellStacks, grown, remarks
from csit_utils.report.study import Page, QueriedTables, RecordKind, Study, View
from csit_utils.report.units import DASH, bandwidth, digits3, percent, seconds
from csit_utils.studies.chains.plots import chains_plot, compared_plots, parts_plot, sizes_words, traced_plots
from csit_utils.studies.chains.state_graphs import graphs_figure
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import MINUS, count
from resources.libraries.python.studies.chains.analysis import tables
from resources.libraries.python.studies.chains.analysis.distances import SAME_PERFORMANCE
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.analysis.reasons import amount
from resources.libraries.python.studies.chains.analysis.sentences import (
    bound_in_words,
    cause_in_words,
    headline,
    sentences,
    workload_words,
)
from resources.libraries.python.studies.chains.model import (
    ChainsRecord,
    ChainStacks,
    ChainStudy,
    FeatureDeviation,
    Reference,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import Mode, load_chains
from resources.libraries.python.studies.chains.planning import cost, generate


def stacks_of_suspects(record: ChainsRecord) -> Iterator[CellStacks]:
    """Yield the suspects whose call stacks were sampled, the first ones first."""
    study = record.chain_study
    if study is None:
        return
    for suspect in study.suspects:
        if found := stacks_of(study, suspect, simulated=record.simulated):
            yield found


def stacks_of(study: ChainStudy, suspect: Suspect, *, simulated: bool) -> CellStacks | None:
    """Return a suspect beside its reference, without VNFs that only one of them has; None where one has no stacks."""
    pair, reference = study.stacks_of(suspect), suspect.reference
    if pair is None or reference is None or pair[0].stacks is None or pair[1].stacks is None:
        return None
    orders = [set(each.chain.order) for each in pair]
    a, b = (StackSide((_without(each.stacks, orders[0] ^ orders[1]),)) for each in pair if each.stacks is not None)
    if not a.ns_per_sample or not b.ns_per_sample:
        return None
    load = bandwidth(reference.workload.volume_bps)
    return CellStacks(
        f"{suspect.chain.name} beside {reference.chain.name} at {load}",
        a,
        b,
        simulated,
        (*_remarks(study, suspect, reference, pair), *remarks(a, b)),
        per_packet=True,
        sides=(reference.chain.name, suspect.chain.name),
    )


def _without(found: Stacks, owners: Collection[str]) -> Stacks:
    nodes = []
    for node in found.nodes:
        kept = {stack: count for stack, count in node.stacks.items() if stack.partition(SEPARATOR)[0] not in owners}
        nodes.append(node.model_copy(update={"stacks": kept}))
    return found.model_copy(update={"nodes": tuple(nodes)})


def _remarks(
    study: ChainStudy, suspect: Suspect, reference: Reference, pair: tuple[ChainStacks, ChainStacks]
) -> Iterator[str]:
    yield f"the reference is {reference.relation}"
    missing = [name for name in suspect.chain.order if name not in reference.chain.order]
    if missing:
        hops = [
            1 + sum(study.spec.vnf(name).mode is Mode.INLINE for name in chain.order)
            for chain in (suspect.chain, reference.chain)
        ]
        yield (
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} left out; the vSwitch forwards a packet "
            f"{hops[0]} times, in the reference {hops[1]} times"
        )
    arrived = [each.stacks.received / (each.stacks.load_pps * each.stacks.trial_s) for each in pair if each.stacks]
    if abs(arrived[1] - arrived[0]) > SAME_PERFORMANCE:
        yield (
            f"{percent(arrived[1])} of the packets came back, {percent(arrived[0])} in the reference: times are per "
            "packet that came back, and include work for those that did not"
        )
    for each in pair:
        before = next(
            (run.throughput_bps for run in study.runs if (run.chain, run.workload) == (each.chain, each.workload)), None
        )
        now = each.throughput_bps
        if before is not None and now is not None and abs(now - before) > SAME_PERFORMANCE * max(now, before):
            yield (
                f"{each.chain.name} had {bandwidth(now)} when it was sampled, {bandwidth(before)} when it was measured"
            )


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
        "NAPI and network events, by a mapping that docs/method/chains.md defines.",
        "Shares of the two sources are not comparable. A polling thread always computes.",
    ),
)
MAX_CHANGED = 12
"""Changed features of a suspect, the furthest first."""
MAX_EXPLAINED = 20
"""Suspects with reasons and changed features; others are in the table, and in the CSV files."""


@dataclass(frozen=True)
class SuspectView:
    """A suspect on the page."""

    id: str
    """Id of its reasons and evidence, for links."""
    rank: int
    suspect: Suspect
    changed: DrawnTable | None
    """Features of its VNFs that are not as when these were alone."""
    grown: tuple[str, ...] = ()
    """Functions that take more time than in the reference."""
    flames: FlameGraph | None = None
    unsampled: str | None = None
    """Reason why its call stacks, or those of its reference, are not shown, where they were asked for."""

    @property
    def is_explained(self) -> bool:
        """Whether its reasons and evidence are on the page."""
        return _is_explained(self.rank, self.suspect)


def _is_explained(rank: int, suspect: Suspect) -> bool:
    return rank <= MAX_EXPLAINED and bool(suspect.reasons or suspect.deviations)


def _evidence(anchor: str, rank: int) -> str:
    """Id of the reasons and evidence of a suspect."""
    return f"{anchor}-suspect-{rank}"


def _ranked(view: View) -> Iterator[Row]:
    for rank, suspect in enumerate(view.record.chain_study.suspects, 1):
        yield {
            "rank": rank,
            "chain": suspect.chain.name,
            "href": f"#{_evidence(view.anchor, rank)}" if _is_explained(rank, suspect) else "",
            "planted": suspect.planted,
            "why": suspect.reasons[0] if suspect.reasons else DASH,
            "rule": ", ".join(suspect.rules) or DASH,
            "mean_distance": suspect.mean_distance,
            "above": len(suspect.distances),
        }


def _changed(found: Iterable[FeatureDeviation]) -> Iterator[Row]:
    for each in found:
        known = feature(each.feature)
        yield {
            "of": each.owner,
            "feature": known.title,
            "meaning": known.meaning,
            "volume_bps": each.workload.volume_bps,
            "alone": each.alone,
            "alone_words": amount(each.alone, known.unit),
            "stdev": each.alone_stdev,
            "stdev_words": amount(each.alone_stdev, ""),
            "here": each.here,
            "here_words": amount(each.here, known.unit),
            "change": each.here / each.alone - 1 if each.alone else None,
        }


def _changed_others(study: ChainStudy) -> Iterator[Row]:
    for other in study.changed:
        yield from ({**row, "chain": other.chain.name} for row in _changed(other.deviations))


def _dropped(study: ChainStudy) -> Iterator[Row]:
    for row in study.dropped:
        examples = "; ".join(" > ".join(order) for order in row.examples)
        yield {"policy": f"`{row.policy}`", "chains": row.count, "such as": examples}


def _runs(study: ChainStudy) -> Iterator[Row]:
    for run in study.runs:
        if run.failed is None:
            yield {
                "planted": run.planted,
                "chain": run.chain.name,
                "sizes": sizes_words(run.chain),
                "workload": workload_words(run.workload),
                "offered_bps": run.offered_bps,
                "throughput_bps": run.throughput_bps,
                "loss": run.loss_ratio,
                "latency_us": run.latency_s and 1e6 * run.latency_s,
                "latency": seconds(run.latency_s),
                "idle_latency_us": run.idle_latency_s and 1e6 * run.idle_latency_s,
                "idle": seconds(run.idle_latency_s),
            }


def _mbps(value: float) -> str:
    return f"{value / 1e6:.4g} Mbit/s"


def _signed(ratio: float) -> str:
    return f"{100 * ratio:+.0f} %".replace("-", MINUS)


_CHAIN = Column("chain", text=True, href="href", badge=("planted", "planted"))
_DEVIATIONS = (
    Column("of", text=True),
    Column("feature", text=True, tip="meaning"),
    Column("volume_bps", "volume", _mbps),
    Column("alone", words="alone_words"),
    Column("stdev", words="stdev_words"),
    Column("here", words="here_words"),
    Column("change", write=_signed),
)
_RANKED = Table(
    "suspects",
    _ranked,
    (
        Column("rank", write=str),
        _CHAIN,
        Column("why", text=True),
        Column("rule", text=True),
        Column("mean_distance", "mean distance", digits3),
        Column("above", "features above 4/n", str),
    ),
    "Suspects",
    ("cooks-distance", "Cook's distance"),
    classes="explanation",
)
_DEVIATING = Table("changed", _changed, _DEVIATIONS)
_OTHERS = Table(
    "changed-others",
    _changed_others,
    (_CHAIN, *_DEVIATIONS),
    folded="Changed features of chains that are no suspects",
    filter=True,
)
_DROPPED = Table(
    "dropped",
    _dropped,
    (Column("policy", text=True, code=True), Column("chains", write=count), Column("such as", text=True)),
    "Chains that policies forbid",
    classes="explanation",
)
_RUNS = Table(
    "chains",
    _runs,
    (
        _CHAIN,
        Column("sizes", text=True),
        Column("workload", text=True),
        Column("offered_bps", "offered", _mbps),
        Column("throughput_bps", "throughput", _mbps),
        Column("loss", write=percent),
        Column("latency_us", "latency", words="latency"),
        Column("idle_latency_us", "without load", words="idle"),
    ),
    folded="Every chain under every workload",
    filter=True,
    at_once=100,
)


def _studied(view: View) -> Mapping[str, Any]:
    """Values of a study for the template, its figures by the note below them."""
    study = view.record.chain_study
    if study is None:
        return {"view": view, "figures": []}
    tables = RecordTables(view.anchor, view.simulated, study)
    graphs = graphs_figure(view.anchor, study, simulated=view.simulated)
    drawn = {
        "chains": plots(tables, chains_plot(study)),
        "parts": plots(tables, parts_plot()),
        "compared": plots(tables, *compared_plots(study)),
        "traced": [*plots(tables, *traced_plots(study)), *([graphs] if graphs else [])],
    }
    return {
        "view": view,
        **drawn,
        "figures": list(chain.from_iterable(drawn.values())),
        "suspects": [_suspected(view, study, rank, suspect) for rank, suspect in enumerate(study.suspects, 1)],
        "ranked": _RANKED.draw(replace(tables, content=view)),
        "others": [shown for each in (_OTHERS, _DROPPED) if (shown := each.draw(tables)) is not None],
        "every": _RUNS.draw(tables),
        "failed": [run for run in study.runs if run.failed is not None],
    }


def _suspected(view: View, study: ChainStudy, rank: int, suspect: Suspect) -> SuspectView:
    changed = sorted(suspect.deviations, key=lambda row: -abs(row.here - row.alone) / (row.alone_stdev or 1e-12))
    evidence = RecordTables(f"{view.anchor}-{rank}", view.simulated, changed[:MAX_CHANGED])
    found = SuspectView(_evidence(view.anchor, rank), rank, suspect, _DEVIATING.draw(evidence))
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


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind == "chains"]
    if not found:
        return None
    papers = sections(shown.papers, "chains", found, _highest_throughput)
    words = cause_in_words, bound_in_words
    studies = [_studied(view) for view in found]
    figures = [figure for each in studies for figure in each["figures"]]
    figures += [figure for each in papers for figure in each.figures]
    return {"studies": studies, "papers": papers, "figures": figures, **{each.__name__: each for each in words}}


PAGE = Page("chain_study", "Chain study", _build)


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
        "measure", "reference", "reference_resources", "relation", "what", "same", "names", "only_under",
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
            lines=sentences,
            tables=tables.chain_tables,
            queried=_QUERIED,
            stacks=stacks_of_suspects,
        ),
    ),
    explanations={"Chain studies": EXPLANATIONS},
    preview=lambda name, keys: cost(generate(load_chains(specification_file(name), keys))),
)
