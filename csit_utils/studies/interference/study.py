"""Interference studies in reports: what co-located network functions cost each other, and where to place them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from statistics import fmean

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.reference import PublishedFigure
from csit_utils.dataset.rows import frame_text
from csit_utils.report.record_blocks import Column, Heat, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import digits3, percent, rate, seconds
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.interference.analysis import sentences, tables
from resources.libraries.python.studies.interference.analysis.findings import pairs
from resources.libraries.python.studies.interference.analysis.placement import where
from resources.libraries.python.studies.interference.analysis.resources import comparisons
from resources.libraries.python.studies.interference.analysis.tables import MatrixSlice, matrices, spots
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    Interference,
    InterferenceRecord,
    InterferenceSpec,
    NfType,
    Normalized,
    Resource,
)
from resources.libraries.python.studies.interference.planning import cost

WAYS: dict[Resource | None, str] = {
    None: "without a guarantee",
    **{each: f"{each.words} guaranteed" for each in Resource},
}
_ALONE = "alone"
_MEANS = "mean of each network function"


def _setup(found: Interference) -> Iterator[str]:
    spec = found.spec
    yield (
        f"{spec.duration_s:g} s each, {counted(spec.repetitions, 'repetition')} in shuffled order; "
        f"{spec.frame.name} frames, NF size {spec.size}. Baselines use the same CPUs."
    )


def _ratio(row: Normalized) -> Row:
    """Normalized throughput and degradation with their intervals."""
    low, high = row.low, row.high
    return {
        "normalized": row.mean,
        "samples": row.samples,
        "low": low,
        "high": high,
        "degradation": 1 - row.mean,
        "degradation_low": None if high is None else 1 - high,
        "degradation_high": None if low is None else 1 - low,
    }


def _pairs(found: Interference) -> Iterator[Row]:
    """Each network function alone, which is the baseline, and beside each."""
    names = [each.name for each in found.spec.contenders]
    for guarantee, matrix in matrices(found):
        known = {(row.target, *row.against): row for row in pairs(matrix)}
        if known:
            way = {"way": WAYS[guarantee]}
            yield from ({**way, "target": name, "against": _ALONE, "normalized": 1, "degradation": 0} for name in names)
            for against, target in product(names, names):
                if row := known.get((target, against)):
                    yield {**way, "target": target, "against": against, **_ratio(row)}


def _measurements(found: Interference) -> Iterator[Row]:
    """Measurements of pairs; those alone are the baseline of guarantees that have no other one, too."""
    alone = {each.guarantee for each in found.measurements if not each.against}
    without = (None, *(guarantee for guarantee, matrix in matrices(found) if matrix and guarantee not in alone))
    for each in found.measurements:
        if not each.point and len(each.against) < 2:
            for guarantee in (each.guarantee,) if each.against or each.guarantee else without:
                yield {
                    **each.model_dump(include={"target", "throughput_pps", "loss_ratio", "response_s", "cpu"}),
                    **each.model_dump(include={"memory_bytes", "cache_misses"}),
                    "against": each.against[0] if each.against else _ALONE,
                    "way": WAYS[guarantee],
                }


def _means(found: Interference) -> Iterator[Row]:
    if findings := found.findings:
        for what, means in (
            ("loses beside others (sensitivity)", findings.sensitivity),
            ("others lose beside it (aggressiveness)", findings.aggressiveness),
        ):
            for each in means:
                lost = each.lost
                yield {"name": each.name, "what": what, "lost": lost.value, "low": lost.low, "high": lost.high}


def _sweep(place: Callable[[MatrixSlice], float], slices: Iterable[tuple[str, Sequence[MatrixSlice]]]) -> Iterator[Row]:
    """Normalized throughput of each network function, its mean and beside each other one.

    `place`: returns the x of a slice.
    `slices`: those that differ in x only, and what is the same.
    """
    for held, row in slices:
        for spot in sorted(row, key=place):
            at = {"held": held, "x": place(spot), "point": f"{spot.frame.name}, {rate(spot.load_pps)} each"}
            found = list(pairs(spot.matrix))
            for target in dict.fromkeys(each.target for each in found):
                own = [each for each in found if each.target == target]
                yield {**at, "of": _MEANS, "line": target, "normalized": fmean(each.mean for each in own)}
                for each in own:
                    yield {**at, "of": f"{target} beside each", "line": f"beside {each.against[0]}", **_ratio(each)}


def _over_size(found: Interference) -> Iterator[Row]:
    measured = spots(found)
    rows = (
        ("more than the fastest carries" if asked is None else f"{rate(asked)} each", asked)
        for asked in dict.fromkeys(spot.asked_pps for spot in measured)
    )
    slices = [(held, [spot for spot in measured if spot.asked_pps == asked]) for held, asked in rows]
    return _sweep(lambda spot: spot.frame.mean_bytes, [each for each in slices if len(each[1]) > 1])


def _over_rate(found: Interference) -> Iterator[Row]:
    measured = spots(found)
    names = dict.fromkeys(spot.frame.name for spot in measured)
    slices = [(name, [spot for spot in measured if spot.frame.name == name]) for name in names]
    return _sweep(lambda spot: spot.load_pps, [each for each in slices if len(each[1]) > 1])


def _placements(found: Interference) -> Iterator[Row]:
    for advice in found.advice:
        ties = {each.servers for each in advice.ties}
        for each in (advice.best, *advice.others):
            words = [] if each.predicted is None else [f"{each.predicted} predicted" if each.predicted else "measured"]
            words += ["not told apart from the best"] if each.servers in ties else []
            yield {
                "placement": where(each),
                "capacity": each.capacity,
                "low": each.low,
                "high": each.high,
                "basis": ", ".join(words),
                "best": each is advice.best,
            }


def _shares(found: Interference) -> Iterator[Row]:
    for each in found.findings.shares if found.findings else ():
        if each.target is not None:
            yield {
                "guarantee": WAYS[each.resource],
                "target": each.target,
                "against": each.against[0],
                "degradation": sentences.percent(each.degradation),
                "share": sentences.percent(each.share) if each.share else "unknown",
            }


def _compared(found: Interference) -> Iterator[Row]:
    """Pairs separately and simultaneously, as Table I of Zeng et al."""
    point = [each for each in found.measurements if not each.point and not each.guaranteed]
    values: dict[str, Callable[[ColocationMeasurement], float | None]] = {
        "throughput_pps": lambda each: each.throughput_pps,
        "response_s": lambda each: each.response_s,
        "loss_ratio": lambda each: each.loss_ratio,
    }
    compared = {name: comparisons(point, value) for name, value in values.items()}
    for pair in pairs(found.matrix):
        row: dict[str, object] = {"target": pair.target, "against": pair.against[0]}
        for name, known in compared.items():
            if one := known.get((pair.target, pair.against)):
                row |= {f"{name}_alone": one.alone, f"{name}_beside": one.beside, f"{name}_change": one.change}
        for column in (_ALONE, "beside"):
            throughput_pps = compared["throughput_pps"][pair.target, pair.against]
            row[f"throughput_mbps_{column}"] = 8e-6 * found.spec.frame.mean_bytes * getattr(throughput_pps, column)
        yield row


def _together(found: Interference) -> Iterator[Row]:
    for row in found.matrix:
        if len(row.against) > 1:
            yield {
                "target": row.target,
                "against": " and ".join(row.against),
                "normalized": sentences.cell_in_words(row),
            }


def _normalized(record: InterferenceRecord, figure: PublishedFigure) -> float | None:
    """Return the normalized throughput of network functions of the same type, beside all others or those of a type."""
    found = record.interference
    if found is None:
        return None
    types = {each.name: each.type.value for each in found.spec.contenders}
    target, *neighbour = figure.match.split()
    rows = [row for row in pairs(found.matrix) if types.get(row.target) == target]
    if neighbour:
        rows = [row for row in rows if types.get(row.against[0]) == neighbour[0]]
    return fmean(row.mean for row in rows) if rows else None


def _access(kind: str) -> str:
    return f"{kind}: {NfType(kind).access}"


def _two_places(value: float) -> str:
    return f"{value:.2f}"


_TARGET = Column("target", text=True)
_AGAINST = Column("against", "neighbour", text=True)
_NORMALIZED = Column("normalized", "normalized throughput", _two_places, ends=("low", "high"))
_DEGRADATION = Column(
    "degradation", "", _two_places, ends=("degradation_low", "degradation_high"), lower_is_better=True
)
_THROUGHPUT = Column("throughput_pps", "throughput", rate)
_LOSS = Column("loss_ratio", "loss", percent, lower_is_better=True)
_MEMORY = Column("memory_bytes", "memory", lambda value: f"{digits3(value)} MiB", scale=2**-20, lower_is_better=True)


def _response(name: str, title: str) -> Column:
    return Column(name, title, seconds, lower_is_better=True)


def _mean(name: str, title: str) -> tuple[Column, ...]:
    """Mean degradation with its interval and rank."""
    return (
        Column(name, title, percent, ends=(f"{name}_low", f"{name}_high"), explain=(name, name)),
        Column(f"{name}_first_rank", "rank from", str),
        Column(f"{name}_last_rank", "rank to", str),
    )


def _sweep_plot(name: str, title: str, table: Callable[[Interference], Iterator[Row]], x: Column) -> Plot:
    choose = ("held", "of")
    return Plot(name, title, table, x, _NORMALIZED, colour="line", choose=choose, hover=("point",))


PAGE = record_page(
    "interference",
    "Interference",
    "interference",
    (
        Sentences(_setup, paragraph=True),
        Sentences(
            lambda found: (each.sentence for each in found.advice),
            "Placement advice",
            ("placement-advice", "advice on placement"),
        ),
        Table(
            "placements",
            _placements,
            (
                Column("placement", text=True),
                Column("capacity", "total capacity", _two_places, ends=("low", "high")),
                Column("basis", text=True),
            ),
            mark={"best": "worst best"},
            classes="placements",
        ),
        Sentences(
            lambda found: sentences.findings_in_words(found.findings) if found.findings else (), "Interference in pairs"
        ),
        Heat(
            "map",
            "Normalized throughput, by pair of co-located network functions",
            rows=_TARGET,
            columns=_AGAINST,
            values=(
                (_NORMALIZED, _pairs),
                (_DEGRADATION, _pairs),
                (_THROUGHPUT, _measurements),
                (_LOSS, _measurements),
                (_response("response_s", "response time"), _measurements),
                (Column("cpu", "CPUs", _two_places, lower_is_better=True), _measurements),
                (_MEMORY, _measurements),
                (Column("cache_misses", "cache misses", digits3, lower_is_better=True), _measurements),
            ),
            caption=lambda found: f"{found.spec.frame.name}, all ordered pairs",
            choose=("way",),
            samples="samples",
            explain=("normalized-throughput", "normalized throughput"),
        ),
        Plot(
            "means",
            "Sensitivity and aggressiveness",
            _means,
            x=Column("name", text=True),
            y=Column("lost", "mean degradation, %", scale=100, ends=("low", "high")),
            colour="what",
            mark="bars",
        ),
        _sweep_plot("sizes", "Interference by packet size", _over_size, Column("x", "packet size, bytes")),
        _sweep_plot(
            "rates",
            "Interference by rate",
            _over_rate,
            Column("x", "load offered to each, one way, packets per second"),
        ),
        Table(
            "means",
            "interference_means",
            (
                Column("network_function", "network function", text=True),
                Column("type", "access to packets", _access, text=True),
                Column("kind", text=True),
                Column("stand_in_for", "stands in for", text=True),
                *_mean("sensitivity", "loses beside others"),
                *_mean("aggressiveness", "others lose beside it"),
            ),
            classes="loose",
        ),
        Sentences(sentences.resources_in_words, "Resources", ("network-share", "the share of a resource")),
        Table(
            "shares",
            _shares,
            (
                Column("guarantee", text=True),
                _TARGET,
                _AGAINST,
                Column("degradation", "degradation without it", text=True),
                Column("share", "share that it removes", text=True),
            ),
            folded="Share of a resource in each pair",
        ),
        Table(
            "compared",
            _compared,
            (
                _TARGET,
                _AGAINST,
                Column("throughput_mbps_alone", "alone, Mbit/s"),
                Column("throughput_mbps_beside", "beside, Mbit/s"),
                Column("throughput_pps_alone", "alone, one way", rate),
                Column("throughput_pps_beside", "beside, one way", rate),
                Column("throughput_pps_change", "change", percent),
                _response("response_s_alone", "response time alone"),
                _response("response_s_beside", "response time beside"),
                Column("loss_ratio_alone", "loss alone", percent),
                Column("loss_ratio_beside", "loss beside", percent),
            ),
            folded="Separately and simultaneously",
        ),
        Table(
            "together",
            _together,
            (_TARGET, _AGAINST, Column("normalized", "normalized throughput", text=True)),
            folded="Three or more co-located network functions",
        ),
        Sentences(lambda found: found.notes, "Notes"),
        Table(
            "measurements",
            "interference_measurements",
            (
                Column("turn", write=str),
                _TARGET,
                Column("against", "neighbour", lambda names: names or _ALONE, text=True),
                Column("guaranteed_resource", "guaranteed", text=True),
                Column("throughput_pps", "throughput, one way", rate),
                _LOSS,
                Column("response_us", "response time", seconds, scale=1e-6),
                Column("cpus", "CPUs", digits3),
            ),
            folded="Every measurement",
            filter=True,
        ),
    ),
    published=_normalized,
)


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
        ("normalized",),
    ),
    Explanation(
        "sensitivity",
        "Sensitivity",
        "Throughput that a network function loses beside another one, mean over all neighbours, including a second "
        "instance of itself.",
        "Percent of its throughput alone, with the 95 % confidence interval. Rank 1 is the most sensitive; a range of "
        "ranks is a tie.",
        "One minus the mean of its row of normalized throughputs (Zeng et al.). Ranks by Holm's procedure over all "
        "pairs of network functions: any wrong rank in a study has a probability of at most 5 %. Before that, a test "
        "that there is any interference at all.",
        "A mean over the neighbours of this study; others may cause more or less loss.",
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
        "A traffic limit also limits the CPU time of neighbours, so on shared CPUs this is not the share of the "
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


def _measured(found: Interference) -> Iterator[MeasuredSubject]:
    """Yield a subject for each set of co-located network functions that each of them was measured in.

    The neighbours are part of the service's name: they decide what is compared with what.
    """
    for guarantee, rows in matrices(found):
        end = f", {WAYS[guarantee]}" if guarantee else ""
        for row in rows:
            low, high = (row.mean if each is None else each for each in (row.low, row.high))
            yield MeasuredSubject(
                (MeasuredValue(NORMALIZED, row.mean, low, high),),
                f"{row.target} beside {' and '.join(row.against)}{end}",
                Dimensions(1 + len(row.against), 1),
                str(found.spec.size),
                frame_text(found.spec.frame),
                "interference",
            )


def _title(found: Interference) -> str:
    spec = found.spec
    load = "" if spec.load_pps is None or spec.loads_pps else f", {rate(spec.load_pps)} each"
    return f"{spec.name}, {', '.join(frame.name for frame in spec.frames or (spec.frame,))}{load}"


_QUERIED = QueriedTables(
    {
        "interference_measurements": tables.MEASUREMENTS,
        "interference_matrix": tables.MATRIX,
        "interference_comparison": tables.COMPARISON,
        "interference_means": tables.MEANS,
        "interference_sweep": tables.SWEEP,
    },
    texts=("frame", "target", "against", "guaranteed_resource", "network_function", "type", "kind", "stand_in_for"),
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
            sentences.headline,
            lines=sentences.sentences,
            measures=(NORMALIZED,),
            measured=_measured,
            tables=tables.interference_tables,
            queried=_QUERIED,
        ),
    ),
    explanations={"Interference": EXPLANATIONS},
    preview=lambda name, keys: cost(load_yaml(specification_file(name), InterferenceSpec, keys)),
)
