"""An NF's configuration as commands. Pure."""

from resources.libraries.python.drivers.vpp.templates import commands
from resources.libraries.python.model.plan import NfPlan


def routing(function: NfPlan) -> tuple[str, ...]:
    """Addresses, static neighbours and routes of both sides, then bring them up.

    Args:
        function: Its interfaces are made and named already.
    """
    return commands("vpp-router.j2", {"sides": (function.left, function.right)})
