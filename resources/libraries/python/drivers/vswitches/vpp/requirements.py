"""What a machine lacks for VPP as the vSwitch."""

from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.model.nodes import DutNode


def missing(node: DutNode) -> Iterator[Problem]:
    """What this machine lacks for the ports that the node's vSwitch can have."""
    plugins = ["af_packet"]
    plugins += ["memif"] if "vpp" in node.containers else []
    plugins += ["vhost"] if node.vms is not None else []
    yield from program_missing(Path(node.settings(Vpp).prefix), plugins)
