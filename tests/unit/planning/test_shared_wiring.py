"""NFs that instances share, and services without NFs: threads, interfaces, segments and paths."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.nodes import Sizes
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.placement.cores import demand
from resources.libraries.python.planning.placement.queues import Spread, balance
from resources.libraries.python.planning.plan import drivers_of, make_plan
from resources.libraries.python.studies.density.planning.matrix import core_usage
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import cell_of, shipped
from tests.unit.examples import share
from tests.unit.nf_sizes import nf_sizes
from tests.unit.planning.labs import lab

LOCAL = shipped("local")
MACHINE = layout([(cpu, cpu % 400, 0, 0) for cpu in range(800)])
KINDS = (NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_nat"))


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    nodes = draw(st.integers(1, 6))
    return cell_of(
        "CSP",
        draw(st.integers(1, 6)),
        nodes,
        nf_sizes=tuple(draw(st.lists(nf_sizes, min_size=nodes, max_size=nodes))),
        nf_kinds=tuple(draw(st.lists(st.sampled_from(KINDS), min_size=nodes, max_size=nodes))),
        shared_nodes=tuple(sorted(draw(st.sets(st.integers(1, nodes))))),
    )


def planned(cell: Cell) -> Plan:
    return make_plan(LOCAL, cell, MACHINE)


def split_and_merge(*kinds: NfKind) -> Cell:
    return cell_of("CSP", 2, 3, nf_kinds=kinds, shared_nodes=(1, 3))


@settings(max_examples=share(60))
@given(cells())
def test_every_nf_has_its_threads_once_and_the_demand_counts_them(cell: Cell) -> None:
    plan = planned(cell)
    names = {function.name for function in plan.functions}
    assert len(names) == cell.nf_count == len(plan.nfs)
    threads = [thread for thread in plan.cores.threads if thread.owner in names]
    assert Counter(t.owner for t in threads if t.role is ThreadRole.MAIN) == dict.fromkeys(names, 1)
    data = [(t.owner, t.index) for t in threads if t.role is ThreadRole.DATA]
    assert len(set(data)) == len(data)
    sizes = [cell.size_of(node) for _, node in cell.nfs()]
    assert len(data) == sum(int(2 * size.cores) for size in sizes)  # two siblings to a core
    halves = sizes.count(NfSize.HALF)
    needs = demand(cell, Sizes(), 1)
    assert needs.nf_data == sum(int(s.cores) for s in sizes if s != "0.5c") + ceil(halves / 2)
    assert needs.nf_main == ceil(cell.nf_count / 2)
    assert core_usage(cell) == 1 + cell.vs_dtc + sum(size.cores + 0.5 for size in sizes)
    cpus = [t.cpu for t in plan.cores.threads if t.role is ThreadRole.DATA]
    assert len(set(cpus)) == len(cpus)  # nothing is shared that has room
    for function in plan.nfs:
        ports, threads = plan.ports(function.name), len(plan.cores.cpus(function.name))
        used = Counter(port.data_thread for port in ports)
        assert set(used) <= set(range(threads))
        assert max(used.values()) - min(used.get(index, 0) for index in range(min(threads, len(ports)))) <= 1


@settings(max_examples=share(60))
@given(cells())
def test_answers_to_translated_packets_have_a_way_back(cell: Cell) -> None:
    plan = planned(cell)
    for function in plan.functions:
        before = [
            each.translates_to
            for each in plan.functions
            if each.instance == function.instance and each.node < function.node and each.translates_to
        ]
        assert list(function.left.route.also) == before
        assert function.right.route.also == ()
        assert (function.translates_to is not None) is (function.kind == "linux_nat")
    for flow in plan.flows:
        networks = [each.translates_to for each in plan.functions if each.instance == flow.instance]
        seen = [network for network in networks if network]
        if flow.direction is Direction.FORWARD or not seen:
            assert flow.answers_to is None
        else:
            assert flow.answers_to == seen[-1].replace("0.0/16", "0.1")
    networks = [function.translates_to for function in plan.functions if function.translates_to]
    assert len(set(networks)) == len(networks)


def test_a_split_and_merge_is_distinguished_from_other_cells_of_four_nfs() -> None:
    plan = planned(split_and_merge(KINDS[0], KINDS[1], KINDS[0]))
    assert [nf.name for nf in plan.nfs] == ["nf-0-1", "nf-1-2", "nf-0-3", "nf-2-2"]
    assert list(plan.cell.nfs()) == [(0, 1), (1, 2), (0, 3), (2, 2)]
    assert [plan.cell.count_of(node) for node in (1, 2, 3)] == [1, 2, 1]
    assert plan.suite_id == "eth-l2bd-2pl-4veth-4dcr2t-lnxip4+lnxfw+lnxip4-shared1+3"
    assert "SHARED_NFS" in plan.tags
    assert digest_of_model(plan) != digest_of_model(planned(split_and_merge().model_copy(update={"shared_nodes": ()})))


def test_its_queues_and_its_memory_are_counted_once() -> None:
    cell = split_and_merge()
    assert balance(cell, planned(cell).cores).nfs == (("1c shared", Spread(4, 2)), ("1c", Spread(2, 2)))
    apart = cell.model_copy(update={"shared_nodes": ()})
    assert need(LOCAL, apart).ordinary_mb - need(LOCAL, cell).ordinary_mb == 2 * 2
    mixed = split_and_merge(*KINDS)
    assert need(LOCAL, mixed) == need(LOCAL, cell)


@pytest.mark.parametrize(
    ("testbed", "kind"), [("available/lab-2n-vpp", NfKind("vpp")), ("local-ovs", NfKind("testpmd"))]
)
def test_kinds_with_just_two_interfaces_are_refused_in_a_sentence(testbed: str, kind: NfKind) -> None:
    topology = shipped(testbed)
    with pytest.raises(
        PlanError, match=rf"kind {kind} \(node 1\) has two interfaces and cannot be shared by instances"
    ):
        make_plan(topology, split_and_merge(kind), dict.fromkeys(topology.nodes, MACHINE))


def test_two_duts_have_a_split_and_merge_each() -> None:
    topology = lab(duts=2, pairs=2, vswitch="linux_bridge", containers="linux_router")
    plan = make_plan(topology, split_and_merge(), dict.fromkeys(topology.nodes, MACHINE))
    assert {nf.name: plan.machines[nf.name] for nf in plan.nfs} == {
        **dict.fromkeys(("nf-0-1", "nf-1-2", "nf-0-3", "nf-2-2"), "DUT1"),
        **dict.fromkeys(("nf-0-4", "nf-1-5", "nf-0-6", "nf-2-5"), "DUT2"),
    }


def test_the_number_of_sources_can_be_chosen_within_the_address_plan() -> None:
    assert {flow.sources for flow in planned(split_and_merge()).flows} == {254}
    assert {flow.sources for flow in make_plan(LOCAL, split_and_merge(), MACHINE, sources=1000).flows} == {1000}
    for sources in (0, 65535):
        with pytest.raises(PlanError, match=f"{sources} source addresses .*; the address plan holds 1 to 65534"):
            make_plan(LOCAL, split_and_merge(), MACHINE, sources=sources)


def test_a_record_names_the_kinds_of_its_cell_and_not_all_that_the_testbed_offers() -> None:
    def told(kind: str, *kinds: NfKind) -> str:
        offered = {"vswitch": "linux_bridge", "containers": "linux_router, linux_firewall, linux_nat"}
        return drivers_of(LOCAL, cell_of(kind, 1, 2, nf_kinds=kinds), offered)["containers"]

    router, firewall, nat = KINDS
    assert told("CSC") == told("VSC") == "linux_router"
    assert told("CSP", router, firewall) == "linux_router, linux_firewall"
    assert told("CSP", nat, nat) == "linux_nat"
    assert drivers_of(LOCAL, split_and_merge(), {"functions": "sim"}) == {"functions": "sim"}


@pytest.mark.parametrize(("service_type", "nodes"), [("CSC", 1), ("CSP", 0)])
def test_segments_at_shared_cables_join_all_instances_and_are_numbered_along_the_service(
    service_type: str, nodes: int
) -> None:
    topology = lab(2, discriminator="mac", vswitch="linux_bridge", containers="linux_router")
    cell = cell_of(service_type, 2, nodes)
    inner = ["x1i1", "x1i2", "x2i1", "x2i2"] if nodes else ["x0i1", "x0i2", "x0i3", "x0i4"]
    segments = make_plan(topology, cell, {}).segments
    assert [(each.name, each.instance, each.position, each.members) for each in segments] == [
        ("csb0x1", 0, 1, ("csv0p1", f"csv1{inner[0]}", f"csv2{inner[0]}")),
        ("csb0x2", 0, 2, (f"csv1{inner[1]}", f"csv2{inner[1]}", "csv0p2")),
        ("csb0x3", 0, 3, ("csv0p3", f"csv1{inner[2]}", f"csv2{inner[2]}")),
        ("csb0x4", 0, 4, (f"csv1{inner[3]}", f"csv2{inner[3]}", "csv0p4")),
    ]  # fmt: skip
    topology = lab(2, discriminator="mac", vswitch="linux_bridge", containers=["linux_router", "tcpdump"])
    cell = cell_of("CSC", 1, 0, taps=(Tap(position=1, kind=NfKind("tcpdump")),))
    found = [(each.name, each.members, each.copies) for each in make_plan(topology, cell, {}).segments]
    assert found == [("csb0x1", ("csv0p1", "csv0p2"), ("csv1t1",)), ("csb0x2", ("csv0p3", "csv0p4"), ("csv1t2",))]


PATH = cell_of("CSP", 1, 0)
ROUTER = PATH.model_copy(update={"nf_nodes": 1, "nf_kinds": (NfKind("linux_router"),)})


def crossings(plan: Plan) -> list[int]:
    """Of vSwitches, by path."""
    return [sum(hop.owner.startswith("vswitch") and hop.counter == "rx" for hop in path.hops) for path in plan.paths]


def test_packets_cross_the_vswitch_as_often_as_with_an_nf_and_come_out_at_the_other_port() -> None:
    plan = make_plan(LOCAL, PATH, MACHINE)
    assert (plan.functions, crossings(plan)) == ((), [2, 2])
    assert crossings(make_plan(LOCAL, ROUTER, MACHINE)) == [2, 2]
    assert [[hop.interface for hop in path.hops] for path in plan.paths if path.direction is Direction.FORWARD] == [
        ["csg1p1", "csv1p1", "csv1x0i1", "csv1x0i2", "csv1p2", "csg1p2"]
    ]
    macs = {port.interface: port.mac for port in plan.ports("generator")}
    assert [flow.destination_mac for flow in plan.flows] == [macs["csg1p2"], macs["csg1p1"]]
    assert [segment.members for segment in plan.segments] == [("csv1p1", "csv1x0i1"), ("csv1x0i2", "csv1p2")]
    (cable,) = (link for link in plan.links if {link.a.owner, link.b.owner} == {"vswitch"})
    assert (cable.a.interface, cable.b.interface, cable.medium) == ("csv1x0i1", "csv1x0i2", Medium.VETH)
    assert len({port.mac for port in plan.ports()}) == 6
    assert {thread.owner for thread in plan.cores.threads} == {"system", "generator", "vswitch"}
    assert core_usage(PATH) == 2 and balance(PATH, plan.cores).nfs == ()
    assert plan.suite_id == "eth-l2bd-1pl-2veth-0dcr2t-path"
    for vswitch in ("linux_bridge", "ovs"):
        two = make_plan(lab(duts=2, vswitch=vswitch), PATH, {})
        assert crossings(two) == [4, 4] and set(two.machines) == {"generator", "vswitch", "vswitch-2"}
    with pytest.raises(PlanError, match="a vSwitch that shares memory with NFs"):
        make_plan(lab(vswitch="vpp"), PATH, {})
    with pytest.raises(ConfigError):
        parse_selection(cells="1x0")
