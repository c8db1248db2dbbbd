"""What a machine lacks for VPP as NFs."""

from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode


def missing(settings: Vpp) -> Iterator[Problem]:
    """What this machine lacks: VPP with its plugins."""
    yield from program_missing(Path(settings.prefix), ("memif", "af_packet"))


def missing_on(node: DutNode, _: NfKind) -> Iterator[Problem]:
    """What this machine lacks for NFs of a node."""
    return missing(node.settings(Vpp))
