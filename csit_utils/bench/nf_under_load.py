"""A service of one NF on the local world, with packets, for measures of what watches it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.observer_cpus import cpu_without_data
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.roles.generator import TrafficGenerator
from resources.libraries.python.testbed.worlds import makers

_FRAME = frame("64B")
_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")


@dataclass(frozen=True)
class ServiceUnderLoad:
    """What is deployed."""

    plan: Plan
    lock: MachineLock
    fabric: Fabric
    generator: TrafficGenerator
    threads: dict[str, tuple[int, ...]]
    """Of the NF, by its name."""
    aside: int | None
    """Where those stay who watch, if the machine has room for that."""

    def send(self, load_pps: float, duration_s: float) -> TrialResult:
        """Run a trial."""
        return self.generator.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=_FRAME))

    def received(self) -> int:
        """Packets that came back to the generator, both ways, until now."""
        return sum(row.rx_packets for row in self.fabric.counters([GENERATOR]).values())


@contextmanager
def service() -> Iterator[ServiceUnderLoad]:
    """Deploy it, and remove it.

    Raises:
        Unsupported: This machine cannot run the local world.
        CsitError: Somebody else uses the machine.
    """
    topology = load_topology(LOCAL_TOPOLOGY)
    if problems := [*check(), *makers.missing(topology.tg)]:
        raise Unsupported("; ".join(map(str, problems)))
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), discover())
    with ExitStack() as held:
        lock = held.enter_context(MachineLock())
        lock.remove_leftovers()
        lock.set_for_run(*_NO_REALTIME_LIMIT)
        fabric = Fabric(plan, lock, _FRAME.largest_bytes)
        generator = makers.generator(topology.tg, DriverContext(plan, fabric, lock, _FRAME.largest_bytes))
        for part in (fabric, LinuxBridge(plan, fabric), LinuxRouters(plan.functions, fabric), generator):
            held.callback(part.stop)
            part.start()
        rows = fabric.threads()
        threads = {
            function.name: tuple(thread for port in plan.ports(function.name) for thread in rows[port.interface])
            for function in plan.functions
        }
        yield ServiceUnderLoad(plan, lock, fabric, generator, threads, cpu_without_data(plan.cores.threads))
