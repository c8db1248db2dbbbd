"""Passive NFs in a plan: each has cores, one link, and copies of the one segment that it is at."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.memory import PROGRAM_MB, need
from resources.libraries.python.planning.placement.cores import demand
from resources.libraries.python.planning.placement.queues import balance
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.planning.matrix import core_usage
from tests.builders import cell_of, shipped
from tests.unit.examples import share
from tests.unit.nf_sizes import nf_sizes
from tests.unit.planning.labs import lab

LOCAL = shipped("local")
MACHINE = layout([(cpu, cpu % 120, 0, 0) for cpu in range(240)])
WATCHING = st.sampled_from([NfKind("tcpdump"), NfKind("netsniff"), NfKind("pktstat"), NfKind("ngrep")])


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    kind = draw(st.sampled_from([ServiceType.CSC, ServiceType.VSC, ServiceType.CSP]))
    nodes = draw(st.integers(1 if kind is ServiceType.VSC else 0, 5))
    positions = st.sampled_from([1, nodes + 1]) if kind.is_pipeline else st.integers(1, nodes + 1)
    taps = st.builds(Tap, position=positions, kind=WATCHING, size=nf_sizes)
    return cell_of(kind, draw(st.integers(1, 4)), nodes, taps=tuple(draw(st.lists(taps, min_size=1, max_size=4))))


TCPDUMP = NfKind("tcpdump")


def planned(cell: Cell) -> Plan:
    return make_plan(LOCAL, cell, MACHINE)


def chain(*positions: int, nodes: int = 2, kind: NfKind = TCPDUMP, chains: int = 1) -> Cell:
    taps = tuple(Tap(position=position, kind=kind) for position in positions)
    return cell_of("CSC", chains, nodes, taps=taps)


@settings(max_examples=share(60))
@given(cells())
def test_every_tap_gets_cores_and_copies_of_one_segment_and_changes_nothing_else(cell: Cell) -> None:
    untapped = cell.model_copy(update={"taps": ()})
    plan, without = planned(cell), planned(untapped)
    segments = {segment.name: segment for segment in plan.segments}
    peer = {link.b.interface: link.a for link in plan.links}
    for tap in plan.taps:
        segment, asked = segments[tap.segment], cell.taps[tap.number - 1]
        assert (segment.instance, tap.kind, tap.size) == (tap.instance, asked.kind, asked.size)
        assert peer[tap.interface].owner == "vswitch"
        assert peer[tap.interface].interface in segment.copies
        behind_all = 1 < asked.position == cell.nf_nodes + 1
        assert segment.position == (1 + behind_all if cell.service_type.is_pipeline else asked.position)
        assert len(plan.cores.cpus(tap.name)) == int(2 * tap.size.cores)  # two siblings to a core
        assert len(plan.cores.cpus(tap.name, ThreadRole.MAIN)) == 1
    copies = [port for segment in plan.segments for port in segment.copies]
    assert len(copies) == len(set(copies)) == len(plan.taps) == cell.tap_count
    assert not {port for segment in plan.segments for port in segment.members}.intersection(copies)
    ports = plan.ports()
    data = [thread.cpu for thread in plan.cores.threads if thread.role is ThreadRole.DATA]
    for unique in ([port.interface for port in ports], [port.mac for port in ports], data):
        assert len(set(unique)) == len(unique)
    assert all(len(port.interface) <= 15 for port in ports)
    assert core_usage(cell) - core_usage(untapped) == sum(cell.nf_chains * (tap.size.cores + 0.5) for tap in cell.taps)
    assert need(LOCAL, cell).ordinary_mb - need(LOCAL, untapped).ordinary_mb == (2 + PROGRAM_MB) * cell.tap_count
    assert (plan.functions, plan.flows, plan.paths) == (without.functions, without.flows, without.paths)
    assert tuple(link for link in plan.links if not link.b.owner.startswith("tap-")) == without.links
    assert [segment.members for segment in plan.segments] == [segment.members for segment in without.segments]
    for owner in ("generator", "vswitch"):
        assert plan.cores.cpus(owner) == without.cores.cpus(owner)
    assert balance(cell, plan.cores).vswitch == balance(untapped, without.cores).vswitch
    assert digest_of_model(plan) != digest_of_model(without)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_chain_of_passive_nfs_only_is_the_path_with_copies() -> None:
    plan = planned(chain(1, 1, nodes=0, chains=2))
    assert [segment.members for segment in plan.segments] == [("csv1p1", "csv1p2"), ("csv2p1", "csv2p2")]
    assert [segment.copies for segment in plan.segments] == [("csv1t1", "csv1t2"), ("csv2t1", "csv2t2")]
    assert [len(path.hops) for path in plan.paths] == [4] * 4
    macs = {port.interface: port.mac for port in plan.ports("generator")}
    assert all(flow.destination_mac == macs[flow.rx_interface] for flow in plan.flows)
    assert plan.suite_id == "eth-l2bd-2ch-0veth-0dcr2t-path-tap1tcpdump+1tcpdump"
    assert "PASSIVE_NFS" in plan.tags


def test_limits_and_programs_come_to_the_nf_that_they_are_of() -> None:
    program, slow = UserProgram(start=("cat",)), Limits(cpu=0.2, memory_mib=32)
    router, process = NfKind("linux_router"), NfKind("process")
    tap = Tap(position=3, kind=process, program=program, limits=slow)
    more = {"limits": (Limits(), slow), "programs": (None, program), "taps": (tap,)}
    cell = cell_of("CSC", 2, 2, nf_kinds=(router, process), **more)
    plan = planned(cell)
    assert {nf.node: (nf.limits, nf.program) for nf in plan.functions} == {1: (Limits(), None), 2: (slow, program)}
    assert {(tap.limits, tap.program) for tap in plan.taps} == {(slow, program)}
    assert plan.suite_id.endswith("lnxip4+process-tap3process-limited")
    assert "limits" not in plan.functions[0].model_dump_json()
    assert need(LOCAL, cell).ordinary_mb == need(LOCAL, cell_of("CSC", 2)).ordinary_mb + 4 * 34


def test_instances_may_be_services_of_different_kinds_and_sizes() -> None:
    kinds = tuple(map(NfKind, ("linux_gateway", "ngrep", "nginx_proxy")))
    sizes = (NfSize.ONE, NfSize.TWO, NfSize.ONE)
    limits = (Limits(), Limits(cpu=0.5), Limits())
    cell = cell_of("CSC", 3, 1, instance_kinds=kinds, nf_sizes=sizes, limits=limits)
    plan = planned(cell)
    assert tuple(nf.kind for nf in plan.functions) == kinds
    assert tuple(nf.size for nf in plan.functions) == sizes
    assert tuple(nf.limits for nf in plan.functions) == limits
    assert [len(plan.cores.cpus(nf.name)) for nf in plan.functions] == [2, 4, 2]
    assert demand(cell, LOCAL.dut.core_sharing).nf_data == 4
    assert plan.suite_id == "eth-l2bd-3ch-6veth-3dcr1c+2c+1c-lnxgw_ngrep_nginxproxy-limited"
    assert need(LOCAL, cell).ordinary_mb == 2 + 2 + 2 * (2 + PROGRAM_MB)
    first = cell.first_instances(1)
    assert Cell.model_validate(first.model_dump()) == first
    assert (first.kind_of(1), first.size_of(1), first.limits_of(1)) == (kinds[0], sizes[0], Limits())


def sharing(kind: str, *nodes: int) -> dict[str, object]:
    return {"service_type": kind, "nf_nodes": 3, "shared_nodes": nodes}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"taps": [{"position": 3, "kind": "ngrep"}]}, "passive NF at position 3: an instance has 1 NFs, and 2 is b"),
        ({"taps": [{"position": 2, "kind": "ngrep"}], "nf_nodes": 2, "service_type": "CSP"}, "position 2: in a CSP "),
        ({"taps": [{"position": 1, "kind": "linux_nat"}]}, "taps.0.* linux_nat cannot be passive: packets have to go"),
        ({"taps": [{"position": 1, "kind": "process"}]}, "an NF of kind process needs a program"),
        ({"nf_kinds": ["process"]}, "node 1 of instance 1: an NF of kind process needs a program"),
        ({"programs": [{"start": ["cat"]}]}, "only an NF of kind process can have a program, not the default"),
        ({"limits": [{"cpu": 1.0}, {}]}, "2 limits for 1 NFs; give one for each"),
        ({"instance_kinds": ["ngrep"] * 3}, "3 kinds for 2 service instances; give each one"),
        ({"instance_kinds": ["ngrep"] * 2, "nf_nodes": 2}, "service instances of different kinds have one NF each"),
        ({"service_type": "VSC", "nf_nodes": 0}, "a VSC without any NF has no VM"),
        (sharing("CSP", 1, 4), "node 4 is to be shared, and an instance has 3 NFs"),
        (sharing("CSP", 3, 1), r"shared nodes \(3, 1\): write each once, in ascending order"),
        (sharing("CSC", 1), "nodes are shared in a CSP only, .*: in a CSC every hop crosses the vSwitch"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=f"(?s){said}"):
        Cell.model_validate({"service_type": "CSC", "nf_chains": 2, "nf_nodes": 1, **asked})


def test_a_testbed_that_cannot_says_why() -> None:
    with pytest.raises(PlanError, match="testbed lab: VPP makes no copies for passive NFs here"):
        make_plan(lab(vswitch="vpp"), chain(1), {})
    with pytest.raises(PlanError, match="has no passive NFs of kind tcpdump; it has none"):
        make_plan(lab(vswitch="linux_bridge", containers="linux_router"), chain(1), {})


def test_two_duts_have_the_same_taps_each() -> None:
    topology = lab(duts=2, pairs=2, vswitch="linux_bridge", containers=["linux_router", "tcpdump"])
    plan = make_plan(topology, chain(1, 3, nodes=2), dict.fromkeys(topology.nodes, MACHINE))
    assert [(plan.machines[tap.name], tap.segment) for tap in plan.taps] == [
        ("DUT1", "csb1x1"), ("DUT1", "csb1x3"), ("DUT2", "csb1x4"), ("DUT2", "csb1x6"),
    ]  # fmt: skip
    assert {thread.machine for thread in plan.cores.threads if thread.owner == "tap-1-4"} == {"DUT2"}


@pytest.mark.parametrize("position", [1, 3])
def test_a_cable_that_instances_share_is_not_watched_for_one_of_them(position: int) -> None:
    topology = lab(discriminator="mac", vswitch="linux_bridge", containers=["linux_router", "tcpdump"])
    with pytest.raises(PlanError, match=f"position {position} would get copies of all 2 service instances"):
        make_plan(topology, chain(position, chains=2), {})
    assert make_plan(topology, chain(2, chains=2), {}).taps and make_plan(topology, chain(position), {}).taps
