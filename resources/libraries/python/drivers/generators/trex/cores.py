"""On which CPUs the server's threads run: each on its own where there are enough, else all on one. Pure."""

from dataclasses import dataclass

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.sender_threads import OTHER_THREADS, generator_cpus, senders_per_pair


@dataclass(frozen=True, slots=True)
class CoreAssignment:
    """CPUs of the threads."""

    control: int
    """CPU of the thread that answers requests."""
    receiving: int
    sending: tuple[tuple[int, ...], ...]
    """Of each pair of ports; all have the same number."""

    @property
    def shared(self) -> bool:
        """Whether all threads take turns on one CPU (TRex's `low_end`)."""
        senders = [cpu for row in self.sending for cpu in row]
        return len({self.control, self.receiving, *senders}) < OTHER_THREADS + len(senders)

    def __str__(self) -> str:
        if self.shared:
            return f"all threads in turns on CPU {self.control} (low_end)"
        sending = ", ".join(" and ".join(map(str, row)) for row in self.sending)
        return f"sending on CPUs {sending}, receiving on {self.receiving}, control on {self.control}"


def place(plan: Plan, pairs: int, *, dpdk: bool, queues: int = 1) -> CoreAssignment:
    """Place the threads on the generator's planned CPUs: as many for each pair of ports as CPUs and queues allow.

    Args:
        plan: Has them; its main thread's CPU is for control, and that of a second one for receiving.
        pairs: Pairs of ports.
        dpdk: Whether ports are polled: then threads cannot take turns.
        queues: That each port can have.

    Raises:
        Unsupported: Too few for polled ports, or none at all.
    """
    cpus, needed = generator_cpus(plan), OTHER_THREADS + pairs
    if len(cpus) >= needed:
        count = senders_per_pair(len(cpus), pairs, queues)
        firsts = range(OTHER_THREADS, OTHER_THREADS + count * pairs, count)
        return CoreAssignment(cpus[0], cpus[1], tuple(cpus[first : first + count] for first in firsts))
    if dpdk or not cpus:
        raise Unsupported(
            f"TRex needs {needed} CPUs for {pairs} pair{'s'[pairs == 1 :]} of ports (control, receiving, one for each "
            f"pair), the plan has {len(cpus)} for the generator; raise nodes.TG.generator.cores"
        )
    cpu = plan.cores.cpus(GENERATOR)[0] if plan.cores.cpus(GENERATOR) else cpus[0]
    return CoreAssignment(cpu, cpu, ((cpu,),) * pairs)
