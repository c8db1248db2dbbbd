"""Packet buffers of VPP: enough for the queues of its ports, the same number in plans, memory and startup.conf."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.vm_vpp.guest_software import VppInside
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice
from resources.libraries.python.drivers.vpp.installation import Site
from resources.libraries.python.drivers.vpp.instance import VppInstance
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember
from resources.libraries.python.drivers.vpp.registration import Vpp, descriptors, guest_mb, sized
from resources.libraries.python.drivers.vswitches.vpp.driver import VppSwitch
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.driver import PolledPorts
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.memory import MemoryNeed
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.names import vswitch_name
from resources.libraries.python.planning.placement.queues import expected_ports, ports_of
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import planned, polled

TOPOLOGIES = Path(__file__).parents[4] / "topologies"
LABS = {
    path.stem: each
    for path in sorted((TOPOLOGIES / "available").glob("*.yaml"))
    if (each := load_topology(path)).dut.vswitch == "vpp"
}
TWO_OF_FOUR = PolledPorts((4, 4), 4)
"""Two ports, four workers: 8 receive queues, and 10 to send from."""


def rows(topology: Topology, *, cells: str, vswitch: str) -> Iterator[Candidate]:
    selection = parse_selection(service_types="CSC,CSP,VSC", cells=cells, nf_sizes="1c", vswitch=vswitch)
    return (row for row in candidates(topology, {}, selection) if row.runs)


def pool(topology: Topology, plan: Plan, number: int = 1) -> int:
    """Buffers that a vSwitch of a plan is started with."""
    dut = list(topology.duts.values())[number - 1]
    return sized(dut.settings(Vpp), ports_of(plan.links, plan.cores, vswitch_name(number))).buffers


def test_a_buffer_can_be_in_each_descriptor_of_each_queue_and_as_many_are_on_their_way() -> None:
    assert descriptors(TWO_OF_FOUR) == 1024 * (2 * 4 + 2 * (4 + 1))
    assert sized(Vpp(), TWO_OF_FOUR).buffers == 2 * 18 * 1024
    assert sized(Vpp(), PolledPorts((1, 1), 1)).buffers == 16384, "what it needs is less than VPP's own default"
    assert sized(Vpp(), PolledPorts()).buffers == Vpp().buffers == 16384
    assert sized(Vpp(buffers_per_numa=2048), TWO_OF_FOUR).buffers == 2048, "the topology's number counts"


@pytest.mark.parametrize("name", LABS)
def test_every_cell_of_a_lab_has_more_buffers_than_descriptors(name: str) -> None:
    topology, more = LABS[name], 0
    for row in rows(topology, cells="1x1,2x2,4x1", vswitch="1,2,4"):
        plan = make_plan(topology, row.cell, {})
        for number in range(1, len(topology.duts) + 1):
            ports = ports_of(plan.links, plan.cores, vswitch_name(number))
            assert (ports.threads, len(ports.rx_queues)) == (2 * row.cell.vs_dtc, 2)
            assert pool(topology, plan, number) >= max(16384, 2 * descriptors(ports))
            more += pool(topology, plan, number) > 16384
        assert not [text for text in plan.warnings if "buffers" in text]
    assert more, "with several workers a pool of VPP's own size is too small"


@given(
    st.integers(1, 2),
    st.integers(1, 4),
    st.sampled_from(["link", "vlan", "mac"]),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([None, 1, 2, 64]),
    st.sampled_from(["auto", "af_packet"]),
)
def test_memory_is_counted_for_the_pool_that_vpp_is_started_with(  # noqa: PLR0917 - hypothesis gives them so
    duts: int, rows: int, word: Word, smt: bool, cores: int, queues: int | None, driven: str
) -> None:
    topology = lab(duts, rows if word == "link" else 1, discriminator=word, smt=smt, vpp={"ports": driven})
    topology = polled(topology, driver="i40e", rx_queues=queues)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=rows, nf_nodes=1, vs_dtc=cores)
    plan = make_plan(topology, cell, {})
    ports = ports_of(plan.links, plan.cores, "vswitch")
    assert expected_ports(topology, cell) == ports
    assert bool(ports.rx_queues) is (driven == "auto")
    heap_and_pool = 512 - (-pool(topology, plan) * 2496 // 2**20)
    of_nfs = MemoryNeed(2 + 128, 0, 512 + 39).times(rows)
    if driven == "auto":
        assert need(topology, cell) == MemoryNeed(2 + 128, heap_and_pool) + of_nfs
        assert need(topology, cell).pages_1gb == 2 * (1 + rows), "heap and buffers begin in pages of their own"
    else:
        assert need(topology, cell) == MemoryNeed(2 + 128, 0, 512 + 39) + of_nfs


def test_where_processors_are_not_known_a_core_is_taken_to_have_two_threads() -> None:
    smt = lab(smt=True)
    unknown = smt.model_copy(update={"nodes": {**smt.nodes, "DUT1": smt.dut.model_copy(update={"cpus": "discover"})}})
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, vs_dtc=2)
    assert expected_ports(unknown, cell) == expected_ports(smt, cell) == TWO_OF_FOUR
    assert expected_ports(unknown, cell, layout((cpu, cpu, 0, 0) for cpu in range(8))) == PolledPorts((2, 2), 2)


def test_one_machine_has_the_pool_the_memory_and_the_plan_that_it_had() -> None:
    local = load_topology(TOPOLOGIES / "local-vpp.yaml")
    cell = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=2, vs_dtc=4)
    sixteen = layout((cpu, cpu // 2, 0, 0) for cpu in range(64))
    plan = make_plan(local, cell, sixteen)
    assert pool(local, plan) == 16384
    assert need(local, cell, sixteen) == MemoryNeed(5 * (2 + 128), 0, 5 * (512 + 39))
    said = local.dut.model_copy(update={"vpp": {"buffers_per_numa": 1024}})
    few = local.model_copy(update={"nodes": {**local.nodes, "DUT1": said}})
    assert digest_of_model(make_plan(few, cell, sixteen)) == digest_of_model(plan)


def test_guests_and_nfs_of_a_lab_keep_theirs() -> None:
    guests = lab(smt=True, vms="qemu_vpp")
    plan = planned(guests, "VSC", vs_dtc=4)
    assert (pool(guests, plan), guest_mb(guests.dut)) == (2 * 34 * 1024, 824)
    assert VppInside(plan, guests.dut).startup(plan.functions[0].name).buffers == 16384
    asked = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_kinds=(NfKind("vpp"),), vs_dtc=4)
    assert need(guests, asked).either_mb == 512 + 39


@pytest.mark.parametrize(("said", "warned"), [(18 * 1024 - 1, True), (18 * 1024, False), (None, False)])
def test_a_plan_warns_of_a_pool_that_is_smaller_than_the_descriptors(said: int | None, warned: bool) -> None:
    topology = lab(2, smt=True, vpp={} if said is None else {"buffers_per_numa": said})
    found = [text for text in planned(topology, vs_dtc=2).warnings if "buffers" in text]
    assert found == [
        f"nodes.{name}.vpp.buffers_per_numa: {said} packet buffers are too few for 8 receive and 10 transmit queues of "
        "1024 descriptors: remove the key, or set it to 36864"
        for name in ("DUT1", "DUT2")[: 2 * warned]
    ]
    (row,) = (each for each in rows(topology, cells="1x1", vswitch="2") if each.cell.service_type is ServiceType.CSC)
    assert [text for text in row.port_warnings if "buffers" in text] == found


def test_ports_of_the_kernel_hold_no_buffers() -> None:
    topology = lab(smt=True, vpp={"ports": "af_packet", "buffers_per_numa": 1024})
    assert not [text for text in planned(topology, vs_dtc=4).warnings if "buffers" in text]


@pytest.mark.parametrize(("said", "expected"), [(None, 36864), (40000, 40000)])
def test_the_vswitch_is_started_with_it_and_says_so(
    said: int | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = lab(smt=True, vpp={} if said is None else {"buffers_per_numa": said})
    plan = planned(topology, vs_dtc=2)
    fabric = cast(Fabric, SimpleNamespace(run_inside=lambda *_, **__: None, owners=()))
    monkeypatch.setattr(Site, "folder", tmp_path)
    site = VppSwitch(topology.dut, DriverContext(plan, fabric, MachineLock(), 1518))._site
    interfaces = interfaces_of(plan, "vswitch", tmp_path, lambda _: InterfaceKind.DPDK)
    member = VppMember(site, "vswitch", "VPP of the vSwitch", interfaces)
    member.start(HugePageChoice("2m", ""), ())
    assert f"buffers-per-numa {expected}\n" in (tmp_path / "vswitch" / "startup.conf").read_text(encoding="utf-8")
    monkeypatch.setattr(VppInstance, "problem", lambda _: "has ended")
    assert member.facts()["buffers"] == f"{expected} on each NUMA node"
