"""Names, tags and ids of a cell. All of them are derived here, so that they cannot differ."""

import re
from collections.abc import Sequence

from resources.libraries.python import driver_registry
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.request.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.media import to_vswitch, vswitch_of

GENERATOR = "generator"
VSWITCH = "vswitch"

_MEDIUM_WORDS = {Medium.MEMIF: "mif", Medium.VHOST_USER: "vh", Medium.VETH: "veth"}
"""Words for the vSwitch's interfaces towards NFs, where these depend on the NF."""


def vswitch_name(dut: int) -> str:
    """Name of the vSwitch of a DUT; DUTs count from 1 in the order in which forward packets visit them."""
    return VSWITCH if dut == 1 else f"{VSWITCH}-{dut}"


def is_vswitch(owner: str) -> bool:
    """Whether an owner is the vSwitch of any DUT."""
    return owner == VSWITCH or owner.startswith(f"{VSWITCH}-")


def is_owner(name: str) -> bool:
    """Whether the vSwitch of a DUT, an NF or a passive NF of some cell has this name."""
    return re.fullmatch(r"vswitch(-[2-9])?|(nf|tap)-\d{1,4}-[1-9]\d{0,3}", name) is not None


def is_interface(name: str) -> bool:
    """Whether a data interface of some cell has this name."""
    return re.fullmatch(r"cs[gv]\d{1,4}p[1-4]|cs[nv]\d{1,4}(x\d{1,4}i[12]|t\d{1,4})", name) is not None


def nf_name(instance: int, node: int) -> str:
    """Name of an NF; instances and nodes count from 1. Instance 0 is an NF that all instances share."""
    return f"nf-{instance}-{node}"


def tap_name(instance: int, number: int) -> str:
    """Name of a passive NF; instances and numbers count from 1."""
    return f"tap-{instance}-{number}"


def edge_interface(owner: str, instance: int, port: int) -> str:
    """Interface at an edge of the service: of the generator port 1 or 2, of the vSwitches 1 to 4 along the service.

    Instance 0 is a port that all instances share.
    """
    return f"cs{'g' if owner == GENERATOR else 'v'}{instance}p{port}"


def nf_interface(instance: int, node: int, side: int) -> str:
    """Data interface of an NF; side 1 is towards TG port 1."""
    return f"csn{instance}x{node}i{side}"


def vswitch_interface(instance: int, node: int, side: int) -> str:
    """The vSwitch's end of the link to `nf_interface`."""
    return f"csv{instance}x{node}i{side}"


def tap_interface(instance: int, number: int) -> str:
    """The interface of a passive NF."""
    return f"csn{instance}t{number}"


def vswitch_tap_interface(instance: int, number: int) -> str:
    """The vSwitch's end of the link to `tap_interface`."""
    return f"csv{instance}t{number}"


def segment_name(instance: int, position: int) -> str:
    """L2 segment (bridge domain) of an instance; position counts from 1."""
    return f"csb{instance}x{position}"


def suite_id(topology: Topology, cell: Cell, threads_per_nf: int) -> str:
    """CSIT's suite id, such as `eth-l2bd-4ch-16mif-8dcr2t-vppip4`.

    It says 4 chains, 16 vSwitch interfaces towards NFs, 8 containers with 2 data threads each. Pipelines count only
    the interfaces at their edges. A service of different NFs names its sizes instead of the thread count. Kinds of NFs
    of different instances are joined by `_`, those of one instance by `+`. At the end are nodes that instances share,
    `-shared1+3` (the number of NFs counts each of those once), passive NFs by position, `-tap1tcpdump+3vmngrep` (they
    do not count; `vm` is a virtual machine), and that NFs have limits of their own.
    """
    pipeline = cell.service_type.is_pipeline
    plain = len(set(cell.nf_sizes)) == 1 and not cell.nf_sizes[0].is_shared
    threads = f"{threads_per_nf}t" if plain else cell.size_name
    kinds = known_kinds(topology, cell)
    applications = applications_of(kinds)
    between = "_" if cell.instance_kinds else "+"
    application = applications[0] if len(set(applications)) == 1 else between.join(applications) or "path"
    encapsulation = "dot1q" if topology.discriminator == "vlan" else "eth"
    return (
        f"{encapsulation}-l2bd-{len(cell.instances)}{'pl' if pipeline else 'ch'}-{cell.inner_ports}"
        f"{_interfaces(vswitch_of(topology.dut), cell, kinds)}-"
        f"{_packages(cell, threads)}-{application}{_shared(cell)}{_taps(cell)}"
    )


