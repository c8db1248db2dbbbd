"""Simulated traffic generator, vSwitch and network functions, and a generator whose ports are joined to each other."""

from collections.abc import Iterable, Mapping

from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency
from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.measurements.counters import ConnectionTable, Deletion, InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.trial import (
    FlowCount,
    FlowGaps,
    FlowLatency,
    HighestLoads,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.testbed.roles.part import (
    ForwardingPart,
    NetworkFunctions,
    ReportingPart,
    TrafficGenerator,
    VSwitch,
)


class _SimPart(ReportingPart):
    """A part of a simulated system: it runs, or not.

    `names`: the owners of the plan that it consists of.
    """

    def __init__(self, system: SimulatedSystem, names: Iterable[str]) -> None:
        self._system = system
        self._names = frozenset(names)

    def start(self) -> None:
        self._system.running.update(self._names)

    def problems(self) -> tuple[str, ...]:
        return tuple(f"simulated {name} does not run" for name in sorted(self._names - self._system.running))

    def stop(self) -> None:
        self._system.running.difference_update(self._names)


class SimGenerator(_SimPart, TrafficGenerator):
    """The generator of a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        super().__init__(system, [GENERATOR])

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial in virtual time.

        Raises:
            NotReady: The generator has not been started.
        """
        if GENERATOR not in self._system.running:
            raise NotReady("the simulated generator", 0.0, "not started")
        return self._system.run(trial)

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Line rate of both directions together."""
        line_pps = self._system.maximum_pps(trial.frame)
        return HighestLoads(offered_pps=line_pps, search_pps=line_pps)


class _SimForwarding(_SimPart, ForwardingPart):
    """A part that forwards, and can be hit by events."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """As planned: simulated threads stay where they are put; those that a fault moves are on CPU 0."""
        plan, moved = self._system.plan, self._system.moved()
        cpus = {owner: plan.cores.cpus(owner) for owner in self._names}
        return {
            port.interface: frozenset({0 if port.interface in moved else cpus[port.owner][port.data_thread]})
            for port in plan.ports()
            if port.owner in self._names
        }

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._system.counters(self._names)

    def disturb(self, coming: Disturbance) -> None:
        self._system.events.disturb(coming)

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        """When it took place, in virtual time."""
        return self._system.events.disturbed()


class SimSwitch(_SimForwarding, VSwitch):
    """The vSwitch of a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        super().__init__(system, [VSWITCH])
        self._received = 0

    def begin_accounts(self) -> tuple[str, ...]:
        self._received = self._all_received()
        return (VSWITCH,) if self._system.simulation.node_costs else ()

    def accounts(self) -> tuple[NodeCost, ...]:
        """Return the planted costs of its nodes, all in one thread."""
        packets = self._all_received() - self._received
        return tuple(
            NodeCost(
                part=VSWITCH,
                thread="sim",
                node=node,
                packets=packets,
                calls=round(packets / work.packets_per_call),
                cost=work.clocks,
            )
            for node, work in self._system.simulation.node_costs.items()
            if packets
        )

    def _all_received(self) -> int:
        return sum(row.rx_packets for row in self.counters().values())

    def facts(self) -> Mapping[str, str]:
        power = self._system.simulation.power
        if not power.platform_w:
            return {}
        sleeping = f"data threads, sleeping up to {power.sleep_us:g} µs when nothing comes"
        return {"scheduling": sleeping if power.sleep_us else "data threads that never sleep"}


class SimFunctions(_SimForwarding, NetworkFunctions):
    """The NFs of a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        super().__init__(system, (each.name for each in system.plan.all_nfs))

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        return self._system.tables.states()

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        return self._system.tables.hold(timeout_s)

    def delete_connections(self) -> Mapping[str, Deletion]:
        return self._system.tables.delete()


_SPREAD = 1.5
"""Of the latency of a loop-back: 99.9th percentile to shortest."""


class SimulatedLoop(TrafficGenerator):
    """A simulated generator on a plan of `planning.loop_back`."""

    def __init__(self, plan: Plan, simulation: Simulation, clock: VirtualClock) -> None:
        self._plan = plan
        self._simulation = simulation
        self._clock = clock
        self._runs = False

    def start(self) -> None:
        self._runs = True

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial in virtual time.

        Raises:
            NotReady: The generator has not been started.
        """
        if not self._runs:
            raise NotReady("the simulated generator", 0.0, "not started")
        started_at, flows, own = self._clock.timestamp(), self._plan.flows, self._simulation.generator
        most_pps = self._most_pps(trial.frame)
        load_pps = min(trial.load_pps, most_pps)
        sent = round(load_pps / len(flows) * trial.duration_s)
        received_pps = min(load_pps, own.loss_free_pps or load_pps)
        received = min(sent, round(received_pps / len(flows) * trial.duration_s))
        self._clock.advance(trial.duration_s + self._simulation.overhead_s)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=trial.duration_s,
            total_duration_s=trial.duration_s + self._simulation.overhead_s,
            flows=tuple(
                FlowCount(instance=flow.instance, direction=flow.direction, sent=sent, received=received)
                for flow in flows
            ),
            latency=self._latency(trial) if trial.probe_pps > 0 else (),
            gaps=self._gaps(received, load_pps) if trial.measure_gaps and load_pps else (),
            generator_limited=trial.load_pps > most_pps * (1 + 1e-9),
        )

    def _latency(self, trial: Trial) -> tuple[FlowLatency, ...]:
        floor_ns, probes = round(self._simulation.generator.floor_us * 1e3), round(trial.probe_pps * trial.duration_s)
        p50_ns, p999_ns = round(floor_ns * (1 + _SPREAD) / 2), round(floor_ns * _SPREAD)
        values = LatencyReport(floor_ns, float(p50_ns), p50_ns, p999_ns, p999_ns, p999_ns, p999_ns)
        return tuple(
            flow_latency(flow.instance, flow.direction, sent=probes, received=probes, values=values)
            for flow in self._plan.flows
        )

    def _gaps(self, packets: int, load_pps: float) -> tuple[FlowGaps, ...]:
        even_ns = round(len(self._plan.flows) / load_pps * 1e9)
        pause_ns = max(even_ns, round(self._simulation.generator.pause_us * 1e3))
        return tuple(
            FlowGaps(
                instance=flow.instance,
                direction=flow.direction,
                packets=packets,
                p50_ns=even_ns,
                p99_ns=even_ns,
                p999_ns=pause_ns,
            )
            for flow in self._plan.flows
        )

    def _most_pps(self, frame: Frame) -> float:
        line_pps = len(self._plan.flows) * self._simulation.line_pps(frame)
        return min(line_pps, self._simulation.generator_max_pps or float("inf"))

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Line rate of all ports that send, or what the generator manages."""
        most_pps = self._most_pps(trial.frame)
        return HighestLoads(offered_pps=most_pps, search_pps=most_pps)

    def problems(self) -> tuple[str, ...]:
        return () if self._runs else ("the simulated generator does not run",)

    def stop(self) -> None:
        self._runs = False
