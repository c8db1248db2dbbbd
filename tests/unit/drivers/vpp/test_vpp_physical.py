"""VPP's driver for a physical port, by its attachment, its kind and the plugins of the installation."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, making
from resources.libraries.python.drivers.vpp.installation import Site
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
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


@pytest.mark.parametrize(("kind", "expected"), [(InterfaceKind.RDMA, True), (InterfaceKind.DPDK, False)])
def test_a_vpp_with_a_port_beside_the_kernel_sees_it_in_sysfs(
    kind: InterfaceKind, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There its rdma driver looks for the port's PCI device (`rdma_create_if` of `src/plugins/rdma/device.c`)."""
    seen: list[tuple[str, bool]] = []

    def run_inside(owner: str, work: Callable[[], None], *, sysfs: bool = False) -> None:
        del work
        seen.append((owner, sysfs))

    plan = make_plan(lab(1), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    monkeypatch.setattr(Site, "folder", tmp_path)
    site = Site(plan, cast(Fabric, SimpleNamespace(run_inside=run_inside)), MachineLock(), Vpp(), 1518)
    interfaces = interfaces_of(plan, "vswitch", tmp_path, lambda _: kind)
    VppMember(site, "vswitch", "VPP of the vSwitch", interfaces).start(HugePageChoice("2m", ""), ())
    assert seen == [("vswitch", expected)]
