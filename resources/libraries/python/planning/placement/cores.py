"""Core allocation: the logical CPU of each thread, or the reason why the cell does not fit.

Rules (draft-mkonstan-nf-service-density-01, Compute Resource Allocation; CSIT's CpuUtils): the first physical core of
the NUMA node is the system's, the next the vSwitch's main thread, then the vSwitch's data cores, then main threads of
NFs, two to a core, then data cores of NFs. A data core brings all its sibling threads: with SMT 1c is two data threads.
0.5c is one sibling of a core, so it needs SMT; without SMT the data threads of two NFs of 0.5c-shared take turns on a
core (1DT/S2PC of the draft). Unlike CSIT's allocator the check counts every core of
an NF of 2c and more.

A data core has fewer threads than another only when nothing else is left; `queues` names the NFs concerned.

Each machine of a testbed is planned on its own processor, a DUT as if it were alone. The generator's own machine has
one system core, and one physical core for each of the generator's data threads; where cores are left, its control
thread has one of them, else the system core, and the receiving thread of a generator that polls its ports another one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import NamedTuple

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.core_map import CoreMap, MachineCores, Thread, ThreadRole
from resources.libraries.python.model.findings import Limit, Reason
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.attachment import polled_queues
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.nodes import Sizes, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.names import GENERATOR, nf_name, tap_name, vswitch_name
from resources.libraries.python.redaction import command_text

Core = tuple[int, ...]
"""A physical core as its logical CPUs."""
Layouts = CpuLayout | Mapping[str, CpuLayout]
"""Logical CPUs of the (first) DUT, or of nodes by name."""
_SYSTEM_CORES = 1


@dataclass(frozen=True, slots=True)
class Demand:
    """Physical cores that a cell takes on one NUMA node."""

    system: int
    generator: int
    vswitch: int
    """Main and data."""
    nf_main: int
    nf_data: int
    nf_shared: int = 0
    """Of these, cores on which NFs take turns."""
    nf_pairs: int = 0
    """Of these, cores with two threads for NFs of half a core."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.system + self.generator + self.vswitch + self.nf_main + self.nf_data

    @property
    def data(self) -> int:
        """Cores of data threads of the vSwitch and of NFs."""
        return self.vswitch - 1 + self.nf_data


class DataCores(NamedTuple):
    """Data cores of NFs that are to share a last-level cache: those of an instance, or of two that share a core."""

    own: int
    """Whole ones, and those with two threads for NFs of half a core."""
    in_turns: int = 0
    """On which NFs take turns."""


@dataclass(frozen=True, slots=True)
class Places:
    """Physical cores by purpose."""

    system: tuple[Core, ...]
    generator: tuple[Core, ...]
    vswitch_main: Core
    vswitch_data: tuple[Core, ...]
    nf_main: tuple[Core, ...]
    nf_data: tuple[Core, ...]


def has_cache_groups(layout: CpuLayout, numa_node: int) -> bool:
    """Whether the cores of a NUMA node have several last-level caches."""
    return len({layout.last_caches.get(core[0]) for core in layout.cores(numa_node)}) > 1


