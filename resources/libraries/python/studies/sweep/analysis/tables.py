"""The tables of a characterization: S_allsamples, S_statistics, coefficients, predictions. Files are others' affair.

Percent of CPU as `top` shows it: 100 is one CPU that runs all the time, so the column of a VNF can exceed 100. What is
unknown is None, an empty field. S_statistics, by this project or others, is read back into points.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from resources.libraries.python.csv_tables import original
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals
from resources.libraries.python.studies.sweep.model.profile import (
    GIGA,
    BreakPoint,
    Fit,
    Prediction,
    Profile,
    ProfileMetric,
    SmtGain,
)
from resources.libraries.python.studies.sweep.model.record import CpuUse, SweepPoint, SweepRecord, SweepSample

Row = tuple[object, ...]
"""Fields of a line; the first line of a table has the names of its columns."""

ALL_SAMPLES = ("rate_pps", "second", "input_pps", "output_pps", "loss_percent", "delay_ms")
STATISTICS = (
    "rate_pps", "samples", "input_pps", "sender_pps", "output_pps", "input_gbps", "output_gbps", "loss_percent",
    "delay_ms", "flagged",
)  # fmt: skip
"""Columns before those of the CPUs: `<vnf>_cpu_percent` and `<vnf>_vcpu<n>_percent`, n from 1."""
AVAILABLE = "available_mib"
"""Last column, behind `<vnf>_memory_mib`: memory that the node can still give to programs."""
COEFFICIENTS = (
    "service", "break_point_gbps", "saturates_first", "metric", "region", "function", "formula", "coefficient", "value",
    "standard_error", "relative_error", "points", "first_rate_gbps", "last_rate_gbps", "low", "high",
    "break_point_low_gbps", "break_point_high_gbps", "indicator", "second_break_point_gbps",
    "second_break_point_low_gbps", "second_break_point_high_gbps", "second_indicator",
)  # fmt: skip
"""`region` is nonsat (below the break-point), sat (from it on), or between two of them; `low` and `high` are the ends
of the 95 % interval of `value`; `standard_error` has the unit of the metric, with
throughput in Gbit/s, delay in ms and loss in percent, as functions of the rate in Gbit/s."""
_UNITS = {ProfileMetric.THROUGHPUT: "gbps", ProfileMetric.DELAY: "ms", ProfileMetric.LOSS: "percent"}
PREDICTIONS = (
    "chain", "parts", "model", "rate_gbps",
    *(f"{metric}_{what}_{unit}" for metric, unit in _UNITS.items() for what in ("predicted", "measured")),
    "path", "delay_summed_ms",
)  # fmt: skip
"""`path` is the service without VNFs whose delay counts once in `delay_predicted_ms`; where there is none, that is the
plain sum of the parts' delays, which else is `delay_summed_ms`."""


SMT_GAINS = (
    "service", "quantity",
    *(f"{state}_{what}gbps" for state in ("smt_on", "smt_off") for what in ("", "low_", "high_")),
    "gain_percent", "gain_low_percent", "gain_high_percent",
)  # fmt: skip
"""A gain is what SMT adds, in percent of the value without; `low` and `high` are ends of 95 % intervals."""


def tables_of(record: SweepRecord) -> tuple[tuple[str, list[Row]], ...]:
    """Name and rows of every table that a record of a sweep, of bursts or of a chain has something for."""
    sweep = record.sweep
    tables = (
        ("S_allsamples", all_samples(sweep.samples) if sweep and sweep.samples else []),
        ("S_statistics", statistics(sweep.points) if sweep and sweep.points else []),
        ("coefficients", coefficients([record.profile]) if record.profile else []),
        ("predictions", predictions(record.predictions) if record.predictions else []),
        ("smt", smt_rows(sweep.name, record.smt_gains) if sweep and record.smt_gains else []),
    )
    return tuple((name, rows) for name, rows in tables if rows)


def all_samples(samples: Sequence[SweepSample]) -> list[Row]:
    """S_allsamples: a row per second of every load."""
    threads, busy = (_threads([use(sample) for sample in samples]) for use in (_cpu_of, _busy_of))
    memory = dict.fromkeys(vnf for sample in samples for vnf in sample.memory_mib)
    available = _is_available_known(samples)
    rows = [
        (
            sample.rate_pps,
            sample.second,
            sample.input_pps,
            sample.output_pps,
            _scaled(sample.loss_ratio, 100),
            _scaled(sample.delay_s, 1e3),
            *_cpu_fields(sample.cpu, threads),
            *_busy_fields(sample.busy, busy),
            *(sample.memory_mib.get(vnf) for vnf in memory),
            *_available(sample, known=available),
        )
        for sample in samples
    ]
    beside = (*_memory_columns(memory), *([AVAILABLE] if available else []))
    return [(*ALL_SAMPLES, *_cpu_columns(threads), *_busy_columns(busy), *beside), *rows]


