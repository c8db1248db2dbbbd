"""What a machine lacks for D-ITG."""

import shutil
from collections.abc import Iterator

from resources.libraries.python.drivers.generators.ditg.sar import PROGRAM
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.model.nodes import TgNode

SENDER, RECEIVER, LOGGER, DECODER = "ITGSend", "ITGRecv", "ITGLog", "ITGDec"


def missing() -> Iterator[Problem]:
    """Programs that are not installed."""
    programs = (SENDER, RECEIVER, LOGGER, DECODER, PROGRAM)
    if lacking := [program for program in programs if shutil.which(program) is None]:
        yield Problem(
            f"{', '.join(lacking)} missing for the generator ditg", "install it: apt-get install d-itg sysstat"
        )


def missing_on(_: TgNode) -> Iterator[Problem]:
    """What this machine lacks for the generator of a node."""
    return missing()
