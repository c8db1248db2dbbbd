"""The vSwitch as Open vSwitch: one bridge, a VLAN per L2 segment, PMD threads on planned cores."""

import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from resources.libraries.python.dialogue import record_of, shown
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.memory import discover_memory, require_huge_pages
from resources.libraries.python.drivers.host.cpu.thread_scheduling import threads_of
from resources.libraries.python.drivers.host.programs.disturbances import MOVED, Disturbed, Steps, process_steps
from resources.libraries.python.drivers.host.sockets.socket_paths import folder_of, socket_of
from resources.libraries.python.drivers.vswitches.ovs import Ovs, transaction
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.drivers.vswitches.ovs.transaction import (
    DPDK,
    KERNEL,
    PHYSICAL,
    VHOST,
    PortKind,
    by_port,
    check_size,
    choose,
)
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.physical_ports import how
from resources.libraries.python.testbed.roles.part import VSwitch

_FOLDER = "ovs"
_PMD = re.compile(r"^pmd-c(\d+)/")
"""PMD threads are called `pmd-c01/id:8`, after their CPU."""
_ETHERNET_BYTES = 18
_MIB = 2**20
_log = logging.getLogger(__name__)


_THREAD = re.compile(r"^pmd thread .*core_id (\d{1,9}):")
_QUEUE = re.compile(r"port: (\S+)\s+queue-id:\s*(\d+)")
_VERSION = re.compile(r"(?<!\d)(\d++)\.(\d+)(?:\.\d+)*")
_SLEEPS_FROM = (3, 1)
_DATAPATH_PORT = re.compile(r"(?<!\S)port \d+: (\S+)")
"""After a port without statistics the next one is on the same line."""
_RECEIVED = re.compile(r"^\s*RX packets:(\d+) errors:(\S+) dropped:(\S+)")
_SENT = re.compile(r"^\s*TX packets:(\d+) errors:(\S+) dropped:(\S+)")


def polling_cpus(shown: str) -> dict[str, dict[int, int]]:
    """Read `dpif-netdev/pmd-rxq-show`: on which CPU each queue of each port is polled."""
    cpu: int | None = None
    found: dict[str, dict[int, int]] = {}
    for line in shown.splitlines():
        if match := _THREAD.search(line):
            cpu = int(match[1])
        elif (match := _QUEUE.search(line)) and cpu is not None:
            found.setdefault(match[1], {})[int(match[2])] = cpu
    return found


def version(output: str) -> str:
    """The version in what `version` answers: `ovs-vswitchd (Open vSwitch) 3.1.0`."""
    match = _VERSION.search(output)
    return match[0] if match else "unknown version"


def pmd_sleeps(version_text: str) -> bool:
    """Whether PMD threads of this version can sleep when nothing comes."""
    match = _VERSION.match(version_text)
    return match is not None and (int(match[1]), int(match[2])) >= _SLEEPS_FROM


def type_names(printed: str) -> frozenset[str]:
    """Read the column `iface_types` or `datapath_types` as `ovs-vsctl get` prints it: `[afxdp, dpdk, internal]`."""
    return frozenset(word.strip(' "') for word in printed.strip().strip("[]").split(",") if word.strip())


def interface_errors(printed: str) -> dict[str, str]:
    """Read `ovs-vsctl --format=json --columns=name,error list Interface`: errors by interface, for those that have one.

    Raises:
        CsitError: It is not what was asked for.
    """
    return {str(name): error for name, error in _rows(printed) if isinstance(error, str) and error}


def _rows(printed: str) -> list[list[object]]:
    """Rows of a table of two columns as JSON."""
    with suppress(CsitError):
        match record_of(printed):
            case {"data": [*rows]} if all(isinstance(row, list) and len(row) == 2 for row in rows):
                return rows
    raise CsitError(f"ovs-vsctl did not print a table: {shown(printed)}")


