"""CSIT's tags of a test, as FD.io CSIT's documentation of test tags means them: what robot's --include selects by.

Those of a cell alone are `names.tags`. Here are those that also depend on the testbed, the frames and the search. A tag
is there only where it is true: MEMIF where links are memif, NIC_ and DRV_ where there are NICs.
"""

import re
from collections.abc import Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.request.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.attachment import UIO_DRIVERS, Attachment
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning import names
from resources.libraries.python.planning.edges import edges_of
from resources.libraries.python.planning.media import to_vswitch, vswitch_of
from resources.libraries.python.planning.plan import threads_per_nf

_MEDIUM_TAGS = {Medium.MEMIF: "MEMIF", Medium.VHOST_USER: "VHOST", Medium.VETH: "VETH"}
_VIRTUAL = r"(\w+-)?(virtual|virtio|e1000|82540em|82574l|vmxnet3)"
"""Models of NICs that are emulated, with or without the name of a maker."""
_DRIVERS = {
    Attachment.BIFURCATED: "mlx5_core",
    Attachment.RDMA: "rdma-core",
    Attachment.AF_XDP: "af_xdp",
    Attachment.KERNEL: "af_packet",
}
"""CSIT's words for how a port is driven, where the port itself says no more."""
_NATIVE = {"virtio_net": "virtio", "virtio-pci": "virtio", "iavf": "avf"}
"""Drivers of VPP's own by those of the kernel, where they have other names."""


def row_tags(  # noqa: PLR0917 - what a test is made of
    topology: Topology,
    cell: Cell,
    suite: str,
    layout: CpuLayout,
    frame: Frame,
    test_type: TestType,
    *,
    soak: bool = False,
) -> tuple[str, ...]:
    """All tags of a test.

    `layout`: logical CPUs of the first DUT.
    `soak`: whether the search profile asks for one load over a long time, whatever the suite's test type.
    """
    numa_node = topology.dut.numa_node
    per_core = len(layout.cores(numa_node)[0])
    return (
        *names.tags(topology, cell, names.of_version(suite, frame.ip_version), threads_per_nf(cell, layout, numa_node)),
        *_testbed(topology),
        *_nic(topology),
        "ETH" if topology.discriminator != "vlan" else "DOT1Q",
        "L2BDMACLRN" if driver_registry.vswitches()[topology.dut.vswitch].learns_macs else "L2BDMACSTAT",
        *(names.of_version(tag, frame.ip_version) for tag in _functions(topology, cell)),
        f"{cell.vs_dtc * per_core}T{cell.vs_dtc}C",
        frame.size_name,
        f"IP{frame.ip_version}FWD",
        *([f"{frame.flows}_FLOWS"] if frame.flows else []),
        "SOAK" if soak and test_type is TestType.NDRPDR else test_type.value,
    )


def _testbed(topology: Topology) -> Iterator[str]:
    """Nodes in a circle, each joined to the next by one link at least; what the machines are."""
    yield f"{len(topology.nodes)}_NODE_SINGLE_LINK_TOPO"
    if topology.world is World.LAB:
        nic = edges_of(topology).nic(1, 0, 1)
        model = (nic.model if nic is not None else None) or ""
        yield "VM_ENV" if re.match(_VIRTUAL, model, re.IGNORECASE) else "HW_ENV"


def nic_driver(nic: Nic, vswitch: str) -> str | None:
    """CSIT's word for the driver of a vSwitch port: `vfio-pci`, `avf`; None where that is not known.

    VPP's own driver on a virtual function is `avf`, whatever drives the port that it is of. The Linux bridge has the
    kernel's driver.
    """
    known = driver_registry.vswitches().get(vswitch)
    in_kernel = known is not None and known.in_kernel
    if nic.attachment is Attachment.DPDK:
        return nic.uio_driver or "vfio-pci"
    if nic.attachment is Attachment.NATIVE:
        return "avf" if nic.vfs else _NATIVE.get(nic.driver or "", nic.driver)
    if nic.attachment is Attachment.BIFURCATED and nic.driver:
        return nic.driver
    if nic.attachment is Attachment.KERNEL and (in_kernel or nic.driver in UIO_DRIVERS):
        return nic.driver  # a record from before attachments has DPDK's drivers here
    return _DRIVERS[nic.attachment]


def short_model(model: str) -> str:
    """A NIC model without its maker, as CSIT's job specifications write it: `xxv710`."""
    return model.split("-", 1)[-1].lower()


def _nic(topology: Topology) -> Iterator[str]:
    """Model and driver of the ports of the first DUT that are measured on."""
    nic = edges_of(topology).nic(1, 0, 1)
    if nic is None:
        return
    if nic.model:
        yield f"NIC_{nic.model}"
        yield short_model(nic.model).upper()
    if driver := nic_driver(nic, topology.dut.vswitch):
        yield f"DRV_{driver.upper().replace('-', '_')}"
    yield "RXQ_SIZE_0"  # descriptors of a queue: the driver's own default, and so is what a test asks for
    yield "TXQ_SIZE_0"


def _functions(topology: Topology, cell: Cell) -> Iterator[str]:
    """Tags of NFs: form, program and links."""
    vms = cell.service_type is ServiceType.VSC
    kinds = names.known_kinds(topology, cell)
    yield "VM" if vms else "DOCKER"
    yield from dict.fromkeys(_link(vswitch_of(topology.dut), kind, vm=vms or kind.is_vm) for kind in kinds)
    yield from dict.fromkeys(f"NF_{word.upper()}" for word in names.applications_of(kinds))
    plain = not cell.taps and not cell.shared_nodes and all(kind.driver.simple for kind in kinds)
    yield "BASE" if plain else "FEATURE"


def _link(vswitch: str, kind: NfKind, *, vm: bool) -> str:
    if vswitch == "sim":
        return "VHOST" if vm else "MEMIF"
    medium = to_vswitch(vswitch, kind)
    return "TAP" if vm and medium is Medium.VETH else _MEDIUM_TAGS[medium]
