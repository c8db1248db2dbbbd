"""All checks: of one node, and of all nodes together."""

from collections.abc import Mapping

from resources.libraries.python.model.check_finding import CheckFinding
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.testbed.node.checks import cables, drivers, memory, ports, processors, system
from resources.libraries.python.testbed.node.facts import Facts

_OF_A_LAB = (ports.check,)
"""Checks of what only nodes of a lab have."""
_OF_ANY = (system.check, processors.check, memory.check, drivers.check)


def check_node(topology: Topology, name: str, facts: Facts) -> list[CheckFinding]:
    """What the facts of one node mean for it.

    Args:
        topology: The testbed.
        name: The node's; in the local world the DUT's, on whose machine everything is.
        facts: Of that node.
    """
    checks = (*_OF_ANY, *(_OF_A_LAB if topology.world is World.LAB else ()))
    return [finding for check in checks for finding in check(topology, name, facts)]


def check_together(topology: Topology, facts: Mapping[str, Facts]) -> list[CheckFinding]:
    """What the facts of several nodes mean together: clocks, both ends of cables."""
    return [*system.check_clocks(facts), *cables.check(topology, facts)]
