"""Losses where instances share ports: what only sums can tell is told of all instances, the rest of each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.findings.evidence import HopLoss, LocatedLosses
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, TrialResult
from resources.libraries.python.model.plan import Hop, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.limits import limits
from resources.libraries.python.search.findings.locate import by_owner, locate
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import FRAME

SENT = 1000
Losses = dict[tuple[int, Direction, int], int]
"""Instance, direction and index of the first hop that does not count the packets; drops are the sender's to count."""


def planned(instances: int, nodes: int, duts: int = 1) -> Plan:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=instances, nf_nodes=nodes)
    return make_plan(lab(duts, 1, discriminator="mac"), cell, {})


PLANS = [planned(1, 1), planned(3, 1), planned(2, 2), planned(2, 1, 2)]


def walked(plan: Plan, losses: Losses) -> tuple[TrialResult, dict[str, InterfaceCounters]]:
    """Send packets through a plan; ports of several instances add up."""
    rows = {port.interface: [0, 0, 0, 0] for link in plan.links for port in (link.a, link.b)}
    flows = []
    for path in plan.paths:
        left = SENT
        for index, hop in enumerate(path.hops):
            lost = losses.get((path.instance, path.direction, index), 0)
            left -= lost
            rows[hop.interface][0 if hop.counter == "rx" else 1] += left
            if hop.counter == "rx":  # it met a full queue: the sending port counts it as dropped, not as sent
                rows[path.hops[index - 1].interface][1] -= lost
                rows[path.hops[index - 1].interface][3] += lost
        flows.append(FlowCount(instance=path.instance, direction=path.direction, sent=SENT, received=left))
    trial = connectivity_trial(plan, FRAME)
    result = TrialResult(trial=trial, started_at="", offered_duration_s=0.2, total_duration_s=0.3, flows=tuple(flows))
    return result, {name: InterfaceCounters(*row) for name, row in rows.items()}


def located(plan: Plan, losses: Losses) -> LocatedLosses:
    result, after = walked(plan, losses)
    zero = dict.fromkeys(after, InterfaceCounters(0, 0, 0, 0))
    return locate(plan, [result], zero, after)


@st.composite
def some_losses(draw: st.DrawFn) -> tuple[Plan, Losses]:
    plan = draw(st.sampled_from(PLANS))
    return plan, {
        (path.instance, path.direction, index): lost
        for path in plan.paths
        for index in range(1, len(path.hops))
        if (lost := draw(st.sampled_from([0, 0, 0, 5, 40])))
    }


@settings(deadline=None)  # a busy machine is no error
@given(some_losses())
def test_every_loss_is_charged_to_its_owner_and_none_is_left(made: tuple[Plan, Losses]) -> None:
    plan, losses = made
    found = located(plan, losses)
    paths = {(path.instance, path.direction): path.hops for path in plan.paths}
    expected: dict[str, int] = {}
    for (instance, direction, index), lost in losses.items():
        owner = paths[instance, direction][index].owner
        expected[owner] = expected.get(owner, 0) + lost
    assert by_owner(found.hops) == expected
    assert sum(loss.lost for loss in found.hops) == found.sent - found.received


def hop_of(plan: Plan, interface: str) -> tuple[int, Hop]:
    return next((index, hop) for index, hop in enumerate(plan.paths[0].hops) if hop.interface == interface)


@pytest.mark.parametrize(
    ("interface", "instance", "owner", "cause"),
    [
        ("csv0p1", 0, "vswitch", "queue"),  # the cable into the shared port
        ("csv1x1i1", 0, "vswitch", "inside"),  # from the shared port to that of the instance
        ("csn1x1i1", 1, "nf-1-1", "queue"),
        ("csn1x1i2", 1, "nf-1-1", "inside"),
        ("csv0p2", 0, "vswitch", "inside"),
        ("csg0p2", 0, "generator", "queue"),
    ],
)
def test_errors_name_the_instance_where_it_is_known(interface: str, instance: int, owner: str, cause: str) -> None:
    plan = planned(3, 1)
    index, _ = hop_of(plan, interface)
    (loss,) = located(plan, {(1, Direction.FORWARD, index): 90}).hops
    assert (loss.instance, loss.owner, loss.cause, loss.lost) == (instance, owner, cause, 90)


def test_a_single_instance_has_the_port_to_itself() -> None:
    plan = planned(1, 1)
    (loss,) = located(plan, {(1, Direction.REVERSE, 1): 90}).hops
    assert (loss.instance, loss.last, loss.next) == (1, "csg0p2", "csv0p2")


def test_the_first_trial_does_not_take_the_others_packets_for_its_own() -> None:
    """Instance 2 ends before its NF; the shared port has seen the packets of the other two."""
    plan = planned(3, 1)
    result, after = walked(plan, {(2, Direction.FORWARD, 3): SENT})
    zero = dict.fromkeys(after, InterfaceCounters(0, 0, 0, 0))
    assert diagnose(plan, result, zero, after) == (
        "CSC instance 2 forward: 1000 sent, last seen at generator csg0p1 tx (1000), not at vswitch csv2x1i1 tx (0)",
    )


def test_evidence_names_its_owner() -> None:
    plan = planned(2, 1, 2)
    index, _ = hop_of(plan, "csv0p3")
    found = located(plan, {(1, Direction.FORWARD, index): 60, (2, Direction.FORWARD, index): 30})
    (first, *_) = limits(plan, found, ("NDR",))
    assert first.kind == "vswitch-bound"
    assert "90 of them at vswitch-2: 90 in all instances forward met a full receive queue at csv0p3" in first.text


def test_where_each_instance_has_its_own_port_the_others_are_counted() -> None:
    plan = planned(3, 1)
    index, _ = hop_of(plan, "csv0p2")
    (loss,) = located(plan, {(2, Direction.FORWARD, index): 90}).hops
    assert (loss.last, loss.next, loss.owner) == ("csv1x1i2 and 2 more", "csv0p2", "vswitch")


def test_losses_of_other_hops_stay_with_their_instance() -> None:
    plan = planned(2, 2)
    index, _ = hop_of(plan, "csn1x2i1")
    found = located(plan, {(2, Direction.FORWARD, index): 30, (1, Direction.FORWARD, 1): 10})
    assert {(loss.instance, loss.owner): loss.lost for loss in found.hops} == {(2, "nf-2-2"): 30, (0, "vswitch"): 10}
    assert all(isinstance(loss, HopLoss) for loss in found.hops)