def statistics(points: Sequence[SweepPoint]) -> list[Row]:
    """S_statistics: a row per load, means over its seconds. `read_statistics` reads it back."""
    threads, busy = (_threads([use(point) for point in points]) for use in (_cpu_of, _busy_of))
    memory = dict.fromkeys(vnf for point in points for vnf in point.memory_mib)
    available = _is_available_known(points)
    rows = [
        (
            point.rate_pps,
            point.samples,
            point.input_pps,
            point.sender_pps,
            point.output_pps,
            point.input_bps / GIGA,
            point.output_bps / GIGA,
            _scaled(point.loss_ratio, 100),
            _scaled(point.delay_s, 1e3),
            point.flagged,
            *_cpu_fields(point.cpu, threads),
            *_busy_fields(point.busy, busy),
            *(point.memory_mib.get(vnf) for vnf in memory),
            *_available(point, known=available),
        )
        for point in points
    ]
    beside = (*_memory_columns(memory), *([AVAILABLE] if available else []))
    return [(*STATISTICS, *_cpu_columns(threads), *_busy_columns(busy), *beside), *rows]


def coefficients(profiles: Sequence[Profile]) -> list[Row]:
    """A row per coefficient of every function, with the function's name and errors."""
    rows: list[Row] = [COEFFICIENTS]
    for profile in profiles:
        first = profile.break_point
        head = (profile.name, first.rate if first else None, first.vnf if first else None)
        tail = (*_break_point(first)[1:], *_break_point(profile.second))
        for metric, region, fit in functions_of(profile):
            errors = (fit.standard_error, fit.relative_error, fit.points, fit.first_rate, fit.last_rate)
            known = coefficient_intervals(fit)
            row = (*head, metric.value, region, fit.function, fit.formula)
            rows += [
                (*row, name, value, *errors, *known.get(name, (None, None)), *tail)
                for name, value in fit.coefficients.items()
            ]
    return rows


def _break_point(point: BreakPoint | None) -> Row:
    return (None,) * 4 if point is None else (point.rate, point.low, point.high, point.indicator.value)


def predictions(found: Sequence[Prediction]) -> list[Row]:
    """A row per prediction and rate."""
    rows: list[Row] = [PREDICTIONS]
    for prediction in found:
        head = (prediction.chain, "+".join(prediction.parts), prediction.model)
        for point in prediction.points:
            pairs = [each.get(metric) for metric in _UNITS for each in (point.predicted, point.measured)]
            rows.append((*head, point.rate, *pairs, prediction.path, point.summed_delay))
    return rows


def smt_rows(service: str, gains: Sequence[SmtGain]) -> list[Row]:
    """A row per quantity with SMT on and off."""
    rows: list[Row] = [SMT_GAINS]
    for row in gains:
        values = [end for each in (row.smt_on, row.smt_off) for end in (each.value, each.low, each.high)]
        gain = (_scaled(end, 100) for end in (row.gain.value, row.gain.low, row.gain.high))
        rows.append((service, row.quantity, *values, *gain))
    return rows


def functions_of(profile: Profile) -> Iterator[tuple[ProfileMetric, str, Fit]]:
    """Metric, region (`nonsat`, `between`, `sat`) and function, where there is one."""
    for row in profile.metrics:
        for region, fit in (("nonsat", row.nonsat), ("between", row.between), ("sat", row.sat)):
            if fit is not None:
                yield row.metric, region, fit


def _threads(uses: Sequence[CpuUse]) -> Mapping[str, int]:
    """Most data threads of each VNF, in the order in which VNFs appear."""
    threads: dict[str, int] = {}
    for use in uses:
        for vnf, shares in use.items():
            threads[vnf] = max(threads.get(vnf, 0), len(shares))
    return threads


def _cpu_columns(threads: Mapping[str, int]) -> Row:
    return tuple(
        column
        for vnf, count in threads.items()
        for column in (f"{vnf}_cpu_percent", *(f"{vnf}_vcpu{index + 1}_percent" for index in range(count)))
    )


def _cpu_fields(use: CpuUse, threads: Mapping[str, int]) -> Row:
    fields: list[object] = []
    for vnf, count in threads.items():
        shares = use.get(vnf, ())
        fields.append(100 * sum(shares) if vnf in use else None)
        fields += [100 * shares[index] if index < len(shares) else None for index in range(count)]
    return tuple(fields)


def _cpu_of(row: SweepSample | SweepPoint) -> CpuUse:
    return row.cpu


def _busy_of(row: SweepSample | SweepPoint) -> CpuUse:
    return row.busy


def _busy_columns(vnfs: Iterable[str]) -> Row:
    return tuple(f"{vnf}_busy_percent" for vnf in vnfs)


def _memory_columns(vnfs: Iterable[str]) -> Row:
    return tuple(f"{vnf}_memory_mib" for vnf in vnfs)


def _is_available_known(rows: Sequence[SweepSample | SweepPoint]) -> bool:
    return any(row.available_mib is not None for row in rows)


def _available(row: SweepSample | SweepPoint, *, known: bool) -> Row:
    return (row.available_mib,) if known else ()


def _busy_fields(busy: CpuUse, vnfs: Iterable[str]) -> Row:
    return tuple(100 * sum(busy[vnf]) if vnf in busy else None for vnf in vnfs)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


