"""Proxies of roles on nodes: what a Protocol has can be called there, and several nodes are one role."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from resources.libraries.python.errors import ConnectionFailed, CsitError
from resources.libraries.python.model.measurements.counters import InterfaceCounters, Sample
from resources.libraries.python.model.measurements.disturbance import EventOccurrence
from resources.libraries.python.model.measurements.features import HOST, VSWITCH, FeatureSeries
from resources.libraries.python.model.measurements.trial import Direction, FlowTimeline, Gap
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.agent.calls import (
    BY_NAME,
    CLOCK,
    FEATURES,
    FUNCTIONS,
    GENERATOR,
    LOAD,
    ROLE_CALLS,
    SWITCH,
    Call,
    Role,
)  # fmt: skip
from resources.libraries.python.testbed.kinds.nodes import parts_on_nodes
from resources.libraries.python.testbed.remote import proxies
from resources.libraries.python.testbed.remote.proxies import combined, proxy
from tests.unit.csit_utils.builders import trial
from tests.unit.testbed.agent_service_runs import CELL, TOPOLOGY

ONE = InterfaceCounters(1, 2, 3, 4)


class Answered:
    """A call whose result is known; an exception is raised."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def result(self) -> Any:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


class Node:
    """A link to an agent with prepared results."""

    def __init__(self, name: str, lost: str = "", **results: Any) -> None:
        self.name, self.lost, self._results = name, lost, results
        self.begun: list[tuple[str, Sequence[Any], float]] = []

    def begin(self, call: Call[Any, Any], arguments: Sequence[Any], more_s: float = 0.0) -> Answered:
        if self.lost:
            raise ConnectionFailed(self.lost)
        self.begun.append((call.name, arguments, more_s))
        return Answered(self._results.get(call.name.partition(".")[2]))

    def role(self, remote: Any) -> Any:
        return proxy(remote, self)  # type: ignore[arg-type] # a link for the test


def switches(*nodes: Any) -> Any:
    return combined(SWITCH, [proxy(SWITCH, node) for node in nodes])


def test_public_methods_and_properties_of_a_role_can_be_called_and_nothing_else() -> None:
    assert ROLE_CALLS[Role.TRACER]["cpu_s"].is_property
    assert "features.stop" in BY_NAME and not [name for name in BY_NAME if "._" in name]


def test_a_call_waits_as_long_as_its_protocol_says() -> None:
    assert BY_NAME["switch.start"].call.within_s == 7200.0
    assert BY_NAME["switch.facts"].call.within_s == 60.0
    node = Node("TG")
    proxy(LOAD, node, 30.0).offer(5.0)  # type: ignore[arg-type] # a link for the test
    assert node.begun == [("load.offer", (5.0,), 30.0)]


def test_results_of_several_nodes_are_joined() -> None:
    first = Node("DUT1", counters={"a": ONE}, problems=("slow",), facts={"version": "1", "mode": "x"})
    second = Node("DUT2", counters={"b": ONE}, problems=("hot",), facts={"version": "1", "mode": "y"})
    both = switches(first, second)
    assert both.counters() == {"a": ONE, "b": ONE}
    assert both.problems() == ("DUT1: slow", "DUT2: hot")
    assert both.facts() == {"version": "1", "mode of DUT1": "x", "mode of DUT2": "y"}
    assert both.start() is None


def test_all_nodes_are_asked_before_the_first_failure_is_raised() -> None:
    first, second = Node("DUT1", stop=CsitError("stuck")), Node("DUT2")
    with pytest.raises(CsitError, match="stuck"):
        switches(first, second).stop()
    assert [name for name, _, _ in second.begun] == ["switch.stop"]


def test_a_lost_node_is_not_asked_to_stop_and_fails_at_everything_else() -> None:
    lost = Node("DUT1", lost="DUT1: the connection was cut")
    assert switches(lost).stop() is None
    features: Any = combined(FEATURES, [proxy(FEATURES, lost)], {"cpu_s": list})  # type: ignore[arg-type] # a link for the test
    assert features.stop() == ()
    assert features.cpu_s == [None]
    with pytest.raises(CsitError, match="cut"):
        switches(lost).counters()


def test_a_node_that_is_lost_while_it_stops_a_part_removes_that_by_itself() -> None:
    lost = ConnectionFailed("DUT1: the agent ended with 137")
    first, second = Node("DUT1", stop=lost, counters=lost), Node("DUT2")
    both = switches(first, second)
    assert both.stop() is None
    assert [name for name, _, _ in second.begun] == ["switch.stop"]
    with pytest.raises(ConnectionFailed, match="ended with 137"):
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
    ahead.call = lambda call, _: time.time_ns() + hour_ns if call is CLOCK else None
    (found,) = proxy(FUNCTIONS, ahead).disturbed()
    assert abs(found.began_ns - now_ns) < 10**8 and found.ended_ns - found.began_ns == 5
    assert 0 < found.clock_error_s < 0.1
    (moved,) = proxy(GENERATOR, ahead).run(sent.trial).timelines
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
    rows = [
        tuple(
            FeatureSeries(owner=owner, feature="x", values=(float(node),)) for owner in (HOST, VSWITCH, f"nf-1-{node}")
        )
        for node in (1, 2)
    ]
    names = ("TG", "DUT1", "DUT2")
    results: dict[str, dict[str, Any]] = {
        "TG": {"read": Sample(available_bytes=1)},
        "DUT1": {"stop": rows[0], "cpu_s": 0.25, "read": Sample(memory_bytes={"nf-1-1": 5}, available_bytes=90)},
        "DUT2": {"stop": rows[1], "cpu_s": None, "read": Sample(memory_bytes={"nf-1-2": 6}, available_bytes=80)},
    }
    links: Any = {name: Node(name, counters={"g": ONE}, **results[name]) for name in names}
    whole = {Role.CABLES, Role.SWITCH, Role.FUNCTIONS, Role.SAMPLER, Role.FEATURES}
    roles = {"TG": {Role.CABLES, Role.GENERATOR, Role.SAMPLER}, "DUT1": whole, "DUT2": whole}
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
