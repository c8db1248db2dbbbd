"""What a machine lacks for virtual machines with VPP in them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode


def missing(settings: Vpp) -> Iterator[Problem]:
    """What this machine lacks: what all virtual machines need, VPP, or what finds its libraries."""
    yield from vm_missing()
    yield from program_missing(Path(settings.prefix), ())
    if shutil.which("ldd") is None:
        yield Problem("there is no ldd, which finds what VPP needs inside of a guest", "install glibc's programs")


def missing_on(node: DutNode, _: NfKind) -> Iterator[Problem]:
    """What this machine lacks for NFs of a node."""
    return missing(node.settings(Vpp))
