"""The processor as the planner sees it: logical CPUs, physical cores, NUMA nodes, and lists such as `0-3,8`."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, get_args

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty, is_none
from resources.libraries.python.model.bounds import MAX_DIGITS, MAX_LISTED, quoted


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


Kind = Literal["performance", "efficiency", "low-power efficiency"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of cores by rank, the fastest first; further ones are called as the last one."""
_SAME_KIND = 0.87
"""Ratio of two maximum frequencies from which on they are of one kind: favoured cores of a kind are at most 10 % faster
than its others; the next kind has at most 85 % of its frequency (Intel's hybrid processors, big.LITTLE)."""


def ranked(speeds: Mapping[int, float]) -> dict[int, int]:
    """Kinds of cores by their maximum frequencies, the fastest is 0; empty where all are of one kind."""
    rank, ranks, before = 0, dict[float, int](), 0.0
    for speed in sorted(set(speeds.values()), reverse=True):
        rank += bool(before) and speed < _SAME_KIND * before
        ranks[speed], before = rank, speed
    return {cpu: ranks[speed] for cpu, speed in speeds.items()} if rank else {}


class CpuLayout(Frozen):
    """All logical CPUs of one machine. Siblings are read from the list, never computed from numbering."""

    cpus: tuple[LogicalCpu, ...]
    cache: CacheWays | None = Field(default=None, exclude_if=is_none)
    """None where the last-level cache cannot be divided."""
    kinds: dict[int, int] = Field(default_factory=dict, exclude_if=is_empty)
    """Kind of core by logical CPU, as the place in `KINDS`; empty where all are of one kind, or none is known."""
    last_caches: dict[int, int] = Field(default_factory=dict, exclude_if=is_empty)
    """Number of the last-level cache by logical CPU; empty where it is not known."""

    @cached_property
    def smt(self) -> bool:
        """Whether any physical core has more than one logical CPU."""
        return any(len(core) > 1 for node in self.numa_nodes for core in self.cores(node))

    def without_smt(self) -> "CpuLayout":
        """What is left when SMT is switched off: the first logical CPU of each physical core."""
        return self.only({core[0] for node in self.numa_nodes for core in self.cores(node)})

    def only(self, kept: Collection[int]) -> "CpuLayout":
        """The same machine with these of its CPUs."""
        return CpuLayout(
            cpus=tuple(row for row in self.cpus if row.cpu in kept),
            cache=self.cache,
            kinds={cpu: kind for cpu, kind in self.kinds.items() if cpu in kept},
            last_caches={cpu: number for cpu, number in self.last_caches.items() if cpu in kept},
        )

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

    def kinds_in_words(self, cores: Iterable[tuple[int, ...]]) -> str:
        """Numbers of cores by kind: `6 performance and 8 efficiency cores`; empty where all are of one kind."""
        counts = Counter(self.kinds.get(core[0], 0) for core in cores)
        named = [f"{counts[rank]} {KINDS[min(rank, len(KINDS) - 1)]}" for rank in sorted(counts)]
        return f"{', '.join(named[:-1])} and {named[-1]} cores" if len(named) > 1 else ""


_COLUMNS = ("cpu", "core", "socket", "node")
_UNKNOWN = ("", "-", "-1")
"""Output of `lscpu` for an unknown value: always for an offline CPU."""
_ALL_COLUMNS = (*_COLUMNS, "", "l1d", "l1i", "l2", "l3", "l4")
_SPEED = re.compile(r"\d{1,6}(\.\d*)?")
_CACHE_COLUMN = re.compile(r"l(\d)")
"""Name of a column that has the number of a cache; instruction caches and data caches have a letter more."""


