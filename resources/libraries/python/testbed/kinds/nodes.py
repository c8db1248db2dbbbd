"""The testbed that sends real packets: this machine alone, or the nodes of a lab over SSH; the parts of its cells."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.errors import ConfigError, ConnectionFailed, CsitError, PlanError, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import HostState, Sample
from resources.libraries.python.model.measurements.features import HOST, VSWITCH, FeatureSeries
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import capture_content
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.edges import service_cable
from resources.libraries.python.planning.physical_ports import conflicts
from resources.libraries.python.planning.placement.cores import Layouts
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.bundle import bundled
from resources.libraries.python.testbed.agent.calls import (
    CABLES,
    COSTS,
    FEATURES,
    FUNCTIONS,
    GENERATOR,
    HOPS,
    SAMPLER,
    STACKS,
    SWITCH,
    TRACER,
    Call,
    CellRequest,
    NodeInspection,
    NodeRequest,
    P,
    RemoteRole,
    Role,
)
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.deployment.parts import Host, Parts, Testbed
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.checks.processors import data_cpus, observe
from resources.libraries.python.testbed.node.energy import NodeMeters, is_remote, read_meter
from resources.libraries.python.testbed.node.reservation import ReservableNode, reservable_generator
from resources.libraries.python.testbed.remote.node import RemoteOrchestrator, TestbedNode
from resources.libraries.python.testbed.remote.proxies import Merge, combined
from resources.libraries.python.testbed.roles.part import GeneratorApi, TrafficGenerator
from resources.libraries.python.testbed.roles.service import Orchestrator, RealTime
from resources.libraries.python.testbed.roles.watching import Readings

if TYPE_CHECKING:  # it imports all drivers
    from resources.libraries.python.testbed.agent.service import AgentService

_KEPT_OF_CONTROLLER = ("robotframework", "MLRsearch")
"""Versions of what runs on the controller and decides about results."""
_log = logging.getLogger(__name__)
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


class LocalNode(TestbedNode):
    """This machine, by direct calls of the service that agents have: no process, no thread, no JSON."""

    def __init__(self, topology: Topology, service: "AgentService") -> None:
        super().__init__(next(iter(topology.duts)))
        self._request = NodeRequest(topology, None)
        self._service = service

    def begin(self, call: Call[A, R], asked: A) -> Future[R]:
        done = Future[R]()
        done.set_result(cast(R, self._service.do(call, asked)))
        return done

    def role(self, remote: RemoteRole[P], more_s: float = 0.0) -> P:
        del more_s
        return cast(P, self._service.deployed.part(remote.role))

    def orchestrator(self, asked: Specifications) -> Orchestrator:
        return self._service.machine.orchestrator(asked)

    def look(self) -> NodeInspection:
        return self.call(calls.LOOK, self._request)

    def open(self) -> tuple[str, ...]:
        return self.call(calls.OPEN, self._request)

    def close(self) -> None:
        self._service.close()


def parts_on_nodes(
    plan: Plan,
    nodes: Mapping[str, TestbedNode],
    roles: Mapping[str, Collection[Role]],
    duts: Collection[str],
    over_api: TrafficGenerator | None = None,
) -> Parts:
    """Combine the roles of all nodes.

    `duts`: Names of the nodes that are systems under test, in the order of the service.
    `over_api`: The generator that the controller drives; None where one of the nodes has it.

    Raises:
        PlanError: No node has the vSwitch, the NFs or the generator.
    """

    def of_all(remote: RemoteRole[P]) -> P:
        return _as_one(remote, [nodes[name].role(remote) for name, has in roles.items() if remote.role in has], {})

    def of_duts(remote: RemoteRole[P], merge: Mapping[str, Merge]) -> P | None:
        found = [nodes[name].role(remote) for name in duts if remote.role in roles[name]]
        return _as_one(remote, found, merge) if found else None

    needed = {Role.SWITCH, Role.FUNCTIONS, *([Role.GENERATOR] if over_api is None else [])}
    if missing := needed - {role for has in roles.values() for role in has}:
        raise PlanError(f"{plan.suite_id} has no {', '.join(sorted(missing))} on the nodes {', '.join(nodes)}")
    if (generator := over_api) is None:
        generator = next(nodes[name].role(GENERATOR) for name, has in roles.items() if Role.GENERATOR in has)
    return Parts(
        cables=(of_all(CABLES),),
        switch=of_all(SWITCH),
        functions=of_all(FUNCTIONS),
        generator=generator,
        sampler=of_duts(SAMPLER, {"read": _sample, "state": _state}),
        features=of_duts(FEATURES, {"stop": _series, "cpu_s": _sum}),
        costs=of_duts(COSTS, {}),
        tracer=of_duts(TRACER, {"cpu_s": _sum}),
        stacks=of_duts(STACKS, {}),
        hops=of_duts(HOPS, {}),
    )


def _as_one(remote: RemoteRole[P], found: Sequence[P], merge: Mapping[str, Merge]) -> P:
    return found[0] if len(found) == 1 else combined(remote, found, merge)


def _sample(samples: Sequence[Sample]) -> Sample:
    """Data threads of all nodes, and CPUs of the first, whose numbers they have."""
    available = [sample.available_bytes for sample in samples if sample.available_bytes is not None]
    return Sample(
        threads={name: time for sample in samples for name, time in sample.threads.items()},
        tasks={owner: tasks for sample in samples for owner, tasks in sample.tasks.items()},
        cpus=samples[0].cpus,
        backlog_dropped=sum(sample.backlog_dropped for sample in samples),
        squeezed=sum(sample.squeezed for sample in samples),
        memory_bytes={owner: used for sample in samples for owner, used in sample.memory_bytes.items()},
        available_bytes=min(available, default=None),
    )


def _state(states: Sequence[HostState]) -> HostState:
    """What the first node counts, whose CPU numbers and sensors these are, and the counters of all ports."""
    counts = {name: count for state in reversed(states) for name, count in state.counts.items()}
    return HostState(counts, states[0].levels)


def _series(rows: Sequence[tuple[FeatureSeries, ...]]) -> tuple[FeatureSeries, ...]:
    """All series of the first node; of the others those of NFs, as the machine and the vSwitch are the first one's."""
    others = (one for row in rows[1:] for one in row if one.owner not in (HOST, VSWITCH))
    return (*rows[0], *others)


