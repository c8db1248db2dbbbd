"""A testbed of one node in this process: the drivers themselves, and nothing between them and their callers."""

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    HostRefused,
    PlanError,
    Unsupported,
)
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment import loop_back
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds import machine as machine_module
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from resources.libraries.python.testbed.kinds.nodes import LocalNode, NodesTestbed
from resources.libraries.python.testbed.maintenance.doctor import _of_drivers
from resources.libraries.python.testbed.remote.node import LabNode
from tests.builders import Altered, qualification, qualified_point, raising, shipped
from tests.unit.planning.labs import lab
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


CELL = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


def share(topology: Topology, node: str | None, smt: bool | None) -> Parts:
    asked = MeasurementRequest(test_type=TestType.MRR, cell=CELL, frame=frame("64B"), profile=QUICK)
    return TestbedMachine(topology, node).share(make_plan(topology, CELL, {}, smt=smt), asked)


def switches(topology: Topology, node: str | None, smt: bool | None = False) -> list[int]:
    """Places among the cables, in the order in which they are started, of what switches SMT off."""
    parts = share(topology, node, smt).cables
    return [place for place, part in enumerate(parts) if isinstance(part, SmtOff)]


@pytest.fixture
def testbed() -> Topology:
    return lab(1, vswitch="linux_bridge", containers="linux_router", generator="ring", smt=True, cores=16)


def test_the_dut_switches_it_off_before_its_links_are_made(testbed: Topology) -> None:
    assert switches(testbed, "DUT1") == [0]


def test_the_generator_keeps_it(testbed: Topology) -> None:
    assert switches(testbed, "TG") == []


def test_other_cells_leave_it_alone(testbed: Topology) -> None:
    assert switches(testbed, "DUT1", smt=None) == switches(testbed, "DUT1", smt=True) == []


TOPOLOGY = shipped("available/lab-2n-kernel")


def test_a_lost_node_that_shows_another_host_key_is_not_waited_for() -> None:
    tries: list[str] = []

    def connect(name: str, _: Access) -> Any:
        tries.append(name)
        raise HostRefused(f"{name} shows another host key than before")

    node = LabNode(TOPOLOGY, "DUT1", connect, cast("Any", SimpleNamespace(install=lambda *_: None)))
    node._link = cast("Any", SimpleNamespace(lost="DUT1: the connection was cut", close=lambda: None))
    with pytest.raises(HostRefused, match="another host key"):
        node.recover(within_s=3.0)
    assert tries == ["DUT1"]
    assert "another host key" in node.lost


def test_a_lost_agent_is_continued_at_the_end_as_it_may_only_be_stopped() -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> None:
        ran.append(argv)

    node = LabNode(TOPOLOGY, "DUT1", lambda *_: cast("Any", SimpleNamespace(run=run)), cast("Any", None))
    node._is_open, node._agent_pid = True, 4711

    def call(*_: Any) -> None:
        """Removing is the call in which its silence is noticed."""
        node._link = cast("Any", SimpleNamespace(lost="nothing heard", close=lambda: None))
        raise ConnectionFailed("nothing heard")

    node._link = cast("Any", SimpleNamespace(lost="", close=lambda: None, call=call))
    with pytest.raises(ConnectionFailed, match="nothing heard"):
        node.close()
    assert ran == [["kill", "-CONT", "4711"]]


def test_an_agent_that_ends_as_asked_gets_no_signal() -> None:
    node = LabNode(TOPOLOGY, "DUT1", lambda *_: cast("Any", None), cast("Any", None))
    node._is_open, node._agent_pid = True, 4711
    node._link = cast("Any", SimpleNamespace(lost="", close=lambda: None, call=lambda *_: None))
    node.close()


Found = QualifiedPoint | CsitError
FAILED = CsitError("nothing came back")


def point(loss_free_pps: float | None, rate_error: float | None = 0.001) -> QualifiedPoint:
    return qualified_point(loss_free_pps=loss_free_pps, rate_error=rate_error)


def chosen(monkeypatch: pytest.MonkeyPatch, found: Mapping[str | None, Found]) -> tuple[str | None, tuple[str, ...]]:
    def qualify(*_: object, way: str | None, **__: object) -> Qualification:
        measured = found[way]
        return raising(measured)() if isinstance(measured, CsitError) else qualification(measured)

    monkeypatch.setattr(loop_back, "qualify", qualify)
    world: Any = Altered(None)
    return loop_back.fastest_way(shipped("local"), world, qualification().key, 2)


@pytest.mark.parametrize(
    ("own", "other", "way"),
    [
        (point(1e6), point(1.04e6), None),
        (point(1e6), point(1.06e6), "af_xdp"),
        (point(1e6), point(2e6, rate_error=0.02), None),
        (point(1e6), point(2e6, rate_error=None), None),
        (point(1e6, rate_error=0.02), point(5e5), "af_xdp"),
        (point(None), point(None), None),
        (point(1e6), FAILED, None),
    ],
)
def test_another_driver_sends_only_if_it_is_clearly_faster_and_keeps_its_rate(
    monkeypatch: pytest.MonkeyPatch, own: Found, other: Found, way: str | None
) -> None:
    best, said = chosen(monkeypatch, {None: own, "af_xdp": other})
    assert best == way
    assert [line.partition(":")[0] for line in said] == ["auto", "af_xdp"]


def test_a_driver_that_fails_is_left_out_and_its_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = chosen(monkeypatch, {None: point(1e6), "af_xdp": FAILED})
    assert str(FAILED) in said[1]


def test_a_testbed_whose_own_driver_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CsitError, match=str(FAILED)):
        chosen(monkeypatch, {None: FAILED, "af_xdp": point(1e6)})
