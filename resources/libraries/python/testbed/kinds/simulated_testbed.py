"""The sim world: a simulated system under test with a virtual clock. Nothing in it is measured."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

from resources.libraries.python.drivers.sim import probes
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.drivers import SimFunctions, SimGenerator, SimSwitch, SimulatedLoop
from resources.libraries.python.drivers.sim.host_gaps import InterruptingHost, noise_floor
from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, VirtualTime, load_simulated_service
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.deployment.parts import Host, Parts, Testbed
from resources.libraries.python.testbed.node.checks.processors import data_cpus


class SimulatedTestbed(Testbed):
    """A testbed without a machine."""

    def __init__(self, topology: Topology) -> None:
        self._name = next(iter(topology.duts))
        self._system: SimulatedSystem | None = None
        self._dut = topology.dut
        self.drivers: Mapping[str, str] = dict.fromkeys(("generator", "vswitch", "functions"), "sim")
        self._simulation = simulation_of(topology)
        self.simulation = self._simulation.model_dump(mode="json")

    @property
    def layout(self) -> CpuLayout:
        return self._dut.layout

    def environment(self) -> Environment:
        return fingerprint()

    def noise(self, duration_s: float) -> tuple[CpuNoise, ...]:
        here = self._simulation
        if not here.host_gap_hz:
            return ()  # a host without noise
        host = InterruptingHost(here.host_gap_hz, here.host_gap_us * 1e-6)
        rng = Random(f"{here.seed}/noise")  # noqa: S311 (reproducible, not secret)
        return noise_floor(data_cpus(self.layout, self._dut), host, duration_s, rng)

    def meters(self) -> probes.SimMeters:
        return probes.SimMeters(self._name, self._simulation.power, lambda: self._system)

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        clock = VirtualClock()
        self._system = system = SimulatedSystem(plan, self._simulation, clock, asked.test_type, asked.repetition)
        return Parts(
            switch=SimSwitch(system),
            functions=SimFunctions(system),
            generator=SimGenerator(system),
            clock=clock.now,
            sampler=probes.SimSampler(system),
            features=probes.SimFeatureSampler(system),
            tracer=probes.SimTracer(system),
            costs=probes.SimCostMeter(system),
            stacks=probes.SimStackSampler(system, self._name),
            hops=probes.SimHopTimer(system),
        )

    def loop_back(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        del asked
        return Parts(generator=SimulatedLoop(plan, self._simulation, VirtualClock()))

    def host(self, asked: Specifications, folder: Path) -> Host:
        simulated, time = load_simulated_service(folder, asked.deployment), VirtualTime()
        here = SimOrchestrator(simulated, asked.deployment, asked.workload, time)
        return Host(here, time, simulated.model_dump(mode="json"))

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        del plan
        self._system = None
        return ()
