"""Memory of a cell against numbers worked out by hand; what is not known refuses nothing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.libraries.python.drivers.functions.vm.registration import Vm
from resources.libraries.python.drivers.vpp.registration import guest_hugepages, guest_mb
from resources.libraries.python.drivers.vswitches.sim.registration import HEAP_MB
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.memory import MemoryNeed, MemoryNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning import memory
from resources.libraries.python.planning.memory import in_pages, need, node_of, shortages, spare_mb
from resources.libraries.python.planning.reasons import Limit

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIM = load_topology(TOPOLOGIES / "sim.yaml")
VSC, CSC = ServiceType.VSC, ServiceType.CSC


def local(**changes: object) -> Topology:
    """The local testbed with every kind of NF."""
    base = load_topology(TOPOLOGIES / "local.yaml")
    fields = {
        "containers": (NfKind("linux_router"), NfKind("testpmd")),
        "vms": NfKind("qemu"),
        "vm": Vm(memory_mb=128),
        "vswitch": "linux_bridge",
    }
    dut = base.dut.model_copy(update={**fields, **changes})
    return base.model_copy(update={"nodes": {**base.nodes, "DUT1": dut}})


def cell(kind: ServiceType, chains: int, nodes: int, *kinds: NfKind) -> Cell:
    return Cell(service_type=kind, nf_chains=chains, nf_nodes=nodes, nf_kinds=kinds)


def test_virtual_machines_take_their_memory_and_what_qemu_adds() -> None:
    assert need(local(), cell(VSC, 2, 3)).ordinary_mb == 2 + 6 * (2 + 128 + 64 + 128)
    kvm = local(vm=Vm(memory_mb=128, accelerator="kvm"))
    assert need(kvm, cell(VSC, 2, 3)).ordinary_mb == 2 + 6 * (2 + 128 + 64), "no translated code under KVM"


def test_nfs_of_different_kinds_are_counted_each() -> None:
    assert need(local(), cell(CSC, 1, 2, NfKind("testpmd"))) == MemoryNeed(2 + 2 * 438)
    mixed = need(local(), cell(CSC, 3, 2, NfKind("linux_router"), NfKind("testpmd")))
    assert mixed == MemoryNeed(2 + 3 * (2 + 438))


def test_a_vswitch_in_userspace_takes_memory_of_its_own() -> None:
    assert need(local(vswitch="ovs"), cell(CSC, 1, 1)) == MemoryNeed(2 + 1280 + 2)


def test_a_vpp_takes_huge_pages_where_there_are_enough_and_ordinary_memory_else() -> None:
    vpp = local(vswitch="vpp", containers=(NfKind("vpp"),))
    each = 512 + 39  # heap, and 16384 buffers of 2496 bytes
    found = need(vpp, cell(CSC, 1, 2))
    assert found == MemoryNeed(3 * (2 + 128), 0, 3 * each)
    assert found.where(3 * each) == MemoryNeed(3 * 130, 3 * each)
    assert found.where(3 * each - 1) == MemoryNeed(3 * (130 + each))
    assert need(local(vswitch="vpp"), cell(CSC, 1, 2)) == MemoryNeed(2 + 128 + 2 * 2, 0, each)


def test_a_guest_with_vpp_has_memory_for_it_besides_its_own() -> None:
    guest = local(vms=NfKind("qemu_vpp"))
    huge_pages = 256 + 20 + 8  # heap, buffers, rings of its network cards; of 2 MB each
    assert guest_hugepages(guest.dut) == huge_pages
    assert guest_mb(guest.dut) == 128 + 128 + 2 * huge_pages
    assert need(guest, cell(VSC, 1, 2)) == MemoryNeed(2 + 2 * (2 + 824 + 64 + 128)), (
        "the host needs no huge pages for it"
    )


def test_simulated_nfs_take_what_a_vpp_takes() -> None:
    assert need(SIM, cell(CSC, 2, 2)) == MemoryNeed(5 * HEAP_MB, 5 * 1024)
    assert need(SIM, cell(VSC, 2, 2)).hugepages_mb == 1024 + 4 * 4096


def test_what_is_not_known_refuses_nothing() -> None:
    asked = cell(VSC, 10, 10)
    assert not list(shortages(local(), asked, None))
    assert node_of(local(memory=None), None) is None
    assert node_of(local(memory="discover"), None) is None


def test_the_node_of_the_interfaces_counts_and_no_other() -> None:
    rich, poor = MemoryNode(node=1, total_mb=500_000), MemoryNode(node=0, total_mb=2048)
    there = node_of(local(), (rich, poor))
    assert there == poor
    (reason,) = shortages(local(), cell(VSC, 2, 2), there)
    assert (reason.limit, reason.needs, reason.there) == (Limit.MEMORY, 2 + 4 * 322, 1024)
    assert reason.text == "needs 1290 MB of memory on NUMA 0, 1024 available"


def test_too_few_huge_pages_are_told_by_size() -> None:
    asked = cell(CSC, 1, 1)
    needs = need(SIM, asked)
    large = needs.pages_1gb
    few = MemoryNode(total_mb=500_000, hugepages_1gb=large - 1)
    (reason,) = shortages(SIM, asked, few)
    assert reason.limit is Limit.HUGEPAGES
    assert reason.text == (
        f"needs {needs.hugepages_mb} MB of huge pages on NUMA 0: {needs.hugepages_mb // 2} of 2 MB or {large} of 1 GB, "
        f"0 and {large - 1} available"
    )
    assert not in_pages(needs, few), "none are taken"
    enough = MemoryNode(total_mb=500_000, hugepages_1gb=large)
    assert not list(shortages(SIM, asked, enough))
    assert in_pages(needs, enough) == f"{large} of 1 GB on NUMA 0"


def test_the_hosts_share_huge_pages_and_what_others_use_are_left_out() -> None:
    assert spare_mb(MemoryNode(total_mb=8192)) == 8192 - 1024
    assert spare_mb(MemoryNode(total_mb=8192, hugepages_1gb=4)) == 8192 - 4096 - 1024
    assert spare_mb(MemoryNode(total_mb=8192, available_mb=3000)) == 3000
    assert spare_mb(MemoryNode(total_mb=8192, available_mb=8000)) == 8192 - 1024
    assert spare_mb(MemoryNode(total_mb=512)) == 0


def test_ordinary_memory_must_do_where_huge_pages_are_too_few() -> None:
    vpp, asked = local(vswitch="vpp", containers=(NfKind("vpp"),)), cell(CSC, 1, 2)
    ordinary, either = 3 * (2 + 128), 3 * (512 + 39)
    pages = -(-either // 2)
    enough = MemoryNode(total_mb=1024 + ordinary + 2 * pages, hugepages_2mb=pages)
    assert not list(shortages(vpp, asked, enough))
    few = MemoryNode(total_mb=1024 + ordinary + either - 1)
    (reason,) = shortages(vpp, asked, few)
    assert (reason.limit, reason.needs, reason.there) == (Limit.MEMORY, ordinary + either, ordinary + either - 1)


def test_a_program_takes_what_its_limits_allow_or_an_estimate() -> None:
    programs = local(containers=(NfKind("pktstat"), NfKind("linux_router")))
    asked = cell(CSC, 2, 2, NfKind("pktstat"), NfKind("linux_router"))
    assert need(programs, asked) == MemoryNeed(2 + 2 * (2 + memory.PROGRAM_MB) + 2 * 2)
    limited = asked.model_copy(update={"limits": (Limits(memory_mib=300), Limits())})
    assert need(programs, limited) == MemoryNeed(2 + 2 * (2 + 300) + 2 * 2)


def test_services_side_by_side_take_the_memory_of_each() -> None:
    kinds = (NfKind("pktstat"), NfKind("linux_router"), NfKind("pktstat"))
    limits = (Limits(memory_mib=100), Limits(), Limits(memory_mib=200))
    side_by_side = Cell(service_type=CSC, nf_chains=3, nf_nodes=1, instance_kinds=kinds, limits=limits)
    programs = local(containers=(NfKind("pktstat"), NfKind("linux_router")))
    assert need(programs, side_by_side) == MemoryNeed(2 + (2 + 100) + 2 + (2 + 200))


@settings(deadline=None)  # a busy machine is no error
@given(
    chains=st.integers(1, 10),
    nodes=st.integers(1, 10),
    kind=st.sampled_from([VSC, CSC]),
    total=st.integers(1, 400_000),
    pages=st.integers(0, 1000),
)
def test_one_more_service_never_takes_less_and_what_fits_is_there(
    chains: int, nodes: int, kind: ServiceType, total: int, pages: int
) -> None:
    there = MemoryNode(total_mb=total + 2 * pages, hugepages_2mb=pages)
    for topology in (SIM, local()):
        now, more = need(topology, cell(kind, chains, nodes)), need(topology, cell(kind, chains + 1, nodes))
        assert more.ordinary_mb > now.ordinary_mb
        assert more.hugepages_mb >= now.hugepages_mb
        if not list(shortages(topology, cell(kind, chains, nodes), there)):
            assert now.ordinary_mb + memory.HOST_MB <= there.ordinary_mb
            assert now.hugepages_mb <= there.hugepages_mb


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("[{node: 1, total_mb: 4096}]", r"memory: has NUMA nodes \[1\], but interfaces are on node 0"),
        ("[{total_mb: 4096}, {total_mb: 4096}]", r"memory: has a NUMA node more than once"),
        ("[{total_mb: 1024, hugepages_1gb: 2}]", "2048 MB of huge pages in 1024 MB of memory"),
    ],
)
def test_a_wrong_memory_is_reported_with_its_place(tmp_path: Path, rows: str, said: str) -> None:
    text = (TOPOLOGIES / "sim.yaml").read_text(encoding="utf-8")
    begin, end = text.index("    memory:"), text.index("    vswitch:")
    path = tmp_path / "wrong.yaml"
    path.write_text(f"{text[:begin]}    memory: {rows}\n{text[end:]}", encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_topology(path)


def test_a_page_count_is_no_amount() -> None:
    with pytest.raises(ValidationError):
        MemoryNode(total_mb=0)
    assert MemoryNode(total_mb=4096, hugepages_2mb=10, hugepages_1gb=1).hugepages_mb == 20 + 1024
