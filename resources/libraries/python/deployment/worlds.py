"""The world of a topology."""

from resources.libraries.python.deployment.local import LocalWorld
from resources.libraries.python.deployment.parts import World
from resources.libraries.python.deployment.simulated import SimWorld
from resources.libraries.python.drivers.host.cpu import discover
from resources.libraries.python.drivers.host.memory import discover_memory
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model import topology as model
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.memory import MemoryLayout


def world_of(topology: model.Topology) -> World:
    """Make the world of a topology; it is not open yet.

    Raises:
        Unsupported: There are no drivers for it.
    """
    match topology.world:
        case model.World.SIM:
            return SimWorld(topology)
        case model.World.LOCAL:
            return LocalWorld(topology)
        case model.World.LAB:
            raise Unsupported(f"testbed {topology.metadata.name}: the world 'lab' has no drivers yet")


def layout_of(topology: model.Topology) -> CpuLayout:
    """The DUT's logical CPUs: from its file, or discovered on this machine."""
    return discover() if topology.dut.cpus == "discover" else topology.dut.layout


def memory_of(topology: model.Topology) -> MemoryLayout | None:
    """The DUT's memory: from its file, or discovered on this machine; None where the file says nothing."""
    return discover_memory() if topology.dut.memory == "discover" else topology.dut.memory
