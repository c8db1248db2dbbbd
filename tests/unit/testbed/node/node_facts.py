"""Facts of a node where all is well, for checks to find nothing, and of nodes where something is not."""

from collections.abc import Mapping
from typing import Any

from resources.libraries.python import driver_registry
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.node.facts import Facts

EVERY_DRIVER = (
    *driver_registry.vswitches().values(),
    *driver_registry.generators().values(),
    *driver_registry.functions().values(),
)
KERNEL_FEATURES = {feature.label for driver in EVERY_DRIVER for feature in driver.kernel}
PCI = ("0000:18:00.0", "0000:18:00.1")
NO_PAGES = [
    {"node": node, "total_mb": 32768, "free_mb": 1, "hugepages": [{"size_kb": 2048, "total": 9, "free": 0}]}
    for node in (0, 1)
]
"""Memory of which no huge page is free."""


def port(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "device": f"eth{number}", "pci_address": PCI[number - 1], "driver": "i40e", "numa_node": 0, "vendor": "0x8086",
        "model": "0x1572", "iommu_group": "7", "virtual_functions": 0,
        "pcie": {"gt_per_s": 8.0, "lanes": 8, "most_gt_per_s": 8.0, "most_lanes": 8},
        "pause": {"rx": False, "tx": False}, "mac_address": f"3c:fd:fe:00:00:0{number}", "up": True, "carrier": True,
        "speed_mbps": 10000, "mtu": 1500, "addresses": [], "default_route": False, "master": None, **changes,
    }  # fmt: skip


def merged(base: Any, changes: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping):
        return changes
    return {**base, **{key: merged(base.get(key), value) for key, value in changes.items()}}


def facts(**changes: Any) -> Facts:
    """A node with 8 cores of two threads on two NUMA nodes; `changes` are merged into what it says."""
    program = {"there": False, "version": None, "problem": None}
    disk = {"free_mb": 9000, "total_mb": 10000, "free_files": 100000, "read_only": False}
    pages = [{"size_kb": 2048, "total": 4096, "free": 4096}]
    content: dict[str, Any] = {
        "machine": {
            "hostname": "dut1", "python": [3, 11, 2], "uid": 0, "distribution": "Debian GNU/Linux 12 (bookworm)",
            "kernel": "6.1.0-18-amd64", "command_line": "quiet isolcpus=1-3,9-11 mitigations=off", "boot_id": "b",
            "up_s": 86400.0, "clock": {"synchronised": True, "error_s": 0.01}, "load": [0.2, 0.1, 0.1],
            "irqbalance": False, "disks": dict.fromkeys(("/tmp", "/var/tmp", "/run", "/dev/shm"), disk),  # noqa: S108
            "cpu": {
                "model": "Xeon", "microcode": "0x1", "hypervisor": False, "online": "0-15", "allowed": "0-15",
                "isolated": "1-3,9-11", "nohz_full": "1-3,9-11", "governors": {"performance": list(range(16))},
                "smt": "on", "boost": False,
                "vulnerabilities": {"meltdown": "Not affected", "retbleed": "Vulnerable"},
                "rows": [[cpu, cpu % 8, cpu % 8 // 4, cpu % 8 // 4] for cpu in range(16)],
            },
            "memory": {
                "total_mb": 65536, "available_mb": 60000, "swap_total_mb": 8192, "swap_used_mb": 0,
                "nodes": [{"node": n, "total_mb": 32768, "free_mb": 30000, "hugepages": pages} for n in (0, 1)],
            },
        },
        "ports": {
            "ports": {"port1": port(1), "port2": port(2)}, "vfio_pci": "available", "uio_pci_generic": None,
            "igb_uio": None, "iommu_groups": 80, "vfio_without_iommu": False,
            "interfaces": ["eno1", "eth1", "eth2", "lo"],
        },
        "device_users": {"users": {address: [] for address in PCI}},
        "driver_needs": {
            "programs": {
                "/usr/bin/vpp": {"there": True, "version": "25.06", "problem": None},
                "qemu-system-x86_64": {"there": True, "version": "8.2.2", "problem": None},
                "ovs-vswitchd": program, "nft": {"there": True, "version": "1.0.6", "problem": None},
            },
            "kernel": dict.fromkeys(KERNEL_FEATURES, True),
        },
        "packages": {
            "container_facts": {
                "docker": {"there": True, "version": "27.1.1", "problem": None}, "podman": program, "runc": program,
            },
            "kvm_facts": {"there": True, "usable": True, "problem": None, "paravirtual": False},
            "trex_facts": {
                **program, "there": True, "version": "v3.04", "directory": "/opt/trex", "client": True,
                "ports": {address: {"driver": "vfio-pci", "read_request_bytes": 512} for address in PCI},
                "neighbours": {},
            },
        },
        "leftovers": {
            "in_use": False, "problem": None, "owner": None, "settings": {},
            **{kind: [] for kind in ("namespaces", "processes", "ports", "bindings", "unclaimed", "runtimes")},
        },
        "clock_offset_s": 0.01, "clock_error_s": 0.02, "round_trip_s": 0.1,
    }  # fmt: skip
    return Facts.model_validate(merged(content, changes))


def two_nodes(tg: Mapping[str, Any] = {}, dut: Mapping[str, Any] = {}) -> Topology:
    """A lab of two nodes with NICs; `tg` and `dut` are merged into what the file says of them."""

    def ports(model: str) -> dict[str, Any]:
        return {
            f"port{number}": {
                "link": f"link{number}", "pci_address": PCI[number - 1], "driver": "i40e", "numa_node": 0,
                "mac_address": f"3c:fd:fe:00:00:0{number}", "model": model, "rate_bps": 10_000_000_000,
            }
            for number in (1, 2)
        }  # fmt: skip

    cpus = [
        {"cpus": f"{4 * node}-{4 * node + 3},{4 * node + 8}-{4 * node + 11}",
         "cores": f"{4 * node}-{4 * node + 3},{4 * node}-{4 * node + 3}", "socket": node, "node": node}
        for node in (0, 1)
    ]  # fmt: skip
    content = {
        "metadata": {"version": 1, "name": "lab"},
        "world": "lab",
        "nodes": {
            "TG": {
                "type": "TG", "access": {"host": "192.0.2.1"}, "generator": {"driver": "trex"}, "cpus": cpus,
                "interfaces": ports("x710"),
            },
            "DUT1": {
                "type": "DUT", "access": {"host": "192.0.2.2"}, "vswitch": "vpp", "containers": "vpp", "cpus": cpus,
                "vms": "qemu", "interfaces": ports("x710"),
            },
        },
    }  # fmt: skip
    return Topology.model_validate(merged(content, {"nodes": {"TG": dict(tg), "DUT1": dict(dut)}}))
