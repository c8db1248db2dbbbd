"""What links inside a service are made of, by what is at their ends."""

from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.plan import Medium

_WITH_VPP = {
    NfKind.VPP: Medium.MEMIF,
    NfKind.QEMU: Medium.VHOST_USER,
    NfKind.QEMU_VPP: Medium.VHOST_USER,
}


def to_vswitch(vswitch: str, kind: NfKind) -> Medium:
    """Medium of the links between a vSwitch and an NF: shared memory where both ends know it, else ports of the kernel.

    Args:
        vswitch: Driver of the vSwitch.
        kind: What the NF is.
    """
    return _WITH_VPP.get(kind, Medium.VETH) if vswitch == "vpp" else Medium.VETH


def between(one: NfKind, other: NfKind) -> Medium:
    """Medium of the link between two NFs of a pipeline."""
    return Medium.MEMIF if {one, other} == {NfKind.VPP} else Medium.VETH
