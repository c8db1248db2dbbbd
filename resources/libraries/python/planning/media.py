"""Media of links inside a service, by the drivers at their ends."""

from resources.libraries.python import driver_registry
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode

SHARED_MEMORY = frozenset({Medium.MEMIF, Medium.VHOST_USER})
"""Media with a receive queue for each thread that polls."""


def vswitch_of(dut: DutNode) -> str:
    """The variant of a DUT's vSwitch that determines media: its driver, or a variant of it."""
    variant = driver_registry.vswitches()[dut.vswitch].variant
    return dut.vswitch if variant is None else variant(dut)


def to_vswitch(vswitch: str, kind: NfKind) -> Medium:
    """Medium of the links between a vSwitch and an NF: shared memory where both ends know it, else kernel ports."""
    for driver in driver_registry.vswitches().values():
        if vswitch in driver.media:
            media = driver.media[vswitch]
            return media.get(kind) or media.get(kind.driver.form, Medium.VETH)
    return Medium.VETH


def between(one: NfKind, other: NfKind) -> Medium:
    """Medium of the link between two NFs of a pipeline."""
    return one.driver.medium_between if one == other else Medium.VETH