def separate(layout: CpuLayout, numa_node: int, needs: Demand, instances: Sequence[DataCores] = ()) -> Places:
    """Assign separate cores to each purpose in order.

    `needs`: Number of cores by purpose.
    `instances`: Data cores that are to be in one group each; empty where it is only a matter of their number.
    """
    cores = layout.cores(numa_node)
    left = list(cores[needs.system :])
    chosen = _data_kind(layout, left, needs)

    def take(count: int, suited: Callable[[Iterable[Core]], Core]) -> tuple[Core, ...]:
        taken = []
        for _ in range(count):
            taken.append(suited(left))
            left.remove(taken[-1])
        return tuple(taken)

    def kind_of(core: Core) -> int:
        return layout.kinds.get(core[0], 0)

    def for_sending(among: Iterable[Core]) -> Core:
        return min(among, key=lambda core: (kind_of(core) == chosen, len(core), kind_of(core)))

    def for_control(among: Iterable[Core]) -> Core:
        return min(among, key=lambda core: (kind_of(core) == chosen, len(core), -kind_of(core)))

    def for_data(among: Iterable[Core]) -> Core:
        return min(among, key=lambda core: (kind_of(core) != chosen, kind_of(core), -len(core)))

    def for_turns(among: Iterable[Core]) -> Core:
        return min(among, key=lambda core: (len(core), kind_of(core) != chosen, kind_of(core)))

    def take_together(parts: Sequence[int]) -> tuple[Core, ...]:
        best = for_data(left) if left else ()
        alike = [core for core in left if (kind_of(core), len(core)) == (kind_of(best), len(best))]
        if not layout.last_caches or sum(parts) > len(alike):
            return take(sum(parts), for_data)
        taken = tuple(_in_groups(alike, parts, layout.last_caches))
        for core in taken:
            left.remove(core)
        return taken

    def nf_data() -> tuple[Core, ...]:
        parts = instances or [DataCores(1)] * (needs.nf_data - needs.nf_shared)
        if not needs.nf_shared or not instances or len({len(core) for core in left}) > 1:
            return take_together([part.own for part in parts]) + take(needs.nf_shared, for_turns)
        row = iter(take_together([part.own + part.in_turns for part in parts]))
        taken = [([next(row) for _ in range(part.own)], [next(row) for _ in range(part.in_turns)]) for part in parts]
        return (*(core for own, _ in taken for core in own), *(core for _, turns in taken for core in turns))

    return Places(
        system=cores[: needs.system],
        generator=take(needs.generator, for_sending),
        vswitch_main=take(1, for_control)[0],
        vswitch_data=take_together([needs.vswitch - 1]),
        nf_main=take(needs.nf_main, for_control),
        nf_data=nf_data(),
    )


def _data_kind(layout: CpuLayout, cores: Sequence[Core], needs: Demand) -> int:
    """The fastest kind that has enough cores for all data threads; the fastest one of all where none has."""
    kinds = sorted({layout.kinds.get(core[0], 0) for core in cores})
    for kind in kinds:
        own = [core for core in cores if layout.kinds.get(core[0], 0) == kind]
        pairs = sum(len(core) > 1 for core in own)
        if len(own) >= needs.data and pairs >= needs.nf_pairs and len(own) - pairs >= needs.nf_shared:
            return kind
    return next(iter(kinds), 0)


def _in_groups(cores: Sequence[Core], parts: Sequence[int], groups: dict[int, int]) -> Iterator[Core]:
    """Cores of each part in turn, in one group where one has enough left; the parts for which none has are last."""
    left = list(cores)
    found: list[list[Core]] = []
    for count in parts:
        by_group: dict[int | None, list[Core]] = {}
        for core in left:
            by_group.setdefault(groups.get(core[0]), []).append(core)
        found.append(next((own[:count] for own in by_group.values() if len(own) >= count), []))
        left = [core for core in left if core not in found[-1]]
    for count, own in zip(parts, found, strict=True):
        yield from own or left[:count]
        if not own:
            left = left[count:]


def demand(cell: Cell, sharing: Sizes, generator_cores: int = 0) -> Demand:
    """Count the physical cores of a cell."""
    counts = cell.sizes()
    whole = sum(size.whole_cores * count for size, count in counts)
    return Demand(
        system=sharing.system_cores,
        generator=generator_cores,
        vswitch=1 + cell.vs_dtc,
        nf_main=ceil((cell.nf_count + cell.tap_count) / sharing.nf_mains_per_core),
        nf_data=whole + _pairs(cell) + _shared_cores(cell),
        nf_shared=_shared_cores(cell),
        nf_pairs=_pairs(cell),
    )


def impossible(cell: Cell, layout: CpuLayout, numa_node: int) -> str | None:
    """Return why no number of cores would suffice; None when it is only a matter of their number."""
    if any(size.is_half for size, _ in cell.sizes()) and not any(map(_is_pair, layout.cores(numa_node))):
        state = f"no core of NUMA {numa_node} has two threads online" if layout.smt else "SMT is off"
        return f"NF size 0.5c needs SMT (half a core is one of two sibling threads), and {state}"
    if _shared_cores(cell) and all(map(_is_pair, layout.cores(numa_node))):
        return (
            f"NF size 0.5c-shared is half of the time of a core with one thread, and all cores of NUMA {numa_node} "
            "have two; half a core is 0.5c there"
        )
    return None


