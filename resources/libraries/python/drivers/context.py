"""Context of the drivers of one machine."""

from dataclasses import dataclass
from functools import cached_property

from resources.libraries.python.drivers.containers.containers import NfContainers
from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.drivers.host.cpu.resctrl import CacheDivision
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions
from resources.libraries.python.model.plan import NfPlan, Plan, TapPlan
from resources.libraries.python.model.testbed.nodes import Container
from resources.libraries.python.planning.names import VSWITCH

NO_CONTAINERS = Container()


@dataclass(frozen=True)
class DriverContext:
    """A machine with its share of a plan."""

    plan: Plan
    fabric: Fabric
    lock: MachineLock
    largest_frame_bytes: int
    """L2, FCS included."""
    vswitch: str = VSWITCH
    """Which of the plan's vSwitches is on this machine."""
    container: Container = NO_CONTAINERS
    """Environment of NFs."""
    capture: bytes | None = None
    """Contents of the capture whose packets are the load, where the generator is on this machine."""

    @cached_property
    def groups(self) -> NfGroups:
        """Containers of NFs, and control groups of those that have limits; not made."""
        every: tuple[NfPlan | TapPlan, ...] = (*self.plan.functions, *self.plan.taps)
        here = [nf for nf in every if nf.name in self.fabric.owners]
        containers = (
            NfContainers(self.container, here, self.plan.cores, self.lock) if self.container.engine != "none" else None
        )
        mine = {part.machine for part in self.plan.cache if part.owner in self.fabric.owners}
        parts = [part for part in self.plan.cache if part.machine in mine]
        cache = CacheDivision(parts, self.lock.claim, self.lock.release) if parts else None
        return NfGroups(here, self.plan, self.fabric, self.lock, containers, cache=cache)

    def companions(self, word: str, *, takes_turns: bool = True) -> Companions:
        """Programs that run in the namespaces of NFs."""
        return Companions(word, self.plan.cores, self.fabric, self.lock, self.groups, takes_turns=takes_turns)