def port_counters(shown: str) -> dict[str, InterfaceCounters]:
    """Read `dpctl/show -s`: counters by port, as Open vSwitch itself counts."""
    found: dict[str, InterfaceCounters] = {}
    name, received = "", (0, 0)
    for line in shown.splitlines():
        if match := _DATAPATH_PORT.search(line):
            name = match[1]
        elif name and (match := _RECEIVED.match(line)):
            received = (int(match[1]), sum(int(word) for word in match.groups()[1:] if word.isdigit()))
        elif name and (match := _SENT.match(line)):
            lost = sum(int(word) for word in match.groups()[1:] if word.isdigit())
            found[name] = InterfaceCounters(received[0], int(match[1]), received[1], lost)
            name = ""
    return found


def link_states(printed: str) -> dict[str, str]:
    """Read `ovs-vsctl --format=json --columns=name,link_state list Interface`: `up` or `down`, where it is known.

    Raises:
        CsitError: It is not what was asked for.
    """
    return {str(name): state for name, state in _rows(printed) if isinstance(state, str)}


_COUNT = re.compile(r"^\s+(?:- )?([A-Za-z][A-Za-z ]*[a-z]):\s*(\d{1,18})(?![\d.])")
_LOOKUPS = {
    "phwol hits": "hardware offload",
    "simple match hits": "simple match",
    "emc hits": "exact match cache",
    "smc hits": "signature match cache",
    "megaflow hits": "megaflow classifier",
    "miss with success upcall": "upcall",
}
"""Counted by packets only: the clocks of a packet are those of all of its stages together."""


def node_costs(part: str, *shown: str) -> tuple[NodeCost, ...]:
    """Read what both commands show: the stages of each PMD thread that had packets."""
    threads: dict[str, dict[str, int]] = {}
    for text in shown:
        counts: dict[str, int] | None = None
        for line in text.splitlines():
            if match := _THREAD.match(line):
                counts = threads.setdefault(f"core {match[1]}", {})
            elif line and not line[0].isspace():
                counts = None  # the main thread, or the head of the answer
            elif counts is not None and (match := _COUNT.match(line)):
                counts.setdefault(match[1].lower(), int(match[2]))
    return tuple(row for thread, counts in threads.items() for row in _stages(part, thread, counts))


def _stages(part: str, thread: str, counts: dict[str, int]) -> Iterator[NodeCost]:
    packets = counts.get("packets received", 0)
    if not packets:
        return
    clocks = counts.get("processing cycles")
    yield NodeCost(
        part=part,
        thread=thread,
        node="processing",
        packets=packets,
        calls=counts.get("busy iterations"),
        cost=None if clocks is None else clocks / packets,
    )
    for name, node in _LOOKUPS.items():
        if counts.get(name):
            yield NodeCost(part=part, thread=thread, node=node, packets=counts[name])
    if sent := counts.get("tx packets"):
        yield NodeCost(part=part, thread=thread, node="output", packets=sent, calls=counts.get("tx batches"))


