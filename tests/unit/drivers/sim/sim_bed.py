"""A simulated cell, deployed."""

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.drivers import SimFunctions, SimGenerator, SimSwitch
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import SearchOutcome, search_throughput
from tests.builders import shipped

TOPOLOGY = shipped("sim")
SMALL = frame("64B")


class Bed:
    """A deployed simulated cell."""

    def __init__(self, plan: Plan, test_type: TestType = TestType.NDRPDR, **parameters: object) -> None:
        self.plan = plan
        self.clock = VirtualClock()
        self.system = SimulatedSystem(plan, Simulation(**parameters), self.clock, test_type)
        self.switch, self.functions = SimSwitch(self.system), SimFunctions(self.system)
        self.generator = SimGenerator(self.system)
        for part in (self.switch, self.functions, self.generator):
            part.start()

    def counters(self) -> dict[str, InterfaceCounters]:
        return {**self.switch.counters(), **self.functions.counters()}

    def run(self, load_pps: float, duration_s: float = 1.0, probe_pps: float = 0.0) -> TrialResult:
        return self.generator.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=SMALL, probe_pps=probe_pps))

    def search(self) -> SearchOutcome:
        return search_throughput(self.generator.run, LADDER, SMALL, self.system.maximum_pps(SMALL), self.clock.now)

    def complaints(self) -> tuple[str, ...]:
        before = self.counters()
        result = self.generator.run(connectivity_trial(self.plan, SMALL))
        return diagnose(self.plan, result, before, self.counters())


def sharp_bed(asked: Cell, **parameters: object) -> Bed:
    """A cell of exact capacity."""
    return Bed(make_plan(TOPOLOGY, asked, TOPOLOGY.dut.layout), model="sharp", **parameters)
