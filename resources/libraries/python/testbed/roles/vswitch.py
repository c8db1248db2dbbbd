"""The virtual switch."""

from typing import Protocol

from resources.libraries.python.testbed.roles.part import ForwardingPart


class VSwitch(ForwardingPart, Protocol):
    """Joins the ports of a plan to L2 segments."""