class OpenVSwitch(Disturbed, VSwitch):
    """Open vSwitch with MAC learning, in user space or by the kernel's module."""

    def __init__(self, node: DutNode, context: DriverContext) -> None:
        self._settings = node.settings(Ovs)
        self._owner = context.vswitch
        self._plan = context.plan
        self._fabric = context.fabric
        self._machine = context.lock
        self._asked = self._settings.ports
        self._nics = transaction.physical_ports(context.plan, context.vswitch)
        self._largest_frame_bytes = context.largest_frame_bytes
        self._daemons: Daemons | None = None
        self._folder: Path | None = None
        self._kind: PortKind | None = None
        self._kinds: dict[str, PortKind] = {}
        self._version = ""
        self._rules_loaded = 0

    def start(self) -> None:
        """Start the daemons, connect all segments in one transaction, put data threads on their cores.

        Raises:
            Unsupported: This machine or this Open vSwitch cannot do it.
            CsitError: A daemon ended, or a port could not be set up.
        """
        plan, owner = self._plan, self._owner
        memory_mb = self._settings.socket_memory_mb
        for node in {nic.numa_node or 0 for nic in self._nics}:
            require_huge_pages("Open vSwitch on DPDK", memory_mb, node)
        self._folder = self._machine.folder(_FOLDER)
        self._daemons = Daemons(self._folder, DPDK.name if self._nics else self._asked)
        main = plan.cores.cpus(owner, ThreadRole.MAIN)[0]
        settings = transaction.of_daemon(
            plan,
            self._asked,
            owner,
            socket_memory_mb=memory_mb,
            asked_sleep_us=self._settings.pmd_sleep_max_us,
        )
        self._daemons.start(partial(self._fabric.run_inside, owner), main, self._machine, settings)
        self._version = version(self._daemons.ask("version"))
        offered, datapaths = (
            type_names(self._daemons.read("get", "Open_vSwitch", ".", column))
            for column in ("iface_types", "datapath_types")
        )
        if self._nics and "dpdk" not in offered:
            raise Unsupported(f"this ovs-vswitchd has no DPDK: it cannot drive {self._nics[0].pci_address}")
        self._kind = choose(self._asked, offered, datapaths)
        self._kinds = by_port(plan, owner, self._kind)
        virtual = sum(kind is self._kind for kind in self._kinds.values())
        available_bytes = sum(each.available_mb or 0 for each in discover_memory()) * _MIB
        check_size(self._kind, virtual, self._largest_frame_bytes, available_bytes)
        mtu = max(1500, self._largest_frame_bytes - _ETHERNET_BYTES)
        mine = [segment for segment in plan.segments if self._kinds.keys() >= set(segment.members)]
        self._daemons.configure(transaction.of_plan(plan, self._kind, mtu, owner, mine, self._sockets()))
        self._check_interfaces()
        self._load_rules()
        self._place_threads()
        _log.info("Open vSwitch %s: %d ports, %s", self._version, len(self._kinds), self._described())

    def _sockets(self) -> dict[str, Path]:
        """Where the other ends of shared memory listen, by port."""
        links = [link for link in self._plan.links if link.medium is Medium.VHOST_USER and link.a.owner == self._owner]
        folder = folder_of(self._machine) if links else Path()
        return {link.a.interface: socket_of(folder, link) for link in links}

    def _described(self) -> str:
        """Ways in which packets are taken from ports."""
        return "; ".join(dict.fromkeys(kind.description for kind in self._kinds.values()))

    def _check_interfaces(self) -> None:
        """Raise for a port that could not be set up: ovs-vsctl ends with 0 all the same."""
        printed = self._running.read("--format=json", "--columns=name,error", "list", "Interface")
        errors = interface_errors(printed)
        if errors:
            name, error = next(iter(errors.items()))
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise CsitError(f"Open vSwitch cannot use {name}: {error}{more}")

    def _place_threads(self) -> None:
        """Let forwarding threads go before ordinary ones. PMD threads are on their CPUs already, OVS has done that."""
        if self._kind is KERNEL:
            return
        by_main = not self._polled and not self._nics
        for thread in self._threads():
            if by_main:
                data_threads.pin(thread, self._plan.cores.cpus(self._owner)[0])
            # One that never sleeps would stop the receiving threads of the ports on its CPU.
            if by_main or self._sleeps:
                data_threads.make_realtime(thread)

    def _load_rules(self) -> None:
        """Replace all OpenFlow rules; a bridge without any of ours keeps the one that it is made with.

        Raises:
            Unsupported: A segment cannot have copies.
            CsitError: They are refused.
        """
        if replace := self._next_rules():
            replace()

    def _next_rules(self) -> Callable[[], None] | None:
        """Write the next version of all OpenFlow rules to a file, and return what loads them; None without any of ours.

        Raises:
            Unsupported: A segment cannot have copies.
        """
        rules = transaction.rules(self._plan, self._settings.openflow_rules, self._rules_loaded + 1)
        if len(rules) == 1:
            return None
        self._rules_loaded += 1
        self._running.write_rules(transaction.BRIDGE, rules)
        return partial(self._running.replace_rules, transaction.BRIDGE)

    def _check_rules(self) -> None:
        """See that all rules are those that were loaded last.

        Raises:
            CsitError: They are not.
        """
        loaded = len(transaction.rules(self._plan, self._settings.openflow_rules, self._rules_loaded))
        found = self._running.count_rules(transaction.BRIDGE, self._rules_loaded)
        if found != loaded:
            raise CsitError(f"Open vSwitch has {found} of the {loaded} OpenFlow rules that were loaded")

    def _threads(self) -> list[int]:
        """Threads of the daemon that forward; none where the kernel does."""
        if self._kind is KERNEL:
            return []
        return list(self._pmds().values()) if self._polled or self._nics else [self._running.forwarder.pid]

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target != self._owner:
            return None
        if event is PartEvent.MOVE:
            return Steps(MOVED, partial(self._fabric.move_threads, target, self._threads()))
        own = self._settings.openflow_rules
        if event is PartEvent.RELOAD and own and (replace := self._next_rules()):
            return Steps(f"{own} OpenFlow rules replaced", replace, after=self._check_rules)
        with_dpdk = self._kind is DPDK or bool(self._nics)
        if event is PartEvent.RESTART and with_dpdk and self._plan.cores.oversubscribed:
            raise Unsupported(
                f"restart is not possible for {target}: DPDK pins its main thread to a CPU that the generator takes"
            )
        return process_steps(event, target, lambda: [self._running.forwarder.pid], self._restart)

    def _restart(self) -> None:
        """Start the forwarding daemon again after it was killed.

        Where the generator sends from the CPU of its main thread, in real time, it would not start before the load has
        ended: so it uses the CPUs of its data threads.

        Raises:
            CsitError: It ended, or a port could not be set up.
        """
        cores = self._plan.cores
        cpus = set(cores.cpus(self._owner, ThreadRole.DATA if cores.oversubscribed else ThreadRole.MAIN))
        self._running.restart_forwarder(partial(self._fabric.run_inside, self._owner), cpus, self._machine)
        self._check_interfaces()
        self._load_rules()
        self._place_threads()

    def begin_accounts(self) -> tuple[str, ...]:
        if not self._polled:
            return ()  # the main thread counts no clocks
        self._running.ask("dpif-netdev/pmd-stats-clear")
        return (self._owner,)

    def accounts(self) -> tuple[NodeCost, ...]:
        if not self._polled:
            return ()
        shown = ("dpif-netdev/pmd-stats-show",), ("dpif-netdev/pmd-perf-show", "-nh")
        return node_costs(self._owner, *(self._running.ask(*words) for words in shown))

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each receive queue is received and forwarded from, by two threads; empty where one is gone."""
        received = self._fabric.affinity([self._owner])
        if self._kind is KERNEL:
            return received
        polled = {} if self._running.problems() else self._polled_on()
        found = {}
        for port in self._plan.ports(self._owner):
            kernel = received.get(port.interface)
            for name in port.queue_names if port.interface in self._kinds else ():
                own = polled.get(name, frozenset[int]())
                # A port that DPDK drives has no thread of the kernel.
                found[name] = own if kernel is None else own | kernel if own and kernel else frozenset[int]()
        return found

    def _polled_on(self) -> dict[str, frozenset[int]]:
        """CPUs on which the threads that forward from each receive queue may really run."""
        ports = [port for port in self._plan.ports(self._owner) if port.interface in self._kinds]
        main = data_threads.affinity({"main": [self._running.forwarder.pid]})["main"]
        by_main = {name: main for port in ports if not self._kinds[port.interface].polled for name in port.queue_names}
        if len(by_main) == len(ports):
            return by_main
        allowed = {cpu: data_threads.affinity({"pmd": [thread]})["pmd"] for cpu, thread in self._pmds().items()}
        shown = polling_cpus(self._running.ask("dpif-netdev/pmd-rxq-show"))
        by_pmd = {
            name: allowed.get(shown.get(port.interface, {}).get(queue, -1), frozenset())
            for port in ports
            for queue, name in enumerate(port.queue_names)
        }
        return by_pmd | by_main

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by port: the kernel's, which all packets of its ports pass, and Open vSwitch's own of the others."""
        kernel = self._fabric.counters([self._owner])
        if len(kernel) == len(self._kinds):
            return kernel
        own = port_counters(self._running.ask("dpctl/show", "-s", "netdev@ovs-netdev"))
        return {name: own[name] for name in self._kinds if name in own} | kernel

    def facts(self) -> Mapping[str, str]:
        if self._kind is None:
            return {}
        polled = self._polled or bool(self._nics)
        physical = {"physical ports": ", ".join(f"{nic.pci_address} by {how(nic)}" for nic in self._nics)}
        return {
            "vswitch": f"Open vSwitch {self._version}",
            "datapath": f"{'kernel' if self._kind is KERNEL else 'userspace'}, {self._described()}",
            **(physical if self._nics else {}),
            **({"rules": f"{own} OpenFlow rules"} if (own := self._settings.openflow_rules) else {}),
            "scheduling": (
                f"PMD threads at SCHED_FIFO, sleeping up to {self._sleep_us} µs when nothing comes"
                if self._sleeps
                else "PMD threads that never sleep"
                if polled
                else "threaded NAPI: the ports' threads sleep when nothing comes"
                if self._kind is KERNEL
                else "main thread at SCHED_FIFO"
            ),
        }

    def problems(self) -> tuple[str, ...]:
        """Daemons that have ended, ports that have lost their data thread or their carrier."""
        if self._daemons is None:
            return ("Open vSwitch is not started",)
        ended = self._daemons.problems()
        return (*ended, *(() if ended else self._without_link()), *self._fabric.problems([self._owner]))

    def _without_link(self) -> tuple[str, ...]:
        """Physical ports and shared memory that have lost their other end."""
        states = self._link_states(PHYSICAL, VHOST)
        return tuple(f"{name} has no link" for name, state in states.items() if state == "down")

    def without_link(self) -> tuple[str, ...]:
        polled = (name for name, state in self._link_states(PHYSICAL).items() if state != "up")
        return tuple(dict.fromkeys((*polled, *self._fabric.cables_down(self._owner))))

    def _link_states(self, *kinds: PortKind) -> dict[str, str]:
        """Link state of the ports of some kinds; empty for one that is not known."""
        wanted = [name for name, kind in self._kinds.items() if kind in kinds]
        if not wanted:
            return {}
        printed = self._running.read("--format=json", "--columns=name,link_state", "list", "Interface")
        states = link_states(printed)
        return {name: states.get(name, "") for name in wanted}

    def stop(self) -> None:
        """End the daemons and remove what they wrote. Safe to call at any time and more than once."""
        self.call_off()
        if self._daemons is not None:
            if self._kind is KERNEL and not self._daemons.problems():
                with suppress(CsitError):  # the kernel removes its datapath with the namespace in any case
                    self._daemons.configure(["del-br", transaction.BRIDGE])
            self._daemons.stop()
            self._daemons = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _pmds(self) -> dict[int, int]:
        return threads_of(self._running.forwarder.pid, _PMD)

    @property
    def _polled(self) -> bool:
        return any(kind.polled for kind in self._kinds.values())

    @property
    def _sleeps(self) -> bool:
        """Whether PMD threads sleep when nothing comes."""
        return self._sleep_us > 0 and self._polled and pmd_sleeps(self._version)

    @property
    def _sleep_us(self) -> int:
        return transaction.sleep_us(self._plan, self._owner, self._settings.pmd_sleep_max_us)

    @property
    def _running(self) -> Daemons:
        if self._daemons is None:
            raise CsitError("Open vSwitch is not started")
        return self._daemons
