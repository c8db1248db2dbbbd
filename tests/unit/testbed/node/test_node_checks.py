"""Each check both ways: nothing to say where all is well, and the right words and numbers where it is not."""

from typing import Any

import pytest

from resources.libraries.python.model.findings.check_finding import CheckFinding, Severity
from resources.libraries.python.model.ranges import expand
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.doctor import check_node, check_together
from resources.libraries.python.testbed.node.checks.processors import planned_cpus, ranges
from tests.unit.planning.labs import looped
from tests.unit.testbed.node.node_facts import facts, port, two_nodes


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


FULL = {"/tmp": {"free_mb": 3}}  # noqa: S108
NO_PAGES = [
    {"node": node, "total_mb": 1, "free_mb": 1, "hugepages": [{"size_kb": 2048, "total": 9, "free": 0}]}
    for node in (0, 1)
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
        "problem nodes.DUT1: huge pages: a CSC cell of one NF needs 551 MB on NUMA 0, 0 MB are free",
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
    (ports(port2=port(2, master="bond0")), "problem nodes.DUT1.interfaces.port2: in use: eth2 is a part of bond0"),
    (
        ports(port2=port(2, driver=None, device=None)),
        "problem nodes.DUT1.interfaces.port2.driver: driver: 0000:18:00.1 has",
    ),
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
    assert line.startswith("warning nodes.TG.trex.directory: TRex: /opt/trex has no TRex"), "for TCP connections only"


@pytest.mark.parametrize(
    ("version", "ports", "warns"),
    [
        ("v3.04", "auto", False), ("v3.05", "auto", True), ("v3.08", "dpdk", True), ("v3.09", "auto", False),
        ("v3.06", "af_packet", False), (None, "auto", False),
    ],
)  # fmt: skip
def test_releases_whose_tcp_connections_fail_on_a_nic_are_named(version: str | None, ports: str, warns: bool) -> None:
    nics = {name: {"driver": "i40e", "model": "Intel-XL710"} for name in ("port1", "port2")}
    topology = two_nodes(tg={"trex": {"ports": ports}, "interfaces": nics})
    changes = {"packages": {"trex_facts": {"version": version}}}
    found = [line for line in of_tg(topology, **changes) if ": TRex: TCP" in line]
    about = f"TCP connections of {version} (ASTF) fail on NICs of driver i40e, which port1, port2 have"
    fix = "use v3.04 for tcp_peer: trex_astf (trex-core issue 1221)"
    assert found == ([f"warning nodes.TG: TRex: {about}; {fix}"] if warns else [])


def test_a_port_that_a_user_space_driver_has_is_wrong_only_where_the_kernel_needs_it() -> None:
    taken = ports(port1=port(1, driver="vfio-pci", device=None, mac_address=None, up=None, carrier=None))
    assert of_tg(**taken) == []
    (line,) = of_tg(two_nodes(tg={"generator": {"driver": "auto"}}), **taken)
    assert line.startswith("problem nodes.TG.interfaces.port1.driver: driver: 0000:18:00.0 is bound to vfio-pci")


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
