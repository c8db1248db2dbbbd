"""Interference of network functions: a map of targets and competitors, and bars of their means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from statistics import fmean

from csit_utils.report.figures import Figure, Json, bars, categories, no_choice
from csit_utils.report.units import DASH, digits3, percent, rate
from csit_utils.studies.density.figures.cell_maps import CellMap, CellMaps, MapSquare, Scale, scale_of
from resources.libraries.python.studies.interference.analysis.sentences import cell_in_words
from resources.libraries.python.studies.interference.analysis.tables import matrices
from resources.libraries.python.studies.interference.model.record import (
    ColocationMeasurement,
    Interference,
    Normalized,
    RankedMean,
    Resource,
)

WAYS: Mapping[Resource | None, str] = {
    None: "without a guarantee",
    **{each: f"{each.words} guaranteed" for each in Resource},
}
_GUARANTEES = {way: guarantee for guarantee, way in WAYS.items()}
_NORMALIZED, _DEGRADATION = "normalized throughput", "degradation"


@dataclass(frozen=True)
class _Quantity:
    """A quantity of co-located NFs besides throughput."""

    value: Callable[[ColocationMeasurement], float | None]
    write: Callable[[float], str]


_QUANTITIES: Mapping[str, _Quantity] = {
    "throughput": _Quantity(lambda measurement: measurement.throughput_pps, rate),
    "loss": _Quantity(lambda measurement: measurement.loss_ratio, percent),
    "response time": _Quantity(
        lambda measurement: None if measurement.response_s is None else measurement.response_s * 1e6,
        lambda value: f"{digits3(value)} µs",
    ),
    "CPUs": _Quantity(lambda measurement: measurement.cpu, lambda value: f"{value:.2f}"),
    "memory": _Quantity(
        lambda measurement: None if measurement.memory_bytes is None else measurement.memory_bytes / 2**20,
        lambda value: f"{digits3(value)} MiB",
    ),
    "cache misses": _Quantity(
        lambda measurement: None if measurement.cache_misses is None else float(measurement.cache_misses), digits3
    ),
}


def interference_maps(anchor: str, found: Interference, *, simulated: bool) -> CellMaps | None:
    """Targets in rows, competitors in columns, the first column without any; None where there was no pair."""
    pairs = [row for row in found.matrix if len(row.against) == 1]
    if not pairs:
        return None
    names = tuple(contender.name for contender in found.spec.contenders)
    known = [
        name for name, each in _QUANTITIES.items() if any(each.value(one) is not None for one in found.measurements)
    ]
    ways = tuple(WAYS[guarantee] for guarantee, matrix in matrices(found) if matrix)
    squares = _Squares(found, names)
    return CellMaps(
        identity=f"{anchor}-map",
        title="Normalized throughput, by pair of co-located network functions",
        simulated=simulated,
        selectors=((_NORMALIZED, _DEGRADATION, *known), ways),
        first=(_NORMALIZED, ways[0]),
        maps=(
            CellMap(
                title=f"{found.spec.frame.name}, all ordered pairs",
                corner=("beside", "network function"),
                columns=("alone", *names),
                lines=names,
                hrefs=tuple((None,) * (len(names) + 1) for _ in names),
                square=squares.square,
                named=True,
            ),
        ),
        scale=squares.scale,
        write=digits3,
        explain=("normalized-throughput", "normalized throughput"),
    )


class _Squares:
    """Cells of the map."""

    def __init__(self, found: Interference, names: Sequence[str]) -> None:
        self._names = names
        self._rows = {(row.target, row.against, guarantee): row for guarantee, rows in matrices(found) for row in rows}
        self._measurements: dict[tuple[str, tuple[str, ...], Resource | None], list[ColocationMeasurement]] = {}
        for measurement in found.measurements:
            if measurement.point:
                continue  # of a sweep: the map is of the reference point
            key = (measurement.target, measurement.against, measurement.guarantee)
            self._measurements.setdefault(key, []).append(measurement)
        for name, guarantee in product(names, Resource):  # the baseline of all ways
            self._measurements.setdefault((name, (), guarantee), self._measurements.get((name, (), None), []))

    def square(self, line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
        """One cell."""
        target, quantity, guarantee = self._names[line], choice[0], _GUARANTEES[choice[1]]
        against = (self._names[column - 1],) if column else ()
        beside = f"beside {against[0]}" if against else "alone"
        if quantity in {_NORMALIZED, _DEGRADATION}:
            return _of_throughput(self._rows.get((target, against, guarantee)), target, beside, quantity)
        values = self._values((target, against, guarantee), quantity)
        if not values:
            return MapSquare(DASH, f"{target} {beside}: not measured", state="not-run")
        mean, write = fmean(values), _QUANTITIES[quantity].write
        spread = f", from {write(min(values))} to {write(max(values))}" if len(values) > 1 else ""
        tip = f"{target} {beside}: {quantity} {write(mean)}, mean of {len(values)}{spread}"
        return MapSquare(write(mean), tip, mean)

    def scale(self, choice: tuple[str, ...]) -> Scale:
        """From the least to the largest value; shares of throughput from nothing to all."""
        if choice[0] in {_NORMALIZED, _DEGRADATION}:
            return Scale(0.0, 1.0)
        means = [
            fmean(values)
            for target, column, guarantee in product(
                self._names, ((), *((name,) for name in self._names)), (None, *Resource)
            )
            if (values := self._values((target, column, guarantee), choice[0]))
        ]
        return scale_of(means)

    def _values(self, key: tuple[str, tuple[str, ...], Resource | None], quantity: str) -> list[float]:
        value = _QUANTITIES[quantity].value
        return [number for measurement in self._measurements.get(key, ()) if (number := value(measurement)) is not None]


def _of_throughput(row: Normalized | None, target: str, beside: str, quantity: str) -> MapSquare:
    if row is None:
        if beside == "alone":
            return MapSquare("1" if quantity == _NORMALIZED else "0", f"{target} alone: the baseline")
        return MapSquare(DASH, f"{target} {beside}: not measured", state="not-run")
    value = row.mean if quantity == _NORMALIZED else 1 - row.mean
    half = "" if row.low is None or row.high is None else f"± {(row.high - row.low) / 2:.2f}"
    tip = f"{target} {beside}: normalized throughput {cell_in_words(row)}, {row.samples} measurements"
    return MapSquare(f"{value:.2f}", tip, value, half)


def means_figure(anchor: str, found: Interference, *, simulated: bool) -> Figure | None:
    """Bars of what each loses beside others, and of what others lose beside it."""
    findings = found.findings
    if findings is None:
        return None
    names = [each.name for each in findings.sensitivity]
    rows = (
        ("loses beside others (sensitivity)", findings.sensitivity, 0),
        ("others lose beside it (aggressiveness)", findings.aggressiveness, 1),
    )
    data = [_bars(names, label, {each.name: each for each in means}, colour) for label, means, colour in rows]
    layout = categories("mean degradation, %", barmode="group")
    return no_choice(f"{anchor}-means", "Sensitivity and aggressiveness", data, layout, simulated=simulated)


def _bars(names: Sequence[str], label: str, means: Mapping[str, RankedMean], colour: int) -> Json:
    """With the ends of the confidence intervals."""
    lost = [means[name].lost if name in means else None for name in names]
    points = [
        (escape(name), None if each is None else 100 * each.value) for name, each in zip(names, lost, strict=True)
    ]
    above, below = (
        [0.0 if each is None or (end := getattr(each, side)) is None else 100 * abs(end - each.value) for each in lost]
        for side in ("high", "low")
    )
    row = bars(label, points, colour, hover=f"%{{x}} {escape(label)}: %{{y:.3~g}} %")
    return row | {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}
