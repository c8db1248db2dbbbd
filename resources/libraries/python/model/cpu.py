"""The processor as the planner sees it: logical CPUs, physical cores, NUMA nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from resources.libraries.python.model.base import Frozen


@dataclass(frozen=True, slots=True, order=True)
class LogicalCpu:
    """One row of `lscpu -p=CPU,CORE,SOCKET,NODE`."""

    cpu: int
    core: int
    socket: int
    node: int


class CpuLayout(Frozen):
    """All logical CPUs of one machine. Siblings are read from the list, never computed from numbering."""

    cpus: tuple[LogicalCpu, ...]

    @cached_property
    def smt(self) -> bool:
        """Whether any physical core has more than one logical CPU."""
        return any(len(core) > 1 for node in self.numa_nodes for core in self.cores(node))

    @cached_property
    def numa_nodes(self) -> tuple[int, ...]:
        """The NUMA node numbers, ascending."""
        return tuple(sorted({row.node for row in self.cpus}))

    def cores(self, node: int) -> tuple[tuple[int, ...], ...]:
        """Physical cores of a NUMA node in order of their first logical CPU, each as its logical CPUs."""
        members: dict[tuple[int, int], list[int]] = {}
        for row in sorted(self.cpus):
            if row.node == node:
                members.setdefault((row.socket, row.core), []).append(row.cpu)
        return tuple(tuple(cpus) for cpus in members.values())


def parse_lscpu(text: str) -> CpuLayout:
    """Read what `lscpu -p=CPU,CORE,SOCKET,NODE` prints. Where it knows no nodes, all are on node 0.

    Raises:
        ValueError: It is something else.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            words = [word.strip() or "0" for word in line.split(",")]
            if len(words) != 4 or not all(word.isdecimal() for word in words):
                raise ValueError(f"line {number} is no row of `lscpu -p=CPU,CORE,SOCKET,NODE`: {line.strip()[:60]}")
            cpu, core, socket, node = map(int, words)
            rows.append((cpu, core, socket, node))
    if not rows:
        raise ValueError("no row of `lscpu -p=CPU,CORE,SOCKET,NODE` in it")
    return layout(rows)


def layout(rows: Iterable[tuple[int, int, int, int]]) -> CpuLayout:
    """Build a layout from (cpu, core, socket, node) rows."""
    return CpuLayout(cpus=tuple(LogicalCpu(*row) for row in rows))