def _sum(times_s: Sequence[float | None]) -> float | None:
    known = [value for value in times_s if value is not None]
    return sum(known) if known else None


class NodesTestbed(Testbed):
    """A testbed of nodes that send real packets.

    `nodes`: Its nodes; one that has all of a local testbed has the name of the DUT.
    `api`: The generator, where this process drives it; None where one of the nodes does.
    """

    def __init__(self, topology: Topology, nodes: Sequence[TestbedNode], api: GeneratorApi | None = None) -> None:
        driver = topology.tg.generator.driver
        for each in (driver_registry.generators()[driver], driver_registry.vswitches()[topology.dut.vswitch]):
            if each.factory is None:
                raise ConfigError(f"nodes: the {topology.world} world sends real packets, {each.name} does not")
        self._topology = topology
        # The generator's node first: what is closed last has been opened first.
        self._nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.name in topology.duts)}
        self._api = api
        self._inspected: dict[str, NodeInspection] = {}
        self._is_open = False
        self._held = ExitStack()
        self.drivers: Mapping[str, str] = {
            "generator": driver,
            "vswitch": topology.dut.vswitch,
            "containers": ", ".join(topology.dut.containers),
            **({"vms": topology.dut.vms} if topology.dut.vms else {}),
        }

    @property
    def layout(self) -> Layouts:
        layouts = {name: found.layout for name, found in self.look().items()}
        return layouts if len(layouts) > 1 else next(iter(layouts.values()))

    def look(self) -> Mapping[str, NodeInspection]:
        """Inspect every node once; this connects to all of them.

        Raises:
            ConnectionFailed: Nodes cannot be reached, a sentence for each.
        """
        if not self._inspected:
            self._inspected = self._side_by_side(lambda node: node.look())
        return self._inspected

    def problems(self) -> tuple[PreflightProblem, ...]:
        """Return what nodes lack, where the file is wrong about them, or why they cannot be reached.

        A generator that is driven over its API is no node; `GeneratorApi.problems` has its problems.
        """
        try:
            return self._problems()
        except CsitError as error:
            return (PreflightProblem(str(error)),)

    def _problems(self) -> tuple[PreflightProblem, ...]:
        nodes = self._topology.nodes
        elsewhere = (each for name, row in self.look().items() for each in conflicts(name, nodes[name], row.numa_nodes))
        return (*self._of_all(lambda found: found.problems), *elsewhere)

    def _of_tg(self, found: object) -> str:
        """Say that something is about the generator that is driven over its API."""
        return f"{self._topology.tg_name}: {found}"

    def warnings(self) -> tuple[PreflightProblem, ...]:
        return self._of_all(lambda found: found.warnings)

    def open(self) -> tuple[str, ...]:
        """Reach all nodes, take the machines unless others reserved them; return what earlier runs had left there.

        Raises:
            ConnectionFailed: Nodes cannot be reached; a sentence for each.
            Unsupported: Nodes, or a generator that is driven over its API, lack something.
            InUse: Another run or user has a node, or another program sends by that generator.
        """
        with ExitStack() as stack:
            stack.callback(self.close)
            self._side_by_side(lambda node: node.reach())
            reservation.join(self._reservable())
            if self._api is not None:
                self._held.enter_context(reservation.sole_use(self._topology.tg_name, self._api.address))
            of_api = self._api.problems() if self._api is not None else ()
            if problems := (*self._problems(), *map(self._of_tg, of_api)):
                raise Unsupported("; ".join(map(str, problems)))
            # One after the other: two that start at the same time could each get one of two nodes.
            removed = [line for node in self._nodes.values() for line in node.open()]
            removed += map(self._of_tg, self._api.open() if self._api is not None else ())
            self._is_open = True
            stack.pop_all()
        return tuple(removed)

    def _reservable(self) -> dict[str, ReservableNode]:
        """Return nodes of a lab, and its generator where it is driven over its API, as `maintenance.machines` does."""
        found = {
            name: ReservableNode(node.connection, node.python)
            for name, node in self._nodes.items()
            if node.connection is not None
        }
        if self._api is not None:
            here = LocalConnection()
            self._held.callback(here.close)
            found |= reservable_generator(self._topology.tg_name, self._api.address, here, to_write=False)
        return found

    def environment(self) -> Environment:
        """Return the fingerprint of the (first) DUT, those of the others beside it, and the controller's versions."""
        first, *others = [*self._duts, *(name for name in self._nodes if name not in self._topology.duts)]
        pending = {name: self._nodes[name].begin(calls.FINGERPRINT, None) for name in (first, *others)}
        found = {name: each.result() for name, each in pending.items()}
        if not others and self._topology.world is not World.LAB:
            return found[first]
        here = fingerprint()
        kept = {name: here.versions[name] for name in _KEPT_OF_CONTROLLER if name in here.versions}
        code = {name: getattr(here, name) for name in ("git_revision", "git_dirty", "program_version")}
        return found[first].model_copy(
            update={
                "versions": {**kept, **found[first].versions},
                "nodes": {name: found[name].model_copy(update=code) for name in others},
                **code,
            }
        )

    def noise(self, duration_s: float) -> tuple[CpuNoise, ...]:
        """Observe the CPUs of all nodes; those of the (first) DUT first."""

        def of_node(node: TestbedNode) -> tuple[CpuNoise, ...]:
            cpus = data_cpus(self.look()[node.name].layout, self._topology.nodes[node.name])
            machine = None if node.name == self._duts[0] else node.name
            return observe(node.connection, cpus, duration_s, python=node.python, machine=machine)

        found = self._side_by_side(of_node)
        first = self._duts[0]
        return (*found.pop(first), *(row for rows in found.values() for row in rows))

    def unsampled(self) -> tuple[PreflightProblem, ...]:
        found = self.look()
        return tuple(self._of(name, why) for name in self._duts if (why := found[name].unsampled) is not None)

    def meters(self) -> NodeMeters:
        def of_node(name: str, duration_s: float, ready: Callable[[], None]) -> Readings:
            meter, node = self._topology.nodes[name].energy, self._nodes.get(name)
            way, python = (node.connection, node.python) if node is not None else (None, "")
            return read_meter(name, meter, duration_s, way, python=python, ready=ready)

        # Of a generator without access a BMC is asked, or nothing is.
        remote = [self._topology.tg_name] if self._api is not None and is_remote(self._topology.tg.energy) else []
        return NodeMeters({name: partial(of_node, name) for name in (*self._nodes, *remote)})

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        """Return drivers for a cell, each on its node.

        Raises:
            ConfigError: The capture whose packets are the load has changed.
            Unsupported: A peer is asked for in place of a generator that is driven over its API.
            CsitError: A node was lost and does not come back.
        """
        if self._api is not None and asked.generator is not None:
            raise Unsupported(f"{self._topology.tg_name} is driven over its API: no {asked.generator} can run there")
        if asked.generator is None and self.way is not None:
            asked = asked.model_copy(update={"generator": self.way})
        self.recover()
        content = None if asked.frame.capture is None else capture_content(asked.frame.capture)
        sender = self._topology.tg_name if self._topology.tg_name in self._nodes else self._duts[0]
        pending = {
            name: node.begin(calls.PREPARE, CellRequest(plan, asked, content if name == sender else None))
            for name, node in self._nodes.items()
        }
        prepared = {name: each.result() for name, each in pending.items()}
        over_api = self._api.generator(plan) if self._api is not None else None
        return parts_on_nodes(plan, self._nodes, prepared, self._duts, over_api)

    def loop_back(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        """Return generator and links; vSwitch and NFs of the plan's drivers are not used.

        Raises:
            CsitError: A node was lost and does not come back.
        """
        parts = self.parts(plan, asked)
        return Parts(cables=parts.cables, generator=parts.generator)

    def host(self, asked: Specifications, folder: Path) -> Host:
        """Return instances and load on this machine, or instances on the (first) DUT and the load on the TG.

        Raises:
            ConfigError: Scripts, or files beside them, cannot be brought to nodes.
            Unsupported: Instances cannot be limited here.
        """
        del folder  # the specifications have theirs
        serving = self._nodes[self._duts[0]]
        if (alone := serving.orchestrator(asked)) is not None:
            return Host(alone, RealTime())
        if self._api is not None:
            tg = self._topology.tg_name
            raise Unsupported(f"{tg} is driven over its API: load scripts of services need a TG that is reached by SSH")
        loading = self._nodes[self._topology.tg_name]

        def nodes() -> tuple[TestbedNode, TestbedNode]:
            self.recover()
            return loading, serving

        near, far = cable = service_cable(self._topology)
        ports = [f"{node.name}.{port.nic.port}" for node, port in ((loading, near), (serving, far)) if port.nic]
        return Host(RemoteOrchestrator(bundled(asked), cable, nodes, " - ".join(ports)), RealTime())

    def recover(self) -> None:
        """Where a node was lost: wait for it, start another agent there, and let it remove what the first one left.

        Raises:
            InUse: Another run has it by now.
            CsitError: A node does not come back, or cannot be used any more.
        """
        for node in self._nodes.values():
            if lost := node.lost:
                removed = node.recover()
                _log.warning("%s; it is back%s", lost, "".join(f"; {line}" for line in removed))

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        return self._asked(lambda node: node.call(calls.LEFTOVERS, plan))

    def clean(self) -> tuple[str, ...]:
        return self._asked(lambda node: node.call(calls.CLEAN, None))

    def close(self) -> None:
        """Give the nodes back, in the reverse order of opening. One that is lost cleans up by itself."""
        self._is_open = False
        self._inspected = {}
        nodes = tuple(reversed(self._nodes.values()))
        take_all((*(node.close for node in nodes), self._held.close, *(node.disconnect for node in nodes)))

    @property
    def _duts(self) -> tuple[str, ...]:
        return tuple(name for name in self._topology.duts if name in self._nodes)

    def _asked(self, ask: Callable[[TestbedNode], Iterable[str]]) -> tuple[str, ...]:
        if not self._is_open:
            return ()
        return tuple(take_all(partial(_named, node, ask) for node in self._nodes.values()))

    def _of_all(self, which: Callable[[NodeInspection], Iterable[PreflightProblem]]) -> tuple[PreflightProblem, ...]:
        return tuple(self._of(name, each) for name, row in self.look().items() for each in which(row))

    def _of(self, name: str, found: PreflightProblem) -> PreflightProblem:
        return replace(found, what=f"{self._nodes[name].prefix}{found.what}")

    def _side_by_side(self, ask: Callable[[TestbedNode], T]) -> dict[str, T]:
        """Ask all nodes at the same time; a node that cannot be reached takes its time to say so."""
        if len(self._nodes) == 1:  # this machine, whose drivers are used from the main thread
            return {name: ask(node) for name, node in self._nodes.items()}
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            futures = {name: pool.submit(ask, node) for name, node in self._nodes.items()}
        failures = [error for future in futures.values() if (error := future.exception()) is not None]
        if len(failures) > 1 and all(isinstance(error, CsitError) for error in failures):
            kind = Unsupported if all(isinstance(error, Unsupported) for error in failures) else ConnectionFailed
            raise kind("; ".join(map(str, failures)))
        return {name: future.result() for name, future in futures.items()}


def _named(node: TestbedNode, ask: Callable[[TestbedNode], Iterable[str]]) -> list[str]:
    return [f"{node.prefix}{line}" for line in ask(node)]
