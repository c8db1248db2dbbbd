"""Names, tags and digests: cells that are measured on different things never share one, equal ones always do."""

from itertools import product
from typing import Any

import pytest

from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import suite_id, tags
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, shipped
from tests.unit.planning.labs import lab

ROUTER, TESTPMD = NfKind("linux_router"), NfKind("testpmd")


def topology(vswitch: str) -> Topology:
    read = shipped("local-ovs")
    dut = read.dut.model_copy(update={"vswitch": vswitch})
    return read.model_copy(update={"nodes": {"TG": read.nodes["TG"], "DUT1": dut}})


def name(vswitch: str, service_type: str, kinds: tuple[NfKind, ...]) -> str:
    return suite_id(topology(vswitch), cell_of(service_type, 2, 2, nf_kinds=kinds), threads_per_nf=1)


def test_names_tell_kinds_apart_as_csit_writes_them() -> None:
    kinds = [(ROUTER, ROUTER), (TESTPMD, TESTPMD), (ROUTER, TESTPMD), (TESTPMD, ROUTER)]
    choices = list(product(["linux_bridge", "ovs"], ["CSC", "CSP"], kinds))
    assert len({name(*choice) for choice in choices}) == len(choices)
    assert name("ovs", "CSC", (ROUTER, TESTPMD)) == "eth-l2bd-2ch-8ovs-4dcr1t-lnxip4+testpmd"
    assert name("linux_bridge", "CSP", (TESTPMD,)) == "eth-l2bd-2pl-4veth-4dcr1t-testpmd"
    assert name("ovs", "CSC", ()) == name("ovs", "CSC", (ROUTER,)), "the testbed's own kind is the same system"


def test_an_open_vswitch_on_dpdk_shares_memory_with_dpdk_programs_only() -> None:
    on_dpdk = lab(vswitch="ovs", containers=["testpmd", "linux_router"])
    plan = make_plan(on_dpdk, cell_of("CSC", 1, 2, nf_kinds=(TESTPMD, ROUTER)), {})
    assert [link.medium for link in plan.links if link.b.owner == "nf-1-1"] == [Medium.VHOST_USER] * 2
    assert [link.medium for link in plan.links if link.b.owner == "nf-1-2"] == [Medium.VETH] * 2
    assert plan.suite_id == "eth-l2bd-1ch-4vh+veth-2dcr1t-testpmd+lnxip4"


def tags_of(kind: str, nodes: int, *sizes: str, **keys: Any) -> set[str]:
    cell = cell_of(kind, 2, nodes, nf_sizes=tuple(map(NfSize, sizes)), **keys)
    return set(tags(topology("linux_bridge"), cell, "the-suite", threads_per_nf=2))


def test_tags_are_those_of_csit_and_more() -> None:
    common = {"PERFTEST", "LOCAL_ENV", "NF_DENSITY", "the-suite"}
    one = tags_of("CSC", 3, "1c", vs_dtc=4)
    assert one == common | {"CSC", "CHAIN", "2R3C", "6DCR2T", "4C", "NF_1C"}
    vm = tags_of("VSC", 1, "2c")
    assert vm == common | {"VSC", "CHAIN", "2R1C", "2VM2T", "1C", "NF_2C"}
    mixed = tags_of("CSP", 2, "1c", "2c", shared_nodes=(2,))
    assert mixed == common | {"CSP", "PIPELINE", "2R2C", "3DCR", "1C", "NF_1C+2C", "SHARED_NFS"}


SIXTEEN = layout((cpu, cpu // 2, 0, 0) for cpu in range(16))


@pytest.mark.parametrize(
    ("testbed", "kind", "rows", "columns", "size", "vs_dtc", "expected"),
    [
        ("sim", "CSC", 2, 2, "1c", 1, "88afcde7dee6272d"),
        ("sim", "CSP", 4, 3, "0.5c", 2, "7419a7f679d41f75"),
        ("sim", "VSC", 1, 1, "1c", 1, "630e2b727a3c515d"),
        ("local", "CSC", 1, 2, "1c", 1, "5aa6589dfec00d88"),
        ("local", "CSP", 2, 2, "0.5c", 1, "c761071ff8b94fb0"),
    ],
)
def test_a_plan_is_the_same_to_the_byte(  # noqa: PLR0917 - a row of the table above
    testbed: str, kind: str, rows: int, columns: int, size: str, vs_dtc: int, expected: str
) -> None:
    topology = shipped(testbed)
    cell = cell_of(kind, rows, columns, nf_sizes=(NfSize(size),), vs_dtc=vs_dtc)
    plan = make_plan(topology, cell, SIXTEEN if testbed == "local" else topology.dut.layout)
    assert digest_of_model(plan).startswith(expected)
