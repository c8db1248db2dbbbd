"""Simulated probes: CPU time, costs and features of functions, call stacks, delays by part, and state transitions.

State transitions are what data threads of a simulated system would have done, from its load and capacity. Their graphs
have the events of a container's threads. A thread that keeps up sleeps, is woken, works off its packets and sleeps
again; one that is never idle works in full turns, and its limit takes the CPU from it. So shares of time are known:
asleep, at work with packets, at work in a program, kept from the CPU.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from random import Random

from resources.libraries.python.drivers.probes.hops.packet_delays import Stamps, hop_delays
from resources.libraries.python.drivers.sim.clock import EPOCH, VirtualClock
from resources.libraries.python.drivers.sim.impairment import impaired, missing_memory, pages_read_bytes
from resources.libraries.python.drivers.sim.power import Power, SimulatedPower
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.measurements.counters import Cost, HostState, InterfaceCounters, Sample
from resources.libraries.python.model.measurements.features import HOST, Edge, FeatureSeries, HopDelay, StateGraph
from resources.libraries.python.model.measurements.stacks import SEPARATOR, NodeStacks
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, is_vswitch
from resources.libraries.python.testbed.roles.watching import Readings


class SimSampler:
    """Fulfils `roles.watching.Sampler` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def read(self) -> Sample:
        return self._system.sample()

    def state(self) -> HostState:
        return HostState()


class SimCostMeter:
    """Fulfils `roles.watching.CostMeter` on a simulated system: CPU time by load and capacity, and nothing else."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self._names = tuple(each.name for each in system.plan.all_nfs)
        self._before: Mapping[str, float] | None = None

    def start(self) -> None:
        self._before = dict(self._system.used_s())

    def stop(self) -> Mapping[str, Cost]:
        before, self._before = self._before, None
        if before is None:
            return {}
        now = self._system.used_s()
        return {name: Cost(cpu_s=now[name] - before[name]) for name in self._names if name in before}

    def facts(self) -> Mapping[str, str]:
        return {"cache misses": "the simulation has no caches"}


class SimHopTimer:
    """Fulfils `roles.watching.HopTimer` on a simulated system, whose ports are all seen, the generator's too."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def start(self) -> None:
        self._system.steps = []

    def stop(self) -> tuple[HopDelay, ...]:
        steps, self._system.steps = self._system.steps, None
        return hop_delays((path, _stamps(frames)) for path, frames in steps or ())

    def facts(self) -> Mapping[str, str]:
        return {"delays by part": "simulated: from the latency of each probe"}


def _stamps(frames: Sequence[Sequence[float]]) -> list[Stamps]:
    """When probes pass each hop of their path, counted from their departure."""
    times = [[round(time) for time in accumulate(steps, initial=0.0)] for steps in frames]
    return [{(number, 0): stamp for number, stamp in enumerate(hop)} for hop in zip(*times, strict=True)]


