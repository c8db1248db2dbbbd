"""The vSwitch as VPP: a bridge domain that learns for each L2 segment, receive queues on planned workers."""

import logging
from collections.abc import Mapping

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.cpu.huge_pages import too_few
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.nics.nic_facts import facts_of_pci
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vpp.installation import plugins
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
from resources.libraries.python.drivers.vpp.pages import pool_mb
from resources.libraries.python.drivers.vpp.physical import kind_of
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.drivers.vpp.shared import Site, remove_folder
from resources.libraries.python.drivers.vswitches.vpp.commands import bridging
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.planning.names import VSWITCH

_log = logging.getLogger(__name__)


class VppSwitch:
    """Fulfils `roles.vswitch.VSwitch`."""

    def __init__(
        self,
        plan: Plan,
        fabric: Fabric,
        machine: MachineLock,
        settings: Vpp,
        *,
        largest_frame_bytes: int = 1518,
        owner: str = VSWITCH,
    ) -> None:
        """Prepare.

        Args:
            plan: Has the segments and the cores.
            fabric: Has the ports that are the kernel's; started before `start`.
            machine: The machine's lock, held.
            settings: How VPP is run.
            largest_frame_bytes: The largest L2 frame that will be sent, FCS included.
            owner: Which of the plan's vSwitches it is.
        """
        self._site = Site(plan, fabric, machine, settings, largest_frame_bytes)
        self._owner = owner
        self._member: VppMember | None = None

    def start(self) -> None:
        """Start VPP, make its interfaces, connect all segments.

        The other ends of shared memory come later; so its receive queues are placed when they are first looked at.

        Raises:
            CsitError: VPP ended, or refused something.
            NotReady: It does not answer.
            Unsupported: It cannot have one of the ports.
        """
        plan = self._site.plan
        interfaces = interfaces_of(plan, self._owner, self._site.folder, self._kind_of)
        self._member = member = VppMember(self._site, self._owner, "VPP of the vSwitch", interfaces)
        pages, settings = self._site.pages(1), self._site.settings
        if pages.size == "4k" and any(each.kind is InterfaceKind.DPDK for each in interfaces):
            needs_mb = pool_mb(settings.main_heap_mb, settings.buffers_per_numa)
            raise too_few("VPP on DPDK", needs_mb, plan.cores.numa_node)
        member.start(pages, plugins_for(interfaces))
        member.wait_ready()
        member.make_interfaces()
        ports = {port for each in interfaces for port, _ in each.ports}
        segments = [segment for segment in plan.segments if ports.issuperset(segment.members)]
        member.instance.do(bridging(segments, interfaces))
        _log.info("VPP %s: %d interfaces in %d bridge domains", member.instance.version, len(interfaces), len(segments))

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port is received from; a port of the kernel by two threads, the kernel's and a worker.

        Empty where one is gone. Queues that have come into being since the last look are placed first.
        """
        return self._running.affinity()

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._running.counters()

    def facts(self) -> Mapping[str, str]:
        """Version, threads, memory, and what its threads did between the last two readings of the counters."""
        return (
            {} if self._member is None else {"vswitch": f"VPP {self._member.instance.version}", **self._member.facts()}
        )

    def problems(self) -> tuple[str, ...]:
        """VPP has ended, an interface is down, shared memory lost its other end, a thread is gone."""
        if self._member is None:
            return ("the vSwitch is not started",)
        try:
            return self._member.problems()
        except CsitError as error:
            return (str(error),)

    def stop(self) -> None:
        """End VPP. Safe to call at any time and more than once."""
        member, self._member = self._member, None
        if member is not None:
            member.instance.tell_to_end()
            member.instance.wait_end()
            remove_folder(self._site.folder, self._owner)

    def _kind_of(self, nic: Nic) -> InterfaceKind:
        """VPP's driver for a physical port, by what it is and what this installation has."""
        facts = facts_of_pci(nic.pci_address) if nic.pci_address is not None else None
        ids = (facts.vendor, facts.model) if facts is not None else (None, None)
        settings = self._site.settings
        return kind_of(nic, plugins(self._site.prefix), ids, only_dpdk=settings.ports == "dpdk")

    @property
    def _running(self) -> VppMember:
        if self._member is None:
            raise CsitError("the vSwitch is not started")
        return self._member


def make(node: DutNode, context: DriverContext) -> VppSwitch:
    """Make the driver for a node."""
    return VppSwitch(
        context.plan,
        context.fabric,
        context.lock,
        node.settings(Vpp),
        largest_frame_bytes=context.largest_frame_bytes,
        owner=context.vswitch,
    )