def of_version(suite: str, ip_version: int) -> str:
    """A suite id with words of its NFs for that version of IP: `lnxip6` routes IPv6."""
    return suite if ip_version == 4 else re.sub(r"(?i)(ip)4\b", rf"\g<1>{ip_version}", suite)


def known_kinds(topology: Topology, cell: Cell) -> tuple[NfKind, ...]:
    """Kinds of a cell's NFs, one for each node (or each instance where these differ); without what is not there."""
    kinds = (topology.dut.kind_of(cell.service_type, kind) for kind in cell.asked_kinds())
    return tuple(kind for kind in kinds if kind is not None)


def applications_of(kinds: Sequence[NfKind]) -> tuple[str, ...]:
    """Word of a suite id for NFs of these kinds."""
    return tuple(_word(kind) for kind in kinds)


def _word(kind: NfKind) -> str:
    """Word for an NF by its kind: `lnxip4` routes IPv4 in the Linux kernel."""
    return kind.driver.word


def _interfaces(vswitch: str, cell: Cell, kinds: Sequence[NfKind]) -> str:
    """Words for the vSwitch's interfaces towards NFs; several words where they differ."""
    if cell.service_type is ServiceType.VSC:
        return "vh"
    for driver in driver_registry.vswitches().values():
        if vswitch in driver.interface_words:
            return driver.interface_words[vswitch]
    return "+".join(dict.fromkeys(_MEDIUM_WORDS[to_vswitch(vswitch, kind)] for kind in kinds)) or "mif"


def _packages(cell: Cell, threads: str) -> str:
    """Word for the packaging of NFs with number and threads: `8dcr2t`, or `1dcr2t+1vm` with virtual machines."""
    if cell.service_type is ServiceType.VSC:
        return f"{cell.nf_count}vm{threads}"
    vms = sum(kind is not None and kind.is_vm for kind in cell.asked_kinds())
    return f"{cell.nf_count - vms}dcr{threads}{f'+{vms}vm' if vms else ''}"


def _shared(cell: Cell) -> str:
    """Nodes shared by instances, at the end of a suite id: `-shared1+3`; empty for none."""
    return f"-shared{'+'.join(map(str, cell.shared_nodes))}" if cell.shared_nodes else ""


def _taps(cell: Cell) -> str:
    """Passive NFs by position, at the end of a suite id, and a word where NFs have limits of their own."""
    words = ((tap.kind, _word(tap.kind), tap.position) for tap in cell.taps)
    taps = "+".join(f"{position}{'vm' * kind.is_vm}{word}" for kind, word, position in words)
    limited = cell.limits + tuple(tap.limits for tap in cell.taps)
    return f"{taps and '-tap'}{taps}{'-limited' if any(each != Limits() for each in limited) else ''}"


def test_name(suite: str, cell: Cell, frame: Frame, test_type: TestType) -> str:
    """CSIT's test name: frame, vSwitch cores, suite id, test type."""
    return f"{frame.name}-{cell.vs_dtc}c-{of_version(suite, frame.ip_version)}-{test_type.value.lower()}"


def tags(topology: Topology, cell: Cell, suite: str, threads_per_nf: int) -> tuple[str, ...]:
    """CSIT's tags of a cell, with explicit VSC, CSC, CSP and NF size tags beside them; in its plan."""
    vm = cell.service_type is ServiceType.VSC
    mixed = len(set(cell.nf_sizes)) > 1
    return (
        "PERFTEST",
        f"{topology.world.upper()}_ENV",
        "NF_DENSITY",
        cell.service_type.value,
        "PIPELINE" if cell.service_type.is_pipeline else "CHAIN",
        cell.locator,
        f"{cell.nf_count}{'VM' if vm else 'DCR'}{'' if mixed else f'{threads_per_nf}T'}",
        f"{cell.vs_dtc}C",
        f"NF_{cell.size_name.upper()}",
        *(["SHARED_NFS"] if cell.shared_nodes else []),
        *(["PASSIVE_NFS"] if cell.taps else []),
        suite,
    )
