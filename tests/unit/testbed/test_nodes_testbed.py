"""A testbed of nodes: the drivers themselves in this process, or proxies of roles that are one role for all nodes."""

import threading
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python import errors
from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters, Sample
from resources.libraries.python.model.measurements.disturbance import EventOccurrence
from resources.libraries.python.model.measurements.features import HOST, VSWITCH, FeatureSeries
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.measurements.trial import Direction, FlowTimeline, Gap
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment import loop_back
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds import machine as machine_module
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from resources.libraries.python.testbed.kinds.nodes import LocalNode, NodesTestbed, parts_on_nodes
from resources.libraries.python.testbed.maintenance.doctor import _of_drivers
from resources.libraries.python.testbed.remote import proxies
from resources.libraries.python.testbed.remote.node import LabNode
from resources.libraries.python.testbed.remote.proxies import combined, proxy
from tests.builders import Altered, cell_of, qualification, qualified_point, raising, shipped
from tests.unit.csit_utils.builders import trial
from tests.unit.planning.labs import lab
from tests.unit.testbed.agent_service_runs import CELL, TOPOLOGY, WORK, NotingMachine, NotingPart

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
        self._has_generator = bool(generators)
        self.parts = {name: NotingPart(name, self) for name in ("fabric", "switch", "functions", "generator")}
        self.problems = lambda: (PreflightProblem(lacks, FIX),) if lacks else ()
        self.warnings = lambda: (PreflightProblem("no KVM"),)
        self.unsampled, self.numa_nodes = lambda: PERF, dict

    def leftovers(self, plan: object) -> tuple[str, ...]:
        assert plan is None
        return ("network namespace csit-x",)

    def share(self, *_: object, **__: object) -> Parts:
        made: Any = self.parts
        generator = made["generator"] if self._has_generator else ABSENT[2]
        return Parts((made["fabric"],), made["switch"], made["functions"], generator)


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


def test_problems_and_warnings_need_no_node_in_front_and_the_doctor_keeps_their_semicolons() -> None:
    world = on(WholeMachine(lacks="no KVM; no huge pages"))
    with pytest.raises(errors.Unsupported, match=r"^no KVM; no huge pages; load kvm; or choose containers$"):
        world.open()
    assert [(row.level, row.what, row.fix) for row in _of_drivers(LOCAL, world)] == [
        ("problem", "no KVM; no huge pages", FIX), ("warning", "no KVM", ""), ("warning", PERF.what, PERF.fix),
    ]  # fmt: skip


def test_a_machine_is_checked_until_it_is_open_and_released_if_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []
    problem = PreflightProblem("tc", "no tc here")
    monkeypatch.setattr(machine_module, "check", lambda: checks.append("check") or (problem,))
    machine = TestbedMachine(LOCAL)
    found = machine.problems()
    for number in (1, 2):  # what failed may be in order when it is opened another time
        with pytest.raises(errors.Unsupported, match="no tc here"):
            machine.open()
        assert len(checks) == number
    assert found == (problem,)
    broken = WholeMachine(fails="open")
    with pytest.raises(errors.CsitError, match="cannot open"):
        on(broken).open()
    assert broken.notes == ["open", "close"]


def test_a_cell_without_generator_or_with_a_simulated_one_is_refused() -> None:
    world = on(WholeMachine(generators=0))
    world.open()
    with pytest.raises(errors.PlanError, match="has no generator on the nodes DUT1"):
        world.parts(WORK.plan, WORK.asked)
    tg = LOCAL.tg.model_copy(update={"generator": LOCAL.tg.generator.model_copy(update={"driver": "sim"})})
    with pytest.raises(errors.ConfigError, match="the local world sends real packets, sim does not"):
        NodesTestbed(LOCAL.model_copy(update={"nodes": {**LOCAL.nodes, "TG": tg}}), [])


