"""Choice of physical cores for the threads of a cell: separate ones for each purpose, the best suited ones first.

Data threads of the vSwitch and of NFs are all on one kind of core: the fastest kind that has enough of them. Main
threads get the slowest kind and the generator the fastest of the other kinds, if there are any, and both of unequal
cores those with the fewest threads, data threads those with the most. Only where no kind has enough are kinds mixed,
fastest first; the plan says so.

Where cores are in groups with a last-level cache of their own (CCX), the data cores of a service instance are in one
group if one has enough of them left, and so are those of the vSwitch. Other instances get what is left, in order. NFs
of half a core then share it with the next one of their instance, and two instances with an odd one are in one group.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resources.libraries.python.model.testbed.cpu import CpuLayout

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

    Args:
        layout: The machine's logical CPUs.
        numa_node: Whose cores are taken, which are enough.
        needs: Number of cores by purpose.
        instances: Data cores that are to be in one group each; empty where it is only a matter of their number.
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
