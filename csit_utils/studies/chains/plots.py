"""Declared plots of a study of chains: every chain and workload, against the volume, over time, by class and event."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter

from csit_utils.report import figures
from csit_utils.report.figures import SYMBOLS, step_of, thinned_words
from csit_utils.report.record_blocks import Column, Plot, Row
from csit_utils.report.units import bandwidth, digits3, percent
from csit_utils.studies.chains.state_graphs import MAX_SHOWN, choice_of, graphs_alone, graphs_of, rates_of
from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH
from resources.libraries.python.studies.chains.analysis.classes import Workflow
from resources.libraries.python.studies.chains.analysis.distances import distances
from resources.libraries.python.studies.chains.analysis.features import LOSS, PERFORMANCE, THROUGHPUT, feature
from resources.libraries.python.studies.chains.analysis.prediction import DELAY, compare_parts
from resources.libraries.python.studies.chains.analysis.sentences import workload_words
from resources.libraries.python.studies.chains.model import ChainRun, ChainStudy, Distance, Statistic, Suspect
from resources.libraries.python.studies.chains.model.spec import Chain, Workload

_MAX_CHAINS = 40
"""Maximum number of chains of a plot; all are in the table."""
_MAX_BESIDE = 12
"""Chains beside a VNF alone."""
_MAX_EVENTS = 14
"""Maximum number of events of a picture, those that come most often."""
_ALONE = "VNFs alone"
_SEEN = 5e-4
"""Shares below cannot be seen in a bar."""
_NO_CLASS = "#9aa5b4"
"""Colour of activity outside the workflow classes, which use all distinguishable colours."""
_OTHERS = ("other", "chains that are no suspects")
"""Lines in the background where there are suspects."""
_VOLUME = Column("volume", "offered volume, Mbit/s", scale=1e-6)


def furthest(study: ChainStudy) -> list[Chain]:
    """Return at most 40 measured chains: those with the highest loss, then suspects, the first one last."""
    runs = [run for run in study.runs if run.failed is None]
    measured = list(dict.fromkeys(run.chain for run in runs))
    first = [suspect.chain for suspect in study.suspects if suspect.chain in measured][:_MAX_CHAINS]
    others = [chain for chain in measured if chain not in first]
    if (room := _MAX_CHAINS - len(first)) < len(others):
        worst: dict[Chain, float] = {}
        for run in runs:
            share = 1.0 if run.share is None else run.share
            worst[run.chain] = min(share, worst.get(run.chain, 1.0))
        chosen = sorted(others, key=lambda chain: worst[chain])[:room]
        others = [chain for chain in others if chain in chosen]
    return [*others, *reversed(first)]


def name_of(chain: Chain, among: Sequence[Chain]) -> str:
    """Name of a chain; with sizes where chains differ in them only."""
    if sum(other.order == chain.order for other in among) < 2:
        return chain.name
    return f"{chain.name}, {sizes_words(chain)}"


def sizes_words(chain: Chain) -> str:
    """`1c+2c`, `1c 256 MiB+2c`."""
    return "+".join(
        member.size if member.memory_mib is None else f"{member.size} {member.memory_mib} MiB"
        for member in chain.members
    )


def chains_plot(study: ChainStudy) -> Plot:
    """Throughput and latency of each workload in each chain; suspects on top, the first one highest.

    Of many chains, the suspects and those with the highest loss are shown.
    """
    measured = {run.chain for run in study.runs if run.failed is None}
    shown = furthest(study)
    which = f"{len(shown)} of {len(measured)} chains" if len(shown) < len(measured) else "Every chain"
    # Open and of several sizes, because most lie on each other.
    markers = {
        workload_words(workload): {
            "marker": {"size": 8 + 2 * (at % 4), "symbol": f"{SYMBOLS[at % len(SYMBOLS)]}-open", "line": {"width": 2}}
        }
        for at, workload in enumerate(dict.fromkeys(run.workload for run in study.runs))
    }
    latency = "mean latency, one way, µs"
    return Plot(
        "chains",
        f"{which} under every workload; * marks suspects",
        _runs,
        (
            Column("share", "throughput, % of offered volume", scale=100),
            Column("latency_s", latency, scale=1e6, choice="latency"),
            Column("idle_latency_s", latency, scale=1e6, choice="latency without load"),
        ),
        Column("chain", text=True, options={"dtick": 1}),
        colour="workload",
        mark="markers",
        hover=("text",),
        lines=markers,
        layout={
            "height": 130 + 20 * len(shown),
            "meta": {"width": 160 + 7 * max((len(name_of(chain, shown)) + 2 for chain in shown), default=0)},
        },
    )


def _runs(study: ChainStudy) -> Iterator[Row]:
    suspects = {suspect.chain for suspect in study.suspects}
    shown = furthest(study)
    for chain in shown:
        name = f"{name_of(chain, shown)}{' *' * (chain in suspects)}"
        for run in study.runs:
            if run.chain == chain and run.failed is None:
                loss = "" if run.loss_ratio is None else f", loss {percent(run.loss_ratio)}"
                fault = " (a fault was planted)" if run.planted else ""
                yield {
                    "chain": name,
                    "workload": workload_words(run.workload),
                    "share": run.share,
                    "latency_s": run.latency_s,
                    "idle_latency_s": run.idle_latency_s,
                    "text": f"{bandwidth(run.throughput_bps)} of {bandwidth(run.offered_bps)}{loss}{fault}",
                }


def parts_plot() -> Plot:
    """Delay and loss of each part of the suspects, in the order of the chain, beside what the VNFs alone predict."""
    return Plot(
        "parts",
        "Delay and loss of the parts of suspects, measured and predicted",
        _parts,
        Column("owner", text=True),
        (
            Column(DELAY, "delay without load, µs", scale=1e6, ends=(f"{DELAY}_low", f"{DELAY}_high")),
            Column(LOSS, "loss, % of packets", scale=100, ends=(f"{LOSS}_low", f"{LOSS}_high")),
        ),
        colour="what",
        choose=("suspect",),
        mark="bars",
        hover=("workload",),
    )


def _parts(study: ChainStudy) -> Iterator[Row]:
    chosen = {
        rank: (suspect, workload)
        for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1)
        if (workload := _workload_of(suspect)) is not None
    }
    runs = (*study.path, *study.runs, *study.repeated)
    found = compare_parts(runs, {(suspect.chain, workload) for suspect, workload in chosen.values()})
    for rank, (suspect, workload) in chosen.items():
        places = {owner: place for place, owner in enumerate((*suspect.chain.order, VSWITCH))}
        rows = sorted(found.get((suspect.chain, workload), ()), key=lambda row: places[row.owner])
        for row in rows if any(row.measured or row.expected for row in rows) else ():
            at = {"suspect": choice_of(rank, suspect), "owner": row.owner, "workload": workload_words(workload)}
            # The interval of the difference from the prediction.
            ends = (None, None) if row.half is None else (row.measured - row.half, row.measured + row.half)
            interval = {f"{row.feature}_low": ends[0], f"{row.feature}_high": ends[1]}
            yield {**at, "what": "measured", row.feature: row.measured, **interval}
            yield {**at, "what": "predicted", row.feature: row.expected}


def _workload_of(suspect: Suspect) -> Workload | None:
    """The workload under which a suspect stands out most."""
    strongest = max(suspect.worse, key=attrgetter("strength"), default=None)
    shown = strongest or (suspect.distances[0] if suspect.distances else None)
    return None if shown is None else shown.workload


def compared_plots(study: ChainStudy) -> tuple[Plot, ...]:
    """Throughput, distances and resources against the volume, CPU time, and samples over time."""
    return (
        Plot(
            "volumes",
            "Throughput of chains against the offered volume",
            _throughputs,
            _VOLUME,
            Column(THROUGHPUT, "throughput, Mbit/s", scale=1e-6),
            colour="line",
            muted=_OTHERS,
            facets={"VNFs": "VNFs"},
        ),
        Plot(
            "distances",
            "Cook's distances of chains against the offered volume",
            _distances,
            _VOLUME,
            tuple(
                Column(name, "Cook's distance", choice=feature(name).name.rpartition("_")[0]) for name in PERFORMANCE
            ),
            colour="line",
            choose=("length",),
            muted=_OTHERS,
            reference="reference",
        ),
        Plot(
            "resources",
            "Resources of VNFs against the offered volume, alone and in chains",
            _resources,
            _VOLUME,
            _features(each.feature for each in study.statistics if each.owner != CHAIN),
            colour="line",
            choose=("vnf",),
            muted=_OTHERS,
            lines={f"{vnf.name} alone": {"line": {"width": 4}} for vnf in study.spec.vnfs},
        ),
        Plot(
            "extra",
            "CPU time of VNFs alone, and of their kernel threads",
            _extra_cpu,
            Column("owner", text=True),
            Column("cpu_percent", "CPU, % of one CPU"),
            colour="part",
            choose=("workload",),
            mark="stack",
        ),
        series_plot(study),
        Plot(
            "steps",
            "CPU time of the study itself",
            _steps,
            Column("step", text=True),
            (Column("share", "% of one CPU", scale=100, choice="% of one CPU"), Column("cpu_s", "CPU time, s")),
            colour="what",
            mark="bars",
            hover=("text",),
        ),
    )


def _features(names: Iterable[str]) -> tuple[Column, ...]:
    return tuple(
        Column(each.name, f"{each.title}, {each.of}".removesuffix(", "), choice=each.title)
        for each in map(feature, dict.fromkeys(names))
    )


def _kind(workload: Workload) -> str:
    """All of a workload but its volume."""
    return f"{workload.protocol.value}, {workload.sessions} sessions, {workload.frame.name}"


def _by_chain(
    found: Iterable[Statistic | Distance], study: ChainStudy, value: str = "mean"
) -> Iterator[tuple[Chain, dict[str, object]]]:
    """Values of chains by volume, suspects first, a line for each chain and kind of workload."""
    shown, every, suspects = furthest(study), list(found), {suspect.chain for suspect in study.suspects}
    chosen = [*(each.chain for each in study.suspects if each.chain in shown), *(c for c in shown if c not in suspects)]
    several = len({_kind(each.workload) for each in every}) > 1
    for chain in chosen:
        own = [each for each in every if each.chain == chain]
        for each in sorted(own, key=lambda each: (_kind(each.workload), each.workload.volume_bps)):
            line = name_of(chain, chosen) + (f", {_kind(each.workload)}" if several else "")
            aside = {"other": bool(suspects) and chain not in suspects}
            yield chain, {"line": line, "volume": each.workload.volume_bps, each.feature: getattr(each, value), **aside}


def _throughputs(study: ChainStudy) -> Iterator[Row]:
    found = [each for each in study.statistics if (each.owner, each.feature) == (CHAIN, THROUGHPUT)]
    if len({each.workload.volume_bps for each in found}) > 1:
        for chain, row in _by_chain(found, study):
            yield {**row, "VNFs": ", ".join(sorted(chain.order))}


def _distances(study: ChainStudy) -> Iterator[Row]:
    """Distances of chains of one length, with the threshold of suspects."""
    found = [each for each in distances(study.statistics) if each.owner == CHAIN and each.feature in PERFORMANCE]
    for length in sorted({len(each.chain.members) for each in found}):
        own = [each for each in found if len(each.chain.members) == length]
        at = {"length": f"{length} VNFs"}
        yield from ({**row, **at} for _, row in _by_chain(own, study, "distance"))
        volumes = [each.workload.volume_bps for each in own]
        thresholds = {each.feature: each.threshold for each in own}
        for volume in (min(volumes), max(volumes)):
            yield {**at, "line": "threshold, 4/n", "volume": volume, "reference": True, **thresholds}


def _resources(study: ChainStudy) -> Iterator[Row]:
    """Every sampled feature of VNFs: all of them alone, and each alone and in chains."""
    vnfs = [vnf.name for vnf in study.spec.vnfs]
    alone = [each for each in study.statistics if len(each.chain.members) == 1 and each.owner in vnfs]
    yield from ({**row, "vnf": _ALONE, "other": False} for _, row in _by_chain(alone, study))
    for vnf in vnfs:
        beside: dict[str, None] = {}
        own = list(_by_chain((each for each in study.statistics if each.owner == vnf), study))
        for chain, row in sorted(own, key=lambda pair: len(pair[0].members) > 1):
            single = len(chain.members) == 1
            beside |= {} if single else {chain.name: None}
            if len(beside) <= _MAX_BESIDE:
                yield {**row, "vnf": vnf, **({"line": f"{row['line']} alone", "other": False} if single else {})}


def _extra_cpu(study: ChainStudy) -> Iterator[Row]:
    """CPU time of every VNF alone, and the part of it that the kernel's threads spend for the VNF.

    The largest volume is the most informative one.
    """
    found: dict[tuple[Workload, str], dict[str, float]] = {}
    for each in study.statistics:
        single = len(each.chain.members) == 1 and each.chain.members[0].name == each.owner
        if single and each.feature in {"cpu_percent", "helper_percent"}:
            found.setdefault((each.workload, each.owner), {})[each.feature] = each.mean
    for (workload, owner), own in sorted(found.items(), key=lambda item: -item[0][0].volume_bps):
        if len(own) == 2:
            helper = min(own["helper_percent"], own["cpu_percent"])
            at = {"workload": workload_words(workload), "owner": owner}
            yield {**at, "part": "processes of the VNF", "cpu_percent": own["cpu_percent"] - helper}
            yield {**at, "part": "kernel threads of the VNF (extra CPU)", "cpu_percent": helper}


def _steps(study: ChainStudy) -> Iterator[Row]:
    """CPU time of the study's own steps; as Probius, figure 21."""
    for each in study.costs:
        if each.lasted_s > 0:
            text = f"{each.cpu_s:.3g} s of a CPU in {each.lasted_s:.3g} s"
            share = each.cpu_s / each.lasted_s
            yield {"step": each.step, "what": "the study", "share": share, "cpu_s": each.cpu_s, "text": text}


