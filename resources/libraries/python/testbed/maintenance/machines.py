"""The machines of a testbed and the connections to them, for work without drivers."""

import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import InUse
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.facts import Leftovers
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.reservation import ReservableNode, reservable_generator
from resources.libraries.python.testbed.node.scripts import leftovers
from resources.libraries.python.testbed.roles.part import GeneratorApi

_HERE = "this machine"
"""No name of a node: those have no spaces."""


class Connections:
    """The connections to the nodes of a testbed; a context manager. Threads may share it."""

    def __init__(self, accesses: Mapping[str, Access | None]) -> None:
        """Prepare; a node is connected to when something is first done there.

        `accesses`: How each node is reached, by its name; None for this machine.
        """
        self._accesses = dict(accesses)
        self._made: dict[str, Connection] = {}
        self._making = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, node: str) -> Connection:
        """The connection to a node, always the same one.

        Raises:
            KeyError: There is no such node.
        """
        with self._making:
            if node not in self._made:
                self._made[node] = _connection(node, self._accesses[node])
            return self._made[node]

    def close(self) -> None:
        """Close all of them. Safe to call more than once."""
        with self._making:
            for connection in self._made.values():
                connection.close()


def _connection(node: str, access: Access | None) -> Connection:
    if access is None:
        return LocalConnection(node)
    # The cleanup of a node runs there, where there is no SSH library.
    from resources.libraries.python.testbed.connection.ssh import SshConnection  # noqa: PLC0415

    return SshConnection(node, access)


@dataclass(frozen=True, slots=True)
class MaintainedMachine:
    """A machine to maintain: one node of a lab, or the one that has all of a local testbed."""

    name: str
    connection: Connection
    nodes: tuple[TgNode | DutNode, ...]
    """Its nodes in the topology."""
    python: str

    @property
    def reservable(self) -> ReservableNode:
        """The machine, to be reserved."""
        return ReservableNode(self.connection, self.python)

    def leftovers(self, *, root: bool = True) -> Leftovers:
        """What earlier runs have left there, and whether one is alive.

        `root`: Whether to ask with root's rights, where it is reached by SSH.

        Raises:
            CsitError: It cannot be asked.
        """
        root = root and self.nodes[0].access is not None
        return Leftovers.model_validate(ask(self.connection, leftovers, {}, python=self.python, root=root))


class Machines:
    """Ways to all machines of a testbed; a context manager. A simulated testbed has none."""

    def __init__(self, topology: Topology) -> None:
        """Prepare; a machine is connected to when something is first asked of it."""
        self.topology = topology
        of: dict[str, tuple[TgNode | DutNode, ...]] = {}
        match topology.world:
            case World.LAB:
                of = {name: (node,) for name, node in topology.machines.items()}
            case World.LOCAL:
                of = {next(iter(topology.duts)): tuple(topology.nodes.values())}
        accesses = {name: nodes[0].access for name, nodes in of.items()}
        make = driver_registry.generators()[topology.tg.generator.driver].api
        self._api: GeneratorApi | None = None
        if topology.world is World.LAB and make is not None:
            self._api = driver_registry.load(make)(topology.tg)
        self._connections = Connections({**accesses, _HERE: None})
        self.places = {
            name: MaintainedMachine(
                name, self._connections.of(name), nodes, access.python if access else sys.executable
            )
            for (name, nodes), access in zip(of.items(), accesses.values(), strict=True)
        }

    @cached_property
    def reservable(self) -> dict[str, ReservableNode]:
        """All machines, and a generator that is driven over its API, to be reserved or released."""
        return self._with_generator(to_write=True)

    def refuse_in_use(self) -> None:
        """Refuse to reserve machines that a run is using.

        Raises:
            InUse: With its process.
        """
        for name, place in self.places.items():
            if (left := place.leftovers()).in_use:
                raise InUse(f"{name}: a run is alive there, {left.who}")

    @property
    def reserved(self) -> dict[str, ReservableNode]:
        """The same, to be asked only, which needs no root."""
        return self._with_generator(to_write=False)

    def _with_generator(self, *, to_write: bool) -> dict[str, ReservableNode]:
        found = {name: place.reservable for name, place in self.places.items()}
        if self._api is not None:
            here = self._connections.of(_HERE)
            found |= reservable_generator(self.topology.tg_name, self._api.address, here, to_write=to_write)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()
