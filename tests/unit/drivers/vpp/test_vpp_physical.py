"""VPP's driver for a physical port, by its attachment, its kind and the plugins of the installation."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, making
from resources.libraries.python.drivers.vpp.installation import Site
from resources.libraries.python.drivers.vpp.instance import VppInstance
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.drivers.vpp.show_output import InterfaceRow, counted
from resources.libraries.python.drivers.vswitches.vpp.driver import kind_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
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


class PolledStatistics:
    """A VPP with a DPDK port, whose counters of the NIC are read when the hardware is shown (`format_dpdk_device`)."""

    def __init__(self) -> None:
        self.missed_by_nic = 0
        self._missed = 0

    def ask(self, command: str) -> str:
        if command == "show hardware-interfaces":
            self._missed = self.missed_by_nic
        return f"""              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count
csv1p1                            1      up          9000/0/0/0     rx packets                  90
                                                                    rx-miss           {self._missed:>16}
"""

    def note_work(self) -> None:
        pass


def test_what_a_nic_missed_in_a_trial_is_counted_in_that_trial(tmp_path: Path) -> None:
    """VPP reads it when the hardware is shown, else once in 10 s (`DPDK_STATS_POLL_INTERVAL`)."""
    plan = make_plan(lab(1), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    site = Site(plan, cast(Fabric, SimpleNamespace()), MachineLock(), Vpp(), 1518)
    interfaces = interfaces_of(plan, "vswitch", tmp_path, lambda _: InterfaceKind.DPDK)
    member = VppMember(site, "vswitch", "VPP of the vSwitch", interfaces[:1])
    vpp = PolledStatistics()
    member._instance = cast(VppInstance, vpp)
    before = member.counters()
    vpp.missed_by_nic = 10
    lost = member.counters()["csv1p1"] - before["csv1p1"]
    assert lost.rx_dropped == 10


HARDWARE = """              Name                Idx   Link  Hardware
csv1p1                             1     up   csv1p1
  Link speed: 10 Gbps
  carrier up full duplex max-frame-size 1522 promisc
csv1p2                             2    down  csv1p2
  Link speed: 10 Gbps
  carrier down
local0                             0    down  local0
"""


@pytest.mark.parametrize(
    ("kind", "in_kernel", "expected"),
    [
        (InterfaceKind.DPDK, (), ("csv1p2",)),
        (InterfaceKind.RDMA, ("csv1p1", "csv1p2"), ("csv1p2", "csv1p1")),  # VPP and the kernel see the same port
        (InterfaceKind.HOST, ("csv1p1",), ("csv1p1",)),  # of a socket VPP shows no link of its own
    ],
)
def test_cables_without_a_link(
    tmp_path: Path, kind: InterfaceKind, in_kernel: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    plan = make_plan(lab(1), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    fabric = cast(Fabric, SimpleNamespace(cables_down=lambda owner: in_kernel if owner == "vswitch" else ()))
    site = Site(plan, fabric, MachineLock(), Vpp(), 1518)
    member = VppMember(site, "vswitch", "VPP of the vSwitch", interfaces_of(plan, "vswitch", tmp_path, lambda _: kind))
    member._instance = cast(VppInstance, SimpleNamespace(ask={"show hardware-interfaces": HARDWARE}.__getitem__))
    assert member.without_link() == expected


def test_what_a_nic_missed_is_known_at_each_of_its_vlans() -> None:
    """VPP counts it at the interface that DPDK made; what arrived, at those of the VLANs."""
    nic = VppInterface(InterfaceKind.DPDK, "csv1p1", "csv1p1", "02:00:00:00:00:01", (0,), (("a", 101), ("b", 102)))
    rows = {
        "csv1p1": InterfaceRow(True, {"rx packets": 150, "rx-miss": 40, "rx-no-buf": 2, "tx-error": 3}),
        "csv1p1.101": InterfaceRow(True, {"rx packets": 90, "tx packets": 80}),
        "csv1p1.102": InterfaceRow(True, {"rx packets": 60, "tx packets": 60}),
    }
    assert dict(counted([nic], rows, {}, {})) == {
        "a": InterfaceCounters(90, 80, 42, 3),
        "b": InterfaceCounters(60, 60, 42, 3),
    }


def test_a_vpp_with_many_nics_has_longer_until_it_answers_and_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DPDK configures them one after the other before VPP answers (`dpdk_process` of `plugins/dpdk/device/init.c`)."""
    waits: list[tuple[str, float]] = []
    monkeypatch.setattr(Daemon, "wait_for", lambda _, what, __, within_s: waits.append((what, within_s)))
    monkeypatch.setattr(Site, "folder", tmp_path)
    fabric = cast(Fabric, SimpleNamespace(run_inside=lambda *_, **__: None))
    for nics, heap_mb in ((0, 512), (1, 512), (16, 512), (16, 65536)):
        plan = make_plan(lab(1), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
        site = Site(plan, fabric, MachineLock(), Vpp(main_heap_mb=heap_mb), 1518)
        interfaces = [
            VppInterface(
                InterfaceKind.DPDK, f"p{number}", "", "", (0,), ((f"p{number}", None),),
                pci_address=f"0000:{number:02x}:00.0",
            )
            for number in range(nics)
        ]  # fmt: skip
        member = VppMember(site, "vswitch", "VPP of the vSwitch", interfaces)
        member.start(HugePageChoice("2m", ""), ())
        member.wait_ready(5.0)
    assert [within_s for _, within_s in waits] == [35.5, 45.5, 195.5, 259.0]
    assert waits[0][0] == "an answer to show version"
    assert waits[2][0].startswith(
        "an answer to show version (DPDK configures 16 NICs before: 0000:00:00.0, 0000:01:00.0"
    )