NEEDED = ("input_pps", "output_pps", "input_gbps", "output_gbps")
"""Columns without which there is nothing to profile. `rate_pps` is `input_pps` where it is missing, `samples` is 1."""

_VCPU = re.compile(r"(.+)_vcpu([1-9]\d*)_percent")
_BUSY = re.compile(r"(.+)_busy_percent")
_MEMORY = re.compile(r"(.+)_memory_mib")
_CPU = re.compile(r"(.+)_cpu_percent")


def read_statistics(text: str, source: str) -> tuple[SweepPoint, ...]:
    """Parse the points of a S_statistics CSV, in their order.

    A VNF without columns of its vCPUs has one CPU, of `<vnf>_cpu_percent`. Columns of other names are left alone.

    Raises:
        ConfigError: A column that is needed is missing, there is no row, or a field is no number that it can be.
    """
    lines = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True))
    try:
        rows = list(lines)
    except csv.Error as error:
        raise ConfigError(f"{source}, line {lines.line_num}: not CSV: {error}") from error
    heads = [original(head.strip()) for head in (rows[0] if rows else [])]
    missing = [column for column in NEEDED if column not in heads]
    if missing:
        raise ConfigError(
            f"{source}: an S_statistics CSV has the columns {', '.join(NEEDED)}; not here: {', '.join(missing)}"
        )
    twice = sorted({head for head in heads if heads.count(head) > 1})
    if twice:
        raise ConfigError(f"{source}: two columns are named {twice[0]}")
    points = []
    for number, fields in enumerate(rows[1:], 2):
        if any(field.strip() for field in fields):
            where = f"{source}, line {number}"
            if len(fields) != len(heads):
                raise ConfigError(f"{where}: has {len(fields)} fields, but there are {len(heads)} columns")
            points.append(_point(_Fields(dict(zip(heads, fields, strict=True)), where)))
    if not points:
        raise ConfigError(f"{source}: no points")
    return tuple(points)


class _Fields:
    """One row."""

    def __init__(self, fields: Mapping[str, str], where: str) -> None:
        self.fields = fields
        self.where = where

    def text(self, column: str) -> str | None:
        return self.fields.get(column, "").strip() or None

    def number(self, column: str, most: float = float("inf")) -> float | None:
        text = self.text(column)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            raise ConfigError(f"{self.where}: {column} is '{text}', not a number") from None
        if not 0 <= value <= most or value == float("inf"):
            limit = f"from 0 to {most:g}" if most < float("inf") else "of 0 or more"
            raise ConfigError(f"{self.where}: {column} is {text}; expected a number {limit}")
        return value

    def needed(self, column: str) -> float:
        value = self.number(column)
        if value is None:
            raise ConfigError(f"{self.where}: {column} is empty")
        return value


def _point(row: _Fields) -> SweepPoint:
    input_pps, rate_pps, samples = row.needed("input_pps"), row.number("rate_pps"), row.number("samples")
    loss_percent, delay_ms = row.number("loss_percent", 100), row.number("delay_ms")
    return SweepPoint(
        rate_pps=input_pps if rate_pps is None else rate_pps,
        samples=1 if samples is None else int(samples),
        input_pps=input_pps,
        sender_pps=row.number("sender_pps"),
        output_pps=row.needed("output_pps"),
        input_bps=row.needed("input_gbps") * GIGA,
        output_bps=row.needed("output_gbps") * GIGA,
        loss_ratio=None if loss_percent is None else loss_percent / 100,
        delay_s=None if delay_ms is None else delay_ms / 1e3,
        cpu=_cpu(row),
        busy=_busy(row),
        memory_mib=_memory(row),
        available_mib=row.number(AVAILABLE),
        flagged=row.text("flagged"),
    )


def _cpu(row: _Fields) -> dict[str, tuple[float, ...]]:
    """By VNF, in the order of the columns."""
    threads: dict[str, dict[int, float]] = {}
    sums: dict[str, float] = {}
    for column in row.fields:
        if found := _VCPU.fullmatch(column):
            value = row.number(column)
            if value is not None:
                threads.setdefault(found[1], {})[int(found[2])] = value / 100
        elif found := _CPU.fullmatch(column):
            value = row.number(column)
            if value is not None:
                sums[found[1]] = value / 100
    names = dict.fromkeys([*sums, *threads])
    return {
        name: tuple(share for _, share in sorted(threads[name].items())) if name in threads else (sums[name],)
        for name in names
    }


def _busy(row: _Fields) -> dict[str, tuple[float, ...]]:
    """By VNF, all of its CPUs together."""
    found = {match[1]: row.number(column) for column in row.fields if (match := _BUSY.fullmatch(column))}
    return {name: (value / 100,) for name, value in found.items() if value is not None}


def _memory(row: _Fields) -> dict[str, float]:
    """By VNF."""
    found = {match[1]: row.number(column) for column in row.fields if (match := _MEMORY.fullmatch(column))}
    return {name: value for name, value in found.items() if value is not None}
