"""Each check both ways: nothing to say where all is well, and the right place, numbers and names where it is not."""

from typing import Any

import pytest

from resources.libraries.python.model.findings import CheckFinding, Severity
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.doctor import check_node, check_together
from tests.unit.planning.labs import looped
from tests.unit.testbed.node.node_facts import NO_PAGES, PCI, facts, port, two_nodes


def wrong(findings: list[CheckFinding]) -> list[str]:
    return [f"{finding.level} {finding}" for finding in findings if finding.level is not Severity.OK]


def of_dut(topology: Topology | None = None, **changes: Any) -> list[str]:
    return wrong(check_node(topology or two_nodes(), "DUT1", facts(**changes)))


def of_tg(topology: Topology | None = None, **changes: Any) -> list[str]:
    return wrong(check_node(topology or two_nodes(), "TG", facts(**changes)))


def of_both(tg: dict[str, Any], dut: dict[str, Any]) -> list[str]:
    """What is wrong of a cable whose ends are such ports."""
    ends = {"TG": facts(**ports(port1=port(1, **tg))), "DUT1": facts(**ports(port1=port(1, **dut)))}
    return wrong(check_together(two_nodes(), ends))


def test_nothing_is_wrong_where_all_is_well() -> None:
    assert of_dut() == [] == of_tg()
    assert wrong(check_together(two_nodes(), {"TG": facts(), "DUT1": facts()})) == []


def machine(**changes: Any) -> dict[str, Any]:
    return {"machine": changes}


def cpu(**changes: Any) -> dict[str, Any]:
    return machine(cpu=changes)


def ports(**changes: Any) -> dict[str, Any]:
    return {"ports": {"ports": changes}}


def users(address: str, **program: Any) -> dict[str, Any]:
    return {"device_users": {"users": {address: [program]}}}


FEW_LARGE_PAGES = [
    {"node": 0, "total_mb": 4096, "free_mb": 1, "hugepages": [{"size_kb": 2**20, "total": 1, "free": 1}]}
]
OWNER = {"pid": 7, "start_ticks": 1, "command": "robot", "alive": True, "user": "ann", "since": "2026-11-21T10:00:00Z"}
NARROW = {"gt_per_s": 8.0, "lanes": 4, "most_gt_per_s": 16.0, "most_lanes": 16}
BARE = port(2, driver=None, device=None, up=None, carrier=None)
TAKEN = port(1, driver="vfio-pci", device=None, mac_address=None, up=None, carrier=None)
OF_KERNEL, OF_FUNCTIONS = {"vpp": {"ports": "af_packet"}}, {"interfaces": {"port1": {"nic_vfs": 1}}}
BUILTIN = {"generator": {"driver": "auto"}}
PODMAN, AUTO = ({"container": {"engine": engine}} for engine in ("podman", "auto"))
BRIDGE = {"vswitch": "linux_bridge", "containers": ["linux_router", "linux_firewall"]}
ROWS = facts().machine.cpu.rows


def packages(**changes: Any) -> dict[str, Any]:
    return {"packages": changes}


def programs(**changes: Any) -> dict[str, Any]:
    return {"driver_needs": {"programs": changes}}