@pytest.mark.parametrize(
    ("node", "smt", "places"), [("DUT1", False, [0]), ("TG", False, []), ("DUT1", None, []), ("DUT1", True, [])]
)
def test_smt_is_switched_off_at_the_dut_first_where_a_cell_asks_for_it(
    node: str, smt: bool | None, places: list[int]
) -> None:
    """Before the links: places among the cables are in the order in which they are started."""
    topology = lab(1, vswitch="linux_bridge", containers="linux_router", generator="ring", smt=True, cores=16)
    asked = MeasurementRequest(test_type=TestType.MRR, cell=cell_of("CSC"), frame=frame("64B"), profile=QUICK)
    parts = TestbedMachine(topology, node).share(make_plan(topology, asked.cell, {}, smt=smt), asked)
    assert [place for place, part in enumerate(parts.cables) if isinstance(part, SmtOff)] == places


LAB = shipped("available/lab-2n-kernel")


def opened(connect: Any, pid: int | None = 4711, **link: Any) -> LabNode:
    """A node with an agent that runs there, or of which no process is known."""
    node = LabNode(LAB, "DUT1", connect, SimpleNamespace(install=lambda *_: None))
    node._is_open, node._agent_pid = True, pid
    node._link = SimpleNamespace(**{"lost": "", "close": lambda: None, **link})
    return node


def test_a_lost_node_that_shows_another_host_key_is_not_waited_for() -> None:
    tries: list[str] = []

    def connect(name: str, _: Access) -> Any:
        tries.append(name)
        raise errors.HostRefused(f"{name} shows another host key than before")

    node = opened(connect, None, lost="DUT1: the connection was cut")
    with pytest.raises(errors.HostRefused, match="another host key"):
        node.recover(within_s=3.0)
    assert tries == ["DUT1"]
    assert "another host key" in node.lost


def test_a_lost_agent_is_continued_at_the_end_as_it_may_only_be_stopped_and_another_gets_no_signal() -> None:
    ran: list[list[str]] = []

    def call(*_: Any) -> None:
        """Removing is the call in which its silence is noticed."""
        node._link = SimpleNamespace(lost="nothing heard", close=lambda: None)
        raise errors.ConnectionFailed("nothing heard")

    opened(raising(AssertionError("no signal")), call=lambda *_: None).close()
    node = opened(lambda *_: SimpleNamespace(run=lambda argv, **_: ran.append(argv)), call=call)
    with pytest.raises(errors.ConnectionFailed, match="nothing heard"):
        node.close()
    assert ran == [["kill", "-CONT", "4711"]]


Found = QualifiedPoint | errors.CsitError
FAILED = errors.CsitError("nothing came back")


def point(loss_free_pps: float | None, rate_error: float | None = 0.001) -> QualifiedPoint:
    return qualified_point(loss_free_pps=loss_free_pps, rate_error=rate_error)


def chosen(monkeypatch: pytest.MonkeyPatch, found: Mapping[str | None, Found]) -> tuple[str | None, tuple[str, ...]]:
    def qualify(*_: object, way: str | None, **__: object) -> Qualification:
        measured = found[way]
        return raising(measured)() if isinstance(measured, errors.CsitError) else qualification(measured)

    monkeypatch.setattr(loop_back, "qualify", qualify)
    return loop_back.fastest_way(LOCAL, Altered(None), qualification().key, 2)


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


def test_a_driver_that_fails_is_left_out_with_its_reason_but_the_testbeds_own_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, said = chosen(monkeypatch, {None: point(1e6), "af_xdp": FAILED})
    assert str(FAILED) in said[1]
    with pytest.raises(errors.CsitError, match=str(FAILED)):
        chosen(monkeypatch, {None: FAILED, "af_xdp": point(1e6)})


ONE = InterfaceCounters(1, 2, 3, 4)


