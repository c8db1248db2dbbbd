"""A testbed: nodes joined by links, read from topologies/*.yaml.

Cables that carry a service make paths from the generator and back: of a 2-node testbed two cables, TG to DUT and DUT to
TG; of a 3-node testbed three, TG to DUT1, DUT1 to DUT2, DUT2 to TG. Forward traffic leaves the generator at the first
end of a way and comes back at its last end.

Nodes have ports of several NIC models, and a figure is about one of them: only cables whose ends at DUTs are of that
model are looked at. They are taken in the order in which the file has the ports of the node where they begin.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from resources.libraries.python import driver_registry
from resources.libraries.python.model.base import Frozen, Inconsistency, Location, digest_of_model
from resources.libraries.python.model.testbed.attachment import attachment_of, nic_kind
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, Name, TgNode


@dataclass(frozen=True, slots=True)
class Socket:
    """A port of a node, as the file has it."""

    node: str
    port: str
    link: str
    model: str | None
    at_dut: bool


@dataclass(frozen=True, slots=True)
class Cable:
    """A link in the direction of forward traffic."""

    link: str
    a: Socket
    b: Socket

    @property
    def models(self) -> frozenset[str]:
        """NIC models of its ends at DUTs; empty where the file names none."""
        return frozenset(end.model for end in (self.a, self.b) if end.at_dut and end.model is not None)


Way = tuple[Cable, ...]


class World(StrEnum):
    """Kind of testbed."""

    LOCAL = "local"
    SIM = "sim"
    LAB = "lab"

    def is_one_of(self, worlds: str) -> bool:
        """Whether it is this world, `any`, or, of those that are not simulated, `real`."""
        return worlds in {"any", self, "sim" if self is World.SIM else "real"}

    def refusal(self, worlds: str) -> str:
        """Say what a test of other kinds needs: `needs real hosts, and the testbed is simulated`."""
        words = {"local": "a testbed on one machine", "sim": "a simulated testbed", "lab": "a testbed of several hosts"}
        here = {World.LOCAL: "one machine", World.SIM: "simulated", World.LAB: "of several hosts"}
        return f"needs {words.get(worlds, 'real hosts')}, and the testbed is {here[self]}"


class Metadata(Frozen):
    """About the file."""

    version: Literal[1]
    name: Name
    description: str = ""


class Topology(Frozen):
    """One testbed."""

    metadata: Metadata
    world: World
    discriminator: Literal["link", "vlan", "mac"] = "link"
    """How service instances are distinguished between TG and DUT: a link (or VF) each, a VLAN each, or MACs."""
    nic: Annotated[str, Field(min_length=1)] | None = None
    """NIC model of the ports to measure on, where the nodes of a lab have several; None for that of the first cable."""
    simulation: dict[str, Any] | None = None
    """Parameters of the simulated system, for the world `sim` only."""
    nodes: dict[Name, Annotated[TgNode | DutNode, Field(discriminator="type")]]
    _unused_loop_ports: Mapping[str, Interface] = PrivateAttr(default_factory=dict)
    _address_problems: tuple[Inconsistency, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        kinds = Counter(node.type for node in self.nodes.values())
        if kinds["TG"] != 1:
            raise Inconsistency(("nodes",), f"{kinds['TG']} nodes of type TG; one is required")
        most = 2 if self.world is World.LAB else 1
        if not 1 <= kinds["DUT"] <= most:
            needed = "one is required" if most == 1 else "one or two are required"
            raise Inconsistency(("nodes",), f"{kinds['DUT']} nodes of type DUT; {needed}")
        machines = self.machines
        for name, node in self.nodes.items():
            if name not in machines and (place := _of_a_machine(self.tg)):
                why = f"the controller drives {self.tg.generator.driver} over its API, and uses nothing of its machine"
                raise Inconsistency(("nodes", name, *place), f"not allowed: {why}")
            if name in machines and (self.world is World.LAB) != (node.access is not None):
                raise Inconsistency(
                    ("nodes", name), "access (host, user) is required in world lab, and not allowed elsewhere"
                )
        if (self.world is World.SIM) != (self.simulation is not None):
            raise Inconsistency(("simulation",), "required in world sim, and not allowed elsewhere")
        shared = self.tg.shares_machine_with
        if shared is not None and self.tg.generator.cores > 2:
            place = ("nodes", self.tg_name, "generator", "cores")
            raise Inconsistency(place, f"{self.tg.generator.cores} cores of the machine under test; at most 2")
        if shared is not None and not isinstance(self.nodes.get(shared), DutNode):
            raise Inconsistency(("nodes",), f"shares_machine_with names '{shared}', which is not a DUT node")
        return self

    @model_validator(mode="after")
    def _links_have_two_ends(self) -> Self:
        ends: dict[str, list[tuple[str, str]]] = {}
        for node_name, node in self.nodes.items():
            for port_name, interface in node.interfaces.items():
                ends.setdefault(interface.link, []).append((node_name, port_name))
        for link, ports in ends.items():
            place = ("nodes", ports[-1][0], "interfaces", ports[-1][1], "link")
            names = ", ".join(".".join(port) for port in ports)
            if len(ports) != 2:
                raise Inconsistency(
                    place, f"'{link}' has {len(ports)} end{'s'[len(ports) == 1 :]} ({names}); a link has 2"
                )
            if ports[0][0] == ports[1][0] and (self.world is not World.LAB or ports[0][0] != self.tg_name):
                raise Inconsistency(
                    place, f"'{link}' joins two ports of one node ({names}); of the TG of a lab only, it may"
                )
        return self

    @model_validator(mode="after")
    def _addresses_are_looked_at(self) -> Self:
        """Before ports that are not used are left out."""
        self._address_problems = tuple(_find_address_problems(self.nodes, one_machine=self.world is not World.LAB))
        return self

    @model_validator(mode="after")
    def _lab_is_whole(self) -> Self:
        if self.world is not World.LAB:
            if self.nic is not None:
                raise Inconsistency(("nic",), "allowed in world lab only: other worlds have no NICs to choose from")
            return self
        if self.tg.shares_machine_with is not None:
            raise Inconsistency(
                ("nodes", self.tg_name), "shares_machine_with: nodes of a lab are machines of their own"
            )
        sims = {name: node.simulated_parts for name, node in self.nodes.items()}
        for name, parts in sims.items():
            if parts:
                raise Inconsistency(("nodes", name), f"{parts[0]}: sim is allowed in world sim only")
        first = self.dut
        for name, node in self.duts.items():
            for key in ("vswitch", "containers", "containers_on_request", "container", "vms"):
                if getattr(node, key) != getattr(first, key):
                    raise Inconsistency(("nodes", name, key), "differs from the first DUT's: both run the same service")
        self._keep_used_ports()
        return self

    def _keep_used_ports(self) -> None:
        """Leave out ports of NICs that are not measured on, which may be on another NUMA node.

        The TG's ports of loop cables stay, behind those that are measured on, if the generator is qualified over them.
        """
        ways, loops, every = self._ways(), self.loops, self.tg.interfaces
        used = {(end.node, end.port) for way in ways for cable in way for end in (cable.a, cable.b)}
        for name, node in self.nodes.items():
            kept = {port: row for port, row in node.interfaces.items() if (name, port) in used}
            self.nodes[name] = node.model_copy(update={"interfaces": kept})
        for name, node in self.nodes.items():
            try:
                node.check_numa()
            except Inconsistency as error:
                raise Inconsistency(("nodes", name, *error.location), str(error)) from error
            for port, interface in node.interfaces.items():
                attachment_of(interface, node, ("nodes", name, "interfaces", port))
        self._keep_loop_ports({end.port: every[end.port] for loop in loops for end in (loop.a, loop.b)})

    def _keep_loop_ports(self, ports: Mapping[str, Interface]) -> None:
        """Keep loop cables whose two ports are of the kind of those that are measured on."""
        tg = self.tg
        kinds = {nic_kind(interface, tg) for interface in tg.interfaces.values()}
        others: set[str] = set()
        for interface in ports.values():
            kind = None
            with suppress(Inconsistency):  # nothing uses a port that cannot be driven
                kind = nic_kind(interface, tg)
            if kind is None or {kind} != kinds:
                others.add(interface.link)
        kept = {name: interface for name, interface in ports.items() if interface.link not in others}
        self.nodes[self.tg_name] = tg.model_copy(update={"interfaces": {**tg.interfaces, **kept}})
        self._unused_loop_ports = {name: each for name, each in ports.items() if each.link in others}

    def _sockets(self) -> list[Socket]:
        return [
            Socket(name, port, interface.link, interface.model, isinstance(node, DutNode))
            for name, node in self.nodes.items()
            for port, interface in node.interfaces.items()
        ]

    def _ways(self) -> tuple[Way, ...]:
        try:
            return ways(self._sockets(), self.tg_name, list(self.duts), self.nic)
        except ValueError as error:
            raise Inconsistency(("nodes",), str(error)) from error

    @property
    def ways(self) -> tuple[Way, ...]:
        """Ways of packets over the cables of a lab, from the generator and back; none in other worlds.

        With `discriminator: link` every instance has one; else all share the first.
        """
        return self._ways() if self.world is World.LAB else ()

    @property
    def loops(self) -> tuple[Cable, ...]:
        """Cables that join two ports of the TG to each other: the generator is qualified over them.

        Their ports are of the one kind of the ports that are measured on.
        """
        return loops(self._sockets(), self.tg_name)

    @property
    def unused_loop_ports(self) -> Mapping[str, Interface]:
        """Ports of the TG's other cables to itself, by name, in pairs; nothing else looks at them."""
        return self._unused_loop_ports

    @property
    def address_problems(self) -> tuple[Inconsistency, ...]:
        """Addresses of the file that cannot be right.

        Files of this project are refused for them; those of FD.io CSIT are read, as real testbeds have them.
        """
        return self._address_problems

    @property
    def machines(self) -> dict[str, TgNode | DutNode]:
        """Nodes whose processors and ports are known and planned; those of a lab are reached over SSH.

        A generator of a lab that is driven over its API is none of them: nothing but that API need be reachable.
        """
        over_api = self.world is World.LAB and driver_registry.generators()[self.tg.generator.driver].api is not None
        return {name: node for name, node in self.nodes.items() if isinstance(node, DutNode) or not over_api}

    @property
    def digest(self) -> str:
        """A run is resumed on the testbed that it was begun on."""
        return digest_of_model(self)

    @property
    def tg_name(self) -> str:
        """Name of the traffic generator's node."""
        return next(name for name, node in self.nodes.items() if isinstance(node, TgNode))

    @property
    def tg(self) -> TgNode:
        """The traffic generator's node."""
        return next(node for node in self.nodes.values() if isinstance(node, TgNode))

    @property
    def dut(self) -> DutNode:
        """The node of the system under test; the first one of a 3-node testbed."""
        return self.duts[next(iter(self.duts))]

    @property
    def duts(self) -> dict[str, DutNode]:
        """Nodes of the system under test by name, in the order of the file."""
        return {name: node for name, node in self.nodes.items() if isinstance(node, DutNode)}