@dataclass(frozen=True, slots=True)
class CoreShortage:
    """Physical cores that a cell needs and a NUMA node does not have."""

    needs: int
    there: int
    text: str
    """With the numbers."""


def lack(
    cell: Cell, layout: CpuLayout, numa_node: int, sharing: Sizes, generator_cores: int = 0
) -> CoreShortage | None:
    """Return which cores are missing for a placement with a CPU for every data thread; None if none."""
    cores, needs = layout.cores(numa_node), demand(cell, sharing, generator_cores)
    if needs.total > len(cores):
        text = f"needs {needs.total} cores on NUMA {numa_node}, {len(cores)} available"
        return CoreShortage(needs.total, len(cores), text)
    pairs, there = _pairs(cell), sum(map(_is_pair, separate(layout, numa_node, needs).nf_data))
    if pairs > there and not impossible(cell, layout, numa_node):
        text = f"needs {pairs} cores with two threads for NFs of 0.5c on NUMA {numa_node}, {there} left for them"
        return CoreShortage(pairs, there, text)
    return None


def refusal(cell: Cell, layout: CpuLayout, numa_node: int, sharing: Sizes, generator_cores: int = 0) -> str | None:
    """Return why a cell has no placement without shared cores; None when it has one."""
    if reason := impossible(cell, layout, numa_node):
        return reason
    missing = lack(cell, layout, numa_node, sharing, generator_cores)
    return missing.text if missing else None


def _is_pair(core: Core) -> bool:
    return len(core) > 1


def _pairs(cell: Cell) -> int:
    """Cores that NFs of half a core share, two to a core."""
    return ceil(sum(count for size, count in cell.sizes() if size.is_half) / 2)


