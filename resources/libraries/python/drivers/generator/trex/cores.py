"""On which CPUs the server's threads run: each on its own where there are enough, else all on one. Pure."""

from dataclasses import dataclass

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the threads are."""

    control: int
    """CPU of the thread that answers requests."""
    receiving: int
    sending: tuple[int, ...]
    """One for each pair of ports."""

    @property
    def shared(self) -> bool:
        """Whether all threads take turns on one CPU (TRex's `low_end`)."""
        return len({self.control, self.receiving, *self.sending}) < 2 + len(self.sending)

    def __str__(self) -> str:
        if self.shared:
            return f"all threads in turns on CPU {self.control} (low_end)"
        sending = ", ".join(map(str, self.sending))
        return f"sending on CPUs {sending}, receiving on {self.receiving}, control on {self.control}"


def place(plan: Plan, pairs: int, *, dpdk: bool) -> Placement:
    """Place the threads on the generator's planned CPUs.

    Args:
        plan: Has them; its main thread's CPU is for control.
        pairs: Pairs of ports.
        dpdk: Whether ports are polled: then threads cannot take turns.

    Raises:
        Unsupported: Too few for polled ports, or none at all.
    """
    row = (*plan.cores.cpus(GENERATOR, ThreadRole.MAIN), *plan.cores.cpus(GENERATOR))
    cpus = tuple(dict.fromkeys(row))
    needed = 2 + pairs
    if len(cpus) >= needed:
        return Placement(cpus[0], cpus[1], cpus[2:needed])
    if dpdk or not cpus:
        raise Unsupported(
            f"TRex needs {needed} CPUs for {pairs} pair{'s'[pairs == 1 :]} of ports (control, receiving, one for each "
            f"pair), the plan has {len(cpus)} for the generator; raise nodes.TG.generator.cores"
        )
    cpu = plan.cores.cpus(GENERATOR)[0] if plan.cores.cpus(GENERATOR) else cpus[0]
    return Placement(cpu, cpu, (cpu,) * pairs)