def _of_a_machine(tg: TgNode) -> Location:
    """Return the first key of a generator's node that says something about a machine; empty where none does."""
    parts: list[tuple[Location, Frozen, tuple[str, ...]]] = [
        ((), tg, ("access", "cpus", "uio_driver")),
        (("generator",), tg.generator, ("cores",)),
        *(
            (("interfaces", name), port, ("pci_address", "numa_node", "driver", "uio_driver", "nic_vfs", "rx_queues"))
            for name, port in tg.interfaces.items()
        ),
    ]
    given = (
        (*place, key)
        for place, part, keys in parts
        for key in keys
        if getattr(part, key) != type(part).model_fields[key].default
    )
    return next(given, ())


def _spelt_alike(host: str) -> str:
    """A host's name or address in one of its spellings, of which IPv6 has many."""
    with suppress(ValueError):
        return str(ip_address(host))
    return host.lower().rstrip(".")


def _find_address_problems(nodes: Mapping[str, TgNode | DutNode], *, one_machine: bool) -> Iterator[Inconsistency]:
    """Yield addresses that cannot be right, with their place in the topology."""
    seen: dict[object, str] = {}

    def also(key: object, owner: str) -> str | None:
        return None if (first := seen.setdefault(key, owner)) == owner else first

    for name, node in nodes.items():
        if node.access is not None:
            access = node.access
            if other := also((_spelt_alike(access.host), access.port, access.jump), name):
                text = f"{access.host} port {access.port} is {other} too; each node of a lab is a machine of its own"
                yield Inconsistency(("nodes", name, "access", "host"), text)
        for port, interface in node.interfaces.items():
            owner, place = f"{name}.{port}", ("nodes", name, "interfaces", port)
            if (mac := interface.mac_address) is not None:
                yield from _mac_problems((*place, "mac_address"), mac, also(mac, owner))
            pci = interface.pci_address
            if pci is not None and (other := also((None if one_machine else name, pci), owner)):
                text = (
                    f"{pci} is the PCI address of {other} too; correct one of them (`lspci -D` lists those there are)"
                )
                yield Inconsistency((*place, "pci_address"), text)
            device = interface.device
            if device is not None and (other := also((name, device), owner)):
                text = f"{device} is the device of {other} too; correct one of them (`ip link` shows those there are)"
                yield Inconsistency((*place, "device"), text)


