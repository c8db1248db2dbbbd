"""How physical ports are driven: by DPDK where NIC and program have it, by sockets only where that is asked for."""

from typing import Any

import pytest

from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.attachment import Attachment, attachment_of, uio_driver
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.kinds.machine import past_the_kernel
from tests.unit.planning.labs import lab

PCI = "0000:3b:00.0"
CELL = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


def port(**keys: Any) -> Interface:
    return Interface.model_validate({"link": "a", "pci_address": PCI, **keys})


def dut(vswitch: str, **keys: Any) -> DutNode:
    ports = {"p1": {"link": "a"}, "p2": {"link": "b"}}
    row = {"type": "DUT", "vswitch": vswitch, "containers": "linux_router", "interfaces": ports}
    return DutNode.model_validate({**row, **keys})


def tg(driver: str, **keys: Any) -> TgNode:
    ports = {"p1": {"link": "a"}, "p2": {"link": "b"}}
    return TgNode.model_validate({"type": "TG", "generator": {"driver": driver}, "interfaces": ports, **keys})


@pytest.mark.parametrize("user", [dut("vpp"), dut("ovs"), tg("trex")])
@pytest.mark.parametrize(
    "known",
    [
        *({"driver": name} for name in ("ice", "i40e", "iavf", "ixgbe", "igb", "e1000", "e1000e", "virtio_net")),
        *({"driver": name} for name in ("virtio-pci", "vmxnet3", "ena", "hns3", "bnxt_en", "gve")),
        *({"model": name} for name in ("Intel-E810CQ", "Intel-XXV710", "Intel-X710", "Amazon-Nitro-50G")),
        {"driver": "something-new", "uio_driver": "vfio-pci"},
        {"driver": "vfio-pci"},
    ],
)
def test_a_nic_that_dpdk_knows_is_driven_by_dpdk(user: DutNode | TgNode, known: dict[str, str]) -> None:
    assert attachment_of(port(**known), user) is Attachment.DPDK


@pytest.mark.parametrize("known", [{"driver": "mlx5_core"}, {"model": "Mellanox-CX6DX"}, {"driver": "mlx4_core"}])
@pytest.mark.parametrize("user", [dut("vpp"), dut("ovs"), tg("trex"), dut("ovs", uio_driver="vfio-pci")])
def test_mellanox_ports_are_never_unbound(user: DutNode | TgNode, known: dict[str, str]) -> None:
    found = attachment_of(port(**known), user)
    assert (found, found.unbinds) == (Attachment.BIFURCATED, False)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (dut("linux_bridge", uio_driver="vfio-pci"), Attachment.KERNEL),
        (tg("ring"), Attachment.KERNEL),
        (tg("xdp"), Attachment.KERNEL),
        (tg("trex", trex={"ports": "af_packet"}), Attachment.KERNEL),
        (dut("vpp", vpp={"ports": "af_packet"}), Attachment.KERNEL),
        (dut("vpp", vpp={"ports": "af_xdp"}), Attachment.AF_XDP),
        (dut("vpp", vpp={"ports": "native"}), Attachment.NATIVE),
        (dut("ovs", ovs={"ports": "system"}), Attachment.KERNEL),
        (dut("ovs", ovs={"ports": "af_xdp"}), Attachment.AF_XDP),
    ],
)
def test_sockets_only_where_they_are_asked_for(user: DutNode | TgNode, expected: Attachment) -> None:
    assert attachment_of(port(driver="ice"), user) is expected


def test_a_virtual_port_is_the_kernels() -> None:
    assert attachment_of(Interface(link="a", device="veth0", driver="veth"), dut("vpp")) is Attachment.KERNEL


def test_rdma_is_for_mellanox() -> None:
    user = dut("vpp", vpp={"ports": "rdma"})
    assert attachment_of(port(driver="mlx5_core"), user) is Attachment.RDMA
    with pytest.raises(Inconsistency, match="rdma driver is for mlx5 ports, this one is ice"):
        attachment_of(port(driver="ice"), user)


@pytest.mark.parametrize(
    ("user", "section"),
    [(dut("vpp"), "vpp: {ports: af_packet}"), (dut("ovs"), "ovs: {ports: system}"), (tg("trex"), "trex: {ports: af_")],
)
def test_an_unknown_nic_is_refused_with_both_ways_out(user: DutNode | TgNode, section: str) -> None:
    for keys, why in (
        ({}, "neither its model nor its driver is known"),
        ({"driver": "foo"}, "no driver known for foo"),
    ):
        with pytest.raises(Inconsistency, match=why) as caught:
            attachment_of(port(**keys), user)
        assert "`uio_driver: vfio-pci` for DPDK" in str(caught.value)
        assert section in str(caught.value)


def test_dpdk_needs_a_pci_address() -> None:
    with pytest.raises(Inconsistency, match="needs a pci_address"):
        attachment_of(Interface(link="a", device="ens1", driver="ice"), dut("ovs", ovs={"ports": "dpdk"}))


def test_the_driver_of_user_space_is_the_ports_or_the_nodes() -> None:
    node = dut("vpp", uio_driver="igb_uio")
    assert uio_driver(port(), node) == "igb_uio"
    assert uio_driver(port(uio_driver="uio_pci_generic"), node) == "uio_pci_generic"
    assert uio_driver(port(driver="vfio-pci"), dut("vpp")) == "vfio-pci"
    assert uio_driver(port(driver="ice"), dut("vpp")) is None


def test_the_plan_says_how_ports_are_driven_and_only_where_it_must() -> None:
    topology = lab(1, vswitch="vpp", uio_driver="igb_uio")
    plan = make_plan(topology, CELL, {})
    nics = [each.nic for link in plan.links for each in (link.a, link.b) if each.nic is not None]
    assert {nic.attachment for nic in nics} == {Attachment.DPDK}
    assert [port.nic.uio_driver for port in past_the_kernel(topology.dut, plan) if port.nic] == ["igb_uio"] * 2
    assert [port.nic.uio_driver for port in past_the_kernel(topology.tg, plan) if port.nic] == [None] * 2
    kernel = make_plan(lab(1, vswitch="linux_bridge", generator="ring", containers="linux_router"), CELL, {})
    assert "attachment" not in kernel.model_dump_json()
    assert "uio_driver" not in kernel.model_dump_json()
