"""Balance of receive queues over threads and of threads over CPUs: the part of a plan that decides throughput unseen.

Receive queues go to data threads in turn (`planning.queues`). Six queues on four threads leave two of them with twice
the work: the cell then shows the limit of those two.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, nf_name
from resources.libraries.python.planning.placement.cores import sized_nfs
from resources.libraries.python.planning.placement.queues import RxQueues
from resources.libraries.python.quantities import counted

QUEUES_OF_AN_NF = 2
"""One for each of its two interfaces, where none has several; a shared one has two interfaces for each instance."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Receive queues on data threads."""

    queues: int
    threads: int

    @property
    def least(self) -> int:
        """Queues of the thread that has the fewest."""
        return self.queues // self.threads if self.threads else 0

    @property
    def most(self) -> int:
        """Queues of the thread that has the most."""
        return -(-self.queues // self.threads) if self.threads else 0

    @property
    def idle(self) -> int:
        """Threads that have none."""
        return max(0, self.threads - self.queues)

    @property
    def even(self) -> bool:
        """Whether all have the same."""
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of one cell on its core map."""

    vswitch: Spread
    nfs: tuple[tuple[str, Spread], ...]
    """By size of NF, each size once, in order of the service."""
    sibling_nfs: int
    """Physical cores on which data threads of different NFs are siblings."""
    sibling_data: int
    """Physical cores on which both siblings are data threads of any owner."""
    least_threads: int
    """Data threads on the logical CPU that has the fewest, of those that have any; the generator's not counted."""
    most_threads: int
    unequal: tuple[str, ...] = ()
    """NFs of one size with different parts of CPUs, from `unequal`."""
    turns: int = 0
    """Logical CPUs on which two NFs take turns, as their size asks."""

    @property
    def even(self) -> bool:
        """Whether every thread of a kind has the same work and a logical CPU to itself."""
        spreads = (self.vswitch, *(spread for _, spread in self.nfs))
        return all(spread.even for spread in spreads) and self.most_threads <= 1 and not self.unequal

    def uneven(self) -> tuple[str, ...]:
        """Imbalances, as text with numbers."""
        lines = []
        if not self.vswitch.even:
            lines.append(f"vSwitch: {_words(self.vswitch)}")
        lines += [f"NF-{size}: {_words(spread)}" for size, spread in self.nfs if not spread.even]
        if self.most_threads > 1:
            least = "" if self.least_threads == self.most_threads else f"{self.least_threads} to "
            lines.append(f"{least}{self.most_threads} data threads per logical CPU")
        return (*lines, *self.unequal)

    def siblings(self) -> tuple[str, ...]:
        """Data threads that share a physical core as siblings or in turns: intended, but each is slower."""
        lines = []
        if self.sibling_nfs:
            lines.append(f"data threads of different NFs are siblings on {_cores(self.sibling_nfs)}")
        own = self.sibling_data - self.sibling_nfs
        if own:
            lines.append(f"data threads of one owner are siblings on {_cores(own)}")
        if self.turns:
            lines.append(f"data threads of two NFs each take turns on {_cores(self.turns)} (1DT/S2PC)")
        return tuple(lines)


def vswitch_ports(cell: Cell, *, one_cable: bool = False) -> int:
    """Ports of the vSwitch that have a receive queue: the number of its queues where every port has one.

    Two edges for each instance, or for all of them where they share a cable, and two for each NF of a snake or for the
    ends of each pipeline. Those towards passive NFs receive nothing.
    """
    return cell.inner_ports + 2 * (1 if one_cable else len(cell.instances))


def balance(cell: Cell, cores: CoreMap, *, one_cable: bool = False, queues: RxQueues | None = None) -> Balance:
    """Analyze a core map: at the (first) DUT, as a second one has the same service.

    `one_cable`: Whether instances share the cables of the testbed.
    `queues`: The cell's receive queues; None where every port has one.
    """
    by_cpu: dict[int, list[str]] = {}
    threads: Counter[str] = Counter()
    for thread in cores.on(None):
        if thread.role is ThreadRole.DATA and thread.owner != GENERATOR:
            by_cpu.setdefault(thread.cpu, []).append(thread.owner)
            threads[thread.owner] += 1
    places = [(instance, 1) for instance in range(1, len(cell.instance_kinds) + 1)]
    spreads = {
        _title(cell, instance, node): Spread(
            _queues_of_nf(cell, instance, node, queues),
            threads[nf_name(cell.holder(instance, node), node)],
        )
        for instance, node in places or [(1, node) for node in range(1, cell.nf_nodes + 1)]
    }
    siblings = [[by_cpu[cpu] for cpu in core if cpu in by_cpu] for core in cores.physical]
    busy = [owners for owners in siblings if len(owners) > 1]
    # If threads share a logical CPU, sharing a core matters less and is not reported.
    apart = [] if cores.oversubscribed else busy
    load = [len(owners) - (cpu in cores.shared_cpus) for cpu, owners in by_cpu.items()]
    return Balance(
        vswitch=Spread(queues.vswitch_total if queues else vswitch_ports(cell, one_cable=one_cable), threads[VSWITCH]),
        nfs=tuple(spreads.items()),
        sibling_nfs=sum(len(set(chain.from_iterable(owners))) > 1 for owners in apart),
        sibling_data=len(apart),
        least_threads=min(load, default=0),
        most_threads=max(load, default=0),
        unequal=unequal(cell, cores),
        turns=len(cores.shared_cpus),
    )


def unequal(cell: Cell, cores: CoreMap) -> tuple[str, ...]:
    """Name the NFs of one size that have different parts of CPUs: a sentence per size.

    Their cores may have different numbers of threads, also those of two machines. Of an odd number of NFs that take
    turns the last one of a machine has a core to itself.
    """
    by_size: dict[str, dict[int, list[str]]] = {}
    alone = []
    for dut in range(1, len(cores.elsewhere) + 2):
        for name, size in sized_nfs(cell, dut):
            if threads := len(cores.cpus(name)):
                by_size.setdefault(size, {}).setdefault(threads, []).append(name)
            if size.is_shared and not cores.takes_turns(name):
                alone.append(f"{name} of {size} has a core to itself: no second NF takes turns with it")
    return (
        *alone,
        *(
            f"NFs of {size} have different numbers of data threads: "
            + ", ".join(f"{count} on {' '.join(named)}" for count, named in sorted(counts.items(), reverse=True))
            for size, counts in by_size.items()
            if len(counts) > 1
        ),
    )


def _queues_of_nf(cell: Cell, instance: int, node: int, queues: RxQueues | None) -> int:
    each = sum(queues.nf_counts(instance, node)) if queues else QUEUES_OF_AN_NF
    return each * (len(cell.instances) if node in cell.shared_nodes else 1)


def _title(cell: Cell, instance: int, node: int) -> str:
    """The size of an NF, and whether instances share it."""
    return f"{cell.size_of(node, instance)}{' shared' if node in cell.shared_nodes else ''}"


def _words(spread: Spread) -> str:
    idle = f", {counted(spread.idle, 'thread')} with none" if spread.idle else ""
    few = f"{spread.least} to {spread.most} per thread"
    return f"{spread.queues} receive queues on {spread.threads} data threads, {few}{idle}"


def _cores(count: int) -> str:
    return counted(count, "physical core")
