"""A S_statistics CSV read back into points: written by this project or by others."""

import csv
import re
from collections.abc import Mapping

from resources.libraries.python.csv_tables import original
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.model.record import SweepPoint

NEEDED = ("input_pps", "output_pps", "input_gbps", "output_gbps")
"""Columns without which there is nothing to profile. `rate_pps` is `input_pps` where it is missing, `samples` is 1."""

_VCPU = re.compile(r"(.+)_vcpu([1-9]\d*)_percent")
_BUSY = re.compile(r"(.+)_busy_percent")
_CPU = re.compile(r"(.+)_cpu_percent")


def read_statistics(text: str, source: str) -> tuple[SweepPoint, ...]:
    """Parse the points of a S_statistics CSV, in their order.

    A VNF without columns of its vCPUs has one CPU, of `<vnf>_cpu_percent`. Columns of other names are left alone.

    Args:
        text: Of the file.
        source: What it is called in messages.

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
            f"{source}: a S_statistics CSV has the columns {', '.join(NEEDED)}; not here: {', '.join(missing)}"
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
