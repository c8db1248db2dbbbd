"""Memory and cache ways of a cell against numbers worked out by hand; what is not known refuses nothing."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.report.details.capsule import choices_of
from resources.libraries.python.drivers.functions.vm import Vm
from resources.libraries.python.drivers.vpp import guest_hugepages, guest_mb
from resources.libraries.python.drivers.vswitches.sim import HEAP_MB
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.findings import Limit
from resources.libraries.python.model.plan import OTHERS, CachePart, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import CacheWays, CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryNeed, MemoryNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning import memory
from resources.libraries.python.planning.memory import in_pages, need, node_of, shortages, spare_mb
from resources.libraries.python.planning.plan import drivers_of, make_plan
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import SIM, cell_of, cpus, shipped
from tests.unit.csit_utils.builders import result
from tests.unit.examples import share


def local(**changes: object) -> Topology:
    """The local testbed with every kind of NF."""
    base = shipped("local")
    fields = {
        "containers": (NfKind("linux_router"), NfKind("testpmd")),
        "vms": NfKind("qemu"),
        "vm": Vm(memory_mb=128),
        "vswitch": "linux_bridge",
    }
    dut = base.dut.model_copy(update={**fields, **changes})
    return base.model_copy(update={"nodes": {**base.nodes, "DUT1": dut}})


def cell(kind: str, chains: int, nodes: int, *kinds: str, **parts: Any) -> Cell:
    return cell_of(kind, chains, nodes, nf_kinds=tuple(map(NfKind, kinds)), **parts)


VPP = local(vswitch="vpp", containers=(NfKind("vpp"),))
VPP_MB = 512 + 39
"""Heap, and 16384 buffers of 2496 bytes: in huge pages where there are enough, else in ordinary memory."""
GUEST = local(vms=NfKind("qemu_vpp"))
PROGRAMS = local(containers=(NfKind("pktstat"), NfKind("linux_router")))
SIDE_BY_SIDE = tuple(map(NfKind, ("pktstat", "linux_router", "pktstat")))


@pytest.mark.parametrize(
    ("topology", "asked", "needs"),
    [
        # Virtual machines take their memory and what QEMU adds; there is no translated code under KVM.
        (local(), cell("VSC", 2, 3), MemoryNeed(2 + 6 * (2 + 128 + 64 + 128))),
        (local(vm=Vm(memory_mb=128, accelerator="kvm")), cell("VSC", 2, 3), MemoryNeed(2 + 6 * (2 + 128 + 64))),
        # NFs of different kinds are counted each.
        (local(), cell("CSC", 1, 2, "testpmd"), MemoryNeed(2 + 2 * 438)),
        (local(), cell("CSC", 3, 2, "linux_router", "testpmd"), MemoryNeed(2 + 3 * (2 + 438))),
        # A vSwitch in userspace takes memory of its own.
        (local(vswitch="ovs"), cell("CSC", 1, 1), MemoryNeed(2 + 1280 + 2)),
        (VPP, cell("CSC", 1, 2), MemoryNeed(3 * (2 + 128), 0, 3 * VPP_MB)),
        (local(vswitch="vpp"), cell("CSC", 1, 2), MemoryNeed(2 + 128 + 2 * 2, 0, VPP_MB)),
        # A guest with VPP has memory for it besides its own; the host needs no huge pages for it.
        (GUEST, cell("VSC", 1, 2), MemoryNeed(2 + 2 * (2 + 824 + 64 + 128))),
        (SIM, cell("CSC", 2, 2), MemoryNeed(5 * HEAP_MB, 5 * 1024)),
        # A program takes what its limits allow, or an estimate.
        (PROGRAMS, cell("CSC", 2, 2, "pktstat", "linux_router"), MemoryNeed(2 + 2 * (2 + memory.PROGRAM_MB) + 2 * 2)),
        (
            PROGRAMS,
            cell_of("CSC", 3, instance_kinds=SIDE_BY_SIDE, limits=[Limits(memory_mib=mib) for mib in (100, None, 200)]),
            MemoryNeed(2 + (2 + 100) + 2 + (2 + 200)),
        ),
    ],
)
def test_a_cell_takes_the_memory_of_its_parts(topology: Topology, asked: Cell, needs: MemoryNeed) -> None:
    assert need(topology, asked) == needs


def test_a_vpp_takes_huge_pages_where_there_are_enough_else_ordinary_memory_and_a_guest_its_own() -> None:
    found = need(VPP, cell("CSC", 1, 2))
    assert found.where(3 * VPP_MB) == MemoryNeed(3 * 130, 3 * VPP_MB)
    assert found.where(3 * VPP_MB - 1) == MemoryNeed(3 * (130 + VPP_MB))
    assert need(SIM, cell("VSC", 2, 2)).hugepages_mb == 1024 + 4 * 4096
    huge_pages = 256 + 20 + 8  # heap, buffers, rings of its network cards; of 2 MB each
    assert guest_hugepages(GUEST.dut) == huge_pages
    assert guest_mb(GUEST.dut) == 128 + 128 + 2 * huge_pages
    asked, ordinary, either = cell("CSC", 1, 2), 3 * (2 + 128), 3 * VPP_MB
    pages = -(-either // 2)
    enough = MemoryNode(total_mb=1024 + ordinary + 2 * pages, hugepages_2mb=pages)
    assert not list(shortages(VPP, asked, enough))
    few = MemoryNode(total_mb=1024 + ordinary + either - 1)
    (reason,) = shortages(VPP, asked, few)
    assert (reason.limit, reason.needs, reason.there) == (Limit.MEMORY, ordinary + either, ordinary + either - 1)


def test_the_node_of_the_interfaces_counts_no_other_and_what_is_not_known_refuses_nothing() -> None:
    assert not list(shortages(local(), cell("VSC", 10, 10), None))
    assert node_of(local(memory=None), None) is node_of(local(memory="discover"), None) is None
    rich, poor = MemoryNode(node=1, total_mb=500_000), MemoryNode(node=0, total_mb=2048)
    there = node_of(local(), (rich, poor))
    assert there == poor
    (reason,) = shortages(local(), cell("VSC", 2, 2), there)
    assert (reason.limit, reason.needs, reason.there) == (Limit.MEMORY, 2 + 4 * 322, 1024)


def test_too_few_huge_pages_are_told_by_size() -> None:
    asked = cell("CSC", 1, 1)
    needs = need(SIM, asked)
    large = needs.pages_1gb
    few = MemoryNode(total_mb=500_000, hugepages_1gb=large - 1)
    (reason,) = shortages(SIM, asked, few)
    assert reason.limit is Limit.HUGEPAGES
    assert f"{needs.hugepages_mb // 2} of 2 MB or {large} of 1 GB, 0 and {large - 1} available" in reason.text
    assert not in_pages(needs, few), "none are taken"
    enough = MemoryNode(total_mb=500_000, hugepages_1gb=large)
    assert not list(shortages(SIM, asked, enough))
    assert in_pages(needs, enough) == f"{large} of 1 GB on NUMA 0"


def test_the_hosts_share_huge_pages_and_what_others_use_are_left_out_of_spare_memory() -> None:
    assert spare_mb(MemoryNode(total_mb=8192)) == 8192 - 1024
    assert spare_mb(MemoryNode(total_mb=8192, hugepages_1gb=4)) == 8192 - 4096 - 1024
    assert spare_mb(MemoryNode(total_mb=8192, available_mb=3000)) == 3000
    assert spare_mb(MemoryNode(total_mb=8192, available_mb=8000)) == 8192 - 1024
    assert spare_mb(MemoryNode(total_mb=512)) == 0
    assert MemoryNode(total_mb=4096, hugepages_2mb=10, hugepages_1gb=1).hugepages_mb == 20 + 1024


@given(
    chains=st.integers(1, 10),
    nodes=st.integers(1, 10),
    kind=st.sampled_from(["VSC", "CSC"]),
    total=st.integers(1, 400_000),
    pages=st.integers(0, 1000),
)
def test_one_more_service_never_takes_less_and_what_fits_is_there(
    chains: int, nodes: int, kind: str, total: int, pages: int
) -> None:
    there = MemoryNode(total_mb=total + 2 * pages, hugepages_2mb=pages)
    for topology in (SIM, local()):
        now, more = need(topology, cell(kind, chains, nodes)), need(topology, cell(kind, chains + 1, nodes))
        assert more.ordinary_mb > now.ordinary_mb
        assert more.hugepages_mb >= now.hugepages_mb
        if not list(shortages(topology, cell(kind, chains, nodes), there)):
            assert now.ordinary_mb + memory.HOST_MB <= there.ordinary_mb
            assert now.hugepages_mb <= there.hugepages_mb


def machine(domain_of: int = 64, **cache: int) -> CpuLayout:
    """40 cores without SMT, a cache for each `domain_of` of them."""
    ways = CacheWays(**{"ways": 11, **cache}, domains={cpu: cpu // domain_of for cpu in range(40)})
    return cpus(40).model_copy(update={"cache": ways})


def plan(rows: int, columns: int, *ways: int | None, layout: CpuLayout | None = None, size: str = "1c") -> Plan:
    limits = tuple(Limits(cache_ways=each) for each in (ways * columns if len(ways) == 1 else ways))
    return make_plan(SIM, cell_of("CSC", rows, columns, nf_sizes=(NfSize(size),), limits=limits), layout or machine())


def by_owner(made: Plan) -> dict[str, dict[int, int]]:
    return {part.owner: part.masks for part in made.cache}


@settings(max_examples=share(200))
@given(
    rows=st.integers(1, 4),
    ways=st.lists(st.integers(1, 4) | st.none(), min_size=1, max_size=3).filter(any),
    total=st.integers(4, 20),
    reserved=st.sampled_from([0, 1, 3]),
    at_top=st.booleans(),
    domain_of=st.sampled_from([2, 7, 64]),
)
def test_parts_never_overlap_and_none_has_gaps(
    *, rows: int, ways: list[int | None], total: int, reserved: int, at_top: bool, domain_of: int
) -> None:
    mask = reserved << (total - 2) if at_top else reserved
    layout = machine(domain_of, ways=total, reserved=mask)
    try:
        made = plan(rows, len(ways), *ways, layout=layout)
    except PlanError as error:
        assert "available" in str(error) or "shared with devices" in str(error)
        return
    asked = {f"nf-{row}-{node}": each for row in range(1, rows + 1) for node, each in enumerate(ways, 1) if each}
    masks = by_owner(made)
    assert set(masks) == {*asked, OTHERS}
    assert all(part.cpus == made.cores.cpus(part.owner) for part in made.cache if part.owner != OTHERS)
    for domain in masks[OTHERS]:
        here = {owner: own[domain] for owner, own in masks.items() if domain in own}
        assert sum(here.values()) == (1 << total) - 1, "each way has one owner"
        assert here[OTHERS] & mask == mask
        for owner, own in here.items():
            assert own.bit_count() == asked.get(owner, own.bit_count())
            assert all(one + 1 == other for one, other in pairwise(bits(own)))


def bits(mask: int) -> list[int]:
    return [place for place in range(64) if mask >> place & 1]


@pytest.mark.parametrize(
    ("ways", "layout", "size", "reason"),
    [
        (3, machine(least=2), "1c", "needs 14 ways of cache 0 on DUT1, 11 available: 12 for 4 NFs, 2 for all others"),
        (1, machine(least=2), "1c", "nf-1-1 asks for 1 cache ways; a part has at least 2 on DUT1"),
        (1, machine(groups=4), "1c", "4 NFs ask for cache ways; DUT1 has 3 groups for them"),
        (1, cpus(40), "1c", "DUT1 divides no cache"),
        (1, machine(), "0.5c-shared", "nf-1-1 takes turns with another NF on a CPU"),
        (2, machine(reserved=0x18), "1c", "ways 0x18 of cache 0 on DUT1 are shared with devices"),
    ],
)
def test_what_cannot_be_divided_is_refused_with_the_numbers(
    ways: int, layout: CpuLayout, size: str, reason: str
) -> None:
    with pytest.raises(PlanError, match=reason):
        plan(4, 1, ways, layout=layout, size=size)


def test_the_matrix_has_the_reason_and_results_with_and_without_ways_are_different_systems() -> None:
    selection = parse_selection(service_types="CSC", cells="1x1,6x1", nf_sizes="1c", cache_ways="2")
    fits, refused = candidates(SIM, SIM.dut.layout, selection)
    assert fits.runs
    assert [reason.limit for reason in refused.reasons] == [Limit.CACHE]
    with pytest.raises(ConfigError, match=r"CACHE_WAYS '65': .*, 1 to 64"):
        parse_selection(cache_ways="65")
    made, asked = plan(1, 1, 2), {"containers": "sim", "vswitch": "sim"}
    assert drivers_of(SIM, made.cell, asked) != drivers_of(SIM, plan(1, 1).cell, asked)
    assert made.suite_id != plan(1, 1).suite_id


def test_a_record_has_the_parts_and_can_be_repeated() -> None:
    made = plan(2, 1, 2)
    assert Plan.model_validate_json(made.model_dump_json()).cache == made.cache
    record = result(ServiceType.CSC, 2, 1).model_copy(update={"plan": made})
    asked = record.asked.model_copy(update={"cell": made.cell})
    assert choices_of(record.model_copy(update={"asked": asked}))["CACHE_WAYS"] == "2"
    assert str(CachePart(owner="nf-1-1", cpus=(4, 5), masks={0: 0x3})) == "2 (0x3) of cache 0, for CPUs 4, 5"
