"""Limits of single NFs: a control group for each, with its programs and the data threads of its ports."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from resources.libraries.python.drivers.host.cgroup_folders import let_threads_go
from resources.libraries.python.drivers.host.cgroups import (
    PINNING,
    Controllers,
    Group,
    Limits,
    discover,
)
from resources.libraries.python.drivers.host.deadlines import hold_back
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.namespaces import name_of
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.threads import make_ordinary
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.counters import Throttling
from resources.libraries.python.model.function import Limits as NfLimits
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.plan import NfPlan, Plan, TapPlan

NO_LIMITS = NfLimits()
_BY_THEMSELVES = frozenset({NfKind.TESTPMD, NfKind.VPP})
"""Kinds whose programs are in a group only after they have taken their memory."""
_MIB = 1 << 20


class NfGroups:
    """Control groups of those NFs that have limits; others have none, and cost nothing."""

    def __init__(self, functions: Sequence[NfPlan | TapPlan], plan: Plan, fabric: Fabric, machine: MachineLock) -> None:
        """Prepare; nothing is made before `make`.

        Args:
            functions: NFs of any kind, with and without limits.
            plan: Has their cores and ports.
            fabric: Has the data threads of their ports.
            machine: The machine's lock, held.
        """
        self._limits = {each.name: _of(each) for each in functions if _of(each) != NO_LIMITS}
        self._functions = tuple(functions)
        self._plan = plan
        self._fabric = fabric
        self._machine = machine
        self._groups: dict[str, Group] = {}

    def __bool__(self) -> bool:
        """Whether any NF has a limit."""
        return bool(self._limits)

    def make(self) -> None:
        """Make the groups, and put the data threads of limited NFs in: what they do is the NF's own work.

        Raises:
            Unsupported: This machine cannot limit them, or nobody can limit the memory of an NF of that kind.
            CsitError: There is such a group.
        """
        if not self._limits:
            return
        for function in self._functions:
            if function.limits.memory_mib and function.kind in _BY_THEMSELVES:
                raise Unsupported(f"{function.name}: the memory of an NF of kind {function.kind} cannot be limited")
        controllers, threads = discover(), self._fabric.threads()
        for name, limits in self._limits.items():
            group = Group(controllers, name_of(name))
            self._machine.claim_groups(group.folders)
            self._groups[name] = group
            memory_bytes = None if limits.memory_mib is None else limits.memory_mib * _MIB
            group.make(Limits(limits.cpu, memory_bytes, self._cpus(name, controllers)))
            if limits.cpu is not None:
                ports = (port.interface for port in self._plan.ports(name))
                mine = [thread for port in ports for thread in threads.get(port, ())]
                if limits.cpu < len(mine):
                    for thread in mine:  # before they enter: no group takes threads that run in real time
                        hold_back(thread, limits.cpu / len(mine))
                    group.take_in_threads(mine)

    def _cpus(self, name: str, controllers: Controllers) -> frozenset[int] | None:
        """Said once more here: entering a group of version 1 lets a process run on all CPUs that the group has."""
        if PINNING not in controllers.roots:
            return None
        cores = self._plan.cores
        return frozenset((*cores.cpus(name), *cores.cpus(name, ThreadRole.MAIN)))

    def is_limited(self, name: str) -> bool:
        """Whether an NF has a limit of CPU time."""
        return name in self._limits and self._limits[name].cpu is not None

    def doors(self, name: str) -> tuple[Path, ...]:
        """By which a program enters the group of its NF; none where that has no limits."""
        group = self._groups.get(name)
        return group.doors if group else ()

    def take_in(self, processes: Mapping[str, Iterable[int]]) -> None:
        """Limit the CPU time of programs that run already, by name of the NF; memory that they have is not counted.

        Their threads do not run in real time any more: no quota holds those back, and no group takes them.

        Raises:
            Unsupported: The kernel refuses.
        """
        for name, pids in processes.items():
            if name in self._groups:
                own = tuple(pids)
                for pid in own:
                    make_ordinary(pid)
                self._groups[name].take_in_threads(own)

    def throttling(self) -> dict[str, Throttling]:
        """How quotas held NFs back, by name, since the groups were made."""
        rows = ((name, group.throttling()) for name, group in self._groups.items() if self._limits[name].cpu)
        return {name: row for name, row in rows if row is not None}

    def problems(self) -> tuple[str, ...]:
        """NFs of which the kernel killed processes, because they had used up their memory."""
        return tuple(
            f"{name} used up its {self._limits[name].memory_mib} MiB: the kernel killed {killed} of its processes"
            for name, group in self._groups.items()
            if (killed := group.killed_for_memory())
        )

    def facts(self) -> dict[str, str]:
        """What NFs may use, by name."""
        return {f"limits of {name}": _words(each.cpu, each.memory_mib) for name, each in self._limits.items()}

    def remove(self) -> None:
        """Remove the groups; the programs of their NFs have ended. Safe to call after a failure.

        Data threads end with their ports, later.

        Raises:
            CsitError: A process is left in one.
        """
        groups, self._groups = self._groups, {}
        for group in groups.values():
            let_threads_go(group.folders)
            group.remove()
            self._machine.release_groups(group.folders)


def _of(function: NfPlan | TapPlan) -> NfLimits:
    """What a control group has to see to. The memory of a virtual machine is that which it is made with."""
    return function.limits.model_copy(update={"memory_mib": None}) if function.kind.is_vm else function.limits


def _words(cpu: float | None, memory_mib: int | None) -> str:
    parts = [f"{cpu:g} CPUs"] if cpu is not None else []
    return ", ".join([*parts, *([f"{memory_mib} MiB"] if memory_mib is not None else [])])
