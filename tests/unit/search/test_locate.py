"""Losses are found between the hops where they happened, also at shared ports, and charged to an owner."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.findings import LocatedLosses
from resources.libraries.python.model.measurements.counters import CpuTime, InterfaceCounters, Sample, ThreadTime
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import Goal, GoalResult
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.locate import by_owner, locate, locating_trial
from resources.libraries.python.search.findings.usage import usage
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.search.profiles import QUICK
from tests.builders import cell_of, finished
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import FRAME, planned

FORWARD, REVERSE = Direction
SENT = 100_000
Losses = Mapping[tuple[int, Direction, int], int]
"""Instance, direction, and index of the first hop that does not count the packets."""
Counters = dict[str, InterfaceCounters]


def sharing(instances: int, nodes: int, duts: int = 1) -> Plan:
    """Instances that share the ports at cables."""
    return make_plan(lab(duts, 1, discriminator="mac"), cell_of("CSC", instances, nodes), {})


APART = [planned("CSC", 1, 1), planned("CSC", 2, 2), planned("CSP", 2, 3), planned("CSC", 1, 4)]
SHARING = [sharing(1, 1), sharing(3, 1), sharing(2, 2), sharing(2, 1, 2)]


def walked(
    plan: Plan, losses: Losses, *, sent: int = SENT, own: int = 0, physical: bool = False, blind: str = ""
) -> tuple[TrialResult, Counters, Counters]:
    """A trial that loses packets on the way, with the counters before and after it; shared ports count all instances.

    Full queues are counted by the sending port, or as `physical` by the receiving one.
    """
    rows = {port.interface: [7, 7, 7, 7] for port in plan.ports()}
    before = {name: InterfaceCounters(*row) for name, row in rows.items()}
    flows = []
    for path in plan.paths:
        left = sent
        for index, hop in enumerate(path.hops):
            lost = losses.get((path.instance, path.direction, index), 0)
            left -= lost
            rows[hop.interface][0 if hop.counter == "rx" else 1] += left
            if hop.counter == "rx" and physical:
                rows[hop.interface][2] += lost
            elif hop.counter == "rx":
                sender = rows[path.hops[index - 1].interface]
                sender[1] -= lost
                sender[3] += lost
        flows.append(FlowCount(instance=path.instance, direction=path.direction, sent=sent, received=left))
    owners = {port.interface: port.owner for port in plan.ports()}
    after = {
        name: InterfaceCounters(rx + own, tx + own, *dropped)
        for name, (rx, tx, *dropped) in rows.items()
        if owners[name] != blind
    }
    return finished(connectivity_trial(plan, FRAME), flows=tuple(flows)), before, after


def located(plan: Plan, losses: Losses, *, physical: bool = False, blind: str = "") -> LocatedLosses:
    result, before, after = walked(plan, losses, physical=physical, blind=blind)
    return locate(plan, [result], before, after)


@given(st.sampled_from([*APART, *SHARING]), st.booleans(), st.data())
def test_every_loss_is_charged_to_its_owner_and_none_is_left(plan: Plan, physical: bool, data: st.DataObject) -> None:
    losses, expected = dict[tuple[int, Direction, int], int](), dict[str, int]()
    for path in plan.paths:
        for index, hop in enumerate(path.hops):
            lost = data.draw(st.sampled_from([0, 0, 0, 5, 1000]))
            if index and lost:
                losses[path.instance, path.direction, index] = lost
                expected[hop.owner] = expected.get(hop.owner, 0) + lost
    found = located(plan, losses, physical=physical and plan in APART)
    assert by_owner(found.hops) == expected
    assert sum(loss.lost for loss in found.hops) == found.sent - found.received
    assert {loss.cause for loss in found.hops} <= {"queue", "inside"}


@pytest.mark.parametrize(
    ("plan", "index", "instance", "owner", "cause", "last", "following"),
    [
        (APART[1], 3, 2, "nf-2-1", "queue", "csv2p1", "csn2x1i1"),
        (APART[1], 4, 2, "nf-2-1", "inside", "csn2x1i1", "csn2x1i2"),
        (APART[1], 5, 2, "vswitch", "queue", "csn2x1i1", "csv2x1i2"),
        (APART[1], 2, 2, "vswitch", "inside", "csv2p1", "csv2x1i1"),
        (APART[1], 11, 2, "generator", "queue", "csv2x2i2", "csg2p2"),
        (SHARING[1], 1, 0, "vswitch", "queue", "csg0p1", "csv0p1"),  # the cable into the shared port
        (SHARING[1], 2, 0, "vswitch", "inside", "csv0p1", "csv1x1i1 and 2 more"),
        (SHARING[1], 3, 2, "nf-2-1", "queue", "csv0p1", "csn2x1i1"),
        (SHARING[1], 4, 2, "nf-2-1", "inside", "csn2x1i1", "csn2x1i2"),
        (SHARING[1], 6, 0, "vswitch", "inside", "csv1x1i2 and 2 more", "csv0p2"),
        (SHARING[1], 7, 0, "generator", "queue", "csv1x1i2 and 2 more", "csg0p2"),
    ],
)
def test_places_are_named_with_the_instance_where_it_is_known(  # noqa: PLR0917 - a row of the table above
    plan: Plan, index: int, instance: int, owner: str, cause: str, last: str, following: str
) -> None:
    (loss,) = located(plan, {(2, FORWARD, index): 90}).hops
    assert (loss.instance, loss.direction, loss.lost) == (instance, FORWARD, 90)
    assert (loss.owner, loss.cause, loss.last, loss.next) == (owner, cause, last, following)


def test_instances_that_share_ports_keep_their_own_losses_and_packets() -> None:
    (loss,) = located(SHARING[0], {(1, REVERSE, 1): 90}).hops
    assert (loss.instance, loss.last, loss.next) == (1, "csg0p2", "csv0p2")
    index = next(index for index, hop in enumerate(SHARING[2].paths[0].hops) if hop.interface == "csn1x2i1")
    found = located(SHARING[2], {(2, FORWARD, index): 30, (1, FORWARD, 1): 10})
    assert {(loss.instance, loss.owner): loss.lost for loss in found.hops} == {(2, "nf-2-2"): 30, (0, "vswitch"): 10}
    # Instance 2 ends before its NF; the shared port has seen the packets of the other two.
    assert diagnose(SHARING[1], *walked(SHARING[1], {(2, FORWARD, 3): 1000}, sent=1000)) == (
        "CSC instance 2 forward: 1000 sent, last seen at generator csg0p1 tx (1000), not at vswitch csv2x1i1 tx (0)",
    )


@pytest.mark.parametrize(
    ("plan", "lost", "blind", "expected"),
    [
        # What no counter saw arrive is the receiver's, with that remark.
        (APART[0], {(1, FORWARD, 1): 90}, "generator", [("vswitch", "link", 90)]),
        # An owner without counters is charged with what is lost across it.
        (APART[1], {(1, REVERSE, 4): 90}, "nf-1-2", [("nf-1-2", "inside", 90)]),
        # A few packets of the system's own are no loss.
        (APART[0], {(1, FORWARD, 4): 2}, "", []),
    ],
)
def test_missing_counters_and_a_few_packets(
    plan: Plan, lost: Losses, blind: str, expected: list[tuple[str, str, int]]
) -> None:
    assert [(loss.owner, loss.cause, loss.lost) for loss in located(plan, lost, blind=blind).hops] == expected


def complaints(plan: Plan, losses: Losses) -> tuple[str, ...]:
    """What is said of 200 packets; each interface sees three packets of the machine's own, the generator has none."""
    return diagnose(plan, *walked(plan, losses, sent=200, own=3, physical=True, blind="generator"))


