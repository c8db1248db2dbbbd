"""The vSwitch as Open vSwitch: one bridge, a VLAN per L2 segment, PMD threads on planned cores."""

import logging
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host import threads
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.memory import discover_memory
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.polling import threads_of
from resources.libraries.python.drivers.switch.ovs import answers, transaction
from resources.libraries.python.drivers.switch.ovs.daemons import Daemons
from resources.libraries.python.drivers.switch.ovs.ports import PortKind, check_size, choose
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import VSWITCH

_FOLDER = "ovs"
_PMD = re.compile(r"^pmd-c(\d+)/")
"""PMD threads are called `pmd-c01/id:8`, after their CPU."""
_ETHERNET_BYTES = 18
_MIB = 2**20
_log = logging.getLogger(__name__)


class OpenVSwitch:
    """Fulfils `roles.vswitch.VSwitch`: Open vSwitch's userspace datapath with MAC learning."""

    def __init__(
        self, plan: Plan, fabric: Fabric, machine: MachineLock, *, ports: str = "auto", largest_frame_bytes: int = 1518
    ) -> None:
        """Prepare.

        Args:
            plan: Has the segments and the cores.
            fabric: Has the ports; started before `start`.
            machine: The machine's lock, held.
            ports: How packets are taken from ports: `auto`, or a name of `ports.KINDS`.
            largest_frame_bytes: The largest L2 frame that will be sent, FCS included.
        """
        self._plan = plan
        self._fabric = fabric
        self._machine = machine
        self._asked = ports
        self._largest_frame_bytes = largest_frame_bytes
        self._daemons: Daemons | None = None
        self._folder: Path | None = None
        self._kind: PortKind | None = None
        self._version = ""

    def start(self) -> None:
        """Start the daemons, connect all segments in one transaction, put data threads on their cores.

        Raises:
            Unsupported: This machine or this Open vSwitch cannot do it.
            CsitError: A daemon ended, or a port could not be set up.
        """
        self._folder = self._machine.folder(_FOLDER)
        self._daemons = Daemons(self._folder, self._asked)
        main = self._plan.cores.cpus(VSWITCH, ThreadRole.MAIN)[0]
        settings = transaction.of_daemon(self._plan, self._asked)
        self._daemons.start(partial(self._fabric.run_inside, VSWITCH), main, self._machine, settings)
        self._version = answers.version(self._daemons.ask("version"))
        offered = answers.interface_types(self._daemons.read("get", "Open_vSwitch", ".", "iface_types"))
        self._kind = choose(self._asked, offered)
        ports = len(self._plan.ports(VSWITCH))
        check_size(self._kind, ports, self._largest_frame_bytes, _available_bytes())
        mtu = max(1500, self._largest_frame_bytes - _ETHERNET_BYTES)
        self._daemons.configure(transaction.of_plan(self._plan, self._kind, mtu))
        self._check_interfaces()
        if rules := transaction.rules_of_copies(self._plan):
            self._daemons.add_rules(transaction.BRIDGE, rules)
        self._place_threads()
        _log.info("Open vSwitch %s: %d ports, %s", self._version, ports, self._kind.description)

    def _check_interfaces(self) -> None:
        """Raise for a port that could not be set up: ovs-vsctl ends with 0 all the same."""
        printed = self._running.read("--format=json", "--columns=name,error", "list", "Interface")
        errors = answers.interface_errors(printed)
        if errors:
            name, error = next(iter(errors.items()))
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise CsitError(f"Open vSwitch cannot use {name}: {error}{more}")

    def _place_threads(self) -> None:
        """Let forwarding threads go before ordinary ones. PMD threads are on their CPUs already, OVS has done that."""
        if not self._polled:
            thread = self._running.forwarder.pid
            threads.pin(thread, self._plan.cores.cpus(VSWITCH)[0])
            threads.make_realtime(thread)
        elif answers.pmd_sleeps(self._version):
            # One that never sleeps would stop the receiving threads of the ports on its CPU.
            for thread in self._pmds().values():
                threads.make_realtime(thread)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port is received from and forwarded, by two threads; empty where one of them is gone."""
        received = self._fabric.affinity([VSWITCH])
        polled = {} if self._running.problems() else self._polled_on()
        return {
            name: cpus | polled[name] if cpus and polled.get(name) else frozenset[int]()
            for name, cpus in received.items()
        }

    def _polled_on(self) -> dict[str, frozenset[int]]:
        """CPUs on which the threads that forward from each port may really run."""
        if not self._polled:
            main = threads.affinity({"main": [self._running.forwarder.pid]})["main"]
            return dict.fromkeys((port.interface for port in self._plan.ports(VSWITCH)), main)
        allowed = {cpu: threads.affinity({"pmd": [thread]})["pmd"] for cpu, thread in self._pmds().items()}
        planned = answers.polling_cpus(self._running.ask("dpif-netdev/pmd-rxq-show"))
        return {
            port: frozenset[int]().union(*(allowed.get(cpu, frozenset()) for cpu in cpus))
            for port, cpus in planned.items()
        }

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by port, of the kernel: what Open vSwitch takes from and gives to a port passes it."""
        return self._fabric.counters([VSWITCH])

    def facts(self) -> Mapping[str, str]:
        """Version and datapath."""
        if self._kind is None:
            return {}
        sleeps = self._polled and answers.pmd_sleeps(self._version)
        return {
            "vswitch": f"Open vSwitch {self._version}",
            "datapath": f"userspace, {self._kind.description}",
            "scheduling": (
                f"PMD threads at SCHED_FIFO, sleeping up to {transaction.SLEEP_US} us when nothing comes"
                if sleeps
                else "PMD threads that never sleep"
                if self._polled
                else "main thread at SCHED_FIFO"
            ),
        }

    def problems(self) -> tuple[str, ...]:
        """Daemons that have ended, ports that have lost their data thread or their carrier."""
        if self._daemons is None:
            return ("Open vSwitch is not started",)
        return (*self._daemons.problems(), *self._fabric.problems([VSWITCH]))

    def stop(self) -> None:
        """End the daemons and remove what they wrote. Safe to call at any time and more than once."""
        if self._daemons is not None:
            self._daemons.stop()
            self._daemons = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _pmds(self) -> dict[int, int]:
        """PMD threads by CPU."""
        return threads_of(self._running.forwarder.pid, _PMD)

    @property
    def _polled(self) -> bool:
        return self._kind is not None and self._kind.polled

    @property
    def _running(self) -> Daemons:
        if self._daemons is None:
            raise CsitError("Open vSwitch is not started")
        return self._daemons


def _available_bytes() -> int:
    return sum(node.available_mb or 0 for node in discover_memory()) * _MIB