class Node:
    """A link to an agent with prepared results; an exception is raised."""

    def __init__(self, name: str, lost: str = "", **results: Any) -> None:
        self.name, self.lost, self._results = name, lost, results
        self.begun: list[tuple[str, Sequence[Any], float]] = []

    def begin(self, call: calls.Call[Any, Any], arguments: Sequence[Any], more_s: float = 0.0) -> Any:
        if self.lost:
            raise errors.ConnectionFailed(self.lost)
        self.begun.append((call.name, arguments, more_s))
        result = self._results.get(call.name.partition(".")[2])
        return SimpleNamespace(result=raising(result) if isinstance(result, Exception) else lambda: result)

    def role(self, remote: Any) -> Any:
        return proxy(remote, self)


def switches(*nodes: Any) -> Any:
    return combined(calls.SWITCH, [proxy(calls.SWITCH, node) for node in nodes])


def test_public_methods_of_a_role_can_be_called_and_wait_as_long_as_its_protocol_says() -> None:
    assert calls.ROLE_CALLS[calls.Role.TRACER]["cpu_s"].is_property
    assert "features.stop" in calls.BY_NAME and not [name for name in calls.BY_NAME if "._" in name]
    assert calls.BY_NAME["switch.start"].call.within_s == 7200.0
    assert calls.BY_NAME["switch.facts"].call.within_s == 60.0
    node = Node("TG")
    proxy(calls.LOAD, node, 30.0).offer(5.0)
    assert node.begun == [("load.offer", (5.0,), 30.0)]


def test_results_of_several_nodes_are_joined() -> None:
    first = Node("DUT1", counters={"a": ONE}, problems=("slow",), facts={"version": "1", "mode": "x"})
    second = Node("DUT2", counters={"b": ONE}, problems=("hot",), facts={"version": "1", "mode": "y"})
    both = switches(first, second)
    assert both.counters() == {"a": ONE, "b": ONE}
    assert both.problems() == ("DUT1: slow", "DUT2: hot")
    assert both.facts() == {"version": "1", "mode of DUT1": "x", "mode of DUT2": "y"}
    assert both.start() is None


def test_a_lost_node_is_not_asked_to_stop_and_fails_at_everything_else() -> None:
    lost = Node("DUT1", lost="DUT1: the connection was cut")
    assert switches(lost).stop() is None
    features: Any = combined(calls.FEATURES, [proxy(calls.FEATURES, lost)], {"cpu_s": list})
    assert features.stop() == ()
    assert features.cpu_s == [None]
    with pytest.raises(errors.CsitError, match="cut"):
        switches(lost).counters()


def test_all_nodes_are_asked_before_a_failure_is_raised_and_one_that_is_lost_in_a_stop_is_none() -> None:
    """It removes its part by itself."""
    first, second = Node("DUT1", stop=errors.CsitError("stuck")), Node("DUT2")
    with pytest.raises(errors.CsitError, match="stuck"):
        switches(first, second).stop()
    assert [name for name, _, _ in second.begun] == ["switch.stop"]
    lost = errors.ConnectionFailed("DUT1: the agent ended with 137")
    first, second = Node("DUT1", stop=lost, counters=lost), Node("DUT2")
    both = switches(first, second)
    assert both.stop() is None
    assert [name for name, _, _ in second.begun] == ["switch.stop"]
    with pytest.raises(errors.ConnectionFailed, match="ended with 137"):
        both.counters()