def parse_lscpu(text: str) -> CpuLayout:
    """Read what `lscpu -p` prints, with its default columns or chosen ones.

    Columns are named by the last comment before the first row; without one they are CPU, CORE, SOCKET and NODE. Offline
    CPUs (printed with `-a`) are left out. Without a column of NUMA nodes, or where it is empty, all are on node 0. The
    last column L2, L3 … has groups of cores with a last-level cache of their own, MAXMHZ has kinds of cores.

    Raises:
        ValueError: It is something else.
    """
    columns: tuple[str, ...] = ()
    rows, speeds, caches = [], dict[int, float](), dict[int, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            named = tuple(word.strip().lower() for word in line.lstrip("# ").split(","))
            columns = named if "cpu" in named else columns
        elif line.strip():
            row, rest = _row(line, columns, number)
            if row is not None:
                rows.append(row)
                speeds |= {row[0]: float(rest["maxmhz"])} if _SPEED.fullmatch(rest.get("maxmhz", "")) else {}
                last = max((name for name in rest if _CACHE_COLUMN.fullmatch(name)), default="")
                caches |= {row[0]: int(rest[last])} if _is_number(rest.get(last, "")) else {}
    if not rows:
        raise ValueError("no row of `lscpu -p=CPU,CORE,SOCKET,NODE` in it")
    repeated = [cpu for cpu, times in Counter(cpu for cpu, *_ in rows).items() if times > 1]
    if repeated:
        raise ValueError(f"CPU {repeated[0]} is there more than once")
    return layout(rows, ranked(speeds) if len(speeds) == len(rows) else _by_threads(rows), caches)


def _by_threads(rows: Iterable[tuple[int, int, int, int]]) -> dict[int, int]:
    """Kinds of cores of a hybrid processor by their threads alone, where the frequencies are not known.

    Its cores with two threads, whose numbers follow each other, come first. Where siblings are offline, numbers are
    missing, or siblings are in another half of the numbers.
    """
    cores: dict[tuple[int, int], list[int]] = {}
    for cpu, core, socket, _ in sorted(rows):
        cores.setdefault((socket, core), []).append(cpu)
    several = [cpu for core in cores.values() if len(core) > 1 for cpu in core]
    single = [core[0] for core in cores.values() if len(core) == 1]
    if len(single) < 2 or not several or [*several, *single] != list(range(len(several) + len(single))):
        return {}
    return {**dict.fromkeys(several, 0), **dict.fromkeys(single, 1)}


def _row(line: str, columns: tuple[str, ...], number: int) -> tuple[tuple[int, int, int, int] | None, dict[str, str]]:
    """CPU, core, socket and node of a row, None for an offline CPU; and all words by column."""
    words = [word.strip() for word in line.split(",")]
    # Without names, or with those of another language: there is a column without a name before those of caches.
    columns = columns or (_ALL_COLUMNS[: len(words)] if words[4:5] == [""] else _COLUMNS)
    named = dict(zip(columns, words, strict=False))
    cpu, core, socket, node = (named.get(name, "") for name in _COLUMNS)
    offline = named.get("online", "").lower() in ("n", "no") or (core in _UNKNOWN and socket in _UNKNOWN)
    if len(words) == len(columns) and _is_number(cpu):
        if offline:
            return None, named
        values = [cpu, core, *("0" if value in _UNKNOWN else value for value in (socket, node))]
        if all(map(_is_number, values)) and int(cpu) < MAX_LISTED:
            return (int(cpu), int(core), int(values[2]), int(values[3])), named
    text = f"line {number} is no row of `lscpu -p=CPU,CORE,SOCKET,NODE`: {line.strip()[:60]}"
    raise ValueError(f"{text}; write the file by `lscpu -p` on the node")


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= MAX_DIGITS


def layout(
    rows: Iterable[tuple[int, int, int, int]],
    kinds: Mapping[int, int] | None = None,
    last_caches: Mapping[int, int] | None = None,
) -> CpuLayout:
    """Build a layout from (cpu, core, socket, node) rows.

    `kinds`: Kind of core by logical CPU, from `ranked`.
    `last_caches`: Number of the last-level cache by logical CPU; one for all is none to choose from.
    """
    caches = dict(last_caches or {}) if len(set((last_caches or {}).values())) > 1 else {}
    return CpuLayout(cpus=tuple(LogicalCpu(*row) for row in rows), kinds=dict(kinds or {}), last_caches=caches)


def expand(ranges: str) -> tuple[int, ...]:
    """Expand `0-3,8` into (0, 1, 2, 3, 8).

    Raises:
        ValueError: It is no such list, a range runs backwards, or there are more than `MAX_LISTED` numbers.
    """
    numbers: list[int] = []
    for part in ranges.replace(" ", "").split(","):
        match = re.fullmatch(rf"([0-9]{{1,{MAX_DIGITS}}})(?:-([0-9]{{1,{MAX_DIGITS}}}))?", part)
        if match is None:
            raise ValueError(f"'{quoted(ranges)}' is not a list of numbers like 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {part} in '{quoted(ranges)}' runs backwards")
        if len(numbers) + last - first >= MAX_LISTED:
            raise ValueError(f"'{quoted(ranges)}' lists more than {MAX_LISTED:,} numbers")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)


def ranges(numbers: Collection[int]) -> str:
    """The short form of a list of numbers: `0-3,8`."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ",".join(str(row[0]) if len(row) == 1 else f"{row[0]}-{row[-1]}" for row in rows)
