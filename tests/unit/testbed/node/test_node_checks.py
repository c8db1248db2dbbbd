"""Each check both ways: nothing to say where all is well, and the right words and numbers where it is not."""

from typing import Any

import pytest

from resources.libraries.python.model.findings.check_finding import CheckFinding, Severity
from resources.libraries.python.model.ranges import expand, ranges
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.doctor import check_node, check_together
from resources.libraries.python.testbed.node.checks.processors import planned_cpus
from tests.unit.planning.labs import looped
from tests.unit.testbed.node.node_facts import PCI, facts, port, two_nodes


def wrong(findings: list[CheckFinding]) -> list[str]:
    return [f"{finding.level} {finding}" for finding in findings if finding.level is not Severity.OK]


def of_dut(topology: Topology | None = None, **changes: Any) -> list[str]:
    return wrong(check_node(topology or two_nodes(), "DUT1", facts(**changes)))


def of_tg(topology: Topology | None = None, **changes: Any) -> list[str]:
    return wrong(check_node(topology or two_nodes(), "TG", facts(**changes)))


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


FULL = {"/tmp": {"free_mb": 3}}  # noqa: S108
NO_PAGES = [
    {"node": node, "total_mb": 1, "free_mb": 1, "hugepages": [{"size_kb": 2048, "total": 9, "free": 0}]}
    for node in (0, 1)
]
FEW_LARGE_PAGES = [
    {"node": 0, "total_mb": 4096, "free_mb": 1, "hugepages": [{"size_kb": 2**20, "total": 1, "free": 1}]}
]
OWNER = {"pid": 7, "start_ticks": 1, "command": "robot", "alive": True, "user": "ann", "since": "2026-11-21T10:00:00Z"}
CASES: list[tuple[dict[str, Any], str]] = [
    (machine(python=[3, 8, 10]), "problem nodes.DUT1.access.python: python: python3 is 3.8.10, an agent needs 3.11"),
    (machine(uid=1000), "problem nodes.DUT1: rights: user 1000, and runs need root's rights"),
    (machine(disks=FULL), "problem nodes.DUT1: disk: /tmp has 3 of 10000 MB free, 100 MB are needed"),
    (machine(disks={"/var/tmp": {"free_mb": 130}}), "problem nodes.DUT1: disk: /var/tmp has 130 of 10000 MB free, 140"),  # noqa: S108
    (machine(disks={"/run": {"read_only": True}}), "problem nodes.DUT1: disk: /run is read-only"),
    (machine(disks={"/run": {"free_files": 9}}), "problem nodes.DUT1: disk: /run has 9 free inodes"),
    (machine(load=[6.2, 1, 1]), "warning nodes.DUT1: load: 6.2 over the last minute, on 16 CPUs"),
    (machine(memory={"swap_used_mb": 12}), "warning nodes.DUT1: swap: 12 of 8192 MB of swap are in use"),
    (machine(irqbalance=True), "warning nodes.DUT1: interrupts: irqbalance moves interrupts to planned CPUs"),
    (
        machine(memory={"available_mb": 10}),
        "problem nodes.DUT1: memory: 10 of 65536 MB are free, the smallest cell needs",
    ),
    (
        machine(memory={"nodes": NO_PAGES}),
        "problem nodes.DUT1: huge pages: a CSC cell of one NF needs 561 MB on NUMA 0, 0 MB are free",
    ),
    (
        machine(memory={"nodes": FEW_LARGE_PAGES}),
        "problem nodes.DUT1: huge pages: a CSC cell of one NF needs 561 MB on NUMA 0: 281 of 2 MB or 4 of 1 GB, "
        "0 and 1 available; ",
    ),
    (cpu(isolated="1,9"), "warning nodes.DUT1: isolation: 4 of 6 CPUs that plans use are not isolated: 2-3,10-11"),
    (cpu(isolated=""), "warning nodes.DUT1: isolation: 6 of 6 CPUs that plans use are not isolated: 1-3,9-11"),
    (cpu(nohz_full=None), "warning nodes.DUT1: tick: the kernel's tick interrupts 6 of 6 CPUs"),
    (cpu(hypervisor=True), "warning nodes.DUT1: virtual: it is a virtual machine"),
    (cpu(governors={"powersave": [0, 1, 2, 9]}), "warning nodes.DUT1: governor: powersave on CPUs 0-2,9"),
    (cpu(boost=True), "warning nodes.DUT1: boost: is on"),
    (ports(port1=None), "problem nodes.DUT1.interfaces.port1.pci_address: port: there is no PCI device 0000:18:00.0"),
    (ports(port1=port(1, numa_node=1)), "problem nodes.DUT1.interfaces.port1.numa_node: NUMA: is on NUMA 1, and the"),
    (
        ports(port2=port(2, mac_address="02:00:00:00:00:09")),
        "problem nodes.DUT1.interfaces.port2.mac_address: MAC: has 02",
    ),
    (
        ports(port2=port(2, addresses=["192.0.2.2"])),
        "problem nodes.DUT1.interfaces.port2: in use: eth2 has the address",
    ),
    (
        ports(port2=port(2, default_route=True)),
        "problem nodes.DUT1.interfaces.port2: in use: eth2 has the default route",
    ),
    (
        ports(port2=port(2, virtual_functions=8)),
        "problem nodes.DUT1.interfaces.port2: virtual functions: 0000:18:00.1 has 8 virtual functions, and a run needs",
    ),
    (
        users("0000:18:00.1", pid=17, command="/usr/bin/vpp -c /etc/vpp/startup.conf"),
        "problem nodes.DUT1.interfaces.port2: in use: 0000:18:00.1 is in use by pid 17 (/usr/bin/vpp -c /etc/vpp/"
        "startup.conf); end it first; if it is a system service: systemctl disable --now NAME",
    ),
    (ports(port2=port(2, master="bond0")), "problem nodes.DUT1.interfaces.port2: in use: eth2 is a part of bond0"),
    ({"ports": {"vfio_pci": None}}, "problem nodes.DUT1: vfio-pci: vfio-pci is missing in this kernel"),
    ({"ports": {"iommu_groups": 0}}, "problem nodes.DUT1: IOMMU: is off: there are 0 groups"),
    (
        {"ports": {"iommu_groups": 0, "vfio_without_iommu": True}},
        "warning nodes.DUT1: IOMMU: is off, and vfio works without",
    ),
    (
        {"driver_needs": {"programs": {"/usr/bin/vpp": {"there": False}}}},
        "problem nodes.DUT1.vpp.prefix: VPP: /usr/bin/vpp is not there",
    ),
    (
        {"driver_needs": {"programs": {"/usr/bin/vpp": {"problem": "ended with 127: libvnet.so"}}}},
        "problem nodes.DUT1.vpp.prefix: VPP: /usr/bin/vpp do",
    ),
    (
        {"driver_needs": {"programs": {"qemu-system-x86_64": {"there": False}}}},
        "problem nodes.DUT1: QEMU: qemu-system-x86_64 is not there",
    ),
    (
        {"packages": {"kvm_facts": {"there": False, "usable": False}}},
        "warning nodes.DUT1: KVM: /dev/kvm is not there: virtual",
    ),
    (
        {"packages": {"kvm_facts": {"usable": False, "problem": "Permission denied"}}},
        "warning nodes.DUT1: KVM: Permission denied",
    ),
    ({"packages": {"kvm_facts": {"paravirtual": True}}}, "warning nodes.DUT1: KVM: is a paravirtual one"),
    (
        {"leftovers": {"in_use": True, "owner": OWNER}},
        "warning nodes.DUT1: in use: a run holds the machine: pid 7 of ann",
    ),
    (
        {"leftovers": {"namespaces": ["csit-x"]}},
        "warning nodes.DUT1: leftovers: 1 thing of a run that was killed: network",
    ),
    ({"leftovers": {"problem": "half a file"}}, "problem nodes.DUT1: leftovers: half a file"),
    (
        {"leftovers": {"runtimes": [{"name": "a", "mb": 90, "unused_days": 40}]}},
        "warning nodes.DUT1: leftovers: 1 runtime of agents unused for 30 days, 90 MB",
    ),
]