def _mac_problems(place: Location, mac: str, other: str | None) -> Iterator[Inconsistency]:
    if not mac.strip("0:"):
        yield Inconsistency(place, f"{mac} is no address of a port; leave the key out where it is not known")
    elif int(mac[:2], 16) & 1:
        yield Inconsistency(place, f"{mac} is a multicast address, which no port has; correct it (`ip link` shows it)")
    elif other is not None:
        text = f"{mac} is the MAC address of {other} too; correct one of them, or leave out the one that is not known"
        yield Inconsistency(place, text)


def ways(sockets: Sequence[Socket], tg: str, duts: Sequence[str], nic: str | None) -> tuple[Way, ...]:
    """Return all paths of a testbed, the one of instance 1 first.

    `sockets`: Ports of all nodes in the order of the file.
    `duts`: One or two nodes, in the order in which forward traffic visits them.
    `nic`: The NIC model; None for that of the first cable.

    Raises:
        ValueError: There is no way; the text names the links that there are.
    """
    ends: dict[str, list[Socket]] = {}
    for socket in sockets:
        ends.setdefault(socket.link, []).append(socket)
    whole = {link: pair for link, pair in ends.items() if len(pair) == 2 and pair[0].node != pair[1].node}
    of_model = {link: pair for link, pair in whole.items() if _matches(pair, nic)}
    if nic is None:
        of_model = _of_first_model(of_model)
    if not of_model and nic is not None:
        models = sorted({socket.model for pair in whole.values() for socket in pair if socket.at_dut and socket.model})
        raise ValueError(f"no cable ends at a NIC of model '{nic}'; there are {', '.join(models) or 'no models'}")

    def between(one: str, other: str) -> list[Cable]:
        return list(_between(sockets, of_model, one, other))

    found: list[Way]
    if len(duts) == 1:
        row = between(tg, duts[0])
        back = [Cable(cable.link, cable.b, cable.a) for cable in row]
        found = list(zip(row[::2], back[1::2], strict=False))
    else:
        first, second = duts
        found = list(zip(between(tg, first), between(first, second), between(second, tg), strict=False))
    if not found:
        raise ValueError(_sentence(whole, of_model, tg, duts))
    return tuple(found)


