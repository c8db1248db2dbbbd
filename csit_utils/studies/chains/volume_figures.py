"""Plots over the offered volume: throughput and Cook's distances of chains, resources of VNFs alone and in chains."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape

from csit_utils.report.figures import DASHES, SYMBOLS, Figure, Json, axes, no_choice, scatter
from csit_utils.studies.chains.behaviour_figures import furthest, name_of
from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.analysis.features import PERFORMANCE, THROUGHPUT, feature
from resources.libraries.python.studies.chains.analysis.points import distances
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain, Workload
from resources.libraries.python.studies.chains.model.statistic import Statistic

_ALONE = "VNFs alone"
_MAX_BESIDE = 12
"""Chains beside a VNF alone."""
_MEGA = 1e6
_VOLUME = "offered volume, Mbit/s"
_Points = Sequence[tuple[float, float]]


def throughput_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Throughput of each chain against the offered volume; readers narrow to chains of the same VNFs."""
    found = [each for each in study.statistics if (each.owner, each.feature) == (CHAIN, THROUGHPUT)]
    chosen = furthest(study)[::-1]
    drawn: Counter[str] = Counter()
    lines = []
    for name, chain, points in _by_chain(found, chosen, lambda each: each.mean / _MEGA):
        vnfs = ", ".join(sorted(chain.order))
        lines.append(_line(name, points, drawn[vnfs], "Mbit/s", facets={"VNFs": vnfs}))
        drawn[vnfs] += 1
    if not any(len(line["x"]) > 1 for line in lines):
        return None
    layout = axes(_VOLUME, "throughput, Mbit/s")
    title = "Throughput of chains against the offered volume"
    return no_choice(f"{anchor}-volumes", title, lines, layout, simulated=simulated, facets=("VNFs",))


def distances_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Cook's distances of chains of one length against the volume, with the threshold of suspects."""
    found = [each for each in distances(study.statistics) if each.owner == CHAIN and each.feature in PERFORMANCE]
    chosen = furthest(study)[::-1]
    lengths = sorted({len(each.chain.members) for each in found})
    names = {name: feature(name).name.rpartition("_")[0] for name in PERFORMANCE}
    variants: Json = {}
    for length in lengths:
        for name, shown in names.items():
            own = [each for each in found if each.feature == name and len(each.chain.members) == length]
            kinds = _kinds(each.workload for each in own)
            lines = []
            for number, chain in enumerate(chain for chain in chosen if len(chain.members) == length):
                for kind in kinds:
                    points = [
                        (each.workload.volume_bps / _MEGA, each.distance)
                        for each in own
                        if each.chain == chain and _kind(each.workload) == kind
                    ]
                    if points:
                        text = name_of(chain, chosen) + (f", {kind}" if len(kinds) > 1 else "")
                        lines.append(_line(text, points, number, ""))
            if lines:
                lines.append(_threshold(own[0].threshold, [x for line in lines for x in line["x"]]))
            variants[f"{length} VNFs|{shown}"] = {"data": lines, "layout": axes(_VOLUME, "Cook's distance")}
    if not any(variant["data"] for variant in variants.values()):
        return None
    selectors = (tuple(f"{length} VNFs" for length in lengths), tuple(names.values()))
    return Figure(
        f"{anchor}-distances", "Cook's distances of chains against the offered volume", simulated, selectors, variants
    )


def _threshold(value: float, x: Sequence[float]) -> Json:
    return scatter(
        "threshold, 4/n",
        [(min(x), value), (max(x), value)],
        6,
        mode="lines",
        hoverinfo="skip",
        line={"dash": "dash", "width": 1.5},
    )


def resources_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Every sampled feature of VNFs against the volume: all of them alone, and each alone and in chains."""
    vnfs = [vnf.name for vnf in study.spec.vnfs]
    found = [each for each in study.statistics if each.owner in vnfs]
    names = list(dict.fromkeys(each.feature for each in found))
    if not found:
        return None
    chosen = furthest(study)[::-1]
    variants: Json = {}
    for name in names:
        own = [each for each in found if each.feature == name]
        unit = feature(name).unit
        axis = f"{name}, {unit}" if unit else name
        alone = [each for each in own if len(each.chain.members) == 1]
        lines = [_line(text, points, at, unit) for at, (text, _, points) in enumerate(_by_chain(alone, chosen, _mean))]
        variants[f"{_ALONE}|{name}"] = {"data": lines, "layout": axes(_VOLUME, axis)}
        for vnf in vnfs:
            of_vnf = [each for each in own if each.owner == vnf]
            rows = list(_by_chain(of_vnf, chosen, _mean))
            single = [row for row in rows if len(row[1].members) == 1]
            beside = [row for row in rows if len(row[1].members) > 1][:_MAX_BESIDE]
            variants[f"{vnf}|{name}"] = {
                "data": [
                    *(_line(f"{text} alone", points, 0, unit, width=4) for text, _, points in single),
                    *(_line(text, points, at, unit) for at, (text, _, points) in enumerate(beside, 1)),
                ],
                "layout": axes(_VOLUME, axis),
            }
    title = "Resources of VNFs against the offered volume, alone and in chains"
    return Figure(f"{anchor}-resources", title, simulated, ((_ALONE, *vnfs), tuple(names)), variants)


def _mean(each: Statistic) -> float:
    return each.mean


def _by_chain(
    found: Sequence[Statistic], chosen: Sequence[Chain], value: Callable[[Statistic], float]
) -> Iterator[tuple[str, Chain, _Points]]:
    """Name, chain and points of each chain and kind of workload, in the order of `chosen`."""
    kinds = _kinds(each.workload for each in found)
    for chain in chosen:
        for kind in kinds:
            points = [
                (each.workload.volume_bps / _MEGA, value(each))
                for each in found
                if each.chain == chain and _kind(each.workload) == kind
            ]
            if points:
                yield name_of(chain, chosen) + (f", {kind}" if len(kinds) > 1 else ""), chain, points


def _kinds(workloads: Iterable[Workload]) -> list[str]:
    return list(dict.fromkeys(map(_kind, workloads)))


def _kind(workload: Workload) -> str:
    """All of a workload but its volume."""
    return f"{workload.protocol.value}, {workload.sessions} sessions, {workload.frame.name}"


def _line(
    name: str, points: _Points, colour: int, unit: str, *, width: float = 2, facets: Mapping[str, str] | None = None
) -> Json:
    return scatter(
        name,
        sorted(points),
        colour,
        hover=f"{escape(name)}<br>%{{x:.4~g}} Mbit/s: %{{y:.4~g}} {escape(unit)}",
        facets=facets,
        # Colours and symbols repeat after eight lines.
        line={"width": width, "dash": DASHES[colour // len(SYMBOLS) % 4]},
        marker={"size": 7, "symbol": SYMBOLS[colour % len(SYMBOLS)]},
    )
