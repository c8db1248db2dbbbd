"""Events that a part of the system under test can be hit by while traffic runs."""

from typing import Protocol, runtime_checkable

from resources.libraries.python.model.disturbance import Disturbance, Happened


@runtime_checkable
class Disturbable(Protocol):
    """A part of which one or more members can be hit by an event."""

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place later, and return at once. Targets that the part does not have are left out.

        What the event needs is done before the return: a member that is to be added is taken away.

        Raises:
            Unsupported: It cannot happen to this target.
        """

    def disturbed(self) -> tuple[Happened, ...]:
        """Wait for the event, and return when it took place; empty where there was none.

        Raises:
            CsitError: It failed.
        """