def test_times_of_a_node_are_by_the_clock_of_the_controller() -> None:
    """Its clock is an hour ahead."""
    hour_ns, now_ns = 3600 * 10**9, 10**18
    event = EventOccurrence(began_ns=now_ns + hour_ns, ended_ns=now_ns + hour_ns + 5, what="gone")
    sent = trial(1e6, 1, 0.0)
    gap = Gap(first=3, packets=2, begin_ns=now_ns + hour_ns + 7, end_ns=None)
    line = FlowTimeline(
        instance=1, direction=Direction.FORWARD, begin_ns=now_ns + hour_ns, bin_s=0.1, sent=(1,), received=(1,),
        delay_ns=(5,), worst_ns=(5,), silence_ns=(5,), gaps=(gap,),
        arrivals_ns=(now_ns + hour_ns, now_ns + hour_ns + 9),
    )  # fmt: skip
    ahead: Any = Node("DUT1", disturbed=(event,), run=sent.model_copy(update={"timelines": (line,)}))
    ahead.call = lambda call, _: time.time_ns() + hour_ns if call is calls.CLOCK else None
    (found,) = proxy(calls.FUNCTIONS, ahead).disturbed()
    assert abs(found.began_ns - now_ns) < 10**8 and found.ended_ns - found.began_ns == 5
    assert 0 < found.clock_error_s < 0.1
    (moved,) = proxy(calls.GENERATOR, ahead).run(sent.trial).timelines
    by_ns = moved.begin_ns - line.begin_ns
    assert abs(by_ns + hour_ns) < 10**8 and 0 < moved.clock_error_s < 0.1
    assert moved.gaps[0].begin_ns == gap.begin_ns + by_ns and moved.gaps[0].end_ns is None
    assert moved.arrivals_ns == (now_ns + hour_ns + by_ns, now_ns + hour_ns + 9 + by_ns)
    assert moved.model_copy(update={"begin_ns": 0, "gaps": (), "arrivals_ns": None, "clock_error_s": 0.0}) == (
        line.model_copy(update={"begin_ns": 0, "gaps": (), "arrivals_ns": None})
    )


def test_the_exchange_with_the_shortest_round_trip_says_how_far_a_clock_is_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request takes 1 ms, and its answer as long only once; others wait on the way back."""
    now_ns, back_ms = 10**18, iter([40, 3, 1, 20, 60, 5, 9, 30])

    def answered(*_: object) -> int:
        nonlocal now_ns
        at_ns = now_ns + 10**6
        now_ns = at_ns + next(back_ms) * 10**6
        return at_ns + 7

    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns)
    link: Any = Node("DUT1")
    link.call = answered
    assert proxies.clock_offset(link) == proxies.ClockOffset(ahead_ns=7, error_s=0.001)
    assert next(back_ms, None) is None, "all have been made"


def test_of_several_nodes_the_machine_is_the_first_one() -> None:
    def series(node: int) -> tuple[FeatureSeries, ...]:
        owners = (HOST, VSWITCH, f"nf-1-{node}")
        return tuple(FeatureSeries(owner=owner, feature="x", values=(float(node),)) for owner in owners)

    results: dict[str, dict[str, Any]] = {
        "TG": {"read": Sample(available_bytes=1)},
        "DUT1": {"stop": series(1), "cpu_s": 0.25, "read": Sample(memory_bytes={"nf-1-1": 5}, available_bytes=90)},
        "DUT2": {"stop": series(2), "cpu_s": None, "read": Sample(memory_bytes={"nf-1-2": 6}, available_bytes=80)},
    }
    links: Any = {name: Node(name, counters={"g": ONE}, **row) for name, row in results.items()}
    whole = {calls.Role.CABLES, calls.Role.SWITCH, calls.Role.FUNCTIONS, calls.Role.SAMPLER, calls.Role.FEATURES}
    roles = {"TG": {calls.Role.CABLES, calls.Role.GENERATOR, calls.Role.SAMPLER}, "DUT1": whole, "DUT2": whole}
    plan = make_plan(TOPOLOGY, CELL, TOPOLOGY.dut.layout)
    parts = parts_on_nodes(plan, links, roles, ("DUT1", "DUT2"))
    assert parts.features is not None and parts.features.cpu_s == 0.25
    assert [(row.owner, row.values) for row in parts.features.stop()] == [
        (HOST, (1.0,)), (VSWITCH, (1.0,)), ("nf-1-1", (1.0,)), ("nf-1-2", (2.0,)),
    ]  # fmt: skip
    assert parts.tracer is None and parts.sampler is not None
    sample = parts.sampler.read()
    assert (sample.memory_bytes, sample.available_bytes) == ({"nf-1-1": 5, "nf-1-2": 6}, 80)
    assert [name for name, _, _ in links["TG"].begun] == [], "only systems under test are sampled"
    assert parts.generator.counters() == {"g": ONE}