def _shared_cores(cell: Cell) -> int:
    """Cores on which NFs take turns, two on each."""
    return ceil(sum(count for size, count in cell.sizes() if size.is_shared) / 2)


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

    `numa_node`: The node of the interfaces; nothing is placed elsewhere.
    `sharing`: How threads share cores.
    `dut`: Which DUT of the testbed; the second has the same service once more, with names of its own.

    Raises:
        PlanError: The cell does not fit and may not be folded, or needs SMT where there is none.
    """
    reason = refusal(cell, layout, numa_node, sharing, generator_cores)
    cores = layout.cores(numa_node)
    needs = demand(cell, sharing, generator_cores)
    if reason is not None and (impossible(cell, layout, numa_node) or not oversubscribe or not cores):
        raise PlanError(f"{cell.name} {reason}")
    if needs.total <= len(cores):
        neighbours = has_cache_groups(layout, numa_node)
        places = separate(layout, numa_node, needs, _of_instances(cell, dut) if neighbours else ())
    else:
        neighbours, places = False, _folded(cores, needs)
    threads = tuple(_threads(cell, places, sharing, dut, neighbours=neighbours))
    used = {thread.cpu for thread in threads}
    sizes = dict(sized_nfs(cell, dut))
    turns = Counter(
        t.cpu for t in threads if t.role is ThreadRole.DATA and t.owner in sizes and sizes[t.owner].is_shared
    )
    return CoreMap(
        numa_node=numa_node,
        smt=layout.smt,
        physical=tuple(core for core in cores if used.intersection(core)),
        threads=threads,
        cores_needed=needs.total,
        cores_there=len(cores),
        oversubscribed=reason is not None,
        shared_cpus=tuple(sorted(cpu for cpu, count in turns.items() if count > 1)),
    )


def _folded(cores: tuple[Core, ...], needs: Demand) -> Places:
    """Generator, system and main threads on the first core, data threads round-robin on the others.

    With two cores or more, the generator then never takes time from the system under test.
    """
    control = cores[0]
    data = cores[1:] or cores

    def turn(first: int, count: int) -> tuple[Core, ...]:
        return tuple(data[(first + index) % len(data)] for index in range(count))

    vswitch_data = needs.vswitch - 1
    return Places(
        system=(control,) * needs.system,
        generator=(control,) * needs.generator,
        vswitch_main=control,
        vswitch_data=turn(0, vswitch_data),
        nf_main=(control,) * needs.nf_main,
        nf_data=turn(vswitch_data, needs.nf_data),
    )


def _threads(cell: Cell, places: Places, sharing: Sizes, dut: int, *, neighbours: bool) -> Iterator[Thread]:
    vswitch, owners = vswitch_name(dut), sized_nfs(cell, dut)
    for index, core in enumerate(places.system):
        yield Thread(owner="system", role=ThreadRole.SYSTEM, index=index, cpu=core[0])
    # The generator sends from one thread per core: its sibling stays idle, as a busy one would slow it.
    yield from _data(GENERATOR, [core[0] for core in places.generator])
    yield Thread(owner=vswitch, role=ThreadRole.MAIN, index=0, cpu=places.vswitch_main[0])
    yield from _data(vswitch, [cpu for core in places.vswitch_data for cpu in core])
    data = _nf_data([size for _, size in owners], places.nf_data, neighbours=neighbours)
    for offset, (owner, _) in enumerate(owners):
        main = places.nf_main[offset % len(places.nf_main)]
        turn = (offset // len(places.nf_main)) % sharing.nf_mains_per_core
        yield Thread(owner=owner, role=ThreadRole.MAIN, index=0, cpu=main[turn % len(main)])
        yield from _data(owner, data[offset])


def _data(owner: str, cpus: list[int]) -> Iterator[Thread]:
    for index, cpu in enumerate(cpus):
        yield Thread(owner=owner, role=ThreadRole.DATA, index=index, cpu=cpu)


def sized_nfs(cell: Cell, dut: int) -> list[tuple[str, NfSize]]:
    """Names and sizes of all NFs of a DUT; passive ones last, so that the others stay where they are without them."""
    nodes, taps = (dut - 1) * cell.nf_nodes, (dut - 1) * len(cell.taps)
    inline = [(nf_name(holder, nodes + node), cell.size_of(node, holder)) for holder, node in cell.nfs()]
    passive = [(tap_name(each, taps + k), tap.size) for each in cell.instances for k, tap in enumerate(cell.taps, 1)]
    return inline + passive


def _of_instances(cell: Cell, dut: int) -> tuple[DataCores, ...]:
    """Data cores of the NFs of each instance in the order of NFs; of two, where they share a core as neighbours.

    Shared NFs are with the first instance, passive ones by themselves.
    """
    holders = [("nf", holder) for holder, _ in cell.nfs()]
    holders += [("tap", number) for number in range(cell.tap_count)]
    found: list[DataCores] = []
    own = turns = halves = waiting = 0
    rows = zip(holders, (size for _, size in sized_nfs(cell, dut)), strict=True)
    for _, group in groupby(rows, key=lambda row: row[0]):
        for _, size in group:
            if size.is_shared:
                turns += not waiting % 2
                waiting += 1
            elif size.is_half:
                own += not halves % 2
                halves += 1
            else:
                own += size.whole_cores
        if not halves % 2 and not waiting % 2:
            found.append(DataCores(own, turns))
            own = turns = 0
    return (*found, DataCores(own, turns)) if own or turns else tuple(found)


def _nf_data(sizes: Sequence[NfSize], cores: tuple[Core, ...], *, neighbours: bool) -> list[list[int]]:
    """Logical CPUs of each NF's data threads, in order of NFs.

    Half-core NFs first take one thread of a core each, and when all their cores have one, the siblings in the same
    order, as CSIT does. Of unequal cores they get theirs before other NFs do, as only those with siblings have halves.
    NFs that take turns get the last cores, which have the fewest threads, one NF on each and then a second one.

    `neighbours`: Whether each two NFs that share a core follow each other instead, so that they are in one cache.
    """
    ordered = sorted(cores, key=_is_pair, reverse=True)
    turns = ceil(sizes.count(NfSize.SHARED) / 2)
    row, taken_in_turns = iter(ordered), ordered[len(ordered) - turns :]
    waiting = 0
    shared_cores = ceil(sizes.count(NfSize.HALF) / 2)
    equal = len({len(core) for core in cores}) < 2
    order = sorted(range(len(sizes)), key=lambda each: not equal and not sizes[each].is_half)
    shared: list[Core] = []
    halves = 0
    placed: dict[int, list[int]] = {}
    for each in order:
        if sizes[each].is_shared:
            placed[each] = [taken_in_turns[waiting // 2 if neighbours else waiting % turns][0]]
            waiting += 1
            continue
        if not sizes[each].is_half:
            placed[each] = [cpu for _ in range(sizes[each].whole_cores) for cpu in next(row)]
            continue
        place, thread = divmod(halves, 2) if neighbours else divmod(halves, shared_cores)[::-1]
        if place == len(shared):
            shared.append(next(row))
        placed[each] = [shared[place][thread % len(shared[place])]]
        halves += 1
    return [placed[each] for each in range(len(sizes))]


def cpu_without_data(threads: Iterable[Thread]) -> int | None:
    """The CPU of the system's own threads, when no data thread has its place there.

    None on a machine too small for that. Probes then should not be pinned: a generator that
    shares the system's CPU spins, and delays other threads; a data thread yields at once.
    """
    rows = tuple(threads)
    busy = {thread.cpu for thread in rows if thread.role is ThreadRole.DATA}
    return next((thread.cpu for thread in rows if thread.role is ThreadRole.SYSTEM and thread.cpu not in busy), None)


def layouts_of(topology: Topology, given: Layouts) -> dict[str, CpuLayout]:
    """Logical CPUs of every machine that is planned, by name of the node, the first DUT first.

    What is not given is taken from the topology.

    Raises:
        ConfigError: They are neither given nor listed there.
    """
    known = {next(iter(topology.duts)): given} if isinstance(given, CpuLayout) else dict(given)
    nodes = [*topology.duts, *([topology.tg_name] if _has_tg(topology) else [])]
    unknown = [name for name in nodes if name not in known and topology.nodes[name].cpus == "discover"]
    if unknown:
        keys = " and ".join(f"nodes.{name}.cpus" for name in unknown)
        files = " ".join(command_text("--cpus", f"{name}=FILE") for name in unknown)
        raise ConfigError(
            f"testbed {topology.metadata.name}: {keys} unknown: `discover`, and no node was reached; list the CPUs "
            f"there, or give `./csit plan` a file for each with what `lscpu -p` prints on it: ",
            files,
        )
    return {name: known.get(name) or topology.nodes[name].layout for name in nodes}


def _has_tg(topology: Topology) -> bool:
    """Whether the generator has a machine of its own whose processors are planned."""
    return topology.world is World.LAB and topology.tg_name in topology.machines


def generator_cores(topology: Topology) -> int:
    """Cores of the DUT's machine that the generator takes; 0 when it has a machine of its own."""
    return topology.tg.generator.cores if topology.tg.shares_machine_with else 0


