"""Core allocation: which thread runs on which logical CPU, or why the cell does not fit.

Rules (draft-mkonstan-nf-service-density-01, Compute Resource Allocation; CSIT's CpuUtils): the first physical core of
the NUMA node is the system's, the next the vSwitch's main thread, then the vSwitch's data cores, then main threads of
NFs, two to a core, then data cores of NFs. A data core brings all its sibling threads: with SMT 1c is two data threads.
0.5c is one sibling of a core, so it needs SMT. Unlike CSIT's allocator the check counts every core of a 2c NF.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.cell import Cell, NfSize
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.settings import Sizes
from resources.libraries.python.planning.names import GENERATOR, nf_name, tap_name, vswitch_name

Core = tuple[int, ...]
"""A physical core as its logical CPUs."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Physical cores that a cell takes on one NUMA node."""

    system: int
    generator: int
    vswitch: int
    """Main and data."""
    nf_main: int
    nf_data: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.system + self.generator + self.vswitch + self.nf_main + self.nf_data


def demand(cell: Cell, sharing: Sizes, generator_cores: int = 0) -> Demand:
    """Count the physical cores of a cell."""
    counts = cell.sizes()
    halves = sum(count for size, count in counts if size is NfSize.HALF)
    whole = sum(int(size.cores) * count for size, count in counts if size is not NfSize.HALF)
    return Demand(
        system=sharing.system_cores,
        generator=generator_cores,
        vswitch=1 + cell.vs_dtc,
        nf_main=ceil((cell.nf_count + cell.tap_count) / sharing.nf_mains_per_core),
        nf_data=whole + ceil(halves / 2),
    )


def impossible(cell: Cell, layout: CpuLayout) -> str | None:
    """Say why no number of cores would do; None when it is only a matter of their number."""
    if any(size is NfSize.HALF for size, _ in cell.sizes()) and not layout.smt:
        return "NF size 0.5c needs SMT (half a core is one of two sibling threads), and SMT is off"
    return None


def refusal(cell: Cell, layout: CpuLayout, numa_node: int, sharing: Sizes, generator_cores: int = 0) -> str | None:
    """Say in one sentence why a cell has no honest placement; None when it has one."""
    if reason := impossible(cell, layout):
        return reason
    needs, there = demand(cell, sharing, generator_cores).total, len(layout.cores(numa_node))
    return f"needs {needs} cores on NUMA {numa_node}, {there} there" if needs > there else None


def allocate(
    cell: Cell,
    layout: CpuLayout,
    numa_node: int,
    sharing: Sizes,
    *,
    generator_cores: int = 0,
    oversubscribe: bool = False,
    dut: int = 1,
) -> CoreMap:
    """Place every thread that a cell has on one DUT.

    Args:
        cell: What to place.
        layout: The machine's logical CPUs.
        numa_node: The node of the interfaces; nothing is placed elsewhere.
        sharing: How threads share cores.
        generator_cores: Cores for the generator, where it runs on the same machine.
        oversubscribe: Fold a cell that does not fit onto the cores that are there, and say so in the result.
        dut: Which DUT of the testbed; the second has the same service once more, with names of its own.

    Raises:
        PlanError: The cell does not fit and may not be folded, or needs SMT where there is none.
    """
    reason = refusal(cell, layout, numa_node, sharing, generator_cores)
    cores = layout.cores(numa_node)
    needs = demand(cell, sharing, generator_cores)
    fits = needs.total <= len(cores)
    if reason is not None and (impossible(cell, layout) or not oversubscribe or not cores):
        raise PlanError(
            f"{cell.service_type} {cell.locator} with NF-{cell.size_name} and vSwitch-{cell.vs_dtc}c {reason}"
        )
    places = _honest(cores, needs) if fits else _folded(cores, needs)
    threads = tuple(_threads(cell, places, sharing, dut))
    used = {thread.cpu for thread in threads}
    return CoreMap(
        numa_node=numa_node,
        smt=layout.smt,
        physical=tuple(core for core in cores if used.intersection(core)),
        threads=threads,
        cores_needed=needs.total,
        cores_there=len(cores),
        oversubscribed=not fits,
    )