DUT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, machine(python=[3, 8, 10]), "problem .access.python 3.8.10 3.11"),
    ({}, machine(uid=1000), "problem - 1000 root"),
    ({}, machine(disks={"/var/tmp": {"free_mb": 130}}), "problem - /var/tmp 130 10000 140"),  # noqa: S108
    ({}, machine(disks={"/run": {"read_only": True}}), "problem - /run read-only"),
    ({}, machine(disks={"/run": {"free_files": 9}}), "problem - /run 9 inodes"),
    ({}, machine(load=[6.2, 1, 1]), "warning - load 6.2 16"),
    ({}, machine(memory={"swap_used_mb": 12}), "warning - swap 12 8192"),
    ({}, machine(irqbalance=True), "warning - irqbalance"),
    ({}, machine(memory={"available_mb": 10}), "problem - memory 10 65536"),
    ({}, machine(memory={"nodes": NO_PAGES}), "problem - 561 0"),
    ({}, machine(memory={"nodes": FEW_LARGE_PAGES}), "problem - 561 281 4 1"),
    ({}, cpu(isolated="1,9"), "warning - isolation 4 6 2-3,10-11"),
    ({"core_sharing": {"system_cores": 2}}, cpu(isolated="1,9"), "warning - isolation 4 2-3,10-11"),
    ({}, cpu(nohz_full=None), "warning - tick 6"),
    ({}, cpu(hypervisor=True), "warning - virtual"),
    ({}, cpu(governors={"powersave": [0, 1, 2, 9]}), "warning - powersave 0-2,9"),
    ({}, cpu(boost=True), "warning - boost"),
    ({"cpus": "discover"}, cpu(rows=[row for row in ROWS if row[0] != 10]), "warning - cores 2"),
    ({}, cpu(rows=[row for row in ROWS if row[0] not in (5, 13)]), "problem .cpus 5,13 14 0-4,6-12,14-15"),
    ({}, cpu(rows=[(*row[:3], 0) for row in ROWS]), "problem .cpus 4-7,12-15 NUMA 0"),
    ({}, cpu(rows=[(row[0], row[0] // 2, *row[2:]) for row in ROWS]), "problem .cpus core 0-1"),
    ({}, ports(port1=None), "problem .interfaces.port1.pci_address 0000:18:00.0"),
    ({}, ports(port1=port(1, numa_node=1)), "problem .interfaces.port1.numa_node NUMA 1"),
    ({}, ports(port2=port(2, mac_address="02:00:00:00:00:09")), "problem .interfaces.port2.mac_address 00:09"),
    ({}, ports(port2=port(2, addresses=["192.0.2.2"])), "problem .interfaces.port2 eth2 192.0.2.2 netplan flush"),
    ({}, ports(port2=port(2, default_route=True)), "problem .interfaces.port2 eth2 route"),
    ({}, ports(port2=port(2, master="bond0")), "problem .interfaces.port2 eth2 bond0"),
    ({}, ports(port2=port(2, virtual_functions=8)), "problem .interfaces.port2 0000:18:00.1 8"),
    (OF_FUNCTIONS, ports(port1=port(1, virtual_functions=2)), "problem .interfaces.port1 2 0000:18:00.0/sriov_numvfs"),
    (OF_KERNEL, ports(port1=port(1, virtual_functions=2)), ""),
    ({}, ports(port1=port(1, most_virtual_functions=0)), ""),
    (OF_FUNCTIONS, ports(port1=port(1, most_virtual_functions=64)), ""),
    (OF_FUNCTIONS, ports(port1=port(1, most_virtual_functions=0)), "problem .interfaces.port1.nic_vfs SR-IOV"),
    ({}, users("0000:18:00.1", pid=17, command="/usr/bin/vpp -c x"), "problem .interfaces.port2 18:00.1 17 /bin/vpp"),
    ({}, ports(port2=BARE), ""),
    (OF_KERNEL, ports(port2=BARE), "problem .interfaces.port2.driver 0000:18:00.1 drivers_probe"),
    (OF_FUNCTIONS, ports(port1=TAKEN), "problem .interfaces.port1.driver 0000:18:00.0 vfio-pci"),
    ({}, {"ports": {"vfio_pci": None}}, "problem - vfio-pci"),
    ({}, {"ports": {"iommu_groups": 0}}, "problem - IOMMU 0"),
    ({}, {"ports": {"iommu_groups": 0, "vfio_without_iommu": True}}, "warning - IOMMU"),
    ({"uio_driver": "igb_uio"}, {"ports": {"igb_uio": "loaded", "vfio_pci": None}}, ""),
    ({"uio_driver": "uio_pci_generic"}, {"ports": {"uio_pci_generic": "available", "iommu_groups": 0}}, ""),
    ({"interfaces": {"port2": {"uio_driver": "igb_uio"}}}, {}, "problem - igb_uio"),
    ({}, {"ports": {"ports": {"port2": BARE}, "vfio_pci": None}}, "problem - vfio-pci"),
    ({}, programs(**{"/usr/bin/vpp": {"there": False}}), "problem .vpp.prefix /usr/bin/vpp"),
    ({}, programs(**{"/usr/bin/vpp": {"problem": "ended with 127: libvnet.so"}}), "problem .vpp.prefix 127 libvnet.so"),
    ({}, programs(**{"qemu-system-x86_64": {"there": False}}), "problem - qemu-system-x86_64"),
    ({"containers": ["linux_firewall"]}, programs(nft={"there": False}), "problem - nft nftables"),
    ({"containers": ["vpp", "linux_nat"]}, programs(nft={"there": False}), "warning - nft nftables"),
    ({}, packages(kvm_facts={"there": False, "usable": False}), "warning - KVM /dev/kvm"),
    ({}, packages(kvm_facts={"usable": False, "problem": "Permission denied"}), "warning - KVM denied"),
    ({}, packages(kvm_facts={"paravirtual": True}), "warning - KVM paravirtual"),
    (PODMAN, {}, "problem .container.engine podman runc"),
    (PODMAN, packages(container_facts={"podman": {"there": True, "version": "5.4.2"}}), "warning .container.engine"),
    (AUTO, {}, ""),
    (AUTO, packages(container_facts={"docker": {"version": None}}), "warning .container.engine Podman Docker"),
    ({}, packages(container_facts={"docker": {"version": None}}), ""),
    ({}, {"leftovers": {"in_use": True, "owner": OWNER}}, "warning - 7 ann"),
    ({}, {"leftovers": {"namespaces": ["csit-x"]}}, "warning - leftovers 1"),
    ({}, {"leftovers": {"problem": "half a file"}}, "problem - leftovers half"),
    ({}, {"leftovers": {"runtimes": [{"name": "a", "mb": 90, "unused_days": 40}]}}, "warning - leftovers 1 30 90"),
    ({}, ports(port1=port(1, pcie=NARROW, speed_mbps=40_000), port2=port(2, speed_mbps=40_000)),
     "warning .interfaces.port1 PCIe 8 x4 32 16 x16 252 0000:18:00.0"),
    ({}, ports(port1=port(1, pcie=None)), ""),
    (OF_KERNEL, ports(port1=port(1, pause=None)), ""),
    ({}, ports(port1=port(1, pause={"rx": True, "tx": False})), ""),
    (OF_KERNEL, ports(port1=port(1, pause={"rx": True, "tx": False})), "warning .interfaces.port1 eth1 rx ethtool"),
    (OF_KERNEL, ports(port1=port(1, pause={"rx": False, "tx": True})), "warning .interfaces.port1 eth1 tx ethtool"),
    (OF_KERNEL, {**ports(port1=port(1, pcie=NARROW, pause={"rx": True, "tx": True})), **cpu(hypervisor=True)},
     "warning - virtual"),
    (BRIDGE, {"driver_needs": {"kernel": {"bridges": False}}}, "problem - bridges"),
    (BRIDGE, {"driver_needs": {"kernel": {"nftables": False}}}, "warning - nftables"),
    ({**BRIDGE, "vms": "qemu"}, {"driver_needs": {"kernel": {"vhost-net": False}}}, "warning - vhost-net QEMU"),
    (BRIDGE, {"driver_needs": {"kernel": {"bridges": None, "AF_XDP sockets": False}}}, ""),
]  # fmt: skip
TG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, packages(trex_facts={"there": False}), "problem .trex.directory TRex /opt/trex"),
    ({}, packages(trex_facts={"client": False}), "problem .trex.directory client"),
    ({}, packages(trex_facts={"there": "perhaps"}), "problem - trex_facts"),
    ({}, machine(memory={"nodes": NO_PAGES}), "problem - 1024 0 521 node0/hugepages/hugepages-2048kB/nr_hugepages"),
    (BUILTIN, {**machine(memory={"nodes": NO_PAGES}), **packages(trex_facts={"there": False})}, ""),
    ({**BUILTIN, "trex": {"directory": "/opt/trex"}}, packages(trex_facts={"there": False}), "warning .trex.directory"),
    *(({}, packages(trex_facts={"neighbours": {"0000:18:00.2": driver}}), "") for driver in (None, "vfio-pci", "iavf")),
    ({}, packages(trex_facts={"neighbours": {"0000:18:00.2": "i40e", "0000:18:00.3": "vfio-pci"}}),
     "problem - 0000:18:00.2 0000:18:00.0 drivers/i40e/unbind"),
    *(({}, packages(trex_facts={"ports": {PCI[0]: {"driver": "mlx5_core", "read_request_bytes": size}}}), said)
      for size, said in ((None, ""), (128, ""), (512, f"warning - {PCI[0]} 512 CAP_EXP+8.w=5000:7000"),
                         (2048, f"warning - {PCI[0]} 2048"), (4096, ""))),
    ({"interfaces": {name: {"driver": "ice", "model": "Intel-E810CQ"} for name in ("port1", "port2")}}, {},
     "warning - TRex qualify"),
    ({}, ports(port1=TAKEN), ""),
    (BUILTIN, ports(port1=TAKEN), "problem .interfaces.port1.driver 18:00.0 vfio-pci driver_override"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "file", "changes", "said"), [*(("DUT1", *row) for row in DUT), *(("TG", *row) for row in TG)]
)
def test_one_thing_is_wrong_and_one_line_says_so(
    node: str, file: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    """Level, place below the node, and words of the line; no line where there are none."""
    found = (of_tg(two_nodes(tg=file), **changes)) if node == "TG" else of_dut(two_nodes(dut=file), **changes)
    if not said:
        assert found == []
        return
    (line,), (level, place, *words) = found, said.split()
    assert line.startswith(f"{level} nodes.{node}{place.removeprefix('-')}: ")
    assert [word for word in words if word not in line] == []
    assert "; " in line, "it does not say how to fix it"


def test_smt_that_is_off_costs_half_cores() -> None:
    alone = [row for row in facts().machine.cpu.rows if row[0] < 8]
    lines = of_dut(two_nodes(dut={"cpus": "discover"}), **cpu(rows=alone, smt="off"))
    assert "warning nodes.DUT1: SMT: is off: cells with NFs of 0.5c are left out" in "\n".join(lines)


def test_programs_and_virtual_functions_of_a_run_are_not_taken_for_others() -> None:
    """A run that lives has its ports, and the next one ends and removes what a killed one has left."""
    there = {**ports(port1=port(1, virtual_functions=1)), **users("0000:18:00.1", pid=17, command="vpp")}
    recorded = {"bindings": ["pci_address 0000:18:00.1, driver i40e"], "processes": [{"pid": 17, "command": "vpp"}]}
    record = {**recorded, "others": {"functions": ["pci_address 0000:18:00.0, device eth1"]}}
    for in_use in (False, True):
        (line,) = of_dut(**there, leftovers={**record, "in_use": in_use, "owner": OWNER})
        assert line.startswith(f"warning nodes.DUT1: {'in use' if in_use else 'leftovers'}: ")
    assert len(of_dut(**there, leftovers={"processes": [{"pid": 18, "command": "vpp"}]})) == 3


@pytest.mark.parametrize(
    ("mbps", "file", "enough"),
    [
        (10_000, {}, True), (25_000, {}, False), (10_000, {"rate_bps": 25_000_000_000}, True),
        (None, {}, True), (None, {"rate_bps": 25_000_000_000}, False),
        (None, {"rate_bps": None, "model": "Intel-X710"}, True), (None, {"rate_bps": None}, False),
    ],
)  # fmt: skip
def test_a_pcie_link_that_carries_all_ports_of_its_nic_is_no_limit(
    mbps: int | None, file: dict[str, Any], *, enough: bool
) -> None:
    """31.5 Gb/s are enough for twice 10 Gb/s (what the file says otherwise), and not for twice 25 Gb/s."""
    topology = two_nodes(dut={"interfaces": {"port1": file, "port2": file}})
    rows = ports(**{f"port{number}": port(number, pcie=NARROW, speed_mbps=mbps) for number in (1, 2)})
    found = [line for line in of_dut(topology, **rows) if " PCIe: " in line]
    assert (found == []) == enough


@pytest.mark.parametrize(
    ("tg", "dut", "said"),
    [
        ({"fec": "RS"}, {"fec": "BaseR"}, ": FEC: link1"),
        ({}, {"carrier": False}, "problem nodes.DUT1.interfaces.port1: link: link1: DUT1.port1 (eth1) has no link"),
        ({"carrier": False}, {"carrier": False}, "problem nodes.TG.interfaces.port1: link: link1: neither TG.port1"),
        ({"up": False, "carrier": None}, {}, "warning nodes.TG.interfaces.port1: link: link1: TG.port1 (eth1) is down"),
        ({"speed_mbps": 1000}, {"speed_mbps": 1000}, "problem nodes.TG.interfaces.port1.rate_bps: speed: link1: "),
        ({}, {"speed_mbps": 1000}, "TG.port1 (eth1) runs at 10000 Mb/s, DUT1.port1 (eth1) at 1000"),
    ],
)  # fmt: skip
def test_both_ends_of_a_cable(tg: dict[str, Any], dut: dict[str, Any], said: str) -> None:
    lines = of_both(tg, dut)
    assert said in lines[0]
    assert len(lines) == (2 if "speed_mbps" in dut else 1)
    assert of_both({"fec": "RS"}, {"fec": "RS"}) == of_both({"fec": "RS"}, {"fec": None}) == []


def test_a_cable_whose_other_end_cannot_be_seen_is_not_judged() -> None:
    assert not [row for row in check_together(two_nodes(), {"TG": facts()}) if row.check == "link"]
    hidden = facts(**ports(port1=port(1, device=None, up=None, carrier=None)))
    rows = check_together(two_nodes(), {"TG": facts(), "DUT1": hidden})
    assert not wrong(rows) and "its link state is unknown" in " ".join(row.what for row in rows)


def test_clocks_are_compared_no_finer_than_the_way_allows() -> None:
    late = facts(clock_offset_s=-30.0)
    (line,) = wrong(check_together(two_nodes(), {"TG": facts(), "DUT1": late}))
    assert line.startswith(
        "warning nodes.DUT1: clock: -30.000 s from the controller's (±0.020 s), synchronised; records"
    )
    far = facts(clock_offset_s=-3.0, clock_error_s=4.0)
    assert wrong(check_together(two_nodes(), {"TG": facts(), "DUT1": far})) == []
    free = facts(machine={"clock": {"synchronised": False}})
    assert "not synchronised" in wrong(check_together(two_nodes(), {"TG": facts(), "DUT1": free}))[0]


def test_a_missing_loop_cable_is_no_reason_to_stop_a_run() -> None:
    topology = looped(two_nodes())
    assert topology.loops
    (line,) = of_tg(topology, **ports(loop10=None, loop11=port(2, pci_address="0000:f1:00.1", mac_address=None)))
    assert line.startswith(
        "warning nodes.TG.interfaces.loop10.pci_address: port: there is no PCI device 0000:f1:00.0, so the generator "
        "is not qualified over this port's cable; "
    )
    (line,) = of_tg(topology, **ports(port1=None, loop10=port(1, mac_address=None), loop11=port(2, mac_address=None)))
    assert line.startswith("problem nodes.TG.interfaces.port1")