def test_nothing_to_say_when_all_or_nearly_all_arrive_and_a_silent_generator_is_named() -> None:
    for losses in ({}, {(1, FORWARD, 4): 5}):
        assert [complaints(plan, losses) for plan in APART] == [()] * 4
    for sent, words in ((200, "not at generator csg1p2 rx (0)"), (0, "the generator sent nothing")):
        trial = connectivity_trial(APART[0], FRAME)
        line, *_ = diagnose(APART[0], finished(trial, (sent, 0), (sent, sent)), {}, {})
        assert line.startswith(f"CSC instance 1 forward: {sent} sent, ") and line.endswith(words)


@pytest.mark.parametrize(
    ("service_type", "direction", "end", "lost", "expected"),
    [
        ("CSC", "forward", 4, 200, "200 sent, last seen at nf-2-1 csn2x1i1 rx (203), not at nf-2-1 csn2x1i2 tx (3)"),
        ("CSC", "forward", 1, 200, "200 sent, last seen at generator csg2p1 tx (200), not at vswitch csv2p1 rx (3)"),
        ("CSC", "forward", 11, 200, "200 sent, last seen at vswitch csv2p2 tx (203), not at generator csg2p2 rx (0)"),
        ("CSP", "forward", 5, 200, "200 sent, last seen at nf-2-1 csn2x1i2 tx (203), not at nf-2-2 csn2x2i1 rx (3)"),
        ("CSC", "forward", 4, 120, "60 % of 200 packets are lost, last seen at nf-2-1 csn2x1i1 rx (203), not at "
         "nf-2-1 csn2x1i2 tx (83)"),
    ],
)  # fmt: skip
def test_the_last_hop_that_saw_packets_is_named(
    service_type: str, direction: str, end: int, lost: int, expected: str
) -> None:
    plan = planned(service_type, 2, 2)
    assert complaints(plan, {(2, Direction(direction), end): lost}) == (
        f"{service_type} instance 2 {direction}: {expected}",
    )


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
    plan = APART[0]
    before = Sample({"csv1p1": ThreadTime(100, 50), "csn1x1i1": ThreadTime(0, 0), "gone": ThreadTime(0, 0)}, {}, 3, 4)
    half, all_s = 250_000_000, 500_000_000
    after = Sample(
        {"csv1p1": ThreadTime(100 + half, 50 + half // 2), "csn1x1i1": ThreadTime(2 * all_s, all_s)},
        {5: CpuTime(0, all_s, half, 0)}, 3, 9,
    )  # fmt: skip
    found = usage(plan, before, after, 0.5)
    rows = {row.interface: (row.owner, row.cpu, row.running, row.waiting) for row in found.threads}
    assert rows == {
        "csv1p1": ("vswitch", plan.cores.cpus("vswitch")[0], 0.5, 0.25),
        "csn1x1i1": ("nf-1-1", plan.cores.cpus("nf-1-1")[0], 1.0, 0.0),
    }, "more than all of it is all of it"
    assert (found.cpus, found.backlog_dropped, found.squeezed) == ((), 0, 5)
    earlier, later = CpuTime(half // 2, 70, half, 50), CpuTime(half, 70, 2 * half, 50 + half)
    (cpu,) = usage(plan, Sample(cpus={5: earlier, 6: earlier}), Sample(cpus={5: later, 7: later}), 0.5).cpus
    assert (cpu.cpu, cpu.user, cpu.system, cpu.softirq, cpu.stolen) == (5, 0.25, 0.0, 0.5, 0.5)


def test_a_thread_is_on_the_machine_of_its_owner() -> None:
    plan = make_plan(lab(2), cell_of(), {})
    threads = {port.receiver: ThreadTime(0, 0) for port in plan.ports()}
    found = usage(plan, Sample(threads), Sample(threads), 1.0)
    expected = {(thread.owner, thread.machine) for thread in plan.cores.threads}
    assert {(row.owner, row.machine) for row in found.threads} <= expected
    assert len({row.machine for row in found.threads}) > 1
