"""Environment of programs of NFs: a container each, a control group, or neither."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from resources.libraries.python.drivers.containers.containers import NfContainers
from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end, let_threads_go
from resources.libraries.python.drivers.host.cpu.data_threads import make_ordinary
from resources.libraries.python.drivers.host.cpu.resctrl import CacheDivision
from resources.libraries.python.drivers.host.cpu.thread_scheduling import hold_back
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.namespaces import name_of
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, ExecContext
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.measurements.counters import Throttling
from resources.libraries.python.model.plan import NfPlan, Plan, TapPlan
from resources.libraries.python.model.request.kinds import Limits as NfLimits

NO_LIMITS = NfLimits()
_MIB = 1 << 20


class NfGroups:
    """Containers, where the topology asks for them, and control groups of NFs with limits and of programs of users.

    `functions`: NFs of any kind, with and without limits.
    `containers`: Of these NFs; None where they run without.
    `cache`: Their ways of the last-level cache; None where it is not divided.
    """

    def __init__(
        self,
        functions: Sequence[NfPlan | TapPlan],
        plan: Plan,
        fabric: Fabric,
        machine: MachineLock,
        containers: NfContainers | None = None,
        *,
        cache: CacheDivision | None = None,
    ) -> None:
        self._containers = containers
        self._cache = cache
        self._limits = {each.name: _of(each) for each in functions if _of(each) != NO_LIMITS}
        self._programs = {each.name for each in functions if each.program is not None}
        """Programs of users, whose processes a group finds wherever they go."""
        self._functions = tuple(functions)
        self._plan = plan
        self._fabric = fabric
        self._machine = machine
        self._groups: dict[str, cgroups.ControlGroup] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to make."""
        return bool(self._limits or self._programs) or self._containers is not None or self._cache is not None

    def make(self) -> None:
        """Start containers, make the groups, and put the data threads of limited NFs in: they do the NF's own work.

        Raises:
            Unsupported: This machine cannot limit them, or the memory of an NF of that kind cannot be limited.
            CsitError: There is such a group, or a container does not start.
        """
        if self._cache is not None:
            self._cache.make()
        if self._containers is not None:
            self._containers.start()
        if self._programs:
            self._make_without_limits()
        if not self._limits:
            return
        for function in self._functions:
            if function.limits.memory_mib and function.kind.driver.joins_late and not self.is_contained(function.name):
                raise Unsupported(f"{function.name}: the memory of an NF of kind {function.kind} cannot be limited")
        of_machine, threads = cgroups.discover(), self._fabric.threads()
        for name, limits in self._limits.items():
            controllers = of_machine if self.is_contained(name) else _needed(of_machine, limits)
            memory_bytes = None if limits.memory_mib is None else limits.memory_mib * _MIB
            wanted = cgroups.GroupLimits(limits.cpu, memory_bytes, self._cpus(name, controllers))
            if self._containers is not None and self.is_contained(name):
                group = self._groups[name] = cgroups.ControlGroup(
                    controllers, _inside(controllers, self._containers.folders(name))
                )
                group.limit(wanted)
            else:
                group = cgroups.ControlGroup(controllers, name_of(name))
                self._machine.claim_groups(group.folders)
                self._groups[name] = group
                group.make(wanted)
            if limits.cpu is not None:
                ports = (port.interface for port in self._plan.ports(name))
                mine = [thread for port in ports for thread in threads.get(port, ())]
                if limits.cpu < len(mine):
                    for thread in mine:  # before they enter: no group takes threads that run in real time
                        hold_back(thread, limits.cpu / len(mine))
                    group.take_in_threads(mine)

    def _make_without_limits(self) -> None:
        """Make the groups of programs of users; none where this machine has no such groups."""
        with suppress(Unsupported):
            controllers = cgroups.discover()
            accounting = replace(controllers, roots={key: controllers.roots[key] for key in cgroups.NEEDED})
            for name in self._programs - self._limits.keys():
                if not self.is_contained(name):
                    group = cgroups.ControlGroup(accounting, name_of(name))
                    self._machine.claim_groups(group.folders)
                    try:
                        group.make()
                    except Unsupported:
                        group.remove()
                        self._machine.release("groups", group.folders)
                        raise
                    self._groups[name] = group

    def folders(self, name: str) -> tuple[Path, ...]:
        """Folders of the group of an NF; those of a container are its engine's."""
        group = self._groups.get(name)
        return () if group is None or self.is_contained(name) else group.folders

    def _cpus(self, name: str, controllers: cgroups.Controllers) -> frozenset[int] | None:
        """Said once more here: entering a group of version 1 lets a process run on all CPUs that the group has."""
        if cgroups.PINNING not in controllers.roots:
            return None
        cores = self._plan.cores
        return frozenset((*cores.cpus(name), *cores.cpus(name, ThreadRole.MAIN)))

    def is_limited(self, name: str) -> bool:
        """Whether an NF has a limit of CPU time."""
        return name in self._limits and self._limits[name].cpu is not None

    def is_contained(self, name: str) -> bool:
        """Whether an NF runs in a container."""
        return self._containers is not None and self._containers.has(name)

    def allows_real_time(self, name: str) -> bool:
        """Whether programs of an NF may run in real time. No quota of CPU time holds there."""
        inside = self._containers if self.is_contained(name) else None
        return not self.is_limited(name) and (inside is None or inside.allows_real_time(name))

    def entry(self, name: str) -> ExecContext:
        """Environment of an NF's program before it runs: its container, or the group of its limits, or nothing."""
        group = self._groups.get(name)
        return self.container(name) if self.is_contained(name) or group is None else ExecContext(group.doors)

    def container(self, name: str) -> ExecContext:
        """The container of an NF for a program to enter; nothing where there is none."""
        return self._containers.entry(name) if self._containers is not None else NO_ENTRY

    def favour(self) -> None:
        """Raise the CPU weight of containers, see `NfContainers.favour`."""
        if self._containers is not None:
            self._containers.favour()

    def take_in(self, processes: Mapping[str, Iterable[int]]) -> None:
        """Limit the CPU time of programs that run already, by name of the NF; memory that they have is not counted.

        Their threads do not run in real time any more: no quota holds those back, and no group takes them.

        Raises:
            Unsupported: The kernel refuses.
        """
        for name, pids in processes.items():
            if self.is_limited(name) and not self.is_contained(name):
                own = tuple(pids)
                for pid in own:
                    make_ordinary(pid)
                self._groups[name].take_in_threads(own)

    def throttling(self) -> dict[str, Throttling]:
        """How quotas held NFs back, by name, since the groups were made."""
        rows = ((name, group.throttling()) for name, group in self._groups.items() if self.is_limited(name))
        return {name: row for name, row in rows if row is not None}

    def problems(self) -> tuple[str, ...]:
        """NFs of which the kernel killed processes, because they had used up their memory."""
        ended = self._containers.problems() if self._containers is not None else ()
        return ended + tuple(
            f"{name} used up its {limits.memory_mib} MiB: the kernel killed {killed} of its processes"
            for name, limits in self._limits.items()
            if name in self._groups and (killed := self._groups[name].killed_for_memory())
        )

    def facts(self) -> dict[str, str]:
        """Limits of NFs, by name."""
        limits = {f"limits of {name}": _words(each.cpu, each.memory_mib) for name, each in self._limits.items()}
        of_parts = [part.facts() for part in (self._containers, self._cache) if part is not None]
        return {name: text for each in (*of_parts, limits) for name, text in each.items()}

    def remove(self) -> None:
        """Remove the groups; the programs of their NFs have ended. Safe to call after a failure.

        Data threads end with their ports, later. What a program of the user's has started and left running is killed.

        Raises:
            CsitError: A process is left in one.
        """
        groups, self._groups = self._groups, {}
        try:
            for name, group in groups.items():
                let_threads_go(group.folders)
                if not self.is_contained(name):
                    if name in self._programs:
                        end(group.folders, 0)
                    group.remove()
                    self._machine.release("groups", group.folders)
        finally:
            try:
                if self._containers is not None:
                    self._containers.stop()
            finally:
                if self._cache is not None:
                    self._cache.remove()


