"""Tags of rows: expressions of the kind that CSIT's job specifications have select what they mean."""

import pytest
from robot.model import TagPatterns

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import Row, make_rows
from resources.libraries.python.studies.density.planning.tags import short_model
from tests.builders import SIM
from tests.unit.planning.labs import csit_lab


def rows(topology: Topology, service_type: str = "CSC", **choices: str) -> list[Row]:
    """Rows of one suite, with all that job specifications name."""
    asked = {"cells": "{1,2,4}x{1,2}", "vswitch": "1,2,4", "frames": "64B,IMIX", **choices}
    layout = topology.dut.layout
    return list(make_rows(topology, layout, parse_selection(service_types=service_type, **asked), TestType.MRR).rows)


def selected(made: list[Row], expression: str) -> set[str]:
    """Names of the rows that Robot's --include selects."""
    return {row.name for row in made if TagPatterns([expression]).match(row.tags)}


@pytest.mark.parametrize(
    ("kind", "expression", "names"),
    [
        (
            "CSC",
            "1c AND imix AND mrr AND xxv710 AND drv_avf AND eth-l2bd-1ch-4mif-2dcr1t-vppip4",
            {"IMIX-1c-eth-l2bd-1ch-4mif-2dcr1t-vppip4-mrr"},
        ),
        (
            "CSP",
            "4c AND 64b AND mrr AND nic_intel-xxv710 AND drv_avf AND eth-l2bd-4pl-8mif-8dcr2t-vppip4",
            {"64B-4c-eth-l2bd-4pl-8mif-8dcr2t-vppip4-mrr"},
        ),
        (
            "VSC",
            "2T1C AND imix AND vhost AND vm AND nf_vppip4 AND 2r1c AND 2vm1t",
            {"IMIX-1c-eth-l2bd-2ch-4vh-2vm1t-vppip4-mrr"},
        ),
        (
            "CSC",
            "2_node_single_link_topo AND hw_env AND perftest AND l2bdmaclrn AND base AND memif AND docker AND "
            "nf_density AND chain AND 1r1c AND 1dcr2t AND rxq_size_0 AND txq_size_0 AND eth AND 2c AND imix",
            {"IMIX-2c-eth-l2bd-1ch-2mif-1dcr2t-vppip4-mrr"},
        ),
    ],
)
def test_a_line_of_a_job_specification_selects_its_test(kind: str, expression: str, names: set[str]) -> None:
    assert selected(rows(csit_lab(), kind), expression) == names


@pytest.mark.parametrize(
    "expression",
    ["e810cq", "drv_vfio_pci", "ndrpdr", "3_node_single_link_topo", "veth", "dot1q", "vm_env", "soak", "nf_lnxip4"],
)
def test_what_a_testbed_is_not_selects_nothing(expression: str) -> None:
    assert not selected(rows(csit_lab()), expression)


@pytest.mark.parametrize(
    ("topology", "there", "missing"),
    [
        (csit_lab(duts=2, discriminator="vlan"), {"3_NODE_SINGLE_LINK_TOPO", "DOT1Q"}, {"ETH"}),
        (csit_lab(model="virtio-net", driver="virtio-pci", vfs=0), {"VM_ENV", "DRV_VFIO_PCI"}, {"HW_ENV"}),
        (csit_lab(containers="linux_router"), {"VETH", "NF_LNXIP4"}, {"MEMIF", "NF_VPPIP4"}),
        (
            csit_lab(vswitch="linux_bridge", containers="linux_firewall", vms="qemu", vfs=0),
            {"VETH", "DRV_I40E", "L2BDMACSTAT", "FEATURE"},
            {"MEMIF", "L2BDMACLRN", "BASE"},
        ),
        (SIM, {"SIM_ENV", "MEMIF"}, {"HW_ENV", "RXQ_SIZE_0"}),
    ],
)
def test_tags_say_what_is_there(topology: Topology, there: set[str], missing: set[str]) -> None:
    tags = set(rows(topology, cells="1x1")[0].tags)
    assert there <= tags
    assert not missing & tags


@pytest.mark.parametrize(
    ("driver", "ports", "tag"),
    [
        ("ice", "auto", "DRV_VFIO_PCI"),
        ("igb_uio", "dpdk", "DRV_IGB_UIO"),
        ("mlx5_core", "auto", "DRV_MLX5_CORE"),
        ("mlx5_core", "rdma", "DRV_RDMA_CORE"),
        ("ice", "af_xdp", "DRV_AF_XDP"),
        ("ice", "af_packet", "DRV_AF_PACKET"),
        ("virtio_net", "native", "DRV_VIRTIO"),
    ],
)
def test_drivers_are_those_that_take_the_ports(driver: str, ports: str, tag: str) -> None:
    made = rows(csit_lab(None, driver, vfs=0, ports=ports), cells="1x1")
    assert {each for each in made[0].tags if each.startswith("DRV_")} == {tag}


def test_suite_ids_of_vpp_say_what_its_links_are() -> None:
    assert rows(csit_lab(containers="linux_router"), cells="1x1")[0].name.startswith("64B-1c-eth-l2bd-1ch-2veth-1dcr")


def test_a_soak_is_one_whatever_its_suite_is() -> None:
    asked = parse_selection(service_types="CSC", cells="1x1")
    (row, *_) = make_rows(SIM, SIM.dut.layout, asked, TestType.NDRPDR, soak=True).rows
    assert {"SOAK", "NDRPDR"} & set(row.tags) == {"SOAK"}


@pytest.mark.parametrize(("model", "short"), [("Intel-XXV710", "xxv710"), ("azure-mlx-40g", "mlx-40g"), ("v", "v")])
def test_a_model_is_written_as_job_specifications_do(model: str, short: str) -> None:
    assert short_model(model) == short