def place(topology: Topology, cell: Cell, layouts: Mapping[str, CpuLayout]) -> CoreMap:
    """Place every thread of a cell on every machine.

    Raises:
        PlanError: It does not fit on a machine and may not be folded there.
    """
    maps = []
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        try:
            maps.append(
                allocate(
                    cell,
                    layouts[name],
                    dut.numa_node,
                    dut.core_sharing,
                    generator_cores=generator_cores(topology),
                    oversubscribe=dut.oversubscribe,
                    dut=number,
                )
            )
        except PlanError as error:
            if number == 1:
                raise  # an error that is its own cause would be an endless chain
            raise PlanError(f"{name}: {error}") from error
    first, others = maps[0], dict(zip(list(topology.duts)[1:], maps[1:], strict=True))
    if _has_tg(topology):
        others[topology.tg_name] = _generators_own(topology, layouts[topology.tg_name])
    if not others:
        return first
    moved = [thread.model_copy(update={"machine": name}) for name, cores in others.items() for thread in cores.threads]
    return first.model_copy(
        update={
            "threads": (*first.threads, *moved),
            "elsewhere": tuple(_machine_cores(name, cores) for name, cores in others.items()),
            "oversubscribed": any(cores.oversubscribed for cores in (first, *others.values())),
        }
    )


