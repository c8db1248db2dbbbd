"""A testbed of one node in this process: the drivers themselves, and nothing between them and their callers."""

import threading
from typing import Any, cast

import pytest

from resources.libraries.python.errors import ConfigError, CsitError, PlanError, Unsupported
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds import machine as machine_module
from resources.libraries.python.testbed.kinds.local import LocalNode
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from resources.libraries.python.testbed.kinds.nodes import NodesTestbed
from resources.libraries.python.testbed.maintenance.doctor import _of_drivers
from tests.builders import shipped
from tests.unit.testbed.agent_service_runs import WORK, NotingMachine, NotingPart

LOCAL = shipped("local")
HERE = fingerprint()
"""Settings of the machine are read once: a run beside the tests may change them."""


FIX = "load kvm; or choose containers"
PERF = PreflightProblem("perf is not installed", "apt-get install linux-perf")


class WholeMachine(NotingMachine):
    """A machine with all parts of a cell."""

    layout = LOCAL.dut.layout if LOCAL.dut.cpus != "discover" else None
    memory = None

    def __init__(self, fails: str = "", lacks: str = "", generators: int = 1) -> None:
        super().__init__(fails)
        self._lacks = lacks
        self.parts = {name: NotingPart(name, self) for name in ("fabric", "switch", "functions", "generator")}
        self._has_generator = bool(generators)

    def problems(self) -> tuple[PreflightProblem, ...]:
        return (PreflightProblem(self._lacks, FIX),) if self._lacks else ()

    def warnings(self) -> tuple[PreflightProblem, ...]:
        return (PreflightProblem("no KVM"),)

    def unsampled(self) -> PreflightProblem:
        return PERF

    def numa_nodes(self) -> dict[str, int | None]:
        return {}

    def leftovers(self, plan: object) -> tuple[str, ...]:
        assert plan is None
        return ("network namespace csit-x",)

    def share(self, plan: object, asked: object, capture: bytes | None = None) -> Parts:
        del plan, asked, capture
        made: Any = self.parts
        return Parts(
            (made["fabric"],),
            made["switch"],
            made["functions"],
            made["generator"] if self._has_generator else ABSENT[2],
        )


def on(machine: NotingMachine) -> NodesTestbed:
    service = AgentService(lambda: HERE, machine_of=lambda *_: cast(TestbedMachine, machine))
    return NodesTestbed(LOCAL, [LocalNode(LOCAL, service)])


def test_parts_are_the_drivers_themselves() -> None:
    machine, threads = WholeMachine(), set(threading.enumerate())
    world = on(machine)
    assert world.open() == ("removed network namespace csit-x",)
    parts = world.parts(WORK.plan, WORK.asked)
    assert [parts.switch, parts.functions, parts.generator] == list(machine.parts.values())[1:]
    assert parts.generator.counters() == {"csv1p1": InterfaceCounters(1, 2, 3, 4)}
    (cables,) = parts.cables
    cables.start()
    cables.stop()
    assert world.leftovers(None) == ("network namespace csit-x",)
    assert world.environment() == HERE
    assert not set(threading.enumerate()) - threads
    world.close()
    assert machine.notes == ["open", "start fabric", "stop fabric", "clean", "close"]
    assert world.leftovers(None) == (), "a testbed that is closed is not asked"


def test_problems_and_warnings_need_no_node_in_front() -> None:
    world = on(WholeMachine(lacks="no KVM; no huge pages"))
    assert world.problems() == (PreflightProblem("no KVM; no huge pages", FIX),)
    assert world.warnings() == (PreflightProblem("no KVM"),)
    assert world.unsampled() == (PERF,)
    with pytest.raises(Unsupported, match=r"^no KVM; no huge pages; load kvm; or choose containers$"):
        world.open()


def test_the_doctor_keeps_semicolons_of_problems_and_fixes() -> None:
    world = on(WholeMachine(lacks="no KVM; no huge pages"))
    assert [(row.level, row.what, row.fix) for row in _of_drivers(LOCAL, world)] == [
        ("problem", "no KVM; no huge pages", FIX),
        ("warning", "no KVM", ""),
        ("warning", PERF.what, PERF.fix),
    ]


def test_a_machine_is_checked_once_until_it_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []
    problem = PreflightProblem("tc", "no tc here")
    monkeypatch.setattr(machine_module, "check", lambda: checks.append("check") or (problem,))
    machine = TestbedMachine(LOCAL)
    found = machine.problems()
    for number in (1, 2):  # what failed may be in order when it is opened another time
        with pytest.raises(Unsupported, match="no tc here"):
            machine.open()
        assert len(checks) == number
    assert found == (problem,)


def test_a_machine_that_cannot_be_opened_is_released() -> None:
    machine = WholeMachine(fails="open")
    with pytest.raises(CsitError, match="cannot open"):
        on(machine).open()
    assert machine.notes == ["open", "close"]


def test_a_cell_without_generator_is_refused() -> None:
    world = on(WholeMachine(generators=0))
    world.open()
    with pytest.raises(PlanError, match="has no generator on the nodes DUT1"):
        world.parts(WORK.plan, WORK.asked)


def test_a_simulated_generator_sends_no_packets() -> None:
    tg = LOCAL.tg.model_copy(update={"generator": LOCAL.tg.generator.model_copy(update={"driver": "sim"})})
    with pytest.raises(ConfigError, match="the local world sends real packets, sim does not"):
        NodesTestbed(LOCAL.model_copy(update={"nodes": {**LOCAL.nodes, "TG": tg}}), [])