def loops(sockets: Sequence[Socket], node: str) -> tuple[Cable, ...]:
    """Return the cables from one port of a node to another one, in the order of the ports."""
    mine = [socket for socket in sockets if socket.node == node]
    return tuple(Cable(a.link, a, b) for a, b in combinations(mine, 2) if a.link == b.link)


def _matches(pair: Sequence[Socket], nic: str | None) -> bool:
    models = {socket.model for socket in pair if socket.at_dut}
    return nic is None or models == {nic}


def _of_first_model(pairs: dict[str, list[Socket]]) -> dict[str, list[Socket]]:
    """Those of the NIC model of the first cable at the DUTs; all where it has none."""
    models = [{socket.model for socket in pair if socket.at_dut} for pair in pairs.values()]
    return {link: pair for (link, pair), model in zip(pairs.items(), models, strict=True) if model == models[0]}


def _between(sockets: Sequence[Socket], pairs: Mapping[str, Sequence[Socket]], one: str, other: str) -> Iterator[Cable]:
    """Cables between two nodes, in the order of the ports of the first."""
    for near in sockets:
        if near.node == one and near.link in pairs:
            far = next(end for end in pairs[near.link] if end.node != one)
            if far.node == other:
                yield Cable(near.link, near, far)


def _sentence(
    whole: Mapping[str, Sequence[Socket]], used: Mapping[str, Sequence[Socket]], tg: str, duts: Sequence[str]
) -> str:
    needed = f"two cables {tg} - {duts[0]}" if len(duts) == 1 else f"a cable for each of {_circle(tg, duts)}"
    there = [f"{link} ({a.node}.{a.port} - {b.node}.{b.port})" for link, (a, b) in used.items()]
    other = f"; {len(whole) - len(used)} links are of other NIC models (nic: chooses)" if len(used) < len(whole) else ""
    return f"no path for a service: it needs {needed}, and there are {', '.join(there) or 'no cables'}{other}"


def _circle(tg: str, duts: Sequence[str]) -> str:
    row = [tg, *duts, tg]
    return ", ".join(f"{one} - {other}" for one, other in pairwise(row))
