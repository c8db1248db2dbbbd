"""Delay of packets by the part of the system under test that delays them."""

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import Direction

LINK = "link"
"""Owner of the time from the last port of the system under test to the port of the generator."""
JOINT = " + "
"""Joins the owners of a part in which no packet could be seen between them."""


class HopDelay(Frozen):
    """Delay of one part, of packets that were seen at all visible hops of their path.

    The time before a packet is seen at a port belongs to the owner of that port: from its receiving port to its sending
    one it is inside, and from the sending port of the owner before to its receiving one it waits in its queue. So the
    parts of a direction add up to the time between the first and the last hop.
    """

    owner: str
    """An NF or a vSwitch by its name in the plan, LINK, or several of them joined by JOINT."""
    direction: Direction
    mean_s: float
    """Of all visits of a packet together: a packet crosses the vSwitch several times."""
    median_s: float
    packets: int
