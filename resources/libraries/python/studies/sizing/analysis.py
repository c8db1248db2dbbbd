"""A sizing in a sentence, and its tables: what an instance used each second, and every load of every size."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.model.service.spec import MeasuredSize, Sizing, vcpus_text
from resources.libraries.python.quantities import DASH, grouped
from resources.libraries.python.studies.sizing.search.size_search import carried
from resources.libraries.python.whole_files import append_to, write_whole

_ENDS = {"failed": "a size could not be measured", "no gain": "more vCPUs gain nothing"}


@dataclass(frozen=True, slots=True)
class TraceRow:
    """An instance over about a second; what could not be read is None, an empty cell."""

    time_s: float
    """At the end of that second, since the size was up."""
    cpu_percent: float | None
    """CPU usage in percent of one CPU: 250 are two and a half CPUs."""
    memory_bytes: int | None
    network_bps: float | None
    """Sent and received, L2 bits."""
    load: float
    """That was offered, in the workload's unit."""
    repetition: int
    """Repetition of that load, from 1."""


TRACE_COLUMNS = tuple(field.name for field in fields(TraceRow))
SIZING_COLUMNS = (
    "size",
    "vcpus",
    "memory_mb",
    "load",
    "indicator_mean",
    "indicator_stdev",
    "ratio",
    "capacity",
    "capacity_is_at_least",
    "bottleneck",
    "failed",
    "capacity_estimate",
    "capacity_low",
    "capacity_high",
    "near_limit",
)


def sizing_rows(sizing: Sizing) -> list[tuple[object, ...]]:
    """The head, and a row for each load on each size, in the order in which they were measured.

    Columns are SIZING_COLUMNS, then capacity, estimate and interval at each further threshold as in
    `capacity_at_0.8_low`, and what the generator script said beside the indicator as `figure_<name>`. A size of which
    no load could be measured has one row, with an empty load.
    """
    figures, further = sizing.figure_names, sizing.workload.all_thresholds[1:]
    at = [f"capacity_at_{threshold:g}{part}" for threshold in further for part in ("", "_estimate", "_low", "_high")]
    rows: list[tuple[object, ...]] = [(*SIZING_COLUMNS, *at, *(f"figure_{name}" for name in figures))]
    for size in sizing.sizes:
        known = {row.threshold: (row.carried, row.estimate, row.low, row.high) for row in size.capacities}
        unknown = (None,) * 4
        _, *first = known.get(sizing.workload.threshold, unknown)
        head = (size.name, size.vcpus, size.memory_mb)
        tail = (
            size.capacity,
            int(size.at_top),
            size.bottleneck,
            size.failed,
            *first,
            None if size.near_limit is None else int(size.near_limit),
            *(cell for each in further for cell in known.get(each, unknown)),
        )
        rows += [
            (*head, row.load, row.mean, row.stdev, row.ratio, *tail, *map(row.figures.get, figures))
            for row in size.offered
        ]
        if not size.offered:
            rows.append((*head, None, None, None, None, *tail, *(None for _ in figures)))
    return rows


class TraceFiles:
    """The load monitor's files: `<folder>/<size>/<instance>.csv`, which grow while a size is measured.

    `folder`: made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._begun: set[Path] = set()

    def add(self, size: str, instance: str, rows: Iterable[TraceRow]) -> None:
        """Append rows of an instance. The first ones of this object replace a file of an earlier run.

        Raises:
            CsitError: They cannot be written.
        """
        path = self.folder / size / f"{instance}.csv"
        cells = map(astuple, rows)
        if path not in self._begun:
            write_whole(path, csv_text((TRACE_COLUMNS, *cells)))
            self._begun.add(path)
        else:
            append_to(path, csv_text(cells))


def headline(found: Sizing) -> str:
    """Return the result in one sentence."""
    end = _ENDS.get(found.stopped, found.stopped)
    best = best_size(found)
    if best is None:
        return f"no size carries the lowest load; {end}"
    is_highest = best.capacity == max(size.capacity or 0.0 for size in found.sizes)
    rank = "the best" if is_highest else "not told apart from the highest"
    among = f", {rank} of {len(found.sizes)} sizes measured" if len(found.sizes) > 1 else ""
    busiest = f"; {best.bottleneck} is the busiest" if best.bottleneck else ""
    carries = f"{best.text} ({vcpus_text(best.vcpus)}): {capacity_words(best, found.workload.unit)}"
    return f"{carries}{among}{busiest}; {end}"


def best_size(sizing: Sizing) -> MeasuredSize | None:
    """Return the size with the highest capacity; None if no size carries the lowest load."""
    best = sizing.named().get(sizing.best or "")
    return None if best is None or best.capacity is None else best


def capacity_words(size: MeasuredSize, unit: str) -> str:
    """`600 calls/s (estimate 612, 95 % interval 605 to 619)`, `at least 1000 replies/s`."""
    if size.capacity is None:
        return f"less than {grouped(size.offered[0].load)} {unit}" if size.offered else DASH
    return f"{'at least ' if size.at_top else ''}{carried(size, unit)}"
