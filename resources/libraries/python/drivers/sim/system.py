"""The simulated testbed behind the three `sim` drivers: trials in virtual time, counts per hop, use of CPUs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from math import inf
from random import Random

from resources.libraries.python.drivers.sim import impairment
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.flows import (
    Copies,
    FlowState,
    add_waits,
    crosses,
    first_of,
    flow_latency,
    shape,
    simulate_latency,
    split,
    step_times,
)
from resources.libraries.python.drivers.sim.host_gaps import HostInterruptions, InterruptingHost
from resources.libraries.python.drivers.sim.models import Model, TrialPart, TwoBand, forward, make_model
from resources.libraries.python.drivers.sim.outage import SimulatedEvents
from resources.libraries.python.drivers.sim.power import DataCpus, SimulatedPower, cpu_use
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.state_tables import SimulatedTables
from resources.libraries.python.drivers.sim.truth import Part, SimulatedTruth, cpu_time_left
from resources.libraries.python.model.measurements.counters import CpuTime, InterfaceCounters, Sample, ThreadTime
from resources.libraries.python.model.measurements.trial import (
    FlowCount,
    FlowLatency,
    FlowLosses,
    FlowTimeline,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Path, Plan
from resources.libraries.python.model.request.cell import Frame, TestType
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.quantities import rates

_DIRECTIONS = 2
_LATENCY_SPREAD = 0.02
BURSTS = "back-to-back"
"""Purpose of trials that a buffer decides, so that packets are simulated one by one."""


class WorkAccounts:
    """Accounts of all data threads of a plan, each of which serves its ports for equal times.

    `idle`: By owner the share of its data threads, the last ones, that never have work.
    """

    def __init__(self, plan: Plan, idle: Mapping[str, float], faults: Mapping[str, impairment.Impairment]) -> None:
        owners = (GENERATOR, VSWITCH, *(each.name for each in plan.all_nfs))
        # A generator on a machine of its own has no CPUs here.
        self._cpus = {owner: cpus for owner in owners if (cpus := plan.cores.cpus(owner))}
        self._ports = [port for port in plan.ports() if port.owner in self._cpus]
        self._copies = {name for segment in plan.segments for name in segment.copies}
        """Ports that nothing is received from."""
        serving = (port for port in self._ports if port.interface not in self._copies)
        self._served = Counter((port.owner, port.data_thread) for port in serving)
        self._quota = cpu_time_left(plan, faults)
        self._busy_s = dict.fromkeys(self._cpus, 0.0)
        self._waited_s = dict.fromkeys(self._cpus, 0.0)
        self._working = {
            owner: max(1, round(len(cpus) * (1 - idle.get(owner, 0.0)))) for owner, cpus in self._cpus.items()
        }

    def add(self, owner: str, share: float, duration_s: float) -> None:
        """Let an owner's data threads work for a share of some time, at most for all of it."""
        if owner in self._busy_s:
            self._busy_s[owner] += min(1.0, share) * self._quota.get(owner, 1.0) * duration_s

    def wait(self, owners: Iterable[str], seconds: float) -> None:
        """Let data threads of owners be kept from their CPUs by other threads."""
        for owner in self._waited_s.keys() & owners:
            self._waited_s[owner] += seconds

    def used_s(self) -> dict[str, float]:
        """CPU time of each owner's data threads since the beginning."""
        return {owner: busy_s * self._working[owner] for owner, busy_s in self._busy_s.items()}

    def sample(self) -> Sample:
        """All accounts since the beginning."""
        threads: dict[str, ThreadTime] = {}
        cpus: dict[int, CpuTime] = {}
        for owner, row in self._cpus.items():
            for index, cpu in enumerate(row):  # also of threads that serve no port: others hand packets to them
                busy_s = self._busy_s[owner] if index < self._working[owner] else 0.0
                cpus[cpu] = CpuTime(0, round(busy_s * 1e9), 0, 0)
        for port in self._ports:
            if port.interface in self._copies:
                threads[port.interface] = ThreadTime(running_ns=0, waiting_ns=0)
                continue
            busy_s = self._busy_s[port.owner] if port.data_thread < self._working[port.owner] else 0.0
            share_ns = busy_s / self._served[port.owner, port.data_thread] * 1e9
            waited_ns = round(self._waited_s[port.owner] * 1e9)
            threads[port.interface] = ThreadTime(running_ns=round(share_ns), waiting_ns=waited_ns)
        return Sample(threads=threads, cpus=cpus)