def _inside(controllers: cgroups.Controllers, folders: Sequence[Path]) -> str:
    """The group of a container, as a path below the root of each controller."""
    root = controllers.roots["cpu"]
    return next(str(folder.relative_to(root)) for folder in folders if folder.is_relative_to(root))


def _needed(controllers: cgroups.Controllers, limits: NfLimits) -> cgroups.Controllers:
    """The controllers that the limits of an NF take; version 2 has all of them in one group.

    A program without a CPU quota runs under SCHED_RR. On kernels with CONFIG_RT_GROUP_SCHED, a group of the version 1
    controller `cpu` refuses real-time processes (EINVAL) unless it has a real-time budget.
    """
    if controllers.version == 2 or limits.cpu is not None:
        return controllers
    return replace(controllers, roots={"memory": controllers.roots["memory"]})


def _of(function: NfPlan | TapPlan) -> NfLimits:
    """Limits that a control group enforces, without packet rates (nftables), cache ways (resctrl) and memory of VMs."""
    limits = function.limits.model_copy(update={"network_pps": None, "cache_ways": None})
    return limits.model_copy(update={"memory_mib": None}) if function.kind.is_vm else limits


def _words(cpu: float | None, memory_mib: int | None) -> str:
    parts = [f"{cpu:g} CPUs"] if cpu is not None else []
    return ", ".join([*parts, *([f"{memory_mib} MiB"] if memory_mib is not None else [])])
