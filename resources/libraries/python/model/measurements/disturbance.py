"""Events that hit one part of a running system: what is done to it, and when it was done."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen


class PartEvent(StrEnum):
    """Event of a network function or of the vSwitch."""

    KILL = "kill"
    """It ends and does not come back."""
    RESTART = "restart"
    """It ends, and is started again at once."""
    PAUSE = "pause"
    """It is stopped for a while, and continued."""
    ADD = "add"
    """It was not there, and is started."""
    RELOAD = "reload"
    """Its configuration, such as a rule set, is loaded anew."""
    MOVE = "move"
    """Its data threads go to another CPU."""


class Disturbance(Frozen):
    """An event to come."""

    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the parts in the plan that are hit together: `nf-1-1`, `vswitch`."""
    event: PartEvent
    after_s: Annotated[float, Field(ge=0)]
    """From the request to the event."""
    hold_s: Annotated[float, Field(ge=0)] = 0.0
    """Duration of a pause."""


class EventOccurrence(Frozen):
    """An event that took place."""

    began_ns: int
    """Since the epoch, by the clock of this machine; of a node, by the controller's."""
    ended_ns: int
    """When all was done that the event consists of."""
    what: str
    """Action that was taken, in words."""
    clock_error_s: float = 0.0
    """How far off the controller's clock these times may be; 0 on one machine."""