class SimulatedSystem:
    """All of one simulated cell: generator, vSwitch, NFs.

    Results depend on the simulation's seed, the cell, the state of SMT, the test type, its repetition and the frame,
    never on what ran before.

    `clock`: goes on with each trial.
    `repetition`: of the same test: another one has other noise.
    """

    def __init__(
        self, plan: Plan, simulation: Simulation, clock: VirtualClock, test_type: TestType, repetition: int = 0
    ) -> None:
        self.plan = plan
        self.simulation = simulation
        self.clock = clock
        self.running: set[str] = set()
        """Owners that have been started; packets end where they meet another."""
        again = f"{f'/{repetition}' if repetition else ''}{'/SMT off' if plan.smt_off else ''}"
        self.key = f"{simulation.seed}/{plan.cell.model_dump_json()}/{test_type}{again}"
        """Inputs of random numbers: the seed, the cell, the test type, the repetition."""
        self._rngs: dict[str, Random] = {}
        """One row of random numbers per frame size."""
        self._truth = SimulatedTruth(plan, simulation)
        self._faults = impairment.impaired(plan, simulation.impaired)
        self._work = WorkAccounts(plan, self._truth.idle(), self._faults)
        self._copies = Copies(plan)
        self._buffers = impairment.BufferPools(plan, simulation.buffer_pools, self.key)
        self._host = HostInterruptions(plan, InterruptingHost(simulation.host_gap_hz, simulation.host_gap_us * 1e-6))
        self._made_s = clock.now()
        self._loaded = False
        self._metered: SimulatedPower | None = None
        self.events = SimulatedEvents(plan, simulation.interruptions, clock, self.key)
        self.tables = SimulatedTables(plan, simulation.state_tables, clock, self.key)
        self.steps: list[tuple[Path, list[tuple[float, ...]]]] | None = None
        """Paths of probes since a hop timer was started, and the time of each probe before each hop but the first, in
        nanoseconds; None while none runs."""
        rng = Random(self.key)  # noqa: S311 (reproducible, not secret)
        delays_s = {name: fault.delay_s for name, fault in self._faults.items()}
        paths = {(path.instance, path.direction): path for path in plan.paths}
        self._flows = [
            FlowState(
                flow,
                path := paths[flow.instance, flow.direction],
                loss_weight=max(0.0, 1 + simulation.unfairness * rng.uniform(-1, 1)),
                shape=shape(path, 1 + rng.uniform(-1, 1) * _LATENCY_SPREAD, delays_s),
            )
            for flow in plan.flows
        ]
        members = {segment.name: segment.members for segment in plan.segments}
        self._watched = [
            (tap.name, state, first_of(state.path, members[tap.segment]))
            for tap in plan.taps
            for state in self._flows
            if state.flow.instance == tap.instance
        ]
        """Passive NFs with the flows that they get copies of, and the hop where these are made."""

    def maximum_pps(self, frame: Frame) -> float:
        """Line rate of both directions together."""
        return _DIRECTIONS * self.simulation.line_pps(frame)

    def capacity_pps(self, frame: Frame) -> float:
        """The truth: aggregate packets per second that the cell can forward."""
        return self._truth.capacity_pps(frame)

    def model(self, frame: Frame) -> Model:
        """The system under test, which knows the truth for any loss ratio."""
        return make_model(self.simulation, self.capacity_pps(frame))

    def limit_owners(self, frame: Frame) -> frozenset[str]:
        """The truth: whose loss it is when more is offered than the cell can forward."""
        return self._truth.limit_owners(frame)

    def run(self, trial: Trial) -> TrialResult:
        if trial.only is not None and trial.frame.flows:
            most_pps = min(self.simulation.line_pps(trial.frame), self.simulation.generator_max_pps or inf)
            return self.tables.run(trial, most_pps, self.simulation.overhead_s)
        started_at = self.clock.timestamp()
        limit_pps = min(self.maximum_pps(trial.frame), self.simulation.generator_max_pps or inf)
        # Equal within rounding of floats is equal.
        limited = trial.load_pps > limit_pps * (1 + 1e-9)
        load_pps = min(trial.load_pps, limit_pps)
        if trial.frame.name not in self._rngs:
            self._rngs[trial.frame.name] = Random(f"{self.key}/{trial.frame.name}")  # noqa: S311 (reproducible)
        rng = self._rngs[trial.frame.name]
        self._truth.age(self.clock.now() - self._made_s)
        parts = self._truth.parts
        before = self._copied()
        self._buffers.begin(load_pps)
        counts: list[FlowCount] = []
        latency: list[FlowLatency] = []
        for part in parts:
            share_pps = load_pps / len(parts)
            capacity_pps = self._truth.capacity_pps(trial.frame, part)
            if own_pps := self.simulation.generator.loss_free_pps:
                capacity_pps = min(capacity_pps, own_pps / len(parts))
            model = make_model(self.simulation, capacity_pps)
            # Several parts go on for the whole trial: the aborts of each would end at times of their own.
            abort = trial.abort_loss_ratio if len(parts) == 1 else None
            done = forward(model, share_pps, trial.duration_s, rng, abort)
            if isinstance(model, TwoBand) and model.is_low(done.received / done.duration_s, share_pps):
                self._work.wait(self._truth.limit_owners(trial.frame, part), (1 - model.low_band) * done.duration_s)
            self._host.begin(done.duration_s, rng)
            counts += self._pass(part, done, trial.frame, share_pps)
            probed = self._of(part) if trial.probe_pps > 0 else ()
            latency += [self._latency(state, trial, done, share_pps, part) for state in probed]
        self._loaded |= trial.purpose in {"search", "mrr"}
        owners_pps = self._truth.rates(trial.frame, self.maximum_pps(trial.frame))
        awake = self._spend(self.clock.now(), done.duration_s, owners_pps, load_pps)
        for owner, rate_pps in owners_pps.items():
            taken = 1 - self._buffers.refused.get(owner, 0.0)
            self._work.add(owner, awake.get(owner, taken * load_pps / rate_pps), done.duration_s)
        self._rest(self.clock.now() + done.duration_s, self.simulation.overhead_s)
        self._copy(before, done.duration_s)
        lines = self._timelines(trial, load_pps) if trial.timeline_s is not None else ()
        one_by_one = trial.count_losses or trial.purpose == BURSTS
        losses = self._losses(trial, load_pps, done.duration_s, rng) if one_by_one else ()
        total_s = done.duration_s + self.simulation.overhead_s
        self.clock.advance(total_s)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=losses[0].duration_s if losses else done.duration_s,
            total_duration_s=total_s,
            flows=tuple(_count_of(line) for line in losses)
            or tuple(_of_timeline(line) for line in lines)
            or tuple(counts),
            latency=tuple(latency),
            timelines=lines,
            losses=losses if trial.count_losses else (),
            aborted=done.aborted,
            generator_limited=limited,
            note=f"the generator reached {' of '.join(rates(limit_pps, trial.load_pps))}" if limited else None,
        )

    def _timelines(self, trial: Trial, load_pps: float) -> tuple[FlowTimeline, ...]:
        """Every packet of a trial; its delay is the mean that probes would have at this load."""
        delays_ns = {}
        for part in self._truth.parts:
            capacity_pps = self._truth.capacity_pps(trial.frame, part)
            for state in self._of(part):
                share_pps = load_pps / len(self._truth.parts)
                _, mean_ns = simulate_latency(state.shape, share_pps, capacity_pps, sent=100, received=100)
                delays_ns[state.flow.instance, state.flow.direction] = mean_ns or 0.0
        return self.events.timelines(trial, trial.timeline_s or 0.0, delays_ns)

    def _losses(self, trial: Trial, load_pps: float, duration_s: float, rng: Random) -> tuple[FlowLosses, ...]:
        """Losses of every flow in the first packets of a trial."""
        if load_pps <= 0:
            return ()
        found = []
        parts = self._truth.parts
        begin_ns = round(datetime.fromisoformat(self.clock.timestamp()).timestamp()) * 10**9
        for part in parts:
            states = self._of(part)
            each_pps = load_pps / len(parts) / len(states)
            capacity_pps = self._truth.capacity_pps(trial.frame, part) / len(states)
            packets = min(impairment.MAX_PACKETS, round(each_pps * duration_s))
            truth = self.simulation.packet_losses
            found += [
                impairment.flow_losses(
                    truth,
                    state.flow,
                    rng,
                    packets=packets,
                    load_pps=each_pps,
                    capacity_pps=capacity_pps,
                    begin_ns=begin_ns,
                )
                for state in states
            ]
        return tuple(found)

    def _of(self, part: Part) -> list[FlowState]:
        return [state for state in self._flows if state.flow.instance in part]

    def _pass(self, part: Part, done: TrialPart, frame: Frame, load_pps: float) -> Iterator[FlowCount]:
        """Let the packets of a part's flows go as far as they get."""
        states, owners = self._of(part), self._truth.limit_owners(frame, part)
        sent_each = split(done.sent, [1.0] * len(states))
        weights = [state.loss_weight * crosses(state.path, owners) for state in states]
        lost_each = split(done.sent - done.received, weights, sent_each)
        utilization = load_pps / self._truth.capacity_pps(frame, part)
        for state, sent, excess in zip(states, sent_each, lost_each, strict=True):
            state.add(sent, excess, self._limit_hop(state.path, owners))
            lost = excess + self._lost_by_pools(state, sent - excess)
            lost += self._lost_by_faults(state, sent - lost, utilization)
            lost += self._lost_by_host(state, sent - lost, load_pps / len(states), utilization)
            arrived = 0 if self._ends_at(state) < len(state.path.hops) else sent - lost
            yield FlowCount(instance=state.flow.instance, direction=state.flow.direction, sent=sent, received=arrived)

    def _lost_by_pools(self, state: FlowState, packets: int) -> int:
        """Let NFs without a free buffer refuse a flow's packets; return how many that are."""
        lost = 0
        for name, ratio in self._buffers.refused.items():
            owner = frozenset({name})
            if crosses(state.path, owner):
                refused = round((packets - lost) * ratio)
                state.lose(refused, self._limit_hop(state.path, owner))
                lost += refused
        return lost

    def _lost_by_faults(self, state: FlowState, packets: int, utilization: float) -> int:
        """Let impaired NFs lose their share of a flow's packets; return how many that are."""
        lost = 0
        for name, fault in self._faults.items():
            owner = frozenset({name})
            if not crosses(state.path, owner):
                continue
            dropped = round(packets * fault.queue_loss_ratio * min(1.0, utilization))
            state.lose(dropped, self._limit_hop(state.path, owner))
            vanished = round((packets - dropped) * fault.loss_ratio)
            sending = next(i for i, hop in enumerate(state.path.hops) if hop.owner == name and hop.counter == "tx")
            state.vanish(vanished, sending)
            packets -= dropped + vanished
            lost += dropped + vanished
        return lost

    def _lost_by_host(self, state: FlowState, packets: int, flow_pps: float, utilization: float) -> int:
        """Let queues overflow whose CPUs the host has taken; return how many of a flow's packets that costs."""
        lost = 0
        for index, found in self._host.along(state.path, flow_pps, utilization):
            dropped = round((packets - lost) * found.lost_ratio)
            state.lose(dropped, max(1, index - 1))
            lost += dropped
        return lost

    def _copied(self) -> dict[str, int]:
        """Copies made for each passive NF since the beginning."""
        found = Counter[str]()
        for name, state, hop in self._watched:
            found[name] += state.reaching(hop) if hop < self._ends_at(state) else 0
        return found

    def _copy(self, before: Mapping[str, int], duration_s: float) -> None:
        most_pps = self._truth.taps_pps()
        for name, copies in self._copied().items():
            most = round(most_pps[name] * duration_s) if name in self.running else 0
            self._copies.add(name, copies - before[name], most)

    def counters(self, owners: frozenset[str]) -> dict[str, InterfaceCounters]:
        rows = {port.interface: [0, 0, 0, 0] for port in self.plan.ports() if port.owner in owners}
        for state in self._flows:
            self._count(state, rows)
        counted = {name: InterfaceCounters(*row) for name, row in rows.items()}
        return counted | {name: row for name, row in self._copies.counters().items() if name in counted}

    def begin_metering(self) -> None:
        """Keep the energy of the machine from now on."""
        self._metered = SimulatedPower(self.simulation.power, self.clock, self.key)

    def rest(self, seconds: float) -> None:
        """Let time pass without traffic."""
        self._rest(self.clock.now(), seconds)
        self.clock.advance(seconds)

    def _rest(self, begin_s: float, seconds: float) -> None:
        never = {each.owner: inf for each in self.plan.cores.threads}
        for owner, share in self._spend(begin_s, seconds, never, 0.0).items():
            self._work.add(owner, share, seconds)

    def end_metering(self) -> SimulatedPower:
        """Keep the energy no longer; return what was kept."""
        kept, self._metered = self._metered, None
        return kept or SimulatedPower(self.simulation.power, self.clock, self.key)

    def _spend(self, begin_s: float, seconds: float, rates: Mapping[str, float], load_pps: float) -> dict[str, float]:
        """Let the machine take its power; return the share in which the data CPUs of each owner were awake."""
        if self._metered is None:
            return {}
        here = [owner for owner in rates if self.plan.cores.cpus(owner)]
        work = {owner: self._data_cpus(owner, rates[owner], load_pps) for owner in here}
        return self._metered.spend(begin_s, seconds, work)

    def sample(self) -> Sample:
        """How data threads and their CPUs have spent their time, and the memory of NFs."""
        return replace(self._work.sample(), memory_bytes=self.memory_bytes())

    def memory_bytes(self) -> Mapping[str, int]:
        """Memory of each NF after the last trial."""
        leaked = round((self.clock.now() - self._made_s) / 60 * self.simulation.decay.leak_mib * 2**20)
        return {name: used + leaked for name, used in self._buffers.memory_bytes().items()}

    def used_s(self) -> Mapping[str, float]:
        """CPU time that each owner's data threads have used since the beginning."""
        return self._work.used_s()

    def moved(self) -> frozenset[str]:
        """Interfaces whose data threads have left their planned CPU."""
        return frozenset(self.simulation.moved if self._loaded else ())

    def _limit_hop(self, path: Path, owners: frozenset[str]) -> int:
        """Index of the first hop that does not count what the limit loses.

        That is where the owner of the limit receives. Between the vSwitch and NFs, and from NF to NF, the sender counts
        the drops, as its ring to the receiver is full, so the sending hop before does not count them either.
        """
        index = _queue_of(path, owners)
        if self.simulation.drops_inside:
            return index + 1
        return index if index == 1 else index - 1

    def _count(self, state: FlowState, rows: dict[str, list[int]]) -> None:
        """Add a flow to the counters along its path."""
        ends_at = self._ends_at(state)
        for index, hop in enumerate(state.path.hops[:ends_at]):
            row = rows.get(hop.interface)
            if row is None:
                continue
            reached = state.reaching(index)
            received = hop.counter == "rx"
            row[0 if received else 1] += reached
            if not self.simulation.drops_inside:
                row[2 if received else 3] += state.lost.get(index, 0)
            if index == ends_at - 1 and received and ends_at < len(state.path.hops):
                row[2] += reached

    def _ends_at(self, state: FlowState) -> int:
        """Number of hops that see a flow's packets; all of them where nothing is broken."""
        broken = self.simulation.drop_at
        for index, hop in enumerate(state.path.hops):
            if hop.owner != GENERATOR and hop.owner not in self.running:
                return index
            if hop.interface in broken:
                return index
            if hop.owner in broken and hop.counter == "rx":
                return index + 1
        return len(state.path.hops)

    def _latency(self, state: FlowState, trial: Trial, done: TrialPart, load_pps: float, part: Part) -> FlowLatency:
        sent = round(trial.probe_pps * done.duration_s)
        arriving = done.received / done.sent if done.sent else 1.0
        received = round(sent * arriving)
        owners = self._truth.limit_owners(trial.frame, part)
        state.add(sent, sent - received, self._limit_hop(state.path, owners))
        if self._ends_at(state) < len(state.path.hops):
            received = 0
        capacity_pps = self._truth.capacity_pps(trial.frame, part)
        pairs, mean_ns = simulate_latency(state.shape, load_pps, capacity_pps, sent=sent, received=received)
        flow_pps = load_pps / len(self._of(part))
        probes_s = _arrivals_s(sent, trial.probe_pps)
        interrupted = self._host.along(state.path, flow_pps, load_pps / capacity_pps, probes_s)
        waits: list[tuple[int, Sequence[float]]] = [(index, found.waits_s) for index, found in interrupted]
        waits += self._sleeps(state, trial, load_pps * len(self._truth.parts), len(probes_s))
        if waits and pairs:
            rows = zip(*(row for _, row in waits), strict=True)
            pairs = add_waits(pairs, [round(1e9 * sum(each)) for each in rows])
            mean_ns = sum(value * count for value, count in pairs) / received
        if self.steps is not None:
            steps = step_times(
                state.shape,
                load_pps,
                capacity_pps,
                received=received,
                queue=_queue_of(state.path, owners),
                waits_s=waits,
                noise=self.simulation.noise,
                rng=Random(f"{self.key}/hops/{len(self.steps)}"),  # noqa: S311 (reproducible, not secret)
            )
            self.steps.append((state.path, steps))
        return flow_latency(state.flow.instance, state.flow.direction, sent, pairs, mean_ns)

    def _sleeps(
        self, state: FlowState, trial: Trial, load_pps: float, probes: int
    ) -> list[tuple[int, tuple[float, ...]]]:
        """Time that each probe waits for sleeping data CPUs, with the index of the hop that receives it."""
        power = self.simulation.power
        if not power.sleep_us:
            return []
        rng = Random(f"{self.key}/sleep/{trial.model_dump_json()}")  # noqa: S311 (reproducible, not secret)
        rates = self._truth.rates(trial.frame, self.maximum_pps(trial.frame))
        owners = {
            index: hop.owner
            for index, hop in enumerate(state.path.hops)
            if hop.counter == "rx" and hop.owner != GENERATOR
        }
        work = {owner: self._data_cpus(owner, rates[owner], load_pps) for owner in owners.values()}
        uses = {owner: cpu_use(power, each.utilization, each.packet_s, rng) for owner, each in work.items()}
        return [(index, tuple(uses[owner].wait_s(rng) for _ in range(probes))) for index, owner in owners.items()]

    def _data_cpus(self, owner: str, rate_pps: float, load_pps: float) -> DataCpus:
        count = len(self.plan.cores.cpus(owner))
        return DataCpus(count, min(1.0, load_pps / rate_pps), count / rate_pps)


def _queue_of(path: Path, owners: frozenset[str]) -> int:
    """Index of the hop where packets wait for the owners of a limit."""
    return next((i for i, hop in enumerate(path.hops) if hop.owner in owners and hop.counter == "rx"), 1)


@lru_cache(maxsize=4)
def _arrivals_s(probes: int, rate_pps: float) -> tuple[float, ...]:
    """When probes arrive; the same for the flows of a trial, and mostly of all trials."""
    return tuple((number + 0.5) / rate_pps for number in range(probes))


def _count_of(line: FlowLosses) -> FlowCount:
    return FlowCount(instance=line.instance, direction=line.direction, sent=line.sent, received=line.received)


def _of_timeline(line: FlowTimeline) -> FlowCount:
    return FlowCount(instance=line.instance, direction=line.direction, sent=sum(line.sent), received=sum(line.received))
