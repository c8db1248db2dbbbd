"""The first trial names where packets end."""

import pytest

from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, FlowCount
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from tests.builders import finished
from tests.unit.search.search_fakes import FRAME
from tests.unit.search.wired_plans import planned

NEIGHBOURS = 3
"""Packets of the machine's own on each interface."""


def walk(plan: Plan, ends: dict[tuple[int, Direction], tuple[int, int]]) -> tuple[str, ...]:
    """Diagnose a plan in which flows lose some packets."""
    before = {port.interface: InterfaceCounters(7, 7, 0, 0) for link in plan.links for port in (link.a, link.b)}
    rows = {name: [7 + NEIGHBOURS, 7 + NEIGHBOURS] for name in before}
    flows = []
    for path in plan.paths:
        first, passed = ends.get((path.instance, path.direction), (len(path.hops), 200))
        for index, hop in enumerate(path.hops):
            rows[hop.interface][0 if hop.counter == "rx" else 1] += 200 if index < first else passed
        flows.append(FlowCount(instance=path.instance, direction=path.direction, sent=200, received=passed))
    after = {name: InterfaceCounters(rx, tx, 0, 0) for name, (rx, tx) in rows.items() if not name.startswith("csg")}
    trial = connectivity_trial(plan, FRAME)
    return diagnose(plan, finished(trial, flows=tuple(flows)), before, after)


def test_the_trial_sends_200_packets_for_each_flow() -> None:
    trial = connectivity_trial(planned("CSC", 3, 2), FRAME)
    assert trial.load_pps * trial.duration_s == pytest.approx(6 * 200)
    assert trial.purpose == "connectivity"


@pytest.mark.parametrize(("service_type", "rows", "columns"), [("CSC", 1, 1), ("CSC", 4, 3), ("CSP", 2, 5)])
def test_nothing_to_say_when_all_arrive(service_type: str, rows: int, columns: int) -> None:
    assert walk(planned(service_type, rows, columns), {}) == ()


@pytest.mark.parametrize(
    ("service_type", "direction", "end", "passed", "expected"),
    [
        ("CSC", "forward", 4, 0, "200 sent, last seen at nf-2-1 csn2x1i1 rx (203), not at nf-2-1 csn2x1i2 tx (3)"),
        ("CSC", "forward", 1, 0, "200 sent, last seen at generator csg2p1 tx (200), not at vswitch csv2p1 rx (3)"),
        ("CSC", "forward", 2, 0, "200 sent, last seen at vswitch csv2p1 rx (203), not at vswitch csv2x1i1 tx (3)"),
        ("CSC", "reverse", 4, 0, "200 sent, last seen at nf-2-2 csn2x2i2 rx (203), not at nf-2-2 csn2x2i1 tx (3)"),
        ("CSC", "forward", 11, 0, "200 sent, last seen at vswitch csv2p2 tx (203), not at generator csg2p2 rx (0)"),
        ("CSP", "forward", 5, 0, "200 sent, last seen at nf-2-1 csn2x1i2 tx (203), not at nf-2-2 csn2x2i1 rx (3)"),
        (
            "CSC",
            "forward",
            4,
            80,
            "60 % of 200 packets are lost, last seen at nf-2-1 csn2x1i1 rx (203), not at nf-2-1 csn2x1i2 tx (83)",
        ),
    ],
)
def test_the_last_hop_that_saw_packets_is_named(
    service_type: str, direction: str, end: int, passed: int, expected: str
) -> None:
    plan = planned(service_type, 2, 2)
    assert walk(plan, {(2, Direction(direction)): (end, passed)}) == (
        f"{service_type} instance 2 {direction}: {expected}",
    )


def test_every_broken_flow_has_its_sentence() -> None:
    ends = {(1, Direction.FORWARD): (4, 0), (1, Direction.REVERSE): (4, 0), (2, Direction.FORWARD): (1, 150)}
    complaints = walk(planned("CSC", 2, 1), ends)
    assert [line.split(":")[0] for line in complaints] == [
        "CSC instance 1 forward",
        "CSC instance 1 reverse",
        "CSC instance 2 forward",
    ]


def test_a_few_packets_lost_are_no_broken_path() -> None:
    assert walk(planned("CSC", 1, 1), {(1, Direction.FORWARD): (4, 195)}) == ()


def test_hops_without_counters_are_passed_over() -> None:
    plan = planned("CSC", 1, 1)
    trial = connectivity_trial(plan, FRAME)
    (line,) = diagnose(plan, finished(trial, (200, 0), (200, 200)), {}, {})
    assert line.endswith("last seen at generator csg1p1 tx (200), not at generator csg1p2 rx (0)")


def test_a_generator_that_sends_nothing_is_named() -> None:
    plan = planned("CSC", 1, 1)
    result = finished(connectivity_trial(plan, FRAME), (0, 0), (0, 0))
    assert diagnose(plan, result, {}, {})[0] == "CSC instance 1 forward: 0 sent, the generator sent nothing"
