"""Assignment of a plan's threads to logical CPUs."""

from enum import StrEnum

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty


class ThreadRole(StrEnum):
    """Role of a planned thread."""

    SYSTEM = "system"
    MAIN = "main"
    DATA = "data"


class Thread(Frozen):
    """One planned thread on one logical CPU."""

    owner: str
    """`system`, `generator`, `vswitch` (`vswitch-2` on a second DUT) or the name of an NF."""
    role: ThreadRole
    index: int
    """Counts from 0 within owner and role."""
    cpu: int
    """Logical CPU."""
    machine: str | None = None
    """The node whose CPU that is; None where it is that of the (first) DUT."""


class MachineCores(Frozen):
    """Cores of a machine beside the (first) DUT; its threads are in the core map."""

    machine: str
    """Name of the node."""
    numa_node: int
    smt: bool
    physical: tuple[tuple[int, ...], ...]
    """Physical cores of the node that have threads, each as all its logical CPUs."""
    cores_needed: int
    cores_there: int
    oversubscribed: bool
    shared_cpus: tuple[int, ...] = Field(default=(), exclude_if=is_empty)
    """As those of the core map."""


class CoreMap(Frozen):
    """Assignment of threads to CPUs, and whether cores are shared.

    `numa_node`, `smt`, `physical`, `cores_needed` and `cores_there` are of the (first) DUT: numbers of CPUs of
    different machines have nothing to do with each other.
    """

    numa_node: int
    smt: bool
    physical: tuple[tuple[int, ...], ...]
    """Physical cores of the node that have threads, each as all its logical CPUs."""
    threads: tuple[Thread, ...]
    cores_needed: int
    """Physical cores that an honest placement takes, system and main cores included."""
    cores_there: int
    oversubscribed: bool
    """Data threads share cores with others because a machine is too small for the plan."""
    shared_cpus: tuple[int, ...] = Field(default=(), exclude_if=is_empty)
    """Logical CPUs on which the data threads of two NFs take turns because their size asks for it."""
    elsewhere: tuple[MachineCores, ...] = Field(default=(), exclude_if=is_empty)
    """Machines beside the (first) DUT that run parts of the plan."""

    def on(self, machine: str | None) -> tuple[Thread, ...]:
        """Threads on a machine; None is the (first) DUT."""
        return tuple(thread for thread in self.threads if thread.machine == machine)

    def beside(self, owner: str) -> frozenset[int]:
        """Logical CPUs that have threads on the machine of an owner's threads, its own included."""
        machines = {thread.machine for thread in self.threads if thread.owner == owner}
        return frozenset(thread.cpu for thread in self.threads if thread.machine in machines)

    def takes_turns(self, owner: str) -> bool:
        """Whether data threads of an owner share a CPU with others, by the plan's size or for want of cores."""
        machine = next((thread.machine for thread in self.threads if thread.owner == owner), None)
        elsewhere = {each.machine: each.shared_cpus for each in self.elsewhere}
        shared = self.shared_cpus if machine is None else elsewhere.get(machine, ())
        return self.oversubscribed or not set(shared).isdisjoint(self.cpus(owner))

    def cpus(self, owner: str, role: ThreadRole = ThreadRole.DATA) -> tuple[int, ...]:
        """Logical CPUs of an owner's threads, in order of index."""
        rows = [thread for thread in self.threads if (thread.owner, thread.role) == (owner, role)]
        return tuple(thread.cpu for thread in sorted(rows, key=lambda thread: thread.index))