@pytest.mark.parametrize(("changes", "said"), CASES, ids=lambda each: each[:60] if isinstance(each, str) else "")
def test_one_thing_is_wrong_and_one_line_says_so(changes: dict[str, Any], said: str) -> None:
    (line,) = of_dut(**changes)
    assert line.startswith(said)
    assert "; " in line, "it does not say how to fix it"


@pytest.mark.parametrize(("kinds", "level"), [("linux_firewall", "problem"), ("vpp,linux_nat", "warning")])
def test_nftables_are_a_problem_only_without_an_alternative(kinds: str, level: str) -> None:
    topology = two_nodes(dut={"containers": kinds.split(",")})
    (line,) = of_dut(topology, driver_needs={"programs": {"nft": {"there": False}}})
    assert line == f"{level} nodes.DUT1: nftables: nft is not there; apt-get install nftables"
    assert of_dut(topology) == []


@pytest.mark.parametrize(("driver", "found"), [("igb_uio", 0), ("uio_pci_generic", 0), ("vfio-pci", 1)])
def test_only_ports_that_are_bound_to_vfio_need_it(driver: str, found: int) -> None:
    """igb_uio and uio_pci_generic hand a port to user space without vfio and without an IOMMU."""
    topology, there = two_nodes(dut={"uio_driver": driver}), {"igb_uio": "loaded", "uio_pci_generic": "available"}
    for lacks in ({"vfio_pci": None}, {"iommu_groups": 0}):
        assert len(of_dut(topology, ports={**there, **lacks})) == found