BATCH = 16
"""Packets after which a data thread that keeps up has nothing to do for a moment."""
HZ = 250
"""Times a second at which a data thread that never has nothing to do is looked at by the scheduler."""
_FULL = 0.97
"""Of what it may use, with the noise of the capacity: from there on an owner is never idle."""
_NOTHING = InterfaceCounters(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class OwnerActivity:
    """One owner, all its ports together. Amounts are for each second."""

    owner: str
    cpus: float
    """CPU time used."""
    limit: float | None
    """CPU time that it may use, where it has a limit."""
    given: float
    """CPUs that a co-located load leaves of its own."""
    threads: int
    """Data threads, each on a CPU of its own."""
    received: float
    sent: float
    rx_dropped: float
    tx_dropped: float

    @property
    def held_back(self) -> float:
        """Share of the time that its limit kept it from its CPUs."""
        if self.limit is None or self.cpus < _FULL * self.limit:
            return 0.0
        return max(0.0, 1 - self.limit / self.threads)

    @property
    def waited(self) -> float:
        """CPUs' worth of time in which it was ready to run and a co-located load had the CPU."""
        return self.cpus * (self.threads / self.given - 1) if self.given else 0.0

    @property
    def is_full(self) -> bool:
        """Whether it never had nothing to do."""
        return self.held_back > 0 or self.cpus >= _FULL * self.given > 0


class ActivityInterval:
    """From its making on."""

    def __init__(self, system: SimulatedSystem) -> None:
        plan = system.plan
        self._system = system
        self._limits = {each.name: each.limits.cpu for each in plan.all_nfs}
        self._faults = impaired(plan, system.simulation.impaired)
        self._owners = (VSWITCH, *self._limits)
        self._begin_s = system.clock.now()
        self._used_s = system.used_s()
        self._counters = system.counters(frozenset(self._owners))

    @property
    def seconds(self) -> int:
        """Whole seconds of the system's clock until now. What is beyond is time between trials, without load."""
        return int(self._system.clock.now() - self._begin_s)

    def did(self) -> Iterator[OwnerActivity]:
        """The vSwitch, then each NF; empty in the first second."""
        seconds, used_s = self.seconds, self._system.used_s()
        now = self._system.counters(frozenset(self._owners))
        for owner in self._owners if seconds else ():
            ports = [port.interface for port in self._system.plan.ports(owner) if port.interface in now]
            threads = len(self._system.plan.cores.cpus(owner))
            stolen = self._faults[owner].stolen_ratio if owner in self._faults else 0.0
            rows = [now[name] - self._counters.get(name, _NOTHING) for name in ports]
            yield OwnerActivity(
                owner=owner,
                cpus=(used_s.get(owner, 0.0) - self._used_s.get(owner, 0.0)) / seconds,
                limit=self._limits.get(owner),
                given=threads * (1 - stolen),
                threads=threads,
                received=sum(row.rx_packets for row in rows) / seconds,
                sent=sum(row.tx_packets for row in rows) / seconds,
                rx_dropped=sum(row.rx_dropped for row in rows) / seconds,
                tx_dropped=sum(row.tx_dropped for row in rows) / seconds,
            )


class SimFeatureSampler:
    """Fulfils `roles.watching.FeatureSampler` on a simulated system; seconds are those of its clock."""

    cpu_s = None

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self._interval: ActivityInterval | None = None
        self._times = 0

    def start(self) -> None:
        self._interval = ActivityInterval(self._system)
        self._times += 1

    def stop(self) -> tuple[FeatureSeries, ...]:
        interval, self._interval = self._interval, None
        if interval is None:
            return ()
        seconds = interval.seconds
        rng = Random(f"{self._system.key}/features/{self._times}")  # noqa: S311 (reproducible, not secret)
        return tuple(
            FeatureSeries(owner=owner, feature=name, values=tuple(self._noisy(mean, name, rng) for _ in range(seconds)))
            for (owner, name), mean in chain(_means(tuple(interval.did())), self._memory(interval))
        )

    def facts(self) -> Mapping[str, str]:
        return {"features": "simulated: from the load and the capacity of each network function"}

    def _memory(self, interval: ActivityInterval) -> Iterator[tuple[tuple[str, str], float]]:
        there, missing = self._system.memory_bytes(), missing_memory(self._system.plan)
        for did in interval.did():
            if did.owner in there:
                yield (did.owner, "memory_bytes"), float(there[did.owner])
                yield (did.owner, "read_bytes_per_s"), pages_read_bytes(missing[did.owner], did.received)

    def _noisy(self, mean: float, name: str, rng: Random) -> float:
        value = max(0.0, mean * (1 + self._system.simulation.noise * rng.gauss(0, 1)))
        return min(100.0, value) if name == "throttled_percent" else value


def _means(all_did: Sequence[OwnerActivity]) -> Iterator[tuple[tuple[str, str], float]]:
    for did in all_did:
        owner = did.owner
        yield (owner, "cpu_percent"), 100 * did.cpus
        yield (owner, "helper_percent"), 100 * did.cpus
        yield (owner, "throttled_percent"), 100 * did.held_back
        yield (owner, "waiting_percent"), 100 * did.waited
        yield (owner, "rx_pps"), did.received
        yield (owner, "tx_pps"), did.sent
        yield (owner, "rx_dropped_pps"), did.rx_dropped
        yield (owner, "tx_dropped_pps"), did.tx_dropped
        yield (owner, "voluntary_switches"), 0.0 if did.is_full else did.received / BATCH
        yield (owner, "involuntary_switches"), float(HZ) * (1.0 if did.is_full else min(1.0, did.waited))
    yield (HOST, "all_system_percent"), 100 * sum(did.cpus for did in all_did)
    yield (HOST, "all_switches"), sum(did.received for did in all_did) / BATCH


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

    def _graph(self, did: OwnerActivity, traced_s: float) -> StateGraph:
        share = IN_PROGRAM if did.owner in self._programs else 0.0
        rows = [
            Edge(before=before, after=after, count=round(count * traced_s), seconds=seconds * traced_s)
            for before, after, count, seconds in _transitions(did, share)
            if round(count * traced_s)
        ]
        events = sum(edge.count for edge in rows)
        return StateGraph(owner=did.owner, source="sim", traced_s=traced_s, events=events, lost=0, edges=tuple(rows))


def _transitions(did: OwnerActivity, in_program: float) -> Iterator[tuple[str, str, float, float]]:
    """Events before and after, how often and how long a second."""
    turns = did.received / (_FULL_TURN if did.is_full else BATCH)
    rest = max(0.0, did.threads - did.cpus)
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


STACKS_HZ = 149
_VSWITCH: Mapping[str, float] = {
    "sim_poll;sim_receive": 0.35,
    "sim_poll;sim_switch;sim_mac_lookup": 0.3,
    "sim_poll;sim_send": 0.35,
}
_FUNCTION: Mapping[str, float] = {
    "sim_poll;sim_receive": 0.3,
    "sim_poll;sim_forward;sim_route_lookup": 0.25,
    "sim_poll;sim_forward;sim_filter": 0.15,
    "sim_poll;sim_send": 0.3,
}
_MAX_SAMPLES = 1_000_000


def shares(owner: str, hot: Mapping[str, float]) -> dict[str, float]:
    """Return the true share of each stack of an owner; they add up to 1.

    `hot`: Factors on the time of functions, by name.
    """
    times = {
        stack: part * hot.get(stack.rpartition(SEPARATOR)[2], 1.0)
        for stack, part in (_VSWITCH if is_vswitch(owner) else _FUNCTION).items()
    }
    total = sum(times.values())
    return {stack: each / total for stack, each in times.items()}


class SimStackSampler:
    """Fulfils `roles.watching.StackSampler` on a simulated system."""

    def __init__(self, system: SimulatedSystem, node: str) -> None:
        self._system, self._node = system, node
        self._before: tuple[float, Mapping[str, float]] | None = None
        self._times = 0

    def start(self) -> None:
        self._before = self._system.clock.now(), dict(self._system.used_s())
        self._times += 1

    def stop(self) -> tuple[NodeStacks, ...]:
        before, self._before = self._before, None
        if before is None:
            return ()
        began_s, used_s = before
        now_s, plan = self._system.used_s(), self._system.plan
        rng = Random(f"{self._system.key}/stacks/{self._times}")  # noqa: S311 (reproducible, not secret)
        counts: Counter[str] = Counter()
        owners = [owner for owner in now_s if owner != GENERATOR]
        for owner in owners:
            number = min(_MAX_SAMPLES, round((now_s[owner] - used_s.get(owner, 0.0)) * STACKS_HZ))
            truth = shares(owner, self._system.simulation.hot)
            counts.update(
                f"{owner}{SEPARATOR}{stack}" for stack in rng.choices(list(truth), list(truth.values()), k=number)
            )
        sampled_s = self._system.clock.now() - began_s
        cpus = tuple(sorted({cpu for owner in owners for cpu in plan.cores.cpus(owner)}))
        busy = counts.total()
        every = max(busy, round(len(cpus) * sampled_s * STACKS_HZ))
        return (
            NodeStacks(
                node=self._node,
                event="sim",
                hz=STACKS_HZ,
                cpus=cpus,
                sampled_s=sampled_s,
                samples=every,
                idle=every - busy,
                elsewhere=0,
                stacks=dict(sorted(counts.items())),
            ),
        )


class SimMeters:
    """Fulfils `roles.watching.EnergyMeters` on a simulated testbed.

    `deployed`: returns the running system; None where nothing is deployed.
    """

    def __init__(self, node: str, power: Power, deployed: Callable[[], SimulatedSystem | None]) -> None:
        self._node, self._power, self._deployed = node, power, deployed
        self._begin_s = self._duration_s = 0.0
        self._system: SimulatedSystem | None = None

    def begin(self, duration_s: float) -> None:
        """Begin to read; the system keeps its energy meanwhile."""
        self._system, self._duration_s = self._deployed(), duration_s
        if self._system is not None:
            self._begin_s = self._system.clock.now()
            self._system.begin_metering()

    def now(self) -> float:
        system = self._system
        return EPOCH.timestamp() + (system.clock.now() if system else 0.0)

    def end(self) -> Readings:
        """Where no trial has run meanwhile, the time passes without traffic."""
        system, self._system = self._system, None
        if system is None:
            machine = SimulatedPower(self._power, VirtualClock(), self._node)
            machine.spend(0.0, self._duration_s, {})
            return machine.read(self._node, 0.0, self._duration_s)
        if system.clock.now() == self._begin_s:
            system.rest(self._duration_s)
        return system.end_metering().read(self._node, self._begin_s, system.clock.now())
