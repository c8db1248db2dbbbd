"""Interference studies in reports: what co-located network functions cost each other, and their records."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean

from csit_utils.analysis.measures import Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized
from csit_utils.dataset.papers import PublishedFigure
from csit_utils.dataset.rows import frame_text
from csit_utils.report.characterizations import DrawnRecord, page_of_records
from csit_utils.report.explanations import Explanation
from csit_utils.report.figures import Figure, Json, axes, rounded, scatter
from csit_utils.report.study import QueriedTables, RecordKind, Study, View
from csit_utils.report.units import rate
from csit_utils.studies.interference.maps import WAYS, interference_maps, means_figure
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.studies.interference.analysis import tables
from resources.libraries.python.studies.interference.analysis.matrix import pairs
from resources.libraries.python.studies.interference.analysis.placement import where
from resources.libraries.python.studies.interference.analysis.resources import BaselineComparison, comparisons
from resources.libraries.python.studies.interference.analysis.sentences import (
    advice_in_words,
    cell_in_words,
    findings_in_words,
    matrix_in_words,
    percent,
    resources_in_words,
)
from resources.libraries.python.studies.interference.analysis.tables import MatrixSlice, matrices, spots
from resources.libraries.python.studies.interference.model.record import (
    ColocationMeasurement,
    Interference,
    InterferenceRecord,
    Normalized,
    Placement,
    RankedMean,
    load_interference,
)
from resources.libraries.python.studies.interference.planning import cost

EXPLANATIONS = (
    Explanation(
        "normalized-throughput",
        "Normalized throughput",
        "Throughput of a network function with co-located ones, relative to its throughput alone.",
        "1 is no interference; 0.6 means that 40 % are lost. With its 95 % confidence interval (Fieller).",
        "Each has its own traffic. Alone it runs in the same place, on the same CPUs, as beside others; the order of "
        "measurements is shuffled in each repetition.",
        "For a monitor it is the rate that its program inspected, not the forwarded rate. On few cores network "
        "functions, vSwitch and generator share CPUs; interference is then mostly competition for CPU time.",
    ),
    Explanation(
        "sensitivity",
        "Sensitivity",
        "Throughput that a network function loses beside another one, mean over all competitors, including a second "
        "instance of itself.",
        "Percent of its throughput alone, with the 95 % confidence interval. Rank 1 is the most sensitive; a range of "
        "ranks is a tie.",
        "One minus the mean of its row of normalized throughputs (Zeng et al.). Ranks by Holm's procedure over all "
        "pairs of network functions: any wrong rank in a study has a probability of at most 5 %. Before that, a test "
        "that there is any interference at all.",
        "A mean over the competitors of this study; others may cause more or less loss.",
    ),
    Explanation(
        "aggressiveness",
        "Aggressiveness",
        "Throughput that others lose beside a network function, mean over all targets.",
        "Percent of their throughput alone, with the 95 % confidence interval and ranks as for sensitivity.",
        "One minus the mean of its column of normalized throughputs.",
        "All were offered the same load. One that cannot accept its load may cause less loss than it would otherwise.",
    ),
    Explanation(
        "network-share",
        "Share of a resource",
        "The part of the degradation that disappears when each has an equal share of the network I/O, or of the CPU "
        "time, guaranteed.",
        "Percent of the mean degradation, with the 95 % confidence interval (Fieller). None where the interval of the "
        "degradation has 0 in it. A share below 0: more is lost with the guarantee than without.",
        "All pairs once more with each limited to its part of the line, or of the CPUs that several use, over the same "
        "throughput alone, without a limit; (guaranteed - without) / (1 - without), of the means.",
        "A traffic limit also limits the CPU time of competitors, so on shared CPUs this is not the share of the "
        "network alone. Shares of two resources need not add up to 100 %. Network functions on CPUs of their own have "
        "all of their CPU time anyway.",
    ),
    Explanation(
        "placement-advice",
        "Advice on placement",
        "Network functions to put on the same server.",
        "Total capacity: the sum of normalized throughputs, at most the number of network functions.",
        "All placements are compared if there are few enough, otherwise a heuristic search finds a good one. Sets of "
        "three or more that were not measured are predicted from pairs, and marked; with `verify: 3` in the "
        "specification the best three placements are measured as they are before one is advised.",
        "It considers interference only: no traffic between network functions. The interval is that of measurements; "
        "the error of predictions is stated beside it, and is unknown where no three were measured together.",
    ),
)
NORMALIZED = Measure("normalized", "")
"""Throughput of a network function beside others over its throughput alone."""
_MEANS = "mean of each network function"
_AXIS = {"over packet size": "packet size, bytes", "over rate": "load offered to each, one way, packets per second"}
_SIZE, _RATE = _AXIS


@dataclass(frozen=True)
class MeansRow:
    """A network function in the table of means."""

    name: str
    type: str
    what: str
    """Its kind, and what it is a stand-in for."""
    loses: RankedMean | None
    others_lose: RankedMean | None


@dataclass(frozen=True)
class ComparedPair:
    """A pair separately and simultaneously, as in Table I of Zeng et al."""

    target: str
    against: str
    throughput_pps: BaselineComparison
    throughput_bps: BaselineComparison
    response_s: BaselineComparison | None
    loss_ratio: BaselineComparison | None


@dataclass(frozen=True)
class PlacementRow:
    """A placement in the table of the advice."""

    placement: Placement
    text: str
    basis: str
    """Whether it was measured as it is, and whether it is a tie with the best one."""


@dataclass(frozen=True)
class StudiedInterference(DrawnRecord):
    """A study on the page."""

    lines: tuple[MeansRow, ...] = ()
    together: tuple[tuple[str, str, str], ...] = ()
    """Three and more co-located NFs: target, co-located NFs, normalized throughput."""
    sentences: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    shares: tuple[tuple[str, str, str, str, str], ...] = ()
    """Of each pair: resource, target, competitor, degradation, share."""
    compared: tuple[ComparedPair, ...] = ()
    placements: tuple[PlacementRow, ...] = ()


def _studied(view: View) -> StudiedInterference:
    found = view.record.interference
    if found is None:
        return StudiedInterference(view)
    means = means_figure(view.anchor, found, simulated=view.simulated)
    swept = sweep_figure(view.anchor, found, simulated=view.simulated)
    findings = found.findings
    return StudiedInterference(
        view,
        interference_maps(view.anchor, found, simulated=view.simulated),
        tuple(each for each in (means, swept) if each is not None),
        _mean_rows(found),
        tuple(
            (row.target, " and ".join(row.against), cell_in_words(row)) for row in found.matrix if len(row.against) > 1
        ),
        findings_in_words(findings) if findings else (),
        tuple(resources_in_words(found)),
        tuple(
            (
                WAYS[each.resource],
                each.target,
                each.against[0],
                percent(each.degradation),
                percent(each.share) if each.share else "unknown",
            )
            for each in (findings.shares if findings else ())
            if each.target is not None
        ),
        tuple(_compared(found)),
        tuple(_placements(found)),
    )


def _mean_rows(found: Interference) -> tuple[MeansRow, ...]:
    findings = found.findings
    sensitivity, aggressiveness = (
        {each.name: each for each in means}
        for means in ((findings.sensitivity, findings.aggressiveness) if findings else ((), ()))
    )
    return tuple(
        MeansRow(
            each.name,
            f"{each.type} ({each.type.name.lower()})",
            f"{each.kind}, a stand-in for {each.stand_in_for}" if each.stand_in_for else str(each.kind),
            sensitivity.get(each.name),
            aggressiveness.get(each.name),
        )
        for each in found.spec.contenders
    )


def _compared(found: Interference) -> Iterator[ComparedPair]:
    point = [each for each in found.measurements if not each.point and not each.guaranteed]
    bits = 8 * found.spec.frame.mean_bytes
    values: tuple[Callable[[ColocationMeasurement], float | None], ...] = (
        lambda each: each.throughput_pps,
        lambda each: bits * each.throughput_pps,
        lambda each: each.response_s,
        lambda each: each.loss_ratio,
    )
    throughput_pps, throughput_bps, response_s, loss_ratio = (comparisons(point, value) for value in values)
    for row in pairs(found.matrix):
        group = (row.target, row.against)
        yield ComparedPair(
            row.target,
            row.against[0],
            throughput_pps[group],
            throughput_bps[group],
            response_s.get(group),
            loss_ratio.get(group),
        )


def _placements(found: Interference) -> Iterator[PlacementRow]:
    for advice in found.advice:
        ties = {each.servers for each in advice.ties}
        for each in (advice.best, *advice.others):
            words = [] if each.predicted is None else [f"{each.predicted} predicted" if each.predicted else "measured"]
            words += ["not told apart from the best"] if each.servers in ties else []
            yield PlacementRow(each, where(each), ", ".join(words))


def _normalized(record: InterferenceRecord, figure: PublishedFigure) -> float | None:
    """Return the normalized throughput of network functions of the same type, beside all others or those of a type."""
    found = record.interference
    if found is None:
        return None
    target, *competitor = figure.match.split()
    rows = [row for row in found.matrix if len(row.against) == 1 and _type(found, row.target) == target]
    if competitor:
        rows = [row for row in rows if _type(found, row.against[0]) == competitor[0]]
    return fmean(row.mean for row in rows) if rows else None


def _type(found: Interference, name: str) -> str | None:
    return next((one.type.value for one in found.spec.contenders if one.name == name), None)


PAGE = page_of_records("interference", "Interference", "interference", "studies", _studied, published=_normalized)
"""Shown where there is a study of interference."""


def sweep_figure(anchor: str, found: Interference, *, simulated: bool) -> Figure | None:
    """Normalized throughput over packet size at each load, and over the load at each packet size; None of one point."""
    rows = dict(_rows(spots(found)))
    if not rows:
        return None
    targets = [name for name in (each.name for each in found.spec.contenders) if name in found.sensitivity]
    choices = (tuple(rows), (_MEANS, *(f"{name} beside each" for name in targets)))
    variants: Json = {}
    for title, (axis, row) in rows.items():
        layout = axes(_AXIS[axis], "normalized throughput")
        variants[f"{title}|{_MEANS}"] = {
            "data": [_mean_line(axis, row, name, number) for number, name in enumerate(targets)],
            "layout": layout,
        }
        for target in targets:
            variants[f"{title}|{target} beside each"] = {
                "data": [_pair_line(axis, row, target, other, number) for number, other in enumerate(targets)],
                "layout": layout,
            }
    return Figure(f"{anchor}-sweep", "Interference by packet size and rate", simulated, choices, variants)


def _rows(measured: Sequence[MatrixSlice]) -> Iterator[tuple[str, tuple[str, list[MatrixSlice]]]]:
    """Points that differ in one thing only, under a title that says what is held."""
    for asked_pps in dict.fromkeys(spot.asked_pps for spot in measured):
        row = [spot for spot in measured if spot.asked_pps == asked_pps]
        held = "more than the fastest carries" if asked_pps is None else f"{rate(asked_pps)} each"
        if len(row) > 1:
            yield f"{_SIZE}, {held}", (_SIZE, sorted(row, key=lambda spot: spot.frame.mean_bytes))
    for name in dict.fromkeys(spot.frame.name for spot in measured):
        row = [spot for spot in measured if spot.frame.name == name]
        if len(row) > 1:
            yield f"{_RATE}, {name}", (_RATE, sorted(row, key=lambda spot: spot.load_pps))


def _mean_line(axis: str, row: Sequence[MatrixSlice], target: str, colour: int) -> Json:
    found = [(spot, [each for each in pairs(spot.matrix) if each.target == target]) for spot in row]
    points = [(spot, fmean(each.mean for each in beside)) for spot, beside in found if beside]
    return _line(axis, points, target, colour)


def _pair_line(axis: str, row: Sequence[MatrixSlice], target: str, other: str, colour: int) -> Json:
    """With the ends of the confidence interval of each point."""
    found = [(spot, each) for spot in row for each in spot.matrix if (each.target, each.against) == (target, (other,))]
    above, below = ([rounded(_width(each, up=up)) for _, each in found] for up in (True, False))
    line = _line(axis, [(spot, each.mean) for spot, each in found], f"beside {other}", colour)
    return line | {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}


def _width(row: Normalized, *, up: bool) -> float:
    end = row.high if up else row.low
    return 0.0 if end is None else abs(end - row.mean)


def _line(axis: str, points: Sequence[tuple[MatrixSlice, float]], name: str, colour: int) -> Json:
    return scatter(
        name,
        [(spot.frame.mean_bytes if axis == _SIZE else spot.load_pps, mean) for spot, mean in points],
        colour,
        texts=[f"{escape(spot.frame.name)}, {rate(spot.load_pps)} each" for spot, _ in points],
        hover=f"{escape(name)}: %{{y:.3~g}}<br>%{{text}}",
    )


def measured(item: Characterized, found: Interference) -> Iterator[MeasuredRow]:
    """Yield a row for each set of co-located network functions that each of them was measured in.

    The competitors are part of the service's name: they decide what is compared with what.
    """
    for guarantee, rows in matrices(found):
        end = f", {WAYS[guarantee]}" if guarantee else ""
        for row in rows:
            low, high = (row.mean if each is None else each for each in (row.low, row.high))
            yield measured_row(
                item,
                (MeasuredValue(NORMALIZED, row.mean, low, high),),
                test_type=NORMALIZED.value,
                service_type=f"{row.target} beside {' and '.join(row.against)}{end}",
                **Dimensions(1 + len(row.against), 1).columns,
                nf_size=str(found.spec.size),
                frame=frame_text(found.spec.frame),
                goals="interference",
            )


def _title(found: Interference) -> str:
    spec = found.spec
    load = "" if spec.load_pps is None or spec.loads_pps else f", {rate(spec.load_pps)} each"
    return f"{spec.name}, {', '.join(frame.name for frame in spec.frames or (spec.frame,))}{load}"


def headline(found: Interference) -> str:
    """Most sensitive and most aggressive network functions, and how much was measured where that is not all."""
    measured, asked = found.coverage
    findings = found.findings
    sentences = (
        findings_in_words(findings) if findings else ("no two network functions were measured beside each other",)
    )
    most = "; ".join(sentences[1:] or sentences)
    return most if measured == asked else f"{measured} of {asked} measurements were made; {most}"


def _lines(found: Interference) -> Iterator[str]:
    yield from (*matrix_in_words(found), *advice_in_words(found))


_QUERIED = QueriedTables(
    {
        "interference_measurements": tables.MEASUREMENTS,
        "interference_matrix": tables.MATRIX,
        "interference_comparison": tables.COMPARISON,
        "interference_means": tables.MEANS,
        "interference_sweep": tables.SWEEP,
    },
    texts=(
        "frame",
        "target",
        "against",
        "guaranteed_resource",
        "network_function",
        "type",
        "kind",
        "stand_in_for",
    ),
    counts=(
        "samples",
        "turn",
        "repetition",
        "memory_bytes",
        "cache_misses",
        *(f"{what}_{end}_rank" for what in ("sensitivity", "aggressiveness") for end in ("first", "last")),
    ),
    flags=("guaranteed",),
)
STUDY = Study(
    order=50,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "interference",
            "Interference",
            lambda record: record.interference,
            _title,
            headline,
            lines=_lines,
            measured=measured,
            tables=tables.interference_tables,
            queried=_QUERIED,
        ),
    ),
    measures=(NORMALIZED,),
    explanations=EXPLANATIONS,
    preview=lambda path, keys: cost(load_interference(path, keys)),
)
