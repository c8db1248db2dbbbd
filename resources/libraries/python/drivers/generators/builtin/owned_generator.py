"""A generator whose workers are on the machine's record."""

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.drivers.generators.xdp.support import why_not
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.model.nodes import TgNode
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR


class OwnedGenerator:
    """Keeps the generator's workers on record, so that the next run ends those that a killed run left."""

    def __init__(self, generator: BuiltInGenerator, lock: MachineLock, wait: Callable[[], None]) -> None:
        """Prepare.

        Args:
            generator: Not started.
            lock: The machine's lock, held.
            wait: Returns when the generator's ports pass packets.
        """
        self._generator = generator
        self._lock = lock
        self._wait = wait
        self._pids: tuple[int, ...] = ()

    def start(self) -> None:
        """Start the workers and put them on record."""
        self._wait()
        self._generator.start()
        self._pids = self._generator.pids()
        for pid in self._pids:
            self._lock.claim_process(pid)

    def run(self, trial: Trial) -> TrialResult:
        return self._generator.run(trial)

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What can be offered, and where a search should begin."""
        return self._generator.highest_loads(trial)

    def facts(self) -> Mapping[str, str]:
        """How frames are sent."""
        return self._generator.facts()

    def problems(self) -> tuple[str, ...]:
        """Workers that have ended."""
        return self._generator.problems()

    def stop(self) -> None:
        """End the workers and take them off the record."""
        self._generator.stop()
        for pid in self._pids:
            self._lock.release_process(pid)
        self._pids = ()


def make(node: TgNode, context: DriverContext) -> OwnedGenerator:
    """Make the driver for a node; its name in the topology is the way of sending."""
    generator = BuiltInGenerator(context.plan, sending=cast(Sending, node.generator.driver))
    return OwnedGenerator(generator, context.lock, lambda: context.fabric.wait_for_cables(GENERATOR))


def missing_for_xdp(_: TgNode) -> Iterator[Problem]:
    """What this machine lacks for XDP live frames."""
    if reason := why_not():
        yield Problem(f"XDP live frames do not work here ({reason})", "set the generator's driver to auto")
