"""What links inside a service are made of, by what is at their ends."""

from resources.libraries.python.model.attachment import attachment_of
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import Medium

OVS_WITH_DPDK = "ovs_dpdk"
"""Open vSwitch whose physical ports DPDK drives: it shares memory with NFs that are DPDK programs."""

SHARED_MEMORY = frozenset({Medium.MEMIF, Medium.VHOST_USER})
"""Media with a receive queue for each thread that polls."""
_MEDIA = {
    "vpp": {
        NfKind.VPP: Medium.MEMIF,
        **dict.fromkeys((kind for kind in NfKind if kind.is_vm), Medium.VHOST_USER),
    },
    OVS_WITH_DPDK: {NfKind.TESTPMD: Medium.VHOST_USER},
}
"""By what the vSwitch is."""


def vswitch_of(dut: DutNode) -> str:
    """What a DUT's vSwitch is, as far as it decides on media: its driver, and whether Open vSwitch runs on DPDK."""
    physical = (attachment_of(port, dut) for port in dut.interfaces.values() if port.pci_address is not None)
    return OVS_WITH_DPDK if dut.vswitch == "ovs" and any(each.is_dpdk for each in physical) else dut.vswitch


def to_vswitch(vswitch: str, kind: NfKind) -> Medium:
    """Medium of the links between a vSwitch and an NF: shared memory where both ends know it, else ports of the kernel.

    Args:
        vswitch: From `vswitch_of`.
        kind: What the NF is.
    """
    return _MEDIA.get(vswitch, {}).get(kind, Medium.VETH)


def between(one: NfKind, other: NfKind) -> Medium:
    """Medium of the link between two NFs of a pipeline."""
    return Medium.MEMIF if {one, other} == {NfKind.VPP} else Medium.VETH
