"""The tables of a characterization: S_allsamples, S_statistics, coefficients, predictions. Files are others' affair.

Percent of CPU as `top` shows it: 100 is one CPU that runs all the time, so the column of a VNF can exceed 100. What is
unknown is None, an empty field. S_statistics, by this project or others, is read back into points.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

from resources.libraries.python.csv_tables import Row, Tables, filled, original, times
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals
from resources.libraries.python.studies.sweep.model import (
    GIGA,
    BreakPoint,
    Fit,
    Prediction,
    Profile,
    ProfileMetric,
    SmtGain,
    SweepPoint,
    SweepRecord,
    SweepSample,
)

_Measured = SweepSample | SweepPoint
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


def tables_of(record: SweepRecord) -> Tables:
    """Name and rows of every table that a record of a sweep, of bursts or of a chain has something for."""
    sweep = record.sweep
    return filled(
        ("S_allsamples", all_samples(sweep.samples) if sweep else ()),
        ("S_statistics", statistics(sweep.points) if sweep else ()),
        ("coefficients", coefficients([record.profile]) if record.profile else ()),
        ("predictions", predictions(record.predictions)),
        ("smt", smt_rows(sweep.name, record.smt_gains) if sweep and record.smt_gains else ()),
    )


def all_samples(samples: Sequence[SweepSample]) -> list[Row]:
    """S_allsamples: a row per second of every load."""
    beside = dict(_beside(samples))
    rows = (
        (
            sample.rate_pps,
            sample.second,
            sample.input_pps,
            sample.output_pps,
            times(sample.loss_ratio, 100),
            times(sample.delay_s, 1e3),
            *(field(sample) for field in beside.values()),
        )
        for sample in samples
    )
    return [(*ALL_SAMPLES, *beside), *rows]


def statistics(points: Sequence[SweepPoint]) -> list[Row]:
    """S_statistics: a row per load, means over its seconds. `read_statistics` reads it back."""
    beside = dict(_beside(points))
    rows = (
        (
            point.rate_pps,
            point.samples,
            point.input_pps,
            point.sender_pps,
            point.output_pps,
            point.input_bps / GIGA,
            point.output_bps / GIGA,
            times(point.loss_ratio, 100),
            times(point.delay_s, 1e3),
            point.flagged,
            *(field(point) for field in beside.values()),
        )
        for point in points
    )
    return [(*STATISTICS, *beside), *rows]


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
        gain = (times(end, 100) for end in (row.gain.value, row.gain.low, row.gain.high))
        rows.append((service, row.quantity, *values, *gain))
    return rows


def functions_of(profile: Profile) -> Iterator[tuple[ProfileMetric, str, Fit]]:
    """Metric, region (`nonsat`, `between`, `sat`) and function, where there is one."""
    for row in profile.metrics:
        for region, fit in (("nonsat", row.nonsat), ("between", row.between), ("sat", row.sat)):
            if fit is not None:
                yield row.metric, region, fit


def _beside(rows: Sequence[_Measured]) -> Iterator[tuple[str, Callable[[_Measured], float | None]]]:
    """Columns of the CPUs and memory of VNFs, and of the node's memory, that any row has, with their fields."""
    threads: dict[str, int] = {}
    for row in rows:
        for vnf, shares in row.cpu.items():
            threads[vnf] = max(threads.get(vnf, 0), len(shares))
    for vnf, count in threads.items():
        yield f"{vnf}_cpu_percent", partial(_whole, "cpu", vnf)
        yield from ((f"{vnf}_vcpu{index + 1}_percent", partial(_thread, vnf, index)) for index in range(count))
    for vnf in dict.fromkeys(vnf for row in rows for vnf in row.busy):
        yield f"{vnf}_busy_percent", partial(_whole, "busy", vnf)
    for vnf in dict.fromkeys(vnf for row in rows for vnf in row.memory_mib):
        yield f"{vnf}_memory_mib", partial(_memory_of, vnf)
    if any(row.available_mib is not None for row in rows):
        yield AVAILABLE, attrgetter("available_mib")


def _whole(use: str, vnf: str, row: _Measured) -> float | None:
    shares = getattr(row, use).get(vnf)
    return None if shares is None else 100 * sum(shares)


def _thread(vnf: str, index: int, row: _Measured) -> float | None:
    shares = row.cpu.get(vnf, ())
    return 100 * shares[index] if index < len(shares) else None


def _memory_of(vnf: str, row: _Measured) -> float | None:
    return row.memory_mib.get(vnf)


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
        busy={vnf: (percent / 100,) for vnf, percent in _by_vnf(row, _BUSY).items()},
        memory_mib=_by_vnf(row, _MEMORY),
        available_mib=row.number(AVAILABLE),
        flagged=row.text("flagged"),
    )


def _cpu(row: _Fields) -> dict[str, tuple[float, ...]]:
    threads: dict[str, dict[int, float]] = {}
    for column in row.fields:
        if (found := _VCPU.fullmatch(column)) and (value := row.number(column)) is not None:
            threads.setdefault(found[1], {})[int(found[2])] = value / 100
    sums = {vnf: (percent / 100,) for vnf, percent in _by_vnf(row, _CPU).items()}
    return sums | {vnf: tuple(share for _, share in sorted(shares.items())) for vnf, shares in threads.items()}


def _by_vnf(row: _Fields, column: re.Pattern[str]) -> dict[str, float]:
    found = {match[1]: row.number(name) for name in row.fields if (match := column.fullmatch(name))}
    return {vnf: value for vnf, value in found.items() if value is not None}
