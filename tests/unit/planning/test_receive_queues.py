"""Receive queues of a plan: how many a port has, and which data thread polls each."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Link, Plan, Port
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.attachment import most_rx_queues
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates
from tests.unit.examples import share
from tests.unit.nf_sizes import nf_sizes
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import planned, polled


def queues_of(plan: Plan, owner: str) -> dict[str, tuple[int, ...]]:
    """Of each port; those of several VLANs on a NIC once."""
    return {(port.nic.port if port.nic else port.interface): port.queues for port in plan.ports(owner)}


def cables(plan: Plan) -> list[Port]:
    return [port for port in plan.ports("vswitch") if port.nic]


@pytest.mark.parametrize(("vs_dtc", "smt", "threads"), [(1, False, 1), (1, True, 2), (2, True, 4), (4, True, 8)])
def test_a_polled_port_has_a_queue_for_each_data_thread_of_the_vswitch(vs_dtc: int, smt: bool, threads: int) -> None:
    plan = planned(polled(lab(smt=smt, discriminator="mac")), vs_dtc=vs_dtc)
    assert [sorted(port.queues) for port in cables(plan)] == [list(range(threads))] * 2


def test_a_port_of_the_kernel_has_one_queue_whatever_the_vswitch_has() -> None:
    plan = planned(lab(smt=True, vpp={"ports": "af_packet"}), vs_dtc=4)
    assert [len(port.queues) for port in cables(plan)] == [1, 1]
    assert all(
        "rx_queues" not in port.model_dump() and "rx_queues" not in port.nic.model_dump()
        for port in cables(plan)
        if port.nic
    )


def test_the_topology_and_the_driver_bound_the_number_of_queues() -> None:
    four = lab(smt=True)
    assert [len(port.queues) for port in cables(planned(polled(four, rx_queues=2), vs_dtc=2))] == [2, 2]
    one = planned(polled(four, driver="vfio-pci", model="Intel-E810CQ"), vs_dtc=2)
    assert [len(port.queues) for port in cables(one)] == [4, 4]
    assert [len(port.queues) for port in cables(planned(polled(four, driver="virtio-pci"), vs_dtc=2))] == [1, 1]
    known = polled(four, driver="virtio-pci", model="Intel-E810CQ")
    assert [len(port.queues) for port in cables(planned(known, vs_dtc=2))] == [4, 4]


@pytest.mark.parametrize(
    ("facts", "queues"),
    [
        ({"driver": "ice"}, 8),
        ({"driver": "ice", "nic_vfs": 1}, 8),
        ({"driver": "i40e", "nic_vfs": 1}, 4),
        ({"driver": "vfio-pci", "model": "Intel-XXV710", "nic_vfs": 1}, 4),
        ({"driver": "i40e", "nic_vfs": 1, "rx_queues": 6}, 6),
        ({"driver": "ixgbe", "nic_vfs": 1}, 1),
    ],
)
def test_a_virtual_function_has_fewer_queues_than_its_port(facts: dict[str, object], queues: int) -> None:
    """VPP gives a port that has fewer than it is asked for one queue (`dpdk_lib_init`), whatever the plan says."""
    plan = planned(polled(lab(smt=True, discriminator="mac"), **facts), vs_dtc=4)
    assert [len(port.queues) for port in cables(plan)] == [queues] * 2


@pytest.mark.parametrize(
    ("model", "driver", "most"),
    [
        ("Intel-E810CQ", "vfio-pci", 64),
        (None, None, 64),
        (None, "virtio-pci", 1),
        (None, "net_virtio", 1),
        (None, "e1000e", 1),
        ("Intel-X710", "e1000e", 64),
    ],
)
def test_what_is_known_of_nics(model: str | None, driver: str | None, most: int) -> None:
    assert most_rx_queues(model, driver) == most


@pytest.mark.parametrize(
    ("size", "vs_dtc", "count"), [("0.5c", 1, 1), ("1c", 1, 2), ("2c", 1, 2), ("1c", 2, 2), ("2c", 2, 4), ("3c", 2, 4)]
)
def test_shared_memory_has_as_many_queues_as_the_end_with_fewer_threads(size: str, vs_dtc: int, count: int) -> None:
    plan = planned(lab(smt=True), size=size, vs_dtc=vs_dtc)
    inner = [link for link in plan.links if link.medium is Medium.MEMIF]
    assert [(len(link.a.queues), len(link.b.queues)) for link in inner] == [(count, count)] * 2


def test_neighbours_of_a_pipeline_share_as_many_as_the_smaller_has() -> None:
    cell = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=2, nf_sizes=(NfSize.ONE, NfSize.TWO), vs_dtc=2)
    plan = make_plan(lab(smt=True), cell, {})
    by_owners = {(link.a.owner, link.b.owner): len(link.a.queues) for link in plan.links if link.medium is Medium.MEMIF}
    assert by_owners == {("vswitch", "nf-1-1"): 2, ("nf-1-1", "nf-1-2"): 2, ("vswitch", "nf-1-2"): 4}


def test_an_nf_with_two_threads_polls_both_sides_with_both() -> None:
    assert queues_of(planned(lab(smt=True)), "nf-1-1") == {"csn1x1i1": (0, 1), "csn1x1i2": (0, 1)}


def test_two_queues_for_each_side_on_four_threads_are_one_for_each() -> None:
    """As DPDK's testpmd deals its streams: first queues first."""
    assert queues_of(planned(lab(smt=True), size="2c"), "nf-1-1") == {"csn1x1i1": (0, 2), "csn1x1i2": (1, 3)}