def _machine_cores(name: str, cores: CoreMap) -> MachineCores:
    keys = ("numa_node", "smt", "physical", "cores_needed", "cores_there", "oversubscribed", "shared_cpus")
    return MachineCores(machine=name, **{key: getattr(cores, key) for key in keys})


def _generators_own(topology: Topology, layout: CpuLayout) -> CoreMap:
    tg = topology.tg
    cores, needed = layout.cores(tg.numa_node), _SYSTEM_CORES + tg.generator.cores
    fits = needed <= len(cores)
    if not cores or (not fits and not topology.dut.oversubscribe):
        raise PlanError(f"{topology.tg_name}: the generator {_generator_lack(tg, layout)}")
    suited = sorted(cores[1:], key=lambda core: layout.kinds.get(core[0], 0))
    data = suited[: needed - 1] if fits else [cores[-1 - index % len(cores)] for index in range(tg.generator.cores)]
    mains = suited[needed - 1 : needed - 1 + _generator_mains(tg)] or cores[:1]
    threads = (
        Thread(owner="system", role=ThreadRole.SYSTEM, index=0, cpu=cores[0][0]),
        *(Thread(owner=GENERATOR, role=ThreadRole.MAIN, index=index, cpu=core[0]) for index, core in enumerate(mains)),
        *(Thread(owner=GENERATOR, role=ThreadRole.DATA, index=index, cpu=core[0]) for index, core in enumerate(data)),
    )
    used = {thread.cpu for thread in threads}
    return CoreMap(
        numa_node=tg.numa_node,
        smt=layout.smt,
        physical=tuple(core for core in cores if used.intersection(core)),
        threads=threads,
        cores_needed=needed,
        cores_there=len(cores),
        oversubscribed=not fits,
    )


def _generator_mains(tg: TgNode) -> int:
    """Threads of the generator that do not send: one that polls its ports has one more, which receives."""
    return 1 + any(polled_queues(tg, interface) is not None for interface in tg.interfaces.values())


def _generator_lack(tg: TgNode, layout: CpuLayout) -> str:
    needs, there = _SYSTEM_CORES + tg.generator.cores, len(layout.cores(tg.numa_node))
    return f"needs {needs} cores on NUMA {tg.numa_node}, {there} available"


def shortages(topology: Topology, cell: Cell, layouts: Mapping[str, CpuLayout]) -> list[Reason]:
    """Return which machines lack cores or SMT for a cell; nothing where every thread has its own place."""
    found = []
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        at = "" if number == 1 else f"{name} "
        layout = layouts[name]
        if half := impossible(cell, layout, dut.numa_node):
            found.append(Reason(limit=Limit.SMT, text=f"{at}{half}" if number == 1 else f"{name}: {half}"))
        if missing := lack(cell, layout, dut.numa_node, dut.core_sharing, generator_cores(topology)):
            needs, there = missing.needs, missing.there
            found.append(Reason(limit=Limit.CORES, text=f"{at}{missing.text}", needs=needs, there=there))
    if _has_tg(topology):
        tg, layout = topology.tg, layouts[topology.tg_name]
        needs, there = _SYSTEM_CORES + tg.generator.cores, len(layout.cores(tg.numa_node))
        if needs > there:
            text = f"{topology.tg_name} {_generator_lack(tg, layout)}"
            found.append(Reason(limit=Limit.CORES, text=text, needs=needs, there=there))
    return found


def shareable(topology: Topology, layouts: Mapping[str, CpuLayout]) -> bool:
    """Whether threads may share cores if there are too few."""
    all_nodes = [(layouts[name], node) for name, node in topology.nodes.items() if name in layouts]
    allowed = all(dut.oversubscribe for dut in topology.duts.values())
    return allowed and all(layout.cores(node.numa_node) for layout, node in all_nodes)
