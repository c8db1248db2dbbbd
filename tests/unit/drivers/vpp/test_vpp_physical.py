"""VPP's driver for a physical port, by its attachment, its kind and the plugins of the installation."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.vpp.configuration import making
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, interfaces_of
from resources.libraries.python.drivers.vpp.member import plugins_for
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.drivers.vswitches.vpp.driver import kind_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.labs import lab

ALL = ("af_packet", "dpdk", "vmxnet3", "avf", "rdma", "af_xdp", "memif")
VIRTIO, VMXNET3, VF, ICE = ("0x1af4", "0x1041"), ("0x15ad", "0x07b0"), ("0x8086", "0x1889"), ("0x8086", "0x1592")


def nic(attachment: Attachment) -> Nic:
    return Nic(port="port1", pci_address="0000:3b:00.1", attachment=attachment)


@pytest.mark.parametrize(
    ("attachment", "plugins", "ids", "expected"),
    [
        (Attachment.KERNEL, ALL, ICE, InterfaceKind.HOST),
        (Attachment.AF_XDP, ALL, ICE, InterfaceKind.AF_XDP),
        (Attachment.RDMA, ALL, ICE, InterfaceKind.RDMA),
        (Attachment.DPDK, ALL, VIRTIO, InterfaceKind.DPDK),
        (Attachment.DPDK, ("af_packet",), VIRTIO, InterfaceKind.VIRTIO_PCI),
        (Attachment.DPDK, ("vmxnet3",), VMXNET3, InterfaceKind.VMXNET3),
        (Attachment.DPDK, ("avf",), VF, InterfaceKind.AVF),
        (Attachment.NATIVE, ALL, VMXNET3, InterfaceKind.VMXNET3),
        (Attachment.BIFURCATED, ALL, ICE, InterfaceKind.DPDK),
        (Attachment.BIFURCATED, ("rdma",), ICE, InterfaceKind.RDMA),
    ],
)
def test_the_driver(
    attachment: Attachment, plugins: tuple[str, ...], ids: tuple[str, str], expected: InterfaceKind
) -> None:
    assert kind_of(nic(attachment), plugins, ids) is expected


@pytest.mark.parametrize(
    ("attachment", "plugins", "ids", "only_dpdk", "why"),
    [
        (Attachment.DPDK, ("af_packet",), ICE, False, "lacks the plugin dpdk"),
        (Attachment.DPDK, ("vmxnet3",), VMXNET3, True, "lacks the plugin dpdk"),
        (Attachment.DPDK, (), VMXNET3, False, "lacks the plugin dpdk or vmxnet3"),
        (Attachment.NATIVE, ALL, ICE, False, "has no driver of its own"),
        (Attachment.AF_XDP, ("dpdk",), ICE, False, "lacks the plugin af_xdp"),
    ],
)
def test_what_an_installation_lacks(
    attachment: Attachment, plugins: tuple[str, ...], ids: tuple[str, str], only_dpdk: bool, why: str
) -> None:
    with pytest.raises(Unsupported, match=f"port1 \\(0000:3b:00.1\\): this VPP {why}.*say `vpp: {{ports: af_packet}}`"):
        kind_of(nic(attachment), plugins, ids, only_dpdk=only_dpdk)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (InterfaceKind.VIRTIO_PCI, "create interface virtio 0000:01:01.0"),
        (InterfaceKind.VIRTIO_PCI, "set interface name virtio-0/1/1/0 csv1p1"),
        (InterfaceKind.VMXNET3, "create interface vmxnet3 0000:01:01.0 num-rx-queues 1"),
        (InterfaceKind.VMXNET3, "set interface name vmxnet3-0/1/1/0 csv1p1"),
        (InterfaceKind.AVF, "create interface avf 0000:01:01.0 name csv1p1 num-rx-queues 1"),
        (InterfaceKind.RDMA, "create interface rdma host-if csv1p1 name csv1p1 num-rx-queues 1"),
        (InterfaceKind.AF_XDP, "create interface af_xdp host-if csv1p1 name csv1p1 num-rx-queues 1"),
    ],
)
def test_its_commands(kind: InterfaceKind, expected: str) -> None:
    plan = make_plan(lab(1), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    interfaces = interfaces_of(plan, "vswitch", Path("/run/vpp"), lambda _: kind)
    assert expected in making(interfaces, 1518)
    assert "af_packet" not in plugins_for(interfaces, Vpp())
    assert "acl" in plugins_for(interfaces, Vpp(acl_rules=2))
