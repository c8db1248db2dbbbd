"""Receive queues of a plan: how many a port has, which data thread polls each, and whether work is spread evenly."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Link, Plan, Port
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.queues import Balance, Spread, balance, vswitch_ports
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import cell_of, shipped
from tests.unit.examples import share
from tests.unit.nf_sizes import nf_sizes
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import planned, polled

LOCAL = shipped("local")
MANY = layout([(cpu, cpu % 400, 0, 0) for cpu in range(800)])


def queues_of(plan: Plan, owner: str) -> dict[str, tuple[int, ...]]:
    """Of each port; those of several VLANs on a NIC once."""
    return {(port.nic.port if port.nic else port.interface): port.queues for port in plan.ports(owner)}


SMT = lab(smt=True, discriminator="mac")


@pytest.mark.parametrize(
    ("topology", "vs_dtc", "queues"),
    [
        # One for each data thread of the vSwitch.
        (polled(lab(discriminator="mac")), 1, 1),
        *((polled(SMT), cores, 2 * cores) for cores in (1, 2, 4)),
        # A port of the kernel has one.
        (lab(smt=True, vpp={"ports": "af_packet"}), 4, 1),
        # Topology and driver bound the number.
        (polled(SMT, rx_queues=2), 2, 2),
        (polled(SMT, model="Intel-E810CQ"), 2, 4),
        (polled(SMT, driver="virtio-pci"), 2, 1),
        (polled(SMT, driver="virtio-pci", model="Intel-E810CQ"), 2, 4),
        # A virtual function has fewer than its port, and VPP gives one to a port that has fewer than it is asked for.
        (polled(SMT, driver="ice", nic_vfs=1), 4, 8),
        (polled(SMT, driver="i40e", nic_vfs=1), 4, 4),
        (polled(SMT, driver="i40e", nic_vfs=1, rx_queues=6), 4, 6),
        (polled(SMT, driver="ixgbe", nic_vfs=1), 4, 1),
    ],
)
def test_a_port_has_as_many_queues_as_threads_and_nic_allow(topology: Topology, vs_dtc: int, queues: int) -> None:
    ports = [port for port in planned(topology, vs_dtc=vs_dtc).ports("vswitch") if port.nic]
    assert [len(port.queues) for port in ports] == [len(set(port.queues)) for port in ports] == [queues] * 2


def test_two_queues_for_each_side_are_polled_by_both_threads_or_by_one_of_four_each() -> None:
    """As DPDK's testpmd deals its streams: first queues first."""
    assert queues_of(planned(lab(smt=True)), "nf-1-1") == {"csn1x1i1": (0, 1), "csn1x1i2": (0, 1)}
    assert queues_of(planned(lab(smt=True), size="2c"), "nf-1-1") == {"csn1x1i1": (0, 2), "csn1x1i2": (1, 3)}


def ends(links: tuple[Link, ...]) -> list[tuple[Link, Port]]:
    return [(link, port) for link in links for port in (link.a, link.b)]


@settings(max_examples=share(60))
@given(
    kind=st.sampled_from(["CSC", "CSP", "VSC"]),
    rows=st.integers(1, 4),
    columns=st.integers(1, 4),
    size=nf_sizes,
    vs_dtc=st.sampled_from([1, 2, 4]),
    word=st.sampled_from(["link", "vlan", "mac"]),
    most=st.integers(1, 9),
    duts=st.integers(0, 2),
)
def test_threads_have_equal_numbers_of_queues_and_the_balance_counts_them(  # noqa: PLR0917 - one for each choice
    kind: str, rows: int, columns: int, size: str, vs_dtc: int, word: Word, most: int, duts: int
) -> None:
    """Without a DUT of a lab all is on one machine."""
    topology, given = LOCAL, MANY
    if duts:
        topology, given = lab(duts, rows if word == "link" else 1, discriminator=word, smt=True, vms="qemu"), {}
        for node in topology.duts:
            topology = polled(topology, node=node, rx_queues=most)
    plan = make_plan(topology, cell_of(kind, rows, columns, nf_sizes=(NfSize(size),), vs_dtc=vs_dtc), given)
    selection = parse_selection(service_types=kind, cells=f"{rows}x{columns}", nf_sizes=size, vswitch=str(vs_dtc))
    (row,) = candidates(topology, given, selection)
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
            assert (spread.queues, spread.idle) == (sum(per_thread), per_thread.count(0))
            assert (spread.least, spread.most) == (min(per_thread), max(per_thread))
    names = list[str]()
    for link, port in ends(plan.links):
        assert len(set(port.queues)) == len(port.queues), "two queues of a port are never on one thread"
        assert len(port.queue_names) == len(port.queues)
        names += port.queue_names
        if link.medium in {Medium.MEMIF, Medium.VHOST_USER}:
            fewer = min(len(plan.cores.cpus(port.owner)) for port in (link.a, link.b))
            assert len(link.a.queues) == len(link.b.queues) == fewer
    assert len(set(names)) == len(names)
    assert max((len(port.queues) for _, port in ends(plan.links) if port.nic), default=0) <= most


def candidate(topology: Topology, rows: int = 1) -> Candidate:
    selection = parse_selection(service_types="CSC", cells=f"{rows}x1", nf_sizes="1c", vswitch="2")
    (found,) = candidates(topology, {}, selection)
    return found


