"""Groups of comparable results: only these share a matrix, a curve or a colour scale."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from csit_utils.dataset.goal_words import readable
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MEASURES, OWN, TestRow


def _cores_of(nf_size: str) -> list[float]:
    """Data cores of each NF of a size such as `1c+0.5c`; empty if unknown."""
    return [float(cores) for cores in re.findall(r"(\d+(?:\.\d+)?)c", nf_size)]


@dataclass(frozen=True, order=True)
class System:
    """Source of results. Simulated and measured results are different systems, as are results of different tools."""

    simulated: bool
    world: str
    testbed: str
    drivers: str
    origin: str = OWN
    """Tool that measured."""

    @property
    def name(self) -> str:
        """Name for a heading."""
        kind = "simulated" if self.simulated else self.world
        if kind in self.origin:
            return f"{self.testbed}, {self.origin}"
        return f"{self.testbed} ({kind if self.origin == OWN else f'{kind}, {self.origin}'})"

    @property
    def title(self) -> str:
        """Name beside a mark of simulated results, which need not say so twice."""
        return self.testbed if self.simulated else self.name


@dataclass(frozen=True)
class Series:
    """Properties that all cells of a matrix share."""

    system: System
    service_type: str
    nf_size: str
    """Empty if unknown."""
    vs_dtc: int | None
    """None if unknown."""
    frame: str
    profile: str
    goals: str

    def __lt__(self, other: "Series") -> bool:
        """Compare fields in their order; unknown sizes sort first."""
        return self._order < other._order

    @property
    def _order(self) -> tuple[System, str, list[float], int, str, str, str]:
        cores = -1 if self.vs_dtc is None else self.vs_dtc
        return self.system, self.service_type, _cores_of(self.nf_size), cores, self.frame, self.profile, self.goals

    @property
    def name(self) -> str:
        """Name for a heading within its system and frame size."""
        return " · ".join(filter(None, (self.service_type, self.nf_name, self.vswitch_name)))

    @property
    def nf_name(self) -> str:
        """Size of the NFs; empty if unknown."""
        return f"NF-{self.nf_size}" if self.nf_size else ""

    @property
    def vswitch_name(self) -> str:
        """Size of the vSwitch; empty if unknown."""
        return f"vSwitch-{self.vs_dtc}c" if self.vs_dtc is not None else ""

    @property
    def sizes(self) -> str:
        """Sizes of NFs and vSwitch, as far as known."""
        return ", ".join(filter(None, (self.nf_name, self.vswitch_name)))

    @property
    def method(self) -> str:
        """Search profile; the goals if a tool has none."""
        return f"profile {self.profile}" if self.profile else readable(self.goals)


class ThroughputBounds(NamedTuple):
    """A throughput with its bounds; at least one of them is known."""

    lower: float | None
    """None: the throughput is below `upper`."""
    upper: float | None
    """None: not bounded above by the offered load. Equal to `lower` for a tool that reports no bounds."""
    complete: bool


_BOUNDS = {
    measure: attrgetter(column, measure.upper_bound, measure.complete, measure.tried)
    for measure, column in MEASURES.items()
    if measure.complete
}
"""Columns of searches, of a row."""


def is_measured(row: TestRow, measure: Measure) -> bool:
    """Whether a test has searched or measured a figure, whatever came out."""
    return getattr(row, measure.searched or MEASURES[measure]) is not None


def asks_for(row: TestRow, measure: Measure) -> bool:
    """Whether a test was to find this measure."""
    if measure.optional and not is_measured(row, measure):
        return False
    return row.test_type is None or (measure.asked_by or measure.goal or measure) in row.test_type


def bounds(row: TestRow, measure: Measure) -> ThroughputBounds | None:
    """Return the figure of a row; None if it has none, or if the test failed, so that its figures are unreliable."""
    if not row.recorded or row.status != "PASS":
        return None
    if measure not in _BOUNDS:
        value = getattr(row, MEASURES[measure])
        upper = getattr(row, measure.upper_bound or MEASURES[measure])
        return None if value is None else ThroughputBounds(value, upper, complete=True)
    lower, upper, complete, tried = _BOUNDS[measure](row)
    if lower is None:
        upper = tried if upper is None else upper
    if lower is None and upper is None:
        return None
    if complete is None and upper is None:
        upper = lower
    return ThroughputBounds(lower, upper, complete is not False)


def beside(measure: Measure, rows: Iterable[TestRow]) -> list[Measure]:
    """Return a throughput and the measures that follow it in tables, where any test has them."""
    more = [each for each in MEASURES if each.beside == measure]
    return [measure, *(each for each in more if any(is_measured(row, each) for row in rows))]


def figures_beside(row: TestRow) -> list[tuple[Measure, float]]:
    """Return the values of the measures that tables show beside throughputs."""
    found = ((each, bounds(row, each)) for each in MEASURES if each.beside)
    return [(each, value.lower) for each, value in found if value is not None and value.lower is not None]


def error_of(row: TestRow, measure: Measure) -> float:
    """Return the standard error of a mean of trials, in the unit of the measure; 0 for all others."""
    if not measure.stdev:
        return 0.0
    return (getattr(row, measure.stdev) or 0.0) / sqrt(getattr(row, measure.trials) or 1)


def per_core(row: TestRow, measure: Measure) -> float | None:
    """Return the throughput per requested data core in pps."""
    found = bounds(row, measure)
    if found is None or found.lower is None or not row.data_cores:
        return None
    return found.lower / row.data_cores


def system_of(row: TestRow) -> System | None:
    """Return the system of a row; None without a record."""
    if row.simulated is None or row.world is None or row.testbed is None:
        return None
    return System(row.simulated, row.world, row.testbed, row.drivers or "", row.origin)


def series_of(row: TestRow) -> Series | None:
    """Return the series of a row; None without a record, or if the test has no service of NFs."""
    if row.simulated is None or row.world is None or row.testbed is None or row.service_type is None:
        return None
    return _series(
        (row.simulated, row.world, row.testbed, row.drivers or "", row.origin),
        (row.service_type, row.nf_size or "", row.vs_dtc, row.frame or "", row.profile or "", row.goals or ""),
    )


@lru_cache(4096)
def _series(system: tuple[bool, str, str, str, str], rest: tuple[str, str, int | None, str, str, str]) -> Series:
    """Return a series, one object for all its tests, since pages ask for those of all tests again and again."""
    return Series(System(*system), *rest)


def all_series(rows: Iterable[TestRow]) -> list[Series]:
    """Return all series: measured before simulated ones, then by name."""
    return sorted({series for row in rows if (series := series_of(row)) is not None})


def belongs(row: TestRow, series: Series, system: System | None) -> bool:
    """Whether a row belongs to a series. A test without a record belongs if nothing known of it contradicts.

    `system`: the system of a row without a record, if its file has one.
    """
    own = series_of(row)
    if own is not None:
        return own == series
    return (
        system == series.system
        and row.service_type == series.service_type
        and row.nf_size in (None, series.nf_size)
        and row.vs_dtc in (None, series.vs_dtc)
        and (row.frame is None or series.frame.upper().split(" ")[0] == row.frame.upper())
    )


def systems_by_source(rows: Iterable[TestRow]) -> dict[str, System]:
    """Return systems by file, for files with records of a single system."""
    found: dict[str, set[System]] = {}
    for row in rows:
        system = system_of(row)
        if system is not None:
            found.setdefault(row.source, set()).add(system)
    return {source: next(iter(systems)) for source, systems in found.items() if len(systems) == 1}


class _BlockOfSeries(Protocol):
    @property
    def series(self) -> Series: ...


_T = TypeVar("_T", bound=_BlockOfSeries)


def blocks_of(found: Iterable[_T]) -> list[tuple[str, list[_T]]]:
    """Return heading and items of each block, in order.

    `found`: an item of each series.
    """
    blocks: dict[object, list[_T]] = {}
    for each in found:
        one = each.series
        blocks.setdefault((one.system, one.frame, one.profile, one.goals), []).append(each)
    every = [each.series for own in blocks.values() for each in own]
    several = len({one.system for one in every}) > 1, len({one.profile for one in every}) > 1
    return [(_heading([each.series for each in own], *several), by_size(own)) for own in blocks.values()]


def by_size(found: Sequence[_T]) -> list[_T]:
    """Return items with those of the same sizes next to each other: the service types of a size are a row of maps."""
    sizes = [(each.series.nf_size, each.series.vs_dtc) for each in found]
    return [each for size in dict.fromkeys(sizes) for each, own in zip(found, sizes, strict=True) if own == size]


def _heading(own: Sequence[Series], systems: bool, profiles: bool) -> str:
    words = [own[0].system.name] if systems else []
    words += [own[0].frame, common_sizes(own)]
    words += [own[0].method] if profiles else []
    return ", ".join(filter(None, words))


def series_names(series: Sequence[Series]) -> dict[Series, str]:
    """A short name for each series of a block: the service type, and of the sizes only what sets them apart."""
    sizes: tuple[Callable[[Series], str], ...] = (lambda one: one.nf_name, lambda one: one.vswitch_name)
    telling = [size for size in sizes if len({size(one) for one in series}) > 1]
    return {one: " ".join(filter(None, (one.service_type, *(size(one) for size in telling)))) for one in series}


def common_sizes(series: Sequence[Series]) -> str:
    """The sizes that all series of a block have in common."""
    sizes = ({one.nf_name for one in series}, {one.vswitch_name for one in series})
    return ", ".join(name for names in sizes if len(names) == 1 for name in names if name)
