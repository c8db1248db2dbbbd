"""The lab world: a traffic generator and one or two systems under test, each a machine of its own, over SSH."""

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, ConnectionFailed, CsitError, InUse, Unsupported
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.numa import conflicts
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.studies.sizing.model.load import Specifications
from resources.libraries.python.studies.sizing.planning.service_cable import service_cable
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import CellRequest, NodeInspection
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.deployment.parts import Host, Parts
from resources.libraries.python.testbed.node.lease import Lease
from resources.libraries.python.testbed.remote.link import AgentLink
from resources.libraries.python.testbed.remote.node import Connect, LabNode
from resources.libraries.python.testbed.remote.parts_on_nodes import parts_on_nodes
from resources.libraries.python.testbed.remote.service import RemoteOrchestrator
from resources.libraries.python.testbed.services.bundle import bring
from resources.libraries.python.testbed.worlds.real_time import RealTime

_KEPT_OF_CONTROLLER = ("robotframework", "MLRsearch")
"""What decides about results and runs here."""
_REASON = "density suites"
_log = logging.getLogger(__name__)
T = TypeVar("T")


class LabTestbed:
    """Fulfils `parts.Testbed` on the nodes of a lab.

    Args:
        topology: The testbed.
        connect: How nodes are reached.
        runtimes: What agents run on.
    """

    def __init__(self, topology: Topology, connect: Connect, runtimes: Runtimes | None = None) -> None:
        driver = topology.tg.generator.driver
        for each in (driver_registry.generators()[driver], driver_registry.vswitches()[topology.dut.vswitch]):
            if each.factory is None:
                raise ConfigError(f"nodes: the lab world sends real packets, {each.name} does not")
        self._topology = topology
        # The generator's node first: what is closed last has been opened first.
        runtimes = runtimes or Runtimes()
        names = sorted(topology.nodes, key=lambda name: name in topology.duts)
        self._nodes = {name: LabNode(topology, name, connect, runtimes) for name in names}
        self._found: dict[str, NodeInspection] = {}
        self._is_open = False
        self._reserved = ExitStack()
        self._lease: Lease | None = None
        self.drivers: Mapping[str, str] = {
            "generator": driver,
            "vswitch": topology.dut.vswitch,
            "containers": ", ".join(topology.dut.containers),
            **({"vms": topology.dut.vms} if topology.dut.vms else {}),
        }
        self.simulation: Mapping[str, Any] | None = None

    @property
    def layout(self) -> Mapping[str, CpuLayout]:
        """Logical CPUs of every node."""
        return {name: found.layout for name, found in self.look().items()}

    def look(self) -> Mapping[str, NodeInspection]:
        """Every node as it was when it was first looked at; this connects to all of them.

        Raises:
            ConnectionFailed: Nodes cannot be reached, a sentence for each.
        """
        if not self._found:
            self._found = self._side_by_side(lambda node: node.look())
        return self._found

    def problems(self) -> tuple[str, ...]:
        """What nodes lack, where the file is wrong about them, or why they cannot be reached."""
        try:
            return (*self._of_all(lambda found: found.problems), *self._on_other_numa_nodes())
        except CsitError as error:
            return (str(error),)

    def warnings(self) -> tuple[str, ...]:
        """What nodes lack for some cells only."""
        return self._of_all(lambda found: found.warnings)

    def open(self) -> tuple[str, ...]:
        """Connect to all nodes, start an agent on each, take the machines; say what earlier runs had left there.

        Raises:
            ConnectionFailed: Nodes cannot be reached; a sentence for each.
            Unsupported: Nodes lack something.
            InUse: Somebody else has a node.
        """
        with ExitStack() as stack:
            stack.callback(self.close)
            self._side_by_side(lambda node: node.connection.run(["true"]))
            self._lease = self._reserved.enter_context(self._reservation())
            if problems := (*self._of_all(lambda found: found.problems), *self._on_other_numa_nodes()):
                raise Unsupported("; ".join(problems))
            # One after the other: two that start at the same time could each get one of two nodes.
            removed = [line for node in self._nodes.values() for line in node.open()]
            self._is_open = True
            stack.pop_all()
        return tuple(removed)

    def environment(self) -> Environment:
        """That of the (first) DUT, with the others beside it, and with this machine's part in the results."""
        first, *others = [*self._topology.duts, *(name for name in self._nodes if name not in self._topology.duts)]
        pending = {name: self._nodes[name].link.begin(calls.FINGERPRINT, None) for name in (first, *others)}
        found = {name: each.result() for name, each in pending.items()}
        here = fingerprint()
        kept = {name: here.versions[name] for name in _KEPT_OF_CONTROLLER if name in here.versions}
        code = {"git_revision": here.git_revision, "git_dirty": here.git_dirty}
        return found[first].model_copy(
            update={
                "versions": {**kept, **found[first].versions},
                "nodes": {name: found[name].model_copy(update=code) for name in others},
                **code,
            }
        )

    def parts(self, plan: Plan, asked: Asked) -> Parts:
        """Drivers for a cell, each on its node.

        Raises:
            CsitError: A node was lost and does not come back.
        """
        self.recover()
        links = {name: node.link for name, node in self._nodes.items()}
        pending = {name: link.begin(calls.PREPARE, CellRequest(plan, asked)) for name, link in links.items()}
        prepared = {name: each.result() for name, each in pending.items()}

        return parts_on_nodes(plan, links, prepared, tuple(self._topology.duts))

    def host(self, asked: Specifications, folder: Path) -> Host:
        """Instances on the (first) DUT, the load from the generator's node.

        Raises:
            ConfigError: Scripts, or what lies beside them, cannot be brought to nodes.
        """
        del folder  # the specifications know theirs
        loading, serving = self._nodes[self._topology.tg_name], self._nodes[next(iter(self._topology.duts))]

        def links() -> tuple[AgentLink, AgentLink]:
            self.recover()
            return loading.link, serving.link

        near, far = cable = service_cable(self._topology)
        ports = [f"{node.name}.{port.nic.port}" for node, port in ((loading, near), (serving, far)) if port.nic]
        return Host(RemoteOrchestrator(bring(asked), cable, links, " - ".join(ports)), RealTime())

    def recover(self) -> None:
        """Where a node was lost: wait for it, start another agent there, and let it remove what the first one left.

        Raises:
            InUse: The testbed is no longer reserved for this run.
            CsitError: A node does not come back, or cannot be used any more.
        """
        if self._lease is not None and (why := self._lease.lost()):
            raise InUse(why)
        for node in self._nodes.values():
            if lost := node.lost:
                removed = node.recover()
                _log.warning("%s; it is back%s", lost, "".join(f"; {line}" for line in removed))

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """What is on nodes although no cell is deployed."""
        return self._said(lambda node: node.link.call(calls.LEFTOVERS, plan))

    def clean(self) -> tuple[str, ...]:
        """Remove by force what is on nodes."""
        return self._said(lambda node: node.link.call(calls.CLEAN, None))

    def close(self) -> None:
        """Give the nodes back, in the reverse order of opening. One that is lost cleans up by itself."""
        self._is_open = False
        self._found = {}
        with ExitStack() as stack:
            for node in self._nodes.values():
                stack.callback(node.let_go)
            stack.callback(self._reserved.close)
            for node in self._nodes.values():
                stack.callback(node.close)

    def _reservation(self) -> Lease:
        connections = {name: node.connection for name, node in self._nodes.items()}
        pythons = {name: node.python for name, node in self._nodes.items()}
        return Lease(connections, self._topology.metadata.name, _REASON, pythons=pythons)

    def _said(self, ask: Callable[[LabNode], Iterable[str]]) -> tuple[str, ...]:
        if not self._is_open:
            return ()
        return tuple(f"{name}: {line}" for name, node in self._nodes.items() for line in ask(node))

    def _of_all(self, which: Callable[[NodeInspection], Iterable[str]]) -> tuple[str, ...]:
        return tuple(f"{name}: {text}" for name, found in self.look().items() for text in which(found))

    def _on_other_numa_nodes(self) -> tuple[str, ...]:
        """Ports that are not on the NUMA node that the file says."""
        nodes = self._topology.nodes
        return tuple(
            text for name, found in self.look().items() for text in conflicts(name, nodes[name], found.numa_nodes)
        )

    def _side_by_side(self, ask: Callable[[LabNode], T]) -> dict[str, T]:
        """Ask all nodes at the same time; a node that cannot be reached takes its time to say so."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            futures = {name: pool.submit(ask, node) for name, node in self._nodes.items()}
        failures = [error for future in futures.values() if (error := future.exception()) is not None]
        if len(failures) > 1 and all(isinstance(error, CsitError) for error in failures):
            kind = Unsupported if all(isinstance(error, Unsupported) for error in failures) else ConnectionFailed
            raise kind("; ".join(map(str, failures)))
        return {name: future.result() for name, future in futures.items()}
