"""SMT of the simulated machine: threads of one core share it, and one that is alone there is faster."""

import pytest

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType, TestType
from resources.libraries.python.planning.plan import make_plan
from tests.builders import SIM

FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


def owners_pps(smt: bool, **parameters: float) -> dict[str, float]:
    """What each owner could do, and what the cell does."""
    plan = make_plan(SIM, Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=2), {}, smt=smt)
    system = SimulatedSystem(plan, Simulation.model_validate(parameters), VirtualClock(), TestType.MRR)
    rates = system._truth.rates(FRAME, 1e9)
    return rates | {"cell": system.capacity_pps(FRAME)}


def of_core(threads: int, sibling_speed: float) -> float:
    """Work of a core by its busy threads, by the speed of each."""
    return sum(1.0 if threads == 1 else sibling_speed for _ in range(threads))


@pytest.mark.parametrize("speed", [0.4, 0.5, 0.65, 1.0])
def test_an_owner_does_the_work_of_the_threads_on_its_cores(speed: float) -> None:
    on, off = (owners_pps(smt, sibling_speed=speed) for smt in (True, False))
    for owner in on.keys() - {"generator"}:
        assert off[owner] / on[owner] == pytest.approx(of_core(1, speed) / of_core(2, speed)), owner
    assert off["generator"] == on["generator"], "it has a machine of its own"


def test_capacities_with_smt_are_the_calibrated_ones_whatever_it_gains() -> None:
    assert owners_pps(smt=True, sibling_speed=0.9) == owners_pps(smt=True)
    assert "sibling_speed" not in Simulation().model_dump_json()