def test_a_driver_for_user_space_that_the_kernel_lacks_is_a_problem_whatever_has_the_ports_now() -> None:
    topology = two_nodes(dut={"interfaces": {"port2": {"uio_driver": "igb_uio"}}})
    for present in ({"driver": "i40e"}, {"driver": None, "device": None}):
        (line,) = of_dut(topology, **ports(port2=port(2, **present)))
        assert line == (
            "problem nodes.DUT1: igb_uio: igb_uio is missing in this kernel; install the module, or say uio_driver: "
            "vfio-pci"
        )
    bare = {"ports": {"port2": port(2, driver=None, device=None)}, "vfio_pci": None}
    (line,) = of_dut(ports=bare)
    assert line.startswith("problem nodes.DUT1: vfio-pci: ")


def test_a_port_without_a_driver_is_a_problem_only_where_a_run_binds_none() -> None:
    bare = ports(port2=port(2, driver=None, device=None, up=None, carrier=None))
    assert of_dut(**bare) == []
    (row,) = (each for each in check_node(two_nodes(), "DUT1", facts(**bare)) if each.check == "ports")
    assert row.what.endswith("port2 is 0000:18:00.1 (no driver: a run binds it), driven by DPDK (vfio-pci)")
    of_kernel = two_nodes(dut={"vpp": {"ports": "af_packet"}})
    (line,) = of_dut(of_kernel, **bare)
    assert line == (
        "problem nodes.DUT1.interfaces.port2.driver: driver: 0000:18:00.1 has none, and runs need the kernel's; "
        "modprobe its driver, then echo 0000:18:00.1 > /sys/bus/pci/drivers_probe"
    )
    of_functions = two_nodes(dut={"interfaces": {"port2": {"nic_vfs": 1}}})
    (line,) = of_dut(of_functions, **bare)
    assert "0000:18:00.1 has none, and its virtual functions need the kernel's" in line