def test_virtual_machines_meet_the_vswitch_by_several_queues() -> None:
    plan = planned(lab(smt=True, vms="qemu"), "VSC")
    assert {link.medium for link in plan.links if link.b.owner == "nf-1-1"} == {Medium.VHOST_USER}
    assert queues_of(plan, "nf-1-1") == {"csn1x1i1": (0, 1), "csn1x1i2": (0, 1)}


def ends(links: tuple[Link, ...]) -> list[tuple[Link, Port]]:
    return [(link, port) for link in links for port in (link.a, link.b)]


@settings(deadline=None, max_examples=share(60))  # a busy machine is no error
@given(
    kind=st.sampled_from(["CSC", "CSP", "VSC"]),
    rows=st.integers(1, 4),
    columns=st.integers(1, 4),
    size=nf_sizes,
    vs_dtc=st.sampled_from([1, 2, 4]),
    word=st.sampled_from(["link", "vlan", "mac"]),
    most=st.integers(1, 9),
    duts=st.integers(1, 2),
)
def test_threads_have_equal_numbers_of_queues_and_the_balance_counts_them(  # noqa: PLR0917 - one for each choice
    kind: str, rows: int, columns: int, size: str, vs_dtc: int, word: Word, most: int, duts: int
) -> None:
    ways = rows if word == "link" else 1
    topology = lab(duts, ways, discriminator=word, smt=True, vms="qemu")
    for node in topology.duts:
        topology = polled(topology, node=node, rx_queues=most)
    plan = planned(topology, kind, rows=rows, columns=columns, size=size, vs_dtc=vs_dtc)
    selection = parse_selection(service_types=kind, cells=f"{rows}x{columns}", nf_sizes=size, vswitch=str(vs_dtc))
    (row,) = candidates(topology, {}, selection)
    assert row.balance is not None
    owners = {port.owner for _, port in ends(plan.links)} - {"generator"}
    for owner in owners:
        threads = len(plan.cores.cpus(owner))
        count = Counter(thread for queues in queues_of(plan, owner).values() for thread in queues)
        per_thread = [count[thread] for thread in range(threads)]
        assert sum(per_thread) == count.total(), "no queue is polled by a thread that is not there"
        assert max(per_thread) - min(per_thread) <= 1
        spread = row.balance.vswitch if owner == "vswitch" else row.balance.nfs[0][1] if owner == "nf-1-1" else None
        if spread is not None:
            assert (spread.queues, spread.least, spread.most) == (sum(per_thread), min(per_thread), max(per_thread))
    for link, port in ends(plan.links):
        assert len(set(port.queues)) == len(port.queues), "two queues of a port are never on one thread"
        assert len(port.queue_names) == len(port.queues)
        if link.medium in {Medium.MEMIF, Medium.VHOST_USER}:
            assert len(link.a.queues) == len(link.b.queues)
    assert max(len(port.queues) for _, port in ends(plan.links) if port.nic) <= most


def test_names_of_queues_are_unique() -> None:
    plan = planned(polled(lab(smt=True)), rows=1, columns=3, vs_dtc=4, size="2c")
    names = [name for _, port in ends(plan.links) for name in port.queue_names]
    assert len(set(names)) == len(names) > len(plan.links) * 2