def series_plot(study: ChainStudy) -> Plot:
    """Sampled features over time; a choice for each chain, suspects first."""
    runs: dict[Chain, list[ChainRun]] = {}
    for run in study.runs:
        if run.series and run.failed is None:
            runs.setdefault(run.chain, []).append(run)
    chosen = _fitting([chain for chain in reversed(furthest(study)) if chain in runs], runs)
    samples = sum(_samples(runs[chain]) for chain in chosen)
    step = step_of(samples)
    left = f" ({len(chosen)} of {len(runs)} chains)" if len(chosen) < len(runs) else ""
    return Plot(
        "series",
        f"Sampled features over time{left}{thinned_words(step, samples)}",
        partial(_series, {chain: runs[chain] for chain in chosen}, step),
        Column("second", "time, s"),
        _features(each.feature for chain in chosen for run in runs[chain] for each in run.series),
        colour="owner",
        choose=("chain",),
        dash="load",
        style={"marker": {"size": 4}},
    )


def _fitting(ranked: Sequence[Chain], runs: Mapping[Chain, Sequence[ChainRun]]) -> list[Chain]:
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


def _series(runs: Mapping[Chain, Sequence[ChainRun]], step: int, _study: ChainStudy) -> Iterator[Row]:
    for chain, own in runs.items():
        volumes = [bandwidth(run.workload.volume_bps) for run in own]
        words = volumes if len(set(volumes)) == len(own) else [workload_words(run.workload) for run in own]
        for run, load in zip(own, words, strict=True):
            at = {"chain": name_of(chain, list(runs)), "load": load}
            for each in run.series:
                for second, value in islice(enumerate(each.values, 1), 0, None, step):
                    yield {**at, "owner": each.owner, "second": second, each.feature: value}