def test_cores_with_an_offline_sibling_are_named() -> None:
    rows = [[cpu, cpu % 8, cpu % 8 // 4, cpu % 8 // 4] for cpu in range(16) if cpu != 10]
    (line,) = of_dut(two_nodes(dut={"cpus": "discover"}), **cpu(rows=rows))
    assert line.startswith(
        "warning nodes.DUT1: cores: cores have unequal numbers of threads: fewer than 2 on those of CPUs 2;"
    )


def test_processors_that_are_not_those_of_the_file() -> None:
    rows = facts().machine.cpu.rows
    (offline,) = of_dut(**cpu(rows=[row for row in rows if row[0] not in (5, 13)]))
    assert offline.startswith("problem nodes.DUT1.cpus: cpus: CPUs 5,13 are not online; 14 are: 0-4,6-12,14-15")
    (moved,) = of_dut(**cpu(rows=[(*row[:3], 0) for row in rows]))
    assert "CPUs 4-7,12-15 are on another NUMA node than listed; CPU 4 is on 0" in moved
    (paired,) = of_dut(**cpu(rows=[(row[0], row[0] // 2, *row[2:]) for row in rows]))
    assert "which CPUs share a core differs from the file; CPU 0 is of core 0-1" in paired
    assert of_dut(two_nodes(dut={"cpus": "discover"}), **cpu(rows=rows)) == []


def test_smt_that_is_off_costs_half_cores() -> None:
    alone = [row for row in facts().machine.cpu.rows if row[0] < 8]
    lines = of_dut(two_nodes(dut={"cpus": "discover"}), **cpu(rows=alone, smt="off"))
    assert [
        line
        for line in lines
        if line.startswith("warning nodes.DUT1: SMT: is off: cells with NFs of 0.5c are left out")
    ]


def test_trex_is_looked_for_where_it_is_used() -> None:
    (line,) = of_tg(packages={"trex_facts": {"there": False}})
    assert line.startswith("problem nodes.TG.trex.directory: TRex: /opt/trex has no TRex that can be run")
    (line,) = of_tg(packages={"trex_facts": {"client": False}})
    assert "without its client library" in line
    (line,) = of_tg(**machine(memory={"nodes": NO_PAGES}))
    assert line.startswith("problem nodes.TG: huge pages: TRex with DPDK needs 1024 MB on NUMA 0, 0 MB are free there")
    assert "echo 521 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages" in line
    builtin = two_nodes(tg={"generator": {"driver": "auto"}})
    gone = {"packages": {"trex_facts": {"there": False}}}
    assert of_tg(builtin, **machine(memory={"nodes": NO_PAGES}), **gone) == []
    beside = two_nodes(tg={"generator": {"driver": "auto"}, "trex": {"directory": "/opt/trex"}})
    (line,) = of_tg(beside, **gone)
    assert line.startswith("warning nodes.TG.trex.directory: TRex: /opt/trex has no TRex")


def test_a_port_of_a_card_of_trex_under_the_kernels_driver_is_a_problem() -> None:
    for driver in (None, "vfio-pci", "iavf"):
        assert of_tg(packages={"trex_facts": {"neighbours": {"0000:18:00.2": driver}}}) == []
    (line,) = of_tg(packages={"trex_facts": {"neighbours": {"0000:18:00.2": "i40e", "0000:18:00.3": "vfio-pci"}}})
    ours = "0000:18:00.2, a port of the same card as 0000:18:00.0, 0000:18:00.1, is under the kernel's i40e"
    assert line.startswith(f"problem nodes.TG: TRex: {ours}")
    assert "(trex-528)" in line and line.endswith("or echo 0000:18:00.2 > /sys/bus/pci/drivers/i40e/unbind")


@pytest.mark.parametrize(("size", "warns"), [(None, False), (128, False), (512, True), (2048, True), (4096, False)])
def test_mlx5_ports_with_small_read_requests_are_named(size: int | None, warns: bool) -> None:
    mlx5 = {PCI[0]: {"driver": "mlx5_core", "read_request_bytes": size}}
    found = of_tg(packages={"trex_facts": {"ports": mlx5}})
    assert bool(found) is warns
    for line in found:
        assert line.startswith(f"warning nodes.TG: TRex: {PCI[0]} asks for {size} bytes at most by a PCIe")
        assert f"; setpci -s {PCI[0]} CAP_EXP+8.w=5000:7000" in line


def test_one_core_of_trex_that_counts_all_packets_is_named() -> None:
    ice = {name: {"driver": "ice", "model": "Intel-E810CQ"} for name in ("port1", "port2")}
    (line,) = of_tg(two_nodes(tg={"interfaces": ice}))
    assert line.startswith("warning nodes.TG: TRex: TRex counts all packets of these NICs by its one receiving core")
    assert "./csit qualify measures the bound" in line


def test_a_port_that_a_user_space_driver_has_is_wrong_only_where_the_kernel_needs_it() -> None:
    taken = ports(port1=port(1, driver="vfio-pci", device=None, mac_address=None, up=None, carrier=None))
    assert of_tg(**taken) == []
    (line,) = of_tg(two_nodes(tg={"generator": {"driver": "auto"}}), **taken)
    assert line == (
        "problem nodes.TG.interfaces.port1.driver: driver: 0000:18:00.0 is bound to vfio-pci, and runs need the "
        "kernel's own driver; echo > /sys/bus/pci/devices/0000:18:00.0/driver_override; echo 0000:18:00.0 | "
        "tee /sys/bus/pci/devices/0000:18:00.0/driver/unbind /sys/bus/pci/drivers_probe"
    )
    (line,) = of_dut(two_nodes(dut={"interfaces": {"port1": {"nic_vfs": 1}}}), **taken)
    assert "0000:18:00.0 is bound to vfio-pci, and its virtual functions need the kernel's own driver" in line


def test_programs_and_virtual_functions_of_a_run_are_not_taken_for_others() -> None:
    """A run that lives has its ports, and the next one ends and removes what a killed one has left."""
    there = {**ports(port1=port(1, virtual_functions=1)), **users("0000:18:00.1", pid=17, command="vpp")}
    recorded = {"bindings": ["pci_address 0000:18:00.1, driver i40e"], "processes": [{"pid": 17, "command": "vpp"}]}
    record = {**recorded, "others": {"functions": ["pci_address 0000:18:00.0, device eth1"]}}
    for in_use in (False, True):
        (line,) = of_dut(**there, leftovers={**record, "in_use": in_use, "owner": OWNER})
        assert line.startswith(f"warning nodes.DUT1: {'in use' if in_use else 'leftovers'}: ")
    assert len(of_dut(**there, leftovers={"processes": [{"pid": 18, "command": "vpp"}]})) == 3


def test_virtual_functions_matter_only_where_the_kernel_loses_the_port() -> None:
    there = ports(port1=port(1, virtual_functions=2))
    assert of_dut(two_nodes(dut={"vpp": {"ports": "af_packet"}}), **there) == []
    (line,) = of_dut(two_nodes(dut={"interfaces": {"port1": {"nic_vfs": 1}}}), **there)
    assert line.endswith("; if nothing uses them: echo 0 > /sys/bus/pci/devices/0000:18:00.0/sriov_numvfs")


def test_a_nic_without_virtual_functions_is_a_problem_where_they_are_asked_for() -> None:
    there = ports(port1=port(1, most_virtual_functions=0))
    assert of_dut(**there) == []
    of_functions = two_nodes(dut={"interfaces": {"port1": {"nic_vfs": 1}}})
    assert of_dut(of_functions, **ports(port1=port(1, most_virtual_functions=64))) == []
    (line,) = of_dut(of_functions, **there)
    assert line == (
        "problem nodes.DUT1.interfaces.port1.nic_vfs: virtual functions: 0000:18:00.0 has no virtual functions "
        "(SR-IOV), which nic_vfs asks for; enable SR-IOV in the firmware of the machine and of the NIC, or remove "
        "nic_vfs"
    )


def test_an_address_is_to_be_taken_from_what_sets_it_again() -> None:
    fixes = [
        line.partition("; ")[2].partition("; ")[2]
        for change in ({"addresses": ["192.0.2.2"]}, {"master": "bond0"})
        for line in of_dut(**ports(port2=port(2, **change)))
    ]
    assert fixes == [
        "use another port, or take it out of netplan or NetworkManager, which give it the address again after each "
        "cell, and free it: ip address flush dev eth2",
        "use another port, or free it: ip address flush dev eth2",
    ]


NARROW = {"gt_per_s": 8.0, "lanes": 4, "most_gt_per_s": 16.0, "most_lanes": 16}


def test_a_pcie_link_below_what_the_nic_can_do_is_named_with_both() -> None:
    (line,) = of_dut(**ports(port1=port(1, pcie=NARROW, speed_mbps=40_000), port2=port(2, speed_mbps=40_000)))
    assert line == (
        "warning nodes.DUT1.interfaces.port1: PCIe: the link of eth1 has 8 GT/s x4 (32 Gb/s) of 16 GT/s x16 "
        "(252 Gb/s), which all ports of its NIC share; use a slot that offers more, or its setting in the firmware; "
        "lspci -vv -s 0000:18:00.0 shows both"
    )
    for less in ({"gt_per_s": 2.5}, {"lanes": 1}):
        unknown = port(1, device=None, driver=None, speed_mbps=None, pcie={**port(1)["pcie"], **less})
        (line,) = of_dut(**ports(port1=unknown))
        assert "the link of 0000:18:00.0 has" in line
    assert of_dut(**ports(port1=port(1, pcie=None))) == []


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


@pytest.mark.parametrize("pause", [{"rx": True, "tx": False}, {"rx": False, "tx": True}])
def test_pause_frames_are_named_where_the_kernel_keeps_the_port(pause: dict[str, bool]) -> None:
    on = ports(port1=port(1, pause=pause))
    assert of_dut(**on) == [], "DPDK sets flow control of its ports itself"
    (line,) = of_dut(two_nodes(dut={"vpp": {"ports": "af_packet"}}), **on)
    words = ", ".join(f"{way} {'on' if value else 'off'}" for way, value in pause.items())
    assert line == (
        f"warning nodes.DUT1.interfaces.port1: pause frames: flow control of eth1 is on ({words}): senders are "
        "throttled where packets should be lost; ethtool -A eth1 rx off tx off, with autoneg off "
        "where they are still on then"
    )
    assert of_dut(two_nodes(dut={"vpp": {"ports": "af_packet"}}), **ports(port1=port(1, pause=None))) == []


def test_links_and_flow_control_of_emulated_nics_are_not_judged() -> None:
    odd = ports(port1=port(1, pcie=NARROW, pause={"rx": True, "tx": True}))
    lines = of_dut(two_nodes(dut={"vpp": {"ports": "af_packet"}}), **odd, **cpu(hypervisor=True))
    assert [line.split(":")[1] for line in lines] == [" virtual"]


def test_an_engine_that_the_file_wants_has_to_answer() -> None:
    podman = two_nodes(dut={"container": {"engine": "podman"}})
    (line,) = of_dut(podman)
    assert line.startswith("problem nodes.DUT1.container.engine: containers: podman does not answer: it is not install")
    assert line.endswith("apt-get install --no-install-recommends podman runc, or say engine: auto")
    (line,) = of_dut(podman, packages={"container_facts": {"podman": {"there": True, "version": "5.4.2"}}})
    assert line.startswith("warning nodes.DUT1.container.engine: containers: podman without runc")
    there = {"podman": {"there": True, "version": "5.4.2"}, "runc": {"there": True}}
    assert of_dut(podman, packages={"container_facts": there}) == []


def test_any_engine_will_do_where_the_file_says_auto() -> None:
    auto = two_nodes(dut={"container": {"engine": "auto"}})
    assert of_dut(auto) == []
    (line,) = of_dut(auto, packages={"container_facts": {"docker": {"version": None}}})
    assert line.startswith("warning nodes.DUT1.container.engine: containers: neither Podman nor Docker answers")
    assert of_dut(two_nodes(), packages={"container_facts": {"docker": {"version": None}}}) == []


@pytest.mark.parametrize(
    ("tg", "dut", "said"),
    [
        ({"carrier": False}, {}, "problem nodes.TG.interfaces.port1: link: link1: TG.port1 (eth1) has no link"),
        ({}, {"carrier": False}, "problem nodes.DUT1.interfaces.port1: link: link1: DUT1.port1 (eth1) has no link"),
        ({"carrier": False}, {"carrier": False}, "problem nodes.TG.interfaces.port1: link: link1: neither TG.port1"),
        ({"up": False, "carrier": None}, {}, "warning nodes.TG.interfaces.port1: link: link1: TG.port1 (eth1) is down"),
        ({"speed_mbps": 1000}, {"speed_mbps": 1000}, "problem nodes.TG.interfaces.port1.rate_bps: speed: link1: "),
    ],
)  # fmt: skip
def test_both_ends_of_a_cable(tg: dict[str, Any], dut: dict[str, Any], said: str) -> None:
    lines = wrong(
        check_together(
            two_nodes(), {"TG": facts(**ports(port1=port(1, **tg))), "DUT1": facts(**ports(port1=port(1, **dut)))}
        )
    )
    assert lines[0].startswith(said)
    assert len(lines) == (2 if "rate_bps" in said else 1)


def test_ends_that_run_at_different_speeds_are_not_each_others() -> None:
    slow = facts(**ports(port1=port(1, speed_mbps=1000)))
    lines = wrong(check_together(two_nodes(), {"TG": facts(), "DUT1": slow}))
    assert "TG.port1 (eth1) runs at 10000 Mb/s, DUT1.port1 (eth1) at 1000" in lines[0]


def test_ends_with_different_fec_are_a_warning() -> None:
    for other, warned in (("BaseR", True), ("RS", False), (None, False)):
        ends = {"TG": facts(**ports(port1=port(1, fec="RS"))), "DUT1": facts(**ports(port1=port(1, fec=other)))}
        lines = wrong(check_together(two_nodes(), ends))
        assert [": FEC: link1" in line for line in lines] == [True] * warned


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


def test_plans_use_the_node_of_the_ports_without_the_system_s_core() -> None:
    dut = two_nodes().dut
    assert planned_cpus(dut.layout, dut) == (1, 2, 3, 9, 10, 11)
    sharing = dut.core_sharing.model_copy(update={"system_cores": 2})
    assert planned_cpus(dut.layout, dut.model_copy(update={"core_sharing": sharing})) == (2, 3, 10, 11)


@pytest.mark.parametrize("text", ["0", "0-3", "0-3,8,10-11"])
def test_lists_of_cpus_are_written_as_they_are_read(text: str) -> None:
    assert ranges(expand(text)) == text


@pytest.mark.parametrize(
    ("changes", "dut", "said"),
    [
        ({"bridges": False}, {}, "problem nodes.DUT1: kernel: no bridges, for Linux bridge; boot a kern"),
        ({"nftables": False}, {}, "warning nodes.DUT1: kernel: no nftables, for nftables; boot a kern"),
        (
            {"vhost-net": False},
            {"vms": "qemu"},
            "warning nodes.DUT1: kernel: no vhost-net, for QEMU: QEMU copies packets in a thread of its own",
        ),
    ],
)  # fmt: skip
def test_a_kernel_without_a_feature_that_drivers_need(changes: dict[str, bool], dut: dict[str, Any], said: str) -> None:
    bridge = {"vswitch": "linux_bridge", "containers": ["linux_router", "linux_firewall"], **dut}
    (line,) = of_dut(two_nodes(dut=bridge), driver_needs={"kernel": changes})
    assert line.startswith(said)


def test_a_feature_that_cannot_be_seen_or_is_not_used_is_not_missing() -> None:
    bridge = {"vswitch": "linux_bridge", "containers": "linux_router"}
    assert of_dut(two_nodes(dut=bridge), driver_needs={"kernel": {"bridges": None, "AF_XDP sockets": False}}) == []


def test_an_answer_of_another_form_is_a_finding() -> None:
    (line,) = of_tg(packages={"trex_facts": {"there": "perhaps"}})
    assert line.startswith("problem nodes.TG: trex_facts: unexpected answer: 1 errors; look at what")


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
