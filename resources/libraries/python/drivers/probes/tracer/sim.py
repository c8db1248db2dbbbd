"""Simulated state transitions: what data threads of a simulated system would have done, from its load and capacity.

The graphs have the events of a container's threads. A thread that keeps up sleeps, is woken, works off its packets and
sleeps again; one that is never idle works in full turns, and its limit takes the CPU from it. So shares of time are
known: asleep, at work with packets, at work in a program, kept from the CPU.
"""

from collections.abc import Iterator, Mapping

from resources.libraries.python.drivers.sim.activity import BATCH, HZ, ActivityInterval, Did
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.planning.names import is_vswitch
from resources.libraries.python.studies.chains.model.record import Edge, StateGraph

IN_PROGRAM = 0.5
"""Assumed: share of the work of an NF with a program that is done there, and not in the kernel."""
_RECEIVING = 0.7
"""Assumed: share of the kernel's work for a packet that goes before its transmission."""
_FULL_TURN = 64
"""Packets that the kernel takes in one turn at most."""


class SimTracer:
    """Fulfils `roles.watching.Tracer` on a simulated system."""

    cpu_s = None

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        nfs = system.plan.all_nfs
        self._programs = {each.name for each in nfs if each.kind.is_routed and not each.kind.is_namespace}
        self._interval: ActivityInterval | None = None

    def start(self) -> None:
        self._interval = ActivityInterval(self._system)

    def stop(self) -> tuple[StateGraph, ...]:
        interval, self._interval = self._interval, None
        if interval is None:
            return ()
        return tuple(
            self._graph(did, interval.seconds) for did in interval.did() if did.received and not is_vswitch(did.owner)
        )

    def facts(self) -> Mapping[str, str]:
        return {"events": "simulated: from the load and the capacity of each network function"}

    def _graph(self, did: Did, traced_s: float) -> StateGraph:
        threads = len(self._system.plan.cores.cpus(did.owner))
        share = IN_PROGRAM if did.owner in self._programs else 0.0
        rows = [
            Edge(before=before, after=after, count=round(count * traced_s), seconds=seconds * traced_s)
            for before, after, count, seconds in _transitions(did, threads, share)
            if round(count * traced_s)
        ]
        events = sum(edge.count for edge in rows)
        return StateGraph(owner=did.owner, source="sim", traced_s=traced_s, events=events, lost=0, edges=tuple(rows))


def _transitions(did: Did, threads: int, in_program: float) -> Iterator[tuple[str, str, float, float]]:
    """Events before and after, how often and how long a second."""
    turns = did.received / (_FULL_TURN if did.is_full else BATCH)
    rest = max(0.0, threads - did.cpus)
    kernel = did.cpus * (1 - in_program)
    if did.is_full:
        yield "sched_switch:out:R", "sched_switch:in", HZ, rest
        yield "sched_switch:in", "netif_receive_skb", HZ, 0.0
        yield "napi_poll:full", "netif_receive_skb", turns, 0.0
        yield "napi_poll:full", "sched_switch:out:R", HZ, 0.0
    else:
        yield "sched_switch:out:S", "sched_wakeup", turns, rest
        yield "sched_wakeup", "sched_switch:in", turns, 0.0
        yield "sched_switch:in", "netif_receive_skb", turns, 0.0
        yield "napi_poll:part", "sched_switch:out:S", turns, 0.0
    if in_program:
        yield "sched_switch:in", "sched_switch:out:S", did.received, did.cpus - kernel
    if did.sent:
        yield "netif_receive_skb", "net_dev_queue", did.received, _RECEIVING * kernel
        yield "net_dev_queue", "net_dev_xmit:sent", did.sent, (1 - _RECEIVING) * kernel
        yield "net_dev_queue", "net_dev_xmit:refused", did.tx_dropped, 0.0
        yield "net_dev_xmit:sent", f"napi_poll:{'full' if did.is_full else 'part'}", turns, 0.0
    else:
        yield "netif_receive_skb", f"napi_poll:{'full' if did.is_full else 'part'}", turns, kernel
