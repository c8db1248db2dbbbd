"""VPP's driver for a physical port, by its attachment, its kind and the plugins of the installation."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.vm_vpp.guest_software import VppInside
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.vpp import Vpp, descriptors, guest_mb, sized
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, making
from resources.libraries.python.drivers.vpp.installation import Site
from resources.libraries.python.drivers.vpp.instance import VppInstance
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
from resources.libraries.python.drivers.vpp.show_output import InterfaceRow, counted
from resources.libraries.python.drivers.vswitches.vpp.driver import VppSwitch, kind_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.driver import PolledPorts
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.model.testbed.memory import MemoryNeed
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.placement.queues import expected_ports, ports_of
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import cell_of, cpus
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import planned, polled

ALL = ("af_packet", "dpdk", "vmxnet3", "avf", "rdma", "af_xdp", "memif")
VIRTIO, VMXNET3, VF, ICE = ("0x1af4", "0x1041"), ("0x15ad", "0x07b0"), ("0x8086", "0x1889"), ("0x8086", "0x1592")

PLAN = planned(lab(1))


def ports(kind: InterfaceKind, folder: Path = Path("/run/vpp")) -> Sequence[VppInterface]:
    return interfaces_of(PLAN, "vswitch", folder, lambda _: kind)


def member(interfaces: Sequence[VppInterface], settings: Vpp | None = None, **fabric: object) -> VppMember:
    known = {"run_inside": lambda *_, **__: None, **fabric}
    site = Site(PLAN, cast(Fabric, SimpleNamespace(**known)), MachineLock(), settings or Vpp(), 1518)
    return VppMember(site, "vswitch", "VPP of the vSwitch", interfaces)


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
        (Attachment.DPDK, ("af_packet",), ICE, "lacks the plugin dpdk"),
        (Attachment.DPDK, (), VMXNET3, "lacks the plugin dpdk or vmxnet3"),
        (Attachment.NATIVE, ALL, ICE, "has no driver of its own"),
        (Attachment.AF_XDP, ("dpdk",), ICE, "lacks the plugin af_xdp"),
    ],
)
def test_the_driver_or_what_an_installation_lacks(
    attachment: Attachment, plugins: tuple[str, ...], ids: tuple[str, str], expected: InterfaceKind | str
) -> None:
    nic = Nic(port="port1", pci_address="0000:3b:00.1", attachment=attachment)
    if isinstance(expected, InterfaceKind):
        assert kind_of(nic, plugins, ids) is expected
        return
    said = r"port1 \(0000:3b:00.1\): this VPP {}.*say `vpp: {{ports: af_packet}}`"
    with pytest.raises(Unsupported, match=said.format(expected)):
        kind_of(nic, plugins, ids)
    with pytest.raises(Unsupported, match=said.format("lacks the plugin dpdk")):
        kind_of(nic.model_copy(update={"attachment": Attachment.DPDK}), ("vmxnet3",), VMXNET3, only_dpdk=True)


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
    assert expected in making(ports(kind), 1518)
    assert "af_packet" not in plugins_for(ports(kind), Vpp())
    assert "acl" in plugins_for(ports(kind), Vpp(acl_rules=2))


@pytest.mark.parametrize(("kind", "expected"), [(InterfaceKind.RDMA, True), (InterfaceKind.DPDK, False)])
def test_a_vpp_with_a_port_beside_the_kernel_sees_it_in_sysfs(
    kind: InterfaceKind, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There its rdma driver looks for the port's PCI device (`rdma_create_if` of `src/plugins/rdma/device.c`)."""
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(Site, "folder", tmp_path)
    started = member(ports(kind, tmp_path), run_inside=lambda owner, _, sysfs=False: seen.append((owner, sysfs)))
    started.start(HugePageChoice("2m", ""), ())
    assert seen == [("vswitch", expected)]