@dataclass(frozen=True, slots=True)
class _Places:
    """Physical cores by purpose."""

    system: tuple[Core, ...]
    generator: tuple[Core, ...]
    vswitch_main: Core
    vswitch_data: tuple[Core, ...]
    nf_main: tuple[Core, ...]
    nf_data: tuple[Core, ...]


def _honest(cores: tuple[Core, ...], needs: Demand) -> _Places:
    """Each purpose its own cores, one after the other."""
    row = iter(cores)

    def take(count: int) -> tuple[Core, ...]:
        return tuple(next(row) for _ in range(count))

    return _Places(
        system=take(needs.system),
        generator=take(needs.generator),
        vswitch_main=take(1)[0],
        vswitch_data=take(needs.vswitch - 1),
        nf_main=take(needs.nf_main),
        nf_data=take(needs.nf_data),
    )


def _folded(cores: tuple[Core, ...], needs: Demand) -> _Places:
    """Generator, system and main threads on the first core, data threads round-robin on the others.

    So the generator never takes time from the system under test where there are two cores or more.
    """
    control = cores[0]
    data = cores[1:] or cores

    def turn(first: int, count: int) -> tuple[Core, ...]:
        return tuple(data[(first + index) % len(data)] for index in range(count))

    vswitch_data = needs.vswitch - 1
    return _Places(
        system=(control,) * needs.system,
        generator=(control,) * needs.generator,
        vswitch_main=control,
        vswitch_data=turn(0, vswitch_data),
        nf_main=(control,) * needs.nf_main,
        nf_data=turn(vswitch_data, needs.nf_data),
    )


def _threads(cell: Cell, places: _Places, sharing: Sizes, dut: int) -> Iterator[Thread]:
    vswitch, owners = vswitch_name(dut), _owners(cell, dut)
    for index, core in enumerate(places.system):
        yield Thread(owner="system", role=ThreadRole.SYSTEM, index=index, cpu=core[0])
    # The generator sends from one thread per core: its sibling stays idle, as a busy one would slow it.
    yield from _data(GENERATOR, [core[0] for core in places.generator])
    yield Thread(owner=vswitch, role=ThreadRole.MAIN, index=0, cpu=places.vswitch_main[0])
    yield from _data(vswitch, [cpu for core in places.vswitch_data for cpu in core])
    data = _nf_data([size for _, size in owners], places.nf_data)
    for offset, (owner, _) in enumerate(owners):
        main = places.nf_main[offset % len(places.nf_main)]
        turn = (offset // len(places.nf_main)) % sharing.nf_mains_per_core
        yield Thread(owner=owner, role=ThreadRole.MAIN, index=0, cpu=main[turn % len(main)])
        yield from _data(owner, data[offset])


def _data(owner: str, cpus: list[int]) -> Iterator[Thread]:
    for index, cpu in enumerate(cpus):
        yield Thread(owner=owner, role=ThreadRole.DATA, index=index, cpu=cpu)


def _owners(cell: Cell, dut: int) -> list[tuple[str, NfSize]]:
    """Names and sizes of all NFs of a DUT; passive ones last, so that the others stay where they are without them."""
    nodes, taps = (dut - 1) * cell.nf_nodes, (dut - 1) * len(cell.taps)
    inline = [(nf_name(holder, nodes + node), cell.size_of(node, holder)) for holder, node in cell.nfs()]
    instances = range(1, cell.nf_chains + 1)
    passive = [(tap_name(each, taps + k), tap.size) for each in instances for k, tap in enumerate(cell.taps, 1)]
    return inline + passive


def _nf_data(sizes: Sequence[NfSize], cores: tuple[Core, ...]) -> list[list[int]]:
    """Logical CPUs of each NF's data threads, in order of NFs.

    Half-core NFs first take one thread of a core each, and when all their cores have one, the siblings in the same
    order, as CSIT does.
    """
    row = iter(cores)
    shared_cores = ceil(sizes.count(NfSize.HALF) / 2)
    shared: list[Core] = []
    halves = 0
    placed: list[list[int]] = []
    for size in sizes:
        if size is not NfSize.HALF:
            placed.append([cpu for _ in range(int(size.cores)) for cpu in next(row)])
            continue
        if halves < shared_cores:
            shared.append(next(row))
        core = shared[halves % shared_cores]
        placed.append([core[(halves // shared_cores) % len(core)]])
        halves += 1
    return placed
