"""Which thread ran where: planned threads by logical CPU, and planned against real affinity."""

from dataclasses import dataclass

from resources.libraries.python.model.plan import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.result import Affinity, Result

_FIXED = {"system": "system", "generator": "generator", "vswitch": "vswitch"}
_NF_COLOURS = 6


@dataclass(frozen=True)
class ThreadView:
    """One thread in its CPU's box."""

    label: str
    role: str
    tone: str
    """Class for the colour: `system`, `generator`, `vswitch`, or `nf0` to `nf5` by service instance."""


@dataclass(frozen=True)
class CpuView:
    """One logical CPU."""

    cpu: int
    core: int
    """Number of its physical core, counted from 0 among those that have threads; siblings have the same."""
    threads: tuple[ThreadView, ...]
    shared: bool
    """Data threads on it share it with another thread that is busy."""


@dataclass(frozen=True)
class AffinityView:
    """One data thread's place."""

    owner: str
    interface: str
    planned: int
    actual: str
    kept: bool


@dataclass(frozen=True)
class CoreMapView:
    """The picture."""

    cpus: tuple[CpuView, ...]
    """Siblings of a physical core side by side."""
    smt: bool
    caption: str
    oversubscribed: bool
    tones: tuple[tuple[str, str], ...]
    """Colour class and its meaning."""
    affinity: tuple[AffinityView, ...]
    affinity_text: str


def core_map(result: Result) -> CoreMapView | None:
    """The picture of a test's plan; None when it could not be planned."""
    if result.plan is None:
        return None
    cores = result.plan.cores
    by_cpu: dict[int, list[Thread]] = {}
    for thread in cores.threads:
        by_cpu.setdefault(thread.cpu, []).append(thread)
    cpus = tuple(
        _cpu(number, core, by_cpu.get(number, [])) for core, cpus in enumerate(cores.physical) for number in cpus
    )
    tones = {view.tone for cpu in cpus for view in cpu.threads}
    affinity = tuple(map(_affinity, result.affinity))
    kept = sum(row.kept for row in affinity)
    text = f"{kept} of {len(affinity)} data threads were where they were planned" if affinity else ""
    return CoreMapView(cpus, cores.smt, _caption(cores), cores.oversubscribed, _legend(tones), affinity, text)


def _caption(cores: CoreMap) -> str:
    return (
        f"NUMA node {cores.numa_node} · SMT {'on' if cores.smt else 'off'} · "
        f"{cores.cores_needed} physical cores needed, {cores.cores_there} there"
    )


def _cpu(number: int, core: int, threads: list[Thread]) -> CpuView:
    ordered = sorted(threads, key=lambda thread: (thread.role is not ThreadRole.DATA, thread.owner, thread.index))
    data = sum(thread.role is ThreadRole.DATA for thread in threads)
    return CpuView(number, core, tuple(map(_thread, ordered)), data > 0 and len(threads) > 1)


def _thread(thread: Thread) -> ThreadView:
    tone = _FIXED.get(thread.owner) or f"nf{(_instance(thread.owner) - 1) % _NF_COLOURS}"
    label = thread.owner if thread.role is ThreadRole.SYSTEM else f"{thread.owner} {thread.role} {thread.index}"
    return ThreadView(label, thread.role, tone)


def _instance(owner: str) -> int:
    """Service instance of an NF by its name `nf-{instance}-{node}`."""
    parts = owner.split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 1


def _legend(tones: set[str]) -> tuple[tuple[str, str], ...]:
    named = [(tone, tone) for tone in _FIXED if tone in tones]
    nfs = sorted(tone for tone in tones if tone.startswith("nf"))
    return (*named, *((tone, f"NFs of instance {int(tone[2:]) + 1}") for tone in nfs))


def _affinity(row: Affinity) -> AffinityView:
    actual = ", ".join(map(str, row.actual_cpus)) or "not found"
    return AffinityView(row.owner, row.interface, row.planned_cpu, actual, row.actual_cpus == (row.planned_cpu,))