def test_each_queue_of_a_cable_is_listed_with_its_data_thread_and_cpu() -> None:
    found = candidate(polled(SMT))
    assert found.cores is not None
    cpus = found.cores.cpus("vswitch")
    assert [port.name for port in found.ports] == ["DUT1.port1", "DUT1.port2"]
    placed = ", ".join(f"queue {number} on data thread {number} (CPU {cpus[number]})" for number in range(4))
    assert str(found.ports[0]) == f"DUT1.port1 of vswitch: {placed}"
    assert not any(list(port.warnings()) for port in found.ports)


def test_a_port_with_fewer_queues_than_data_threads_is_named_with_the_reason() -> None:
    by_kernel = lab(smt=True, discriminator="mac", vpp={"ports": "af_packet"})
    assert next(candidate(by_kernel).ports[0].warnings()) == (
        "DUT1.port1: 1 receive queue for 4 data threads of vswitch, because the kernel drives the port: "
        "only 1 of them receive"
    )
    two = next(candidate(polled(SMT, rx_queues=2)).ports[1].warnings())
    assert "DUT1.port2: 2 receive queues for 4 data threads of vswitch, because the NIC has no more than 2" in two


@pytest.mark.parametrize(
    ("sources", "rows", "word", "said"),
    [
        (1, 1, "mac", "DUT1.port1: 1 address pair for 4 receive queues: RSS hashes nothing else of these packets, so"),
        (1, 4, "mac", "DUT1.port1: 4 address pairs for 4 receive queues: too few for RSS to spread them evenly"),
        (1, 3, "vlan", "DUT1.port1: 3 address pairs for 4 receive queues"),
        (16, 2, "link", "DUT1.port1: 16 address pairs for 4 receive queues: too few"),
        (31, 1, "link", "DUT1.port1: 31 address pairs for 4 receive queues: too few"),
        (32, 1, "link", None),
        (16, 2, "mac", None),
        (254, 1, "link", None),
    ],
)
def test_few_address_pairs_do_not_fill_the_queues(sources: int, rows: int, word: Word, said: str | None) -> None:
    topology = polled(lab(1, rows if word == "link" else 1, smt=True, discriminator=word))
    warnings = make_plan(topology, cell_of("CSC", rows, vs_dtc=2), {}, sources=sources).warnings
    assert warnings[0].startswith(said) if said else not warnings, warnings


SIM = shipped("sim")
NO_SMT = layout([(cpu, cpu, 0, 0) for cpu in range(400)])


def of(kind: str, chains: int, nodes: int, *sizes: str, vs_dtc: int = 1, smt: bool = True) -> Balance:
    asked = cell_of(kind, chains, nodes, nf_sizes=tuple(NfSize(size) for size in sizes or ("1c",)), vs_dtc=vs_dtc)
    return balance(asked, make_plan(SIM, asked, MANY if smt else NO_SMT).cores)


def test_threads_that_are_siblings_are_counted_and_named() -> None:
    half = of("CSC", 2, 2, "0.5c")
    assert (half.sibling_nfs, half.sibling_data) == (2, 3), "two cores of two NFs each, and the vSwitch's own"
    assert half.siblings() == (
        "data threads of different NFs are siblings on 2 physical cores",
        "data threads of one owner are siblings on 1 physical core",
    )
    assert of("CSC", 2, 2, "1c").sibling_nfs == 0
    assert of("CSC", 2, 2, "1c", smt=False).siblings() == ()


def test_oversubscribed_cores_name_the_fewest_and_most_threads_and_no_siblings() -> None:
    three, asked = layout([(cpu, cpu % 3, 0, 0) for cpu in range(6)]), cell_of("CSC", 1, 2)
    found = balance(asked, make_plan(LOCAL, asked, three).cores)
    assert (found.least_threads, found.most_threads, found.siblings()) == (1, 2, ())
    two = layout([(0, 0, 0, 0), (1, 1, 0, 0)])
    asked = cell_of("CSC", 2, 2)
    found = balance(asked, make_plan(LOCAL, asked, two).cores)
    assert (found.least_threads, found.most_threads) == (5, 5)
    assert "5 data threads per logical CPU" in found.uneven()
    assert not found.even
    for most, said in ((1, ()), (2, ("1 to 2 data threads per logical CPU",))):
        found = Balance(Spread(4, 2), (("1c", Spread(2, 2)),), 0, 0, 1, most)
        assert (found.even, found.uneven()) == (most == 1, said)
    assert of("CSC", 1, 1, "0.5c").even and of("CSC", 1, 1).even and not of("CSC", 1, 1, "2c").even


@pytest.mark.parametrize(("kind", "inner"), [("CSC", 2 * 3 * 4), ("CSP", 2 * 3)])
def test_instances_on_one_cable_share_its_ports(kind: str, inner: int) -> None:
    asked = cell_of(kind, 3, 4)
    assert vswitch_ports(asked, one_cable=True) == inner + 2
    assert vswitch_ports(asked, one_cable=False) == inner + 2 * 3
    cores = make_plan(SIM, asked, MANY).cores
    assert balance(asked, cores, one_cable=True).vswitch.queues == inner + 2
