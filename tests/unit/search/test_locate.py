"""Losses are found between the hops where they happened, and charged to whom they belong."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.findings.evidence import LocatedLosses
from resources.libraries.python.model.measurements.counters import CpuTime, InterfaceCounters, Sample, ThreadTime
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.goal import Goal, GoalResult
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.locate import by_owner, locate, locating_trial
from resources.libraries.python.search.findings.usage import usage
from resources.libraries.python.search.profiles import QUICK
from tests.builders import finished
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import FRAME
from tests.unit.search.wired_plans import planned

PLANS = {name: planned(*name) for name in [("CSC", 1, 1), ("CSC", 2, 2), ("CSP", 2, 3), ("CSC", 1, 4)]}
SENT = 100_000
Drops = Mapping[tuple[int, Direction, int], int]
"""Instance, direction, and index of the first hop that does not count the packets."""


def walk(plan: Plan, queues: Drops, insides: Drops, *, physical: bool = False, blind: str = "") -> LocatedLosses:
    """Locate losses of a plan in which packets are dropped on the way."""
    rows = {port.interface: [7, 7, 7, 7] for link in plan.links for port in (link.a, link.b)}
    before = {name: InterfaceCounters(*row) for name, row in rows.items()}
    flows = []
    for path in plan.paths:
        left = SENT
        for index, hop in enumerate(path.hops):
            key = (path.instance, path.direction, index)
            if hop.counter == "rx":
                left -= queues.get(key, 0)
                rows[hop.interface][0] += left
                rows[hop.interface][2] += queues.get(key, 0) * physical
            else:
                left -= insides.get(key, 0)
                ahead = queues.get((path.instance, path.direction, index + 1), 0)
                rows[hop.interface][1] += left - (0 if physical else ahead)
                rows[hop.interface][3] += 0 if physical else ahead
        flows.append(FlowCount(instance=path.instance, direction=path.direction, sent=SENT, received=left))
    owners = {port.interface: port.owner for link in plan.links for port in (link.a, link.b)}
    after = {name: InterfaceCounters(*row) for name, row in rows.items() if owners[name] != blind}
    trial = Trial(load_pps=1e6, duration_s=0.5, frame=FRAME, purpose="locate")
    return locate(plan, [finished(trial, flows=tuple(flows))], before, after)


@st.composite
def losses(draw: st.DrawFn) -> tuple[Plan, Drops, Drops]:
    plan = PLANS[draw(st.sampled_from(sorted(PLANS)))]
    queues: dict[tuple[int, Direction, int], int] = {}
    insides: dict[tuple[int, Direction, int], int] = {}
    for path in plan.paths:
        for index, hop in enumerate(path.hops):
            lost = draw(st.sampled_from([0, 0, 0, 5, 1000]))
            if index and lost:
                (queues if hop.counter == "rx" else insides)[path.instance, path.direction, index] = lost
    return plan, queues, insides


@given(losses(), st.booleans())
def test_every_loss_is_charged_to_its_owner_and_none_is_left(made: tuple[Plan, Drops, Drops], physical: bool) -> None:
    plan, queues, insides = made
    found = walk(plan, queues, insides, physical=physical)
    paths = {(path.instance, path.direction): path.hops for path in plan.paths}
    expected: dict[str, int] = {}
    for instance, direction, index in (*queues, *insides):
        owner = paths[instance, direction][index].owner
        lost = queues.get((instance, direction, index), 0) + insides.get((instance, direction, index), 0)
        expected[owner] = expected.get(owner, 0) + lost
    assert by_owner(found.hops) == expected
    assert sum(loss.lost for loss in found.hops) == found.sent - found.received
    assert {loss.cause for loss in found.hops} <= {"queue", "inside"}


@pytest.mark.parametrize(
    ("queues", "insides", "owner", "cause", "last", "following"),
    [
        ({3: 90}, {}, "nf-2-1", "queue", "csv2p1", "csn2x1i1"),
        ({}, {4: 90}, "nf-2-1", "inside", "csn2x1i1", "csn2x1i2"),
        ({5: 90}, {}, "vswitch", "queue", "csn2x1i1", "csv2x1i2"),
        ({}, {2: 90}, "vswitch", "inside", "csv2p1", "csv2x1i1"),
        ({11: 90}, {}, "generator", "queue", "csv2x2i2", "csg2p2"),
    ],
)
def test_places_are_named(  # noqa: PLR0917 - a row of the table above
    queues: dict[int, int], insides: dict[int, int], owner: str, cause: str, last: str, following: str
) -> None:
    def at(row: dict[int, int]) -> Drops:
        return {(2, Direction.FORWARD, index): lost for index, lost in row.items()}

    (loss,) = walk(PLANS["CSC", 2, 2], at(queues), at(insides)).hops
    assert (loss.instance, loss.direction, loss.lost) == (2, Direction.FORWARD, 90)
    assert (loss.owner, loss.cause, loss.last, loss.next) == (owner, cause, last, following)


def test_what_no_counter_saw_arrive_is_the_receivers_with_that_remark() -> None:
    plan = PLANS["CSC", 1, 1]
    found = walk(plan, {(1, Direction.FORWARD, 1): 90}, {}, blind="generator")
    assert [(loss.owner, loss.cause, loss.next) for loss in found.hops] == [("vswitch", "link", "csv1p1")]


def test_an_owner_without_counters_is_charged_with_what_is_lost_across_it() -> None:
    plan = PLANS["CSC", 2, 2]
    found = walk(plan, {}, {(1, Direction.REVERSE, 4): 90}, blind="nf-1-2")
    assert [(loss.owner, loss.cause, loss.lost) for loss in found.hops] == [("nf-1-2", "inside", 90)]


def test_a_few_packets_of_the_systems_own_are_no_loss() -> None:
    assert walk(PLANS["CSC", 1, 1], {}, {(1, Direction.FORWARD, 4): 2}).hops == ()


def goal(upper: float | None) -> GoalResult:
    return GoalResult(
        goal=Goal(name="PDR", loss_ratio=0.005), lower_pps=None, upper_pps=upper, throughput_pps=None, complete=True
    )


@pytest.mark.parametrize(
    ("uppers", "expected"), [([1e6, 2e6], 1.1 * 2e6), ([None, 2e6], 1.1 * 2e6), ([2.9e6], 3e6), ([None], 3e6)]
)
def test_the_locating_trial_is_a_little_beyond_the_bounds(uppers: list[float | None], expected: float) -> None:
    trial = locating_trial(QUICK, FRAME, map(goal, uppers), 3e6)
    assert trial.load_pps == pytest.approx(expected)
    assert (trial.purpose, trial.duration_s) == ("locate", QUICK.mrr_duration_s)


def test_time_is_reported_in_shares_of_the_sending() -> None:
    plan = PLANS["CSC", 1, 1]
    before = Sample({"csv1p1": ThreadTime(100, 50), "csn1x1i1": ThreadTime(0, 0), "gone": ThreadTime(0, 0)}, {}, 3, 4)
    half, all_s = 250_000_000, 500_000_000
    after = Sample(
        {"csv1p1": ThreadTime(100 + half, 50 + half // 2), "csn1x1i1": ThreadTime(2 * all_s, all_s)},
        {5: CpuTime(0, all_s, half, 0)}, 3, 9,
    )  # fmt: skip
    found = usage(plan, before, after, 0.5)
    rows = {row.interface: (row.owner, row.cpu, row.running, row.waiting) for row in found.threads}
    assert rows["csv1p1"] == ("vswitch", plan.cores.cpus("vswitch")[0], 0.5, 0.25)
    assert rows["csn1x1i1"] == ("nf-1-1", plan.cores.cpus("nf-1-1")[0], 1.0, 0.0), "more than all of it is all of it"
    assert set(rows) == {"csv1p1", "csn1x1i1"}
    assert (found.cpus, found.backlog_dropped, found.squeezed) == ((), 0, 5)
    cpus = usage(plan, Sample(cpus={5: CpuTime(0, 0, 0, 0)}), after, 0.5).cpus
    assert [(row.cpu, row.system, row.softirq) for row in cpus] == [(5, 1.0, 0.5)]
    earlier, later = CpuTime(half // 2, 70, half, 50), CpuTime(half, 70, 2 * half, 50 + half)
    (cpu,) = usage(plan, Sample(cpus={5: earlier, 6: earlier}), Sample(cpus={5: later, 7: later}), 0.5).cpus
    assert (cpu.cpu, cpu.user, cpu.system, cpu.softirq, cpu.stolen) == (5, 0.25, 0.0, 0.5, 0.5)


def test_a_thread_is_on_the_machine_of_its_owner() -> None:
    plan = make_plan(lab(2), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    threads = {port.receiver: ThreadTime(0, 0) for link in plan.links for port in (link.a, link.b)}
    found = usage(plan, Sample(threads), Sample(threads), 1.0)
    expected = {(thread.owner, thread.machine) for thread in plan.cores.threads}
    assert {(row.owner, row.machine) for row in found.threads} <= expected
    assert len({row.machine for row in found.threads}) > 1
