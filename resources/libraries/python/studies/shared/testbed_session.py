"""The testbed of a run: opened and closed by the outermost suite that uses it."""

from collections.abc import Callable
from contextlib import ExitStack

from robot.api import logger

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.planning.numa import assumptions
from resources.libraries.python.planning.port_attachment import attached
from resources.libraries.python.testbed.deployment import parts
from resources.libraries.python.testbed.deployment.health import clean_up
from resources.libraries.python.testbed.worlds.factory import located, world_of


class TestbedSession:
    """The testbed of a run, opened once for nested suites."""

    __test__ = False  # not a pytest class

    def __init__(self) -> None:
        self._suites = 0
        self._topology: Topology | None = None
        self._world: parts.Testbed | None = None
        self._environment: Environment | None = None

    def enter(self) -> bool:
        """Count a suite in; return whether it is the outermost one, which opens the testbed."""
        self._suites += 1
        return self._suites == 1

    def leave(self, then: Callable[[], None]) -> None:
        """Count a suite out; the outermost one closes the testbed, open or not.

        Args:
            then: Called afterwards in any case.
        """
        self._suites -= 1
        if self._suites <= 0:
            with ExitStack() as steps:
                steps.callback(then)
                self.close()

    def open(self, topology: Topology) -> Environment:
        """Check the testbed, reserve it and remove leftovers; return its fingerprint.

        Raises:
            Unsupported: A machine lacks something.
            CsitError: Another process uses it.
        """
        if topology.world is World.LAB:
            nodes = ", ".join(topology.nodes)
            logger.info(f"connecting to {nodes}; the first time, agents are installed there", also_console=True)
        self._topology = topology = located(topology)
        self._world = world_of(topology)
        for line in self._world.open():
            logger.warn(line)
        for line in (*attached(topology), *assumptions(topology)):
            logger.info(line, also_console=True)
        self._environment = self._world.environment()  # after opening, which may change settings of the machine
        logger.info(f"testbed {topology.metadata.name} is open")
        return self._environment

    def close(self) -> None:
        """Remove leftovers of a run that was cut short, and release the testbed."""
        world, self._world = self._world, None
        if world is None:
            return
        with ExitStack() as steps:
            steps.callback(world.close)
            for line in clean_up(world, None):
                logger.warn(f"{line} was left and has been removed by force")

    def opened(self) -> tuple[Topology, parts.Testbed, Environment]:
        """Return topology, world and fingerprint.

        Raises:
            CsitError: It is not open.
        """
        if self._topology is None or self._world is None or self._environment is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._topology, self._world, self._environment
