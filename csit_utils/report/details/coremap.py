"""Core map: planned threads by logical CPU, and planned against actual affinity."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from resources.libraries.python.model.core_map import CoreMap, MachineCores, Thread, ThreadRole
from resources.libraries.python.model.request.cell import ALL_INSTANCES
from resources.libraries.python.model.result import Affinity
from resources.libraries.python.planning.names import VSWITCH, is_vswitch
from resources.libraries.python.studies.density.model import DensityRecord

_FIXED = {"system": "system", "generator": "generator", "vswitch": "vswitch"}
_NF_COLOURS = 6
_SHARED = "shared"


@dataclass(frozen=True)
class ThreadView:
    """One thread in the box of its CPU."""

    label: str
    role: str
    tone: str
    """Colour class: `system`, `generator`, `vswitch`, `nf0` to `nf5` by service instance, or `shared` for an NF of all
    instances."""


@dataclass(frozen=True)
class CpuView:
    """One logical CPU."""

    cpu: int
    core: int
    """Index of its physical core among those with threads, from 0; siblings have the same."""
    threads: tuple[ThreadView, ...]
    shared: bool
    """Whether its data threads share it with another busy thread."""


@dataclass(frozen=True)
class MachineView:
    """One machine's CPUs."""

    name: str
    """Name of the node; empty on a single machine."""
    cpus: tuple[CpuView, ...]
    """Siblings of a physical core are adjacent."""
    smt: bool
    caption: str
    oversubscribed: bool

    @property
    def cores(self) -> tuple[tuple[CpuView, ...], ...]:
        """Physical cores, each as its logical CPUs."""
        return tuple(tuple(cpus) for _, cpus in groupby(self.cpus, key=lambda cpu: cpu.core))


@dataclass(frozen=True)
class CoreMapView:
    """The core map of all machines."""

    machines: tuple[MachineView, ...]
    """The (first) DUT first."""
    tones: tuple[tuple[str, str], ...]
    """Colour class and its meaning."""
    affinity: tuple[tuple[Affinity, int, bool], ...]
    """Of the data thread of each receive queue, with its index within its owner, and whether it is as planned."""
    affinity_text: str
    cache: tuple[tuple[str, str], ...] = ()
    """Owners of ways of the last-level cache, with their ways."""


def core_map(result: DensityRecord) -> CoreMapView | None:
    """Return the core map of a test; None without a plan."""
    if result.plan is None:
        return None
    cores = result.plan.cores
    first = result.plan.machines.get(VSWITCH, "")
    machines = (
        _machine(first, cores, cores.on(None)),
        *(_machine(each.machine, each, cores.on(each.machine)) for each in cores.elsewhere),
    )
    tones = {view.tone for machine in machines for cpu in machine.cpus for view in cpu.threads}
    threads = {
        name: index for port in result.plan.ports() for name, index in zip(port.queue_names, port.queues, strict=True)
    }
    affinity = tuple((row, threads.get(row.name, 0), row.actual_cpus == (row.planned_cpu,)) for row in result.affinity)
    kept = sum(as_planned for *_, as_planned in affinity)
    text = f"{kept} of {len(affinity)} data threads ran on their planned CPU" if affinity else ""
    cache = tuple((each.owner, str(each)) for each in result.plan.cache)
    return CoreMapView(machines, _legend(tones), affinity, text, cache)


def _machine(name: str, cores: CoreMap | MachineCores, threads: Iterable[Thread]) -> MachineView:
    by_cpu: dict[int, list[Thread]] = {}
    for thread in threads:
        by_cpu.setdefault(thread.cpu, []).append(thread)
    cpus = tuple(
        _cpu(number, core, by_cpu.get(number, [])) for core, cpus in enumerate(cores.physical) for number in cpus
    )
    oversubscribed = (
        cores.oversubscribed
        if isinstance(cores, MachineCores) or not cores.elsewhere
        else cores.cores_needed > cores.cores_there
        or any(_is_shared(threads) for cpu, threads in by_cpu.items() if cpu not in cores.shared_cpus)
    )
    return MachineView(name, cpus, cores.smt, _caption(cores), oversubscribed)


def _is_shared(threads: Iterable[Thread]) -> bool:
    """Whether more than one data thread is on a CPU."""
    return sum(thread.role is ThreadRole.DATA for thread in threads) > 1


def _caption(cores: CoreMap | MachineCores) -> str:
    turns = f" · two NFs each take turns on {len(cores.shared_cpus)}" if cores.shared_cpus else ""
    return (
        f"NUMA node {cores.numa_node} · SMT {'on' if cores.smt else 'off'} · "
        f"{cores.cores_needed} physical cores needed, {cores.cores_there} available{turns}"
    )


def _cpu(number: int, core: int, threads: list[Thread]) -> CpuView:
    ordered = sorted(threads, key=lambda thread: (thread.role is not ThreadRole.DATA, thread.owner, thread.index))
    data = sum(thread.role is ThreadRole.DATA for thread in threads)
    return CpuView(number, core, tuple(map(_thread, ordered)), data > 0 and len(threads) > 1)


def _thread(thread: Thread) -> ThreadView:
    owner = VSWITCH if is_vswitch(thread.owner) else thread.owner
    tone = _FIXED.get(owner) or _nf_tone(_instance(thread.owner))
    label = thread.owner if thread.role is ThreadRole.SYSTEM else f"{thread.owner} {thread.role} {thread.index}"
    return ThreadView(label, thread.role, tone)


def _nf_tone(instance: int) -> str:
    return _SHARED if instance == ALL_INSTANCES else f"nf{(instance - 1) % _NF_COLOURS}"


def _instance(owner: str) -> int:
    """Service instance of an NF by its name `nf-{instance}-{node}`; 0 for a shared one."""
    parts = owner.split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 1


def _legend(tones: set[str]) -> tuple[tuple[str, str], ...]:
    named = [(tone, tone) for tone in _FIXED if tone in tones]
    shared = [(_SHARED, "NFs of all instances")] if _SHARED in tones else []
    nfs = sorted(tone for tone in tones if tone.startswith("nf"))
    return (*named, *shared, *((tone, f"NFs of instance {int(tone[2:]) + 1}") for tone in nfs))
