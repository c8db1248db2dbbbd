"""A service without NFs: a cable in their place, so that packets cross the vSwitch as often as with them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.placement.queue_balance import balance
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import core_usage
from tests.unit.planning.labs import lab

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LOCAL = load_topology(TOPOLOGIES / "local.yaml")
PATH = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=0)
ROUTER = PATH.model_copy(update={"nf_nodes": 1, "nf_kinds": (NfKind("linux_router"),)})
MACHINE = layout([(cpu, cpu, 0, 0) for cpu in range(16)])


def crossings(plan: Plan) -> list[int]:
    """Of the vSwitch, by path."""
    return [sum(hop.owner == "vswitch" and hop.counter == "rx" for hop in path.hops) for path in plan.paths]


def test_packets_cross_the_vswitch_as_often_as_with_an_nf_and_come_out_at_the_other_port() -> None:
    plan = make_plan(LOCAL, PATH, MACHINE)
    assert (plan.functions, crossings(plan)) == ((), [2, 2])
    assert crossings(make_plan(LOCAL, ROUTER, MACHINE)) == [2, 2]
    assert [[hop.interface for hop in path.hops] for path in plan.paths if path.direction is Direction.FORWARD] == [
        ["csg1p1", "csv1p1", "csv1x0i1", "csv1x0i2", "csv1p2", "csg1p2"]
    ]
    assert all(
        hop.counter == ("rx" if index % 2 else "tx") for path in plan.paths for index, hop in enumerate(path.hops)
    )
    macs = {port.interface: port.mac for port in plan.ports("generator")}
    assert {flow.tx_interface: flow.destination_mac for flow in plan.flows} == {
        "csg1p1": macs["csg1p2"],
        "csg1p2": macs["csg1p1"],
    }


def test_a_cable_joins_the_two_halves_of_the_vswitch() -> None:
    plan = make_plan(LOCAL, PATH, MACHINE)
    assert [segment.members for segment in plan.segments] == [("csv1p1", "csv1x0i1"), ("csv1x0i2", "csv1p2")]
    (cable,) = (link for link in plan.links if {link.a.owner, link.b.owner} == {"vswitch"})
    assert (cable.a.interface, cable.b.interface, cable.medium) == ("csv1x0i1", "csv1x0i2", Medium.VETH)
    assert len({port.mac for link in plan.links for port in (link.a, link.b)}) == 6


def test_it_takes_the_cores_of_the_vswitch_and_says_so_in_its_name() -> None:
    plan = make_plan(LOCAL, PATH, MACHINE)
    assert {thread.owner for thread in plan.cores.threads} == {"system", "generator", "vswitch"}
    assert core_usage(PATH) == 2
    assert balance(PATH, plan.cores).nfs == ()
    assert plan.suite_id == "eth-l2bd-1pl-2veth-0dcr1t-path"


@pytest.mark.parametrize("vswitch", ["linux_bridge", "ovs"])
def test_on_two_duts_there_is_a_cable_on_each(vswitch: str) -> None:
    plan = make_plan(lab(duts=2, vswitch=vswitch), PATH, {})
    assert crossings_of_all(plan) == [4, 4]
    assert set(plan.machines) == {"generator", "vswitch", "vswitch-2"}


def crossings_of_all(plan: Plan) -> Sequence[int]:
    return [sum(hop.owner.startswith("vswitch") and hop.counter == "rx" for hop in path.hops) for path in plan.paths]


def test_no_cable_is_like_shared_memory() -> None:
    with pytest.raises(PlanError, match="a vSwitch that shares memory with NFs"):
        make_plan(lab(vswitch="vpp"), PATH, {})


def test_the_density_matrix_has_no_cell_without_nfs() -> None:
    with pytest.raises(ConfigError):
        parse_selection(cells="1x0")