class PolledStatistics:
    """A VPP with a DPDK port, whose counters of the NIC are read when the hardware is shown (`format_dpdk_device`)."""

    missed_by_nic, _missed = 0, 0

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
    vpp, running = PolledStatistics(), member(ports(InterfaceKind.DPDK, tmp_path)[:1])
    running._instance = cast(VppInstance, vpp)
    before = running.counters()
    vpp.missed_by_nic = 10
    lost = running.counters()["csv1p1"] - before["csv1p1"]
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
def test_cables_without_a_link(kind: InterfaceKind, in_kernel: tuple[str, ...], expected: tuple[str, ...]) -> None:
    running = member(ports(kind), cables_down=lambda owner: in_kernel if owner == "vswitch" else ())
    running._instance = cast(VppInstance, SimpleNamespace(ask={"show hardware-interfaces": HARDWARE}.__getitem__))
    assert running.without_link() == expected


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


@pytest.mark.parametrize(("nics", "heap_mb", "within_s"), [(0, 512, 35.5), (16, 512, 195.5), (16, 65536, 259.0)])
def test_a_vpp_with_many_nics_has_longer_until_it_answers_and_they_are_named(
    nics: int, heap_mb: int, within_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DPDK configures them one after the other before VPP answers (`dpdk_process` of `plugins/dpdk/device/init.c`)."""
    waits: list[tuple[str, float]] = []
    monkeypatch.setattr(Daemon, "wait_for", lambda _, what, __, within_s: waits.append((what, within_s)))
    monkeypatch.setattr(Site, "folder", tmp_path)
    interfaces = [
        VppInterface(InterfaceKind.DPDK, f"p{n}", "", "", (0,), ((f"p{n}", None),), pci_address=f"0000:{n:02x}:00.0")
        for n in range(nics)
    ]
    started = member(interfaces, Vpp(main_heap_mb=heap_mb))
    started.start(HugePageChoice("2m", ""), ())
    started.instance.wait_ready(5.0)
    ((what, until_s),) = waits
    assert until_s == within_s
    assert ("(DPDK configures 16 NICs before: 0000:00:00.0, 0000:01:00.0" in what) is (nics == 16)


TWO_OF_FOUR = PolledPorts((4, 4), 4)
"""Two ports, four workers: 8 receive queues, and 10 to send from."""


def pool(topology: Topology, plan: Plan) -> int:
    """Buffers that the vSwitch of a plan is started with."""
    return sized(topology.dut.settings(Vpp), ports_of(plan.links, plan.cores, "vswitch")).buffers


def test_a_buffer_can_be_in_each_descriptor_of_each_queue_and_as_many_are_on_their_way() -> None:
    assert descriptors(TWO_OF_FOUR) == 1024 * (2 * 4 + 2 * (4 + 1))
    assert sized(Vpp(), TWO_OF_FOUR).buffers == 2 * 18 * 1024
    assert sized(Vpp(), PolledPorts((1, 1), 1)).buffers == 16384, "what it needs is less than VPP's own default"
    assert sized(Vpp(), PolledPorts()).buffers == Vpp().buffers == 16384
    assert sized(Vpp(buffers_per_numa=2048), TWO_OF_FOUR).buffers == 2048, "the topology's number counts"


@given(
    st.integers(1, 2), st.integers(1, 4), st.sampled_from(["link", "vlan", "mac"]), st.booleans(), st.integers(1, 4),
    st.sampled_from([None, 1, 2, 64]), st.sampled_from(["auto", "af_packet"]),
)  # fmt: skip
def test_memory_is_counted_for_the_pool_that_vpp_is_started_with(  # noqa: PLR0917 - hypothesis gives them so
    duts: int, rows: int, word: Word, smt: bool, cores: int, queues: int | None, driven: str
) -> None:
    topology = lab(duts, rows if word == "link" else 1, discriminator=word, smt=smt, vpp={"ports": driven})
    topology = polled(topology, driver="i40e", rx_queues=queues)
    cell = cell_of(nf_chains=rows, vs_dtc=cores)
    plan = make_plan(topology, cell, {})
    ports = ports_of(plan.links, plan.cores, "vswitch")
    assert expected_ports(topology, cell) == ports
    assert bool(ports.rx_queues) is (driven == "auto")
    heap_and_pool = 512 - (-pool(topology, plan) * 2496 // 2**20)
    of_vpp = MemoryNeed(2 + 128, heap_and_pool) if driven == "auto" else MemoryNeed(2 + 128, 0, 512 + 39)
    assert need(topology, cell) == of_vpp + MemoryNeed(2 + 128, 0, 512 + 39).times(rows)
    if driven == "auto":
        assert need(topology, cell).pages_1gb == 2 * (1 + rows), "heap and buffers begin in pages of their own"


def test_where_processors_are_not_known_a_core_is_taken_to_have_two_threads() -> None:
    smt, cell = lab(smt=True), cell_of(vs_dtc=2)
    unknown = smt.model_copy(update={"nodes": {**smt.nodes, "DUT1": smt.dut.model_copy(update={"cpus": "discover"})}})
    assert expected_ports(unknown, cell) == expected_ports(smt, cell) == TWO_OF_FOUR
    assert expected_ports(unknown, cell, cpus(8)) == PolledPorts((2, 2), 2)


def test_guests_and_nfs_of_a_lab_keep_theirs() -> None:
    guests = lab(smt=True, vms="qemu_vpp")
    plan = planned(guests, "VSC", vs_dtc=4)
    assert (pool(guests, plan), guest_mb(guests.dut)) == (2 * 34 * 1024, 824)
    assert VppInside(plan, guests.dut).startup(plan.functions[0].name).buffers == 16384
    assert need(guests, cell_of(nf_kinds=(NfKind("vpp"),), vs_dtc=4)).either_mb == 512 + 39


@pytest.mark.parametrize(
    ("vpp", "warned"),
    [
        ({"buffers_per_numa": 18 * 1024 - 1}, True),
        ({"buffers_per_numa": 18 * 1024}, False),
        ({}, False),
        ({"ports": "af_packet", "buffers_per_numa": 1024}, False),  # ports of the kernel hold no buffers
    ],
)
def test_a_plan_warns_of_a_pool_that_is_smaller_than_the_descriptors(vpp: dict[str, Any], warned: bool) -> None:
    topology = lab(2, smt=True, vpp=vpp)
    found = [text for text in planned(topology, vs_dtc=2).warnings if "buffers" in text]
    assert found == [
        f"nodes.{name}.vpp.buffers_per_numa: {18 * 1024 - 1} packet buffers are too few for 8 receive and 10 transmit "
        "queues of 1024 descriptors: remove the key, or set it to 36864"
        for name in ("DUT1", "DUT2")[: 2 * warned]
    ]
    selection = parse_selection(service_types="CSC", cells="1x1", nf_sizes="1c", vswitch="2")
    (row,) = candidates(topology, {}, selection)
    assert [text for text in row.port_warnings if "buffers" in text] == found


@pytest.mark.parametrize(("said", "expected"), [({}, 36864), ({"buffers_per_numa": 40000}, 40000)])
def test_the_vswitch_is_started_with_it_and_says_so(
    said: dict[str, int], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = lab(smt=True, vpp=said)
    plan = planned(topology, vs_dtc=2)
    fabric = cast(Fabric, SimpleNamespace(run_inside=lambda *_, **__: None, owners=()))
    monkeypatch.setattr(Site, "folder", tmp_path)
    site = VppSwitch(topology.dut, DriverContext(plan, fabric, MachineLock(), 1518))._site
    interfaces = interfaces_of(plan, "vswitch", tmp_path, lambda _: InterfaceKind.DPDK)
    started = VppMember(site, "vswitch", "VPP of the vSwitch", interfaces)
    started.start(HugePageChoice("2m", ""), ())
    assert f"buffers-per-numa {expected}\n" in (tmp_path / "vswitch" / "startup.conf").read_text(encoding="utf-8")
    monkeypatch.setattr(VppInstance, "problem", lambda _: "has ended")
    assert started.facts()["buffers"] == f"{expected} on each NUMA node"