def traced_plots(study: ChainStudy) -> tuple[Plot, ...]:
    """Workflow classes of suspects beside those of their VNFs alone, and events by how often they come."""
    machines = any(graph.source == "kvm" for graph in graphs_alone(study).values())
    most = max((len(suspect.chain.members) for suspect in study.suspects), default=0)
    return (
        Plot(
            "classes",
            "Time of VNFs by workflow class, in the chain and alone",
            _classes,
            Column("where", text=True),
            Column("share", "share of the traced time, %", scale=100),
            colour="workflow",
            choose=("suspect",),
            mark="stack",
            hover=("text",),
            lines={Workflow.NOT_ASSIGNED: {"marker": {"color": _NO_CLASS}}},
            layout={"meta": {"width": 90 + 124 * most}},
        ),
        Plot(
            "events",
            f"{'VM exit reasons' if machines else 'Kernel events'} per second",
            _events,
            Column("rate", "times per second"),
            # The most frequent event on top.
            Column("event", text=True, options={"autorange": "reversed", "dtick": 1}),
            colour="where",
            choose=("of",),
            mark="bars",
            hover=("text",),
            style={"orientation": "h"},
            layout={"height": 130 + 44 * _MAX_EVENTS},
        ),
    )


def _classes(study: ChainStudy) -> Iterator[Row]:
    for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1):
        rows = [
            (workflow, owner, row)
            for workflow in Workflow
            for owner in suspect.chain.order
            for row in suspect.portions
            if (row.owner, row.workflow) == (owner, workflow)
        ]
        seen = {
            workflow for workflow, _, row in rows if max(row.time_ratio or 0.0, row.alone_time_ratio or 0.0) >= _SEEN
        }
        for workflow, owner, row in rows:
            for where, ratio, count in (
                ("in the chain", row.time_ratio, row.count_per_s),
                ("alone", row.alone_time_ratio, row.alone_count_per_s),
            ):
                if workflow in seen and ratio is not None and count is not None:
                    yield {
                        "suspect": choice_of(rank, suspect),
                        "where": f"{owner}\n{where}",
                        "workflow": workflow,
                        "share": ratio,
                        "text": f"{count:.0f} times a second",
                    }


def _events(study: ChainStudy) -> Iterator[Row]:
    """Rate of each event: of all VNFs alone, and of the VNFs of a suspect in the chain and alone.

    Of virtual machines these are the reasons for which they were left.
    """
    alone = graphs_alone(study)
    pictures = {_ALONE: [(member.name, graph) for member, graph in alone.items()]}
    for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1):
        members = {member.name: member for member in suspect.chain.members}
        for graph in graphs_of(study, suspect):
            own = alone.get(members[graph.owner]) if graph.owner in members else None
            pair = [("in the chain", graph), *([("alone", own)] if own else [])]
            pictures[f"{choice_of(rank, suspect)}: {graph.owner}"] = pair
    for of, graphs in pictures.items():
        rates = [(where, rates_of(graph)) for where, graph in graphs]
        totals: dict[str, float] = {}
        for _, own_rates in rates:
            for event, rate in own_rates.items():
                totals[event] = totals.get(event, 0.0) + rate
        for event in sorted(totals, key=lambda event: -totals[event])[:_MAX_EVENTS]:
            for where, own_rates in rates:
                rate = own_rates.get(event, 0.0)
                text = f"{digits3(rate)} times a second"
                yield {"of": of, "where": where, "event": event, "rate": rate, "text": text}
