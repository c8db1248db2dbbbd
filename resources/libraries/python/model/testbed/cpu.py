"""The processor as the planner sees it: logical CPUs, physical cores, NUMA nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import MOST_LISTED


@dataclass(frozen=True, slots=True, order=True)
class LogicalCpu:
    """One row of `lscpu -p=CPU,CORE,SOCKET,NODE`."""

    cpu: int
    core: int
    socket: int
    node: int


class CacheWays(Frozen):
    """Last-level caches of one machine, whose ways can be divided among groups of CPUs."""

    ways: Annotated[int, Field(ge=2, le=64)]
    """Of each cache."""
    least: Annotated[int, Field(ge=1)] = 1
    """Ways of a part at least."""
    groups: Annotated[int, Field(ge=2)] = 16
    """Parts at most, that of all others included."""
    reserved: Annotated[int, Field(ge=0)] = 0
    """Mask of the ways that devices use too."""
    domains: dict[int, int] = Field(default_factory=dict)
    """Id of the cache by logical CPU."""

    @property
    def mask(self) -> int:
        """All ways."""
        return (1 << self.ways) - 1


class CpuLayout(Frozen):
    """All logical CPUs of one machine. Siblings are read from the list, never computed from numbering."""

    cpus: tuple[LogicalCpu, ...]
    cache: CacheWays | None = Field(default=None, exclude_if=lambda cache: cache is None)
    """None where the last-level cache cannot be divided."""

    @cached_property
    def smt(self) -> bool:
        """Whether any physical core has more than one logical CPU."""
        return any(len(core) > 1 for node in self.numa_nodes for core in self.cores(node))

    def without_smt(self) -> "CpuLayout":
        """What is left when SMT is switched off: the first logical CPU of each physical core."""
        first = {core[0] for node in self.numa_nodes for core in self.cores(node)}
        return CpuLayout(cpus=tuple(row for row in self.cpus if row.cpu in first), cache=self.cache)

    @cached_property
    def numa_nodes(self) -> tuple[int, ...]:
        """The NUMA node numbers, ascending."""
        return tuple(sorted({row.node for row in self.cpus}))

    def cores(self, node: int) -> tuple[tuple[int, ...], ...]:
        """Physical cores of a NUMA node in order of their first logical CPU, each as its logical CPUs."""
        return self._cores.get(node, ())

    @cached_property
    def _cores(self) -> dict[int, tuple[tuple[int, ...], ...]]:
        """By NUMA node: planning a matrix asks for them in each cell."""
        members: dict[int, dict[tuple[int, int], list[int]]] = {}
        for row in sorted(self.cpus):
            members.setdefault(row.node, {}).setdefault((row.socket, row.core), []).append(row.cpu)
        return {node: tuple(map(tuple, cores.values())) for node, cores in members.items()}


_COLUMNS = ("cpu", "core", "socket", "node")
_UNKNOWN = ("", "-")
"""Output of `lscpu` for an unknown value: always for an offline CPU."""


def parse_lscpu(text: str) -> CpuLayout:
    """Read what `lscpu -p` prints, with its default columns or chosen ones.

    Columns are named by the last comment before the first row; without one they are CPU, CORE, SOCKET and NODE. Offline
    CPUs (printed with `-a`) are left out. Without a column of NUMA nodes, or where it is empty, all are on node 0.

    Raises:
        ValueError: It is something else.
    """
    columns: tuple[str, ...] = _COLUMNS
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            named = tuple(word.strip().lower() for word in line.lstrip("# ").split(","))
            columns = named if "cpu" in named else columns
        elif line.strip():
            row = _row(line, columns, number)
            rows += [row] if row is not None else []
    if not rows:
        raise ValueError("no row of `lscpu -p=CPU,CORE,SOCKET,NODE` in it")
    return layout(rows)


def _row(line: str, columns: tuple[str, ...], number: int) -> tuple[int, int, int, int] | None:
    """CPU, core, socket and node of a row; None for an offline CPU."""
    words = [word.strip() for word in line.split(",")]
    named = dict(zip(columns, words, strict=False))
    cpu, core, socket, node = (named.get(name, "") for name in _COLUMNS)
    offline = named.get("online", "").lower() in ("n", "no") or (core in _UNKNOWN and socket in _UNKNOWN)
    if len(words) == len(columns) and cpu.isdecimal():
        if offline:
            return None
        values = [cpu, core, *("0" if value in _UNKNOWN else value for value in (socket, node))]
        if all(value.isdecimal() for value in values) and int(cpu) < MOST_LISTED:
            return int(cpu), int(core), int(values[2]), int(values[3])
    raise ValueError(f"line {number} is no row of `lscpu -p=CPU,CORE,SOCKET,NODE`: {line.strip()[:60]}")


def layout(rows: Iterable[tuple[int, int, int, int]]) -> CpuLayout:
    """Build a layout from (cpu, core, socket, node) rows."""
    return CpuLayout(cpus=tuple(LogicalCpu(*row) for row in rows))
