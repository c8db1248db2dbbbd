"""Tables of a study of chains: every second of every feature, statistics, suspects, state transitions.

Rates are L2 bits per second of one way, times seconds. What is unknown is None, an empty field.
"""

from collections.abc import Iterator

from resources.libraries.python.csv_tables import Row, Tables, filled
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.analysis.sentences import workload_words
from resources.libraries.python.studies.chains.model import ChainsRecord, ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain, Workload

_OF_CHAIN = ("chain", "resources")
_OF_WORKLOAD = ("protocol", "frame", "sessions", "volume_bps")
RUNS = (
    *_OF_CHAIN, *_OF_WORKLOAD, "offered_bps", "throughput_bps", "loss_ratio", "latency_s", "idle_latency_s", "planted",
    "failed",
)  # fmt: skip
PARTS = (*_OF_CHAIN, *_OF_WORKLOAD, "owner", "cause", "loss_ratio", "delay_s", "delay_median_s", "packets")
"""Packets that a part lost, or its delay without load, a row for each."""
SAMPLES = (*_OF_CHAIN, *_OF_WORKLOAD, "owner", "feature", "unit", "second", "value")
STATISTICS = (*_OF_CHAIN, *_OF_WORKLOAD, "owner", "feature", "unit", "mean", "stdev", "samples", "filtered")
SUSPECTS = (
    "rank", *_OF_CHAIN, "mean_distance", "planted", *_OF_WORKLOAD, "owner", "feature", "unit", "distance", "threshold",
    "expected", "measured", "rules", "measure",
)  # fmt: skip
"""A row per distance above the threshold, whose `expected` is on the line through all chains; and one per excess, whose
`distance` is the excess and whose `threshold` is the smallest that is reported."""
CAUSES = (
    "owner", "feature", "what", "chains", "others", "excess", "low", "high", "same", "chance", "names", "only_under",
)  # fmt: skip
"""What chains that are worse than predicted have in common; `chains` is their number."""
REASONS = ("rank", *_OF_CHAIN, "reason")
REFERENCES = ("rank", *_OF_CHAIN, *_OF_WORKLOAD, "reference", "reference_resources", "relation")
"""The chain with which a suspect's call stacks are compared, and the workload."""
STACKS = (
    *_OF_CHAIN, *_OF_WORKLOAD, "throughput_bps", "received", "node", "event", "hz", "stack", "samples", "failed",
)  # fmt: skip
TRANSITIONS = (*_OF_CHAIN, *_OF_WORKLOAD, "owner", "source", "before", "after", "count", "seconds", "traced_s", "lost")


def chain_tables(record: ChainsRecord) -> Tables:
    """Name and rows of every table that a record of a study of chains has something for."""
    study = record.chain_study
    if study is None:
        return ()
    return filled(
        ("runs", [RUNS, *_runs(study)]),
        ("parts", [PARTS, *_parts(study)]),
        ("samples", [SAMPLES, *_samples(study)]),
        ("statistics", [STATISTICS, *_statistics(study)]),
        ("suspects", [SUSPECTS, *_suspects(study)]),
        ("causes", [CAUSES, *_causes(study)]),
        ("reasons", [REASONS, *_reasons(study)]),
        ("references", [REFERENCES, *_references(study)]),
        ("stacks", [STACKS, *_stacks(study)]),
        ("transitions", [TRANSITIONS, *_transitions(study)]),
    )


def _runs(study: ChainStudy) -> Iterator[Row]:
    for run in study.runs:
        measured = (run.offered_bps, run.throughput_bps, run.loss_ratio, run.latency_s, run.idle_latency_s)
        yield (*_chain(run.chain), *_workload(run.workload), *measured, run.planted, run.failed)


def _parts(study: ChainStudy) -> Iterator[Row]:
    for run in (*study.path, *study.runs, *study.repeated):
        head = (*_chain(run.chain), *_workload(run.workload))
        yield from ((*head, loss.owner, loss.cause, loss.ratio, None, None, None) for loss in run.losses or ())
        for part in run.delays or ():
            yield (*head, part.owner, None, None, part.mean_s, part.median_s, part.packets)


def _samples(study: ChainStudy) -> Iterator[Row]:
    for run in study.runs:
        head = (*_chain(run.chain), *_workload(run.workload))
        for series in run.series:
            unit = feature(series.feature).unit
            for second, value in enumerate(series.values, 1):
                yield (*head, series.owner, series.feature, unit, second, value)


def _statistics(study: ChainStudy) -> Iterator[Row]:
    for row in study.statistics:
        head = (*_chain(row.chain), *_workload(row.workload), row.owner, row.feature, feature(row.feature).unit)
        yield (*head, row.mean, row.stdev, row.samples, row.filtered)


def _suspects(study: ChainStudy) -> Iterator[Row]:
    for rank, suspect in enumerate(study.suspects, 1):
        of_suspect = (rank, *_chain(suspect.chain), suspect.mean_distance, suspect.planted)
        rules = ", ".join(suspect.rules)
        for row in suspect.distances:
            head = (*of_suspect, *_workload(row.workload), row.owner, row.feature, feature(row.feature).unit)
            yield (*head, row.distance, row.threshold, row.expected, row.measured, rules, "Cook's distance")
        for far in suspect.worse:
            head = (*of_suspect, *_workload(far.workload), far.owner, far.feature, feature(far.feature).unit)
            yield (*head, far.excess, far.least, far.expected, far.measured, rules, "excess")


def _reasons(study: ChainStudy) -> Iterator[Row]:
    for rank, suspect in enumerate(study.suspects, 1):
        yield from ((rank, *_chain(suspect.chain), reason) for reason in suspect.reasons)


def _causes(study: ChainStudy) -> Iterator[Row]:
    for each in study.causes:
        found = (each.excess, each.low, each.high, "; ".join(each.same), each.chance)
        names = "; ".join(chain.name for chain in each.chains)
        under = "; ".join(map(workload_words, each.only_under))
        yield (each.owner, each.feature, each.what, len(each.chains), each.others, *found, names, under)


def _references(study: ChainStudy) -> Iterator[Row]:
    for rank, suspect in enumerate(study.suspects, 1):
        if (found := suspect.reference) is not None:
            head = (rank, *_chain(suspect.chain), *_workload(found.workload))
            yield (*head, *_chain(found.chain), found.relation)


def _stacks(study: ChainStudy) -> Iterator[Row]:
    for each in study.stacks:
        head = (*_chain(each.chain), *_workload(each.workload), each.throughput_bps)
        if each.stacks is None:
            yield (*head, *[None] * 6, each.failed)
            continue
        for node in each.stacks.nodes:
            of_node = (each.stacks.received, node.node, node.event, node.hz)
            yield from ((*head, *of_node, stack, samples, None) for stack, samples in node.stacks.items())


def _transitions(study: ChainStudy) -> Iterator[Row]:
    for run in study.runs:
        for graph in run.graphs:
            head = (*_chain(run.chain), *_workload(run.workload), graph.owner, graph.source)
            for edge in graph.edges:
                yield (*head, edge.before, edge.after, edge.count, edge.seconds, graph.traced_s, graph.lost)


def _chain(chain: Chain) -> Row:
    """Its name, and what its VNFs have: `1c+2c 512MiB`."""
    sizes = [
        f"{member.size}{'' if member.memory_mib is None else f' {member.memory_mib}MiB'}" for member in chain.members
    ]
    return chain.name, "+".join(sizes)


def _workload(workload: Workload) -> Row:
    return workload.protocol.value, workload.frame.name, workload.sessions, workload.volume_bps
