"""A deployment that fails says what it fails of, and stops what was started."""

from dataclasses import replace
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConnectionFailed, CsitError, NotReady, RunStopped, SystemBroken
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.deployment import Deployment
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

TOPOLOGY = load_topology(Path(__file__).parents[3] / "topologies" / "sim.yaml")


class Switch:
    """A vSwitch with problems."""

    def __init__(self, parts: Parts, *problems: str) -> None:
        self._switch = parts.switch
        self._problems = problems
        self.stopped = False

    def problems(self) -> tuple[str, ...]:
        return self._problems

    def stop(self) -> None:
        self.stopped = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._switch, name)


class Waiting:
    """NFs that wait in vain for their links to the vSwitch."""

    def __init__(self, parts: Parts) -> None:
        self._functions = parts.functions

    def start(self) -> None:
        raise NotReady("links of nf-1-1", 20.0, "none")

    def __getattr__(self, name: str) -> object:
        return getattr(self._functions, name)


class Lost:
    """NFs of a node that is lost while they start, and whose removal fails on another one."""

    def __init__(self, parts: Parts, error: CsitError, in_removal: CsitError) -> None:
        self._functions = parts.functions
        self._error, self._in_removal = error, in_removal

    def start(self) -> None:
        raise self._error

    def stop(self) -> None:
        raise self._in_removal

    def __getattr__(self, name: str) -> object:
        return getattr(self._functions, name)


def failing(*problems: str) -> tuple[Plan, Parts, Switch]:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=QUICK)
    world = SimulatedTestbed(TOPOLOGY)
    plan = make_plan(TOPOLOGY, cell, world.layout)
    parts = world.parts(plan, asked)
    switch = Switch(parts, *problems)
    return plan, replace(parts, switch=switch, functions=Waiting(parts)), switch  # type: ignore[arg-type]


def test_a_wait_for_a_part_that_died_reports_its_death() -> None:
    plan, parts, switch = failing("the vSwitch was killed by SIGABRT")
    with pytest.raises(SystemBroken, match=r"^the vSwitch was killed by SIGABRT; links of nf-1-1 not ready after 20"):
        Deployment(plan, parts).__enter__()
    assert switch.stopped


def test_a_wait_without_a_known_reason_is_reported_as_a_timeout() -> None:
    plan, parts, switch = failing()
    with pytest.raises(NotReady, match=r"^links of nf-1-1 not ready after 20"):
        Deployment(plan, parts).__enter__()
    assert switch.stopped


@pytest.mark.parametrize("signal", [True, False])
def test_a_signal_in_a_removal_ends_the_run_and_another_failure_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, signal: bool
) -> None:
    class Failure(Exception):
        """As Robot's, of a signal that it has been sent."""

        exit = signal

    def fails(*_: object) -> None:
        raise Failure("Execution terminated by signal")

    asked = MeasurementRequest(
        test_type=TestType.MRR,
        cell=Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1),
        frame=frame("64B"),
        profile=QUICK,
    )
    cell = CellUnderTest(TOPOLOGY, SimulatedTestbed(TOPOLOGY), asked)
    cell.deploy(plan := cell.plan())
    monkeypatch.setattr(Deployment, "__exit__", fails)
    if signal:
        with pytest.raises(RunStopped, match=r"^Execution terminated by signal$"):
            cell.remove(plan)
    else:
        assert cell.remove(plan) == "the cell could not be removed: Execution terminated by signal"
    assert not cell.is_deployed


def test_the_first_cause_is_reported_before_failed_stops() -> None:
    plan, parts, _ = failing()
    lost = ConnectionFailed("DUT1: the agent ended with 137")
    functions = Lost(parts, lost, CsitError("TG: port cab1 cannot be given back"))
    with pytest.raises(
        SystemBroken, match=r"^DUT1: the agent ended with 137; TG: port cab1 cannot be given back$"
    ) as told:
        Deployment(plan, replace(parts, functions=functions)).__enter__()  # type: ignore[arg-type]
    assert told.value.__cause__ is lost


def test_a_part_that_cannot_be_stopped_so_that_the_run_ends_ends_it() -> None:
    plan, parts, _ = failing()
    functions = Lost(parts, ConnectionFailed("DUT1: gone"), RunStopped("DUT1 does not come back"))
    with pytest.raises(RunStopped, match=r"^DUT1 does not come back$"):
        Deployment(plan, replace(parts, functions=functions)).__enter__()  # type: ignore[arg-type]


class Prepared:
    """A generator that writes down what is done with it, and what its NFs do."""

    def __init__(self, parts: Parts) -> None:
        self._generator = parts.generator
        self.done: list[str] = []

    def prepare(self) -> None:
        self.done.append("prepare")

    def start(self) -> None:
        self.done.append("start")

    def stop(self) -> None:
        self.done.append("stop")

    def __getattr__(self, name: str) -> object:
        return getattr(self._generator, name)


class Watching:
    """Cables that see what has been done with a generator before them."""

    def __init__(self, generator: Prepared, seen: list[str]) -> None:
        self._generator, self._seen = generator, seen

    def start(self) -> None:
        self._seen.extend(self._generator.done)

    def stop(self) -> None:
        assert "stop" not in self._generator.done, "it is ended after the parts that were started later"


def test_a_part_is_prepared_before_the_others_start_and_ended_if_these_cannot() -> None:
    plan, parts, _ = failing()
    generator = Prepared(parts)
    seen: list[str] = []
    monitored = replace(parts, cables=(Watching(generator, seen),), generator=generator)  # type: ignore[arg-type]
    with pytest.raises(NotReady, match="links of nf-1-1"):
        Deployment(plan, monitored).__enter__()
    assert seen == ["prepare"], "before the cables"
    assert generator.done == ["prepare", "stop"]
