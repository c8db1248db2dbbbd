"""MAC addresses behind the ports of segments, from plans of labs."""

from typing import Any

from resources.libraries.python.drivers.vswitches.stations import stations
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of
from tests.unit.planning.labs import lab


def stations_plan(duts: int) -> Plan:
    """Two instances that share cables by MAC, over one DUT or two."""
    kinds: Any = {"vswitch": "linux_bridge", "containers": "linux_router", "trex": {"ports": "af_packet"}}
    topology = lab(duts, discriminator="mac", cores=32, tg_cores=32, with_macs=False, **kinds)
    return make_plan(topology, cell_of("CSC", 2, 1), {})


def test_each_instance_is_behind_its_own_port() -> None:
    plan = stations_plan(1)
    first, last = (segment for segment in plan.segments if segment.instance == 0)
    sources = {flow.source_mac for flow in plan.flows if flow.tx_interface == "csg0p1"}
    found = stations(plan, first)
    assert {name: set(macs) for name, macs in found.items()} == {
        "csv0p1": sources,
        "csv1x1i1": {plan.function("nf-1-1").left.mac},
        "csv2x1i1": {plan.function("nf-2-1").left.mac},
    }
    # Every frame that crosses a segment has an address that is known there.
    known = {mac for macs in (*found.values(), *stations(plan, last).values()) for mac in macs}
    assert {flow.destination_mac for flow in plan.flows} <= known
    assert {hop.mac for nf in plan.functions for hop in (nf.left.route, nf.right.route)} <= known


def test_behind_a_cable_to_another_vswitch_are_its_stations() -> None:
    plan = stations_plan(2)
    between = next(segment for segment in plan.segments if segment.instance == 0 and "csv0p2" in segment.members)
    found = stations(plan, between)
    assert set(found["csv0p2"]) == {plan.function(name).left.mac for name in ("nf-1-2", "nf-2-2")}
    assert found["csv1x1i2"] == (plan.function("nf-1-1").right.mac,)
