"""The trial at a low rate that comes before all others: what does not arrive has a cause."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from resources.libraries.python.errors import SystemBroken
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM


class HalfWay:
    """A generator of whose packets only the first half comes back, in all of its trials or in the first ones."""

    def __init__(self, parts: Parts, trials: int = 1000) -> None:
        self._generator = parts.generator
        self._trials = trials
        self.done = 0

    def run(self, trial: Trial) -> TrialResult:
        result = self._generator.run(trial)
        self.done += 1
        if self.done > self._trials:
            return result
        flows = tuple(flow.model_copy(update={"received": flow.sent // 2}) for flow in result.flows)
        return result.model_copy(update={"flows": flows})

    def __getattr__(self, name: str) -> object:
        return getattr(self._generator, name)


class Dead:
    """NFs one of which has died."""

    def __init__(self, parts: Parts) -> None:
        self._functions = parts.functions

    def problems(self) -> tuple[str, ...]:
        return ("nf-1-1 was killed by SIGKILL",)

    def __getattr__(self, name: str) -> object:
        return getattr(self._functions, name)


@pytest.fixture
def cell() -> Iterator[CellUnderTest]:
    asked = MeasurementRequest(
        test_type=TestType.MRR,
        cell=Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1),
        frame=frame("64B"),
        profile=QUICK,
    )
    made = CellUnderTest(SIM, SimulatedTestbed(SIM), asked)
    deployment = made.deploy(made.plan())
    whole = deployment.parts
    yield made
    deployment.parts = whole
    assert made.remove() is None


def test_a_loss_in_a_system_that_is_whole_is_a_complaint(cell: CellUnderTest) -> None:
    parts = cell.deployment.parts
    cell.deployment.parts = replace(parts, generator=HalfWay(parts))  # type: ignore[arg-type]
    lost = cell.connectivity(cell.measure)
    assert "packets are lost, last seen at" in lost.complaints[0]
    assert lost.text.startswith("packets are lost at a low rate: ")


@pytest.mark.parametrize(("lossy", "trials"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_a_loss_that_does_not_come_again_is_a_moment_of_the_machine(
    cell: CellUnderTest, lossy: int, trials: int
) -> None:
    parts = cell.deployment.parts
    generator = HalfWay(parts, lossy)
    cell.deployment.parts = replace(parts, generator=generator)  # type: ignore[arg-type]
    assert (cell.connectivity(cell.measure) is not None) == (lossy == 3)
    assert generator.done == trials


def test_a_part_that_died_in_the_middle_is_the_cause_not_its_loss(cell: CellUnderTest) -> None:
    parts = cell.deployment.parts
    cell.deployment.parts = replace(parts, generator=HalfWay(parts), functions=Dead(parts))  # type: ignore[arg-type]
    with pytest.raises(SystemBroken, match="nf-1-1 was killed by SIGKILL"):
        cell.connectivity(cell.measure)
