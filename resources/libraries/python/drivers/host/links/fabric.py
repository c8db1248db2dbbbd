"""A machine's share of a plan: a namespace per owner, a veth pair per link, a data thread per port, ends of cables."""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TypeVar

from pyroute2.netlink.rtnl import RTM_GETLINK, RTM_GETSTATS

from resources.libraries.python.drivers.functions.nftables.program import limit, network_limits
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.data_threads import DataThreads
from resources.libraries.python.drivers.host.links import link_devices, namespaces, rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.links.namespaces import Namespace, name_of
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink, Request
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.cables import Cables
from resources.libraries.python.drivers.host.ownership.cleanup_steps import raise_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Link, Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, is_vswitch
from resources.libraries.python.testbed.roles.part import Part

_FIRST_INDEX = 100
"""Interface indexes of links are chosen here, so that none need be read back. Below are those that the kernel makes by
itself in a new namespace (lo, and tunl0 and others where their modules are loaded). They are unique on the machine:
where both ends of a veth pair have the same index, the kernel takes them for a physical port and lets its carrier wait,
up to 1 s. Physical ports come with an index, which is read back.
"""
Result = TypeVar("Result")


class PortTable:
    """Ports by owner.

    `physical`: Names of those that are physical ports.
    `namespace`: Of an owner, once it is made.
    """

    def __init__(
        self,
        ports: Mapping[str, Sequence[Port]],
        physical: Collection[str],
        namespace: Callable[[str], Namespace],
    ) -> None:
        self._names = {owner: [port.interface for port in row] for owner, row in ports.items()}
        self._physical = physical
        self._namespace = namespace
        self.index: dict[str, int] = {}
        """Interface index of each port, in its namespace."""
        self._by_index: dict[str, dict[int, str]] = {}

    def of(self, owner: str) -> list[str]:
        """Names of an owner's ports."""
        return self._names.get(owner, [])

    def veths(self) -> list[str]:
        """Names of all ports that are no physical ones."""
        return [name for row in self._names.values() for name in row if name not in self._physical]

    def choose_indexes(self, physical: Mapping[str, int]) -> None:
        """Give every port an index."""
        taken = set(physical.values())
        free = (index for index in range(_FIRST_INDEX, 1 << 31) if index not in taken)
        self.index = dict(zip(self.veths(), free, strict=False)) | dict(physical)
        self._by_index = {owner: {self.index[name]: name for name in row} for owner, row in self._names.items()}

    @property
    def free_index(self) -> int:
        """The first of the indexes that no port has."""
        return max(self.index.values(), default=_FIRST_INDEX) + 1

    def down(self, owners: Iterable[str]) -> list[str]:
        """Ports of these owners that have no carrier.

        Raises:
            CsitError: The kernel refused, or a namespace is not made.
        """
        return [
            name
            for owner in owners
            for name, running in self._dump(
                owner, RTM_GETLINK, rtnetlink_messages.GET_LINKS, rtnetlink_messages.read_running
            )
            if not running
        ]

    def counters(self, owners: Iterable[str]) -> dict[str, InterfaceCounters]:
        """Counters of these owners' ports by name.

        Raises:
            CsitError: As for `down`.
        """
        rows = (
            self._dump(owner, RTM_GETSTATS, rtnetlink_messages.GET_COUNTERS, rtnetlink_messages.read_counters)
            for owner in owners
        )
        return dict(row for of_owner in rows for row in of_owner)

    def bridges(self, owner: str) -> dict[str, int | None]:
        """Index of the bridge that each port of an owner is a member of; None for one that is of none.

        Raises:
            CsitError: As for `down`.
        """
        return dict(self._dump(owner, RTM_GETLINK, rtnetlink_messages.GET_LINKS, rtnetlink_messages.read_master))

    def _dump(
        self, owner: str, kind: int, body: bytes, read: Callable[[bytes], tuple[int, Result]]
    ) -> Iterator[tuple[str, Result]]:
        """Facts of the kernel about an owner's ports; foreign ports are passed over."""
        known = self._by_index.get(owner, {})
        for answer in self._namespace(owner).netlink.dump(kind, body, f"read the links of {owner}"):
            index, found = read(answer)
            if index in known:
                yield known[index], found


_ETHERNET_BYTES = 18
"""Header and FCS: what a frame has and an MTU has not."""
_SMALLEST_MTU = 1500
_LINKS_WITHIN_S = 10.0

