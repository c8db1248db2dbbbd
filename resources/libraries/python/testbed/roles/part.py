"""What is started and stopped with a deployment."""

from typing import Protocol

from resources.libraries.python.testbed.roles.patience import patience


class DeploymentPart(Protocol):
    """A part of a deployment. Stopping is safe after a failed start."""

    @patience(7200.0)
    def start(self) -> None:
        """Bring it up."""

    @patience(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made."""