_log = logging.getLogger(__name__)


class Fabric(Part):
    """All namespaces and links of a machine's share. No link is ever in the namespace that this process is in.

    `largest_frame_bytes`: The largest L2 frame that will be sent, FCS included.
    `node`: The node of the plan that this machine is; None where it has all of the plan.
    `leave`: Physical ports that a program of user space drives, by the name of the interface.

    Raises:
        PlanError: The plan does not say which physical port one is, or has one twice.
    """

    def __init__(
        self,
        plan: Plan,
        machine: MachineLock,
        largest_frame_bytes: int = 1518,
        *,
        node: str | None = None,
        leave: Collection[str] = (),
    ) -> None:
        self._plan = plan
        self._machine = machine
        self._mtu = max(_SMALLEST_MTU, largest_frame_bytes - _ETHERNET_BYTES)
        ends = [(link, port) for link in plan.links for port in (link.a, link.b)]
        owners = dict.fromkeys(
            (GENERATOR, VSWITCH, *(port.owner for _, port in ends), *(nf.name for nf in plan.functions))
        )
        self._owners = tuple(owner for owner in owners if node is None or plan.machines.get(owner) == node)
        here = [(link.medium, port) for link, port in ends if port.owner in self._owners]
        self._links = tuple(link for link in plan.links if link.medium is Medium.VETH and link.a.owner in self._owners)
        in_use = [port for medium, port in here if medium is Medium.CABLE and port.interface not in leave]
        self._cables = Cables(in_use, machine, self._mtu)
        self._ports: dict[str, list[Port]] = {owner: [] for owner in self._owners}
        for medium, port in here:
            if medium is Medium.VETH or (port in in_use and port.interface in self._cables.names):
                self._ports[port.owner].append(port)
        in_kernel = [port for row in self._ports.values() for port in row]
        self._beside_kernel = frozenset(
            port.interface for port in in_kernel if port.nic is not None and port.nic.attachment.is_beside_kernel
        )
        self._receivers = {
            owner: list(dict.fromkeys(port.receiver for port in row)) for owner, row in self._ports.items()
        }
        self._table = PortTable(self._ports, self._cables.names, self._namespace)
        self._claimed = False
        self._namespaces: dict[str, Namespace] = {}
        self._threads = DataThreads()

    def start(self) -> None:
        """Make everything, bring it up, give every port its data thread on its planned CPU.

        Cables get their carrier when the other machine has come as far: see `wait_for_cables`.

        Raises:
            ConfigError: A physical port is not there, or must not be taken.
            CsitError: A namespace is there already, or the kernel refused something.
            Unsupported: This machine cannot do it, or data threads cannot be pinned.
        """
        self._machine.claim_namespaces(name_of(owner) for owner in self._owners)
        self._claimed = True
        self._cables.claim()
        self._cables.start_threads()
        aside(self._make)
        self._machine.confirm_namespaces(name_of(owner) for owner in self._owners)
        self._threads.place(self._ports, self._plan.cores, self._cables.at_home)
        wait_until("links", partial(self._not_running, self._table.veths()), _LINKS_WITHIN_S)
        _log.info(
            "made %d namespaces with %d links, took %d physical ports",
            len(self._owners), len(self._links), len(self._cables.physical),
        )  # fmt: skip

    def _make(self) -> None:
        with closing(Netlink()) as home:  # before this thread enters namespaces
            kinds = {function.name: function.kind for function in self._plan.functions}  # of passive ones none routes
            wanted = [(name_of(owner), link_devices.settings(owner, kinds.get(owner))) for owner in self._owners]
            for owner, namespace in zip(self._owners, namespaces.create(wanted), strict=True):
                self._namespaces[owner] = namespace
            self._cables.take(home, self._namespaces)
        self._table.choose_indexes(self._cables.index)
        for owner, requests in self._veth_pairs().items():
            self._namespaces[owner].netlink.do(requests)
        self._bring_up()

    def _veth_pairs(self) -> dict[str, list[Request]]:
        """Requests that make links, by the owner in whose namespace they are made; the vSwitch where it has an end."""
        index, requests = self._table.index, dict[str, list[Request]]()
        for near, far in map(_ends, self._links):
            requests.setdefault(near.owner, []).append(
                rtnetlink_messages.veth_pair(
                    (near.interface, index[near.interface], link_devices.device_mac(near)),
                    (far.interface, index[far.interface], link_devices.device_mac(far)),
                    self._namespaces[far.owner].descriptor,
                    self._mtu,
                )
            )
        return requests

    def _bring_up(self) -> None:
        for owner, receivers in self._receivers.items():
            for interface in receivers:
                data_threads.receive_by_napi(self._namespaces[owner].netlink, interface)
        for owner, ruleset in network_limits(self._links, (*self._plan.functions, *self._plan.taps)).items():
            self.run_inside(owner, partial(limit, ruleset))
        # Only then: when a port comes up, the kernel looks once whether its peer will take XDP frames, by NAPI.
        self._cables.bring_up(self._namespaces)
        up = rtnetlink_messages.set_ports_up()
        for owner in self._ports:
            self.change(owner, [up])
        data_threads.enable_threads(
            (self._namespaces[owner], receivers) for owner, receivers in self._receivers.items()
        )

    def wait_for_cables(self, owner: str) -> None:
        """Wait until this owner's cables pass packets. To be called when the other machines have started theirs.

        Raises:
            NotReady: One does not.
        """
        mine = [name for name in self._table.of(owner) if name in self._cables.names]
        if mine:
            wait_until(f"cables of {owner}", partial(self._not_running, mine), CABLES_WITHIN_S, pause_s=0.01)

    def cables_down(self, owner: str) -> tuple[str, ...]:
        """This owner's ends of cables that pass no packets, without ports that a program of user space drives.

        Raises:
            CsitError: The kernel refused.
        """
        return tuple(name for name in self._table.down([owner]) if name in self._cables.names)

    def _not_running(self, wanted: Collection[str]) -> str:
        """Names of ports that do not pass packets yet: the kernel brings their carrier up in the background."""
        left = [name for name in self._table.down(self._owners) if name in wanted]
        return f"{len(left)} without carrier, {left[0]} among them" if left else ""

    def stop(self) -> None:
        """Remove everything that `start` made, give physical ports back. Safe to call after a failure.

        Raises:
            CsitError: Something could not be removed or given back; the rest was.
        """
        failures: list[CsitError] = []

        def attempt(step: Callable[[], None]) -> None:
            try:
                step()
            except CsitError as error:
                failures.append(error)

        made = self._namespaces
        attempt(self._cables.give_back)
        if failures:
            # What is in a namespace that ends is lost or moved elsewhere: all stays, and stays on record.
            raise failures[0]
        self._namespaces = {}
        vswitches = [made.pop(owner) for owner in list(made) if is_vswitch(owner)]
        for vswitch in vswitches:
            # One request for most ports there are: every request waits for the kernel's RCU, some 20 ms.
            attempt(partial(vswitch.netlink.do, [rtnetlink_messages.delete_ports()], tolerate=GONE))
        for namespace in made.values():
            namespace.close()
            attempt(partial(namespaces.remove, namespace.name))
        # Ports between NFs end with their namespaces, all together; but not if they had to queue behind the bridges,
        # each of which takes the kernel 17 ms (an rcu_barrier in br_multicast_dev_del). So these come last.
        attempt(self._threads.wait_gone)
        for vswitch in vswitches:
            vswitch.close()
            attempt(partial(namespaces.remove, vswitch.name))
        raise_all(failures)
        if self._claimed:
            self._machine.release_namespaces(name_of(owner) for owner in self._owners)
        self._claimed = False
        self._threads = DataThreads()

    def change(self, owner: str, requests: Iterable[Request]) -> None:
        """Make changes in an owner's namespace.

        Raises:
            CommandFailed: The kernel refused one.
        """
        self._namespace(owner).netlink.do(requests)

    def take_down(self, owner: str) -> None:
        """Bring an owner's virtual ports down, and with them the carrier of the other ends.

        Raises:
            CommandFailed: The kernel refused.
        """
        self.change(owner, [rtnetlink_messages.set_down(name, self.index(name)) for name in self._virtual(owner)])

    def bring_back(self, owner: str) -> None:
        """Bring an owner's virtual ports up again, and pin their data threads, which are new ones.

        Raises:
            CommandFailed: The kernel refused.
            Unsupported: The threads are not to be seen, or cannot be pinned.
        """
        names = self._virtual(owner)
        self.change(owner, [rtnetlink_messages.set_up(name, self.index(name)) for name in names])
        self._threads.renew(
            [port for port in self._ports[owner] if port.interface in names], self._plan.cores.cpus(owner)
        )

    def move_threads(self, owner: str, threads: Collection[int] = ()) -> None:
        """Pin the data threads of an owner to another CPU that the plan has on this machine.

        `threads`: Data threads of its program, beside those of its ports in the kernel.

        Raises:
            CsitError: There is no other CPU.
            Unsupported: The kernel refused.
        """
        own = map(os.sched_getaffinity, threads)
        present = {cpu for cpus in self.affinity([owner]).values() for cpu in cpus}.union(*own)
        others = sorted(self._plan.cores.beside(owner) - present)
        if not others:
            raise CsitError(f"there is no other CPU for the data threads of {owner}")
        self._threads.move(self._table.of(owner), others[0])
        for thread in threads:
            data_threads.pin(thread, others[0])

    def _virtual(self, owner: str) -> list[str]:
        return [name for name in self._table.of(owner) if name not in self._cables.names]

    def run_inside(self, owner: str, work: Callable[[], Result], *, sysfs: bool = False) -> Result:
        """Do work inside an owner's namespace, in a thread that ends with it, as `namespaces.run_inside`."""
        return namespaces.run_inside(self._namespace(owner).name, work, sysfs=sysfs)

    def run_inside_each(self, owners: Sequence[str], work: Callable[[], Result]) -> dict[str, Result]:
        """As `run_inside`, in several owners' namespaces one after the other, by one thread."""
        names = [self._namespace(owner).name for owner in owners]
        return dict(zip(owners, namespaces.run_inside_each(names, work), strict=True))

    @property
    def owners(self) -> tuple[str, ...]:
        """Owners of ports that are on this machine."""
        return self._owners

    def index(self, interface: str) -> int:
        """Interface index of a port, in its namespace."""
        return self._table.index[interface]

    @property
    def mtu(self) -> int:
        """MTU of every port, in bytes."""
        return self._mtu

    @property
    def free_index(self) -> int:
        """The first of the interface indexes that no port has."""
        return self._table.free_index

    def threads(self) -> dict[str, tuple[int, ...]]:
        """Ids of the data threads by the device that they receive from (`Port.receiver`).

        A physical port with many queues has several.
        """
        return self._threads.ids()

    def affinity(self, owners: Iterable[str]) -> dict[str, frozenset[int]]:
        """CPUs on which the data threads of these owners' ports may really run; empty for one that is gone.

        Without ports that a program takes packets from beside the kernel, whose threads receive nothing there.
        """
        names = (name for owner in owners for name in self._table.of(owner))
        return self._threads.affinity(name for name in names if name not in self._beside_kernel)

    def counters(self, owners: Iterable[str]) -> dict[str, InterfaceCounters]:
        """Counters of these owners' ports by interface name, without ports whose packets the kernel does not count.

        Raises:
            CommandFailed: The kernel refused.
        """
        found = self._table.counters(owners)
        return {name: row for name, row in found.items() if name not in self._beside_kernel}

    def statistics(self) -> dict[str, int]:
        """Counters of the drivers of all ports, such as those of a queue, by what they count and where."""
        found: dict[str, int] = {}
        for owner in self._namespaces:
            where = self._namespaces[owner].netlink.socket
            for port in self._table.of(owner):
                with suppress(CommandFailed):  # taken by a program beside the kernel
                    found |= {f"{name} of {port}": count for name, count in ethtool.statistics(where, port).items()}
        return found

    def bridges(self, owner: str) -> dict[str, int | None]:
        """Index of the bridge that each port of an owner is a member of; None for one that is of none.

        Raises:
            CommandFailed: The kernel refused.
        """
        return self._table.bridges(owner)

    def problems(self, owners: Sequence[str]) -> tuple[str, ...]:
        """Faults of the ports of these owners: no data thread any more, no carrier, no namespace."""
        found = [f"the data thread of {name} is gone" for name, cpus in self.affinity(owners).items() if not cpus]
        try:
            down = self._table.down(owners)
        except CsitError as error:
            return (*found, str(error))
        return (*found, *(f"{name} has no carrier" for name in down))

    def _namespace(self, owner: str) -> Namespace:
        if owner not in self._namespaces:
            raise CsitError(f"{owner} has no network namespace: the fabric is not started")
        return self._namespaces[owner]


def _ends(link: Link) -> tuple[Port, Port]:
    """A link's ends, first the one in whose namespace it is made and removed: the vSwitch's where it has one."""
    return (link.b, link.a) if is_vswitch(link.b.owner) else (link.a, link.b)
