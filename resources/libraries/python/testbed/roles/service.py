"""Roles of a multi-component service in one size: the service, the load that is offered to it, and the clock."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.testbed.roles.part import ReportingPart, timeout


@dataclass(frozen=True, slots=True)
class InstanceUse:
    """Resource usage of an instance; None where it cannot be read."""

    cpu_s: float | None
    """CPU time of all its processes since it began."""
    memory_bytes: int | None
    """Now."""
    network_bytes: int | None
    """Sent and received since it began, L2."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Report of a generator script on one load."""

    indicator: float
    """The performance indicator, in the workload's unit."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """More, by name."""
    seconds: tuple[float, ...] = ()
    """The indicator of each second, in order; empty where the script reports the mean only."""


class SizedService(ReportingPart):
    """Instances of all components, each limited to its flavor."""

    @timeout(7200.0)
    def start(self) -> None:
        """Make all instances and run the install script in each.

        Raises:
            PlanError: The size cannot be had on this machine.
            CommandFailed: A script failed; its text has the end of what the script said.
            NotReady: A script did not end in time.
        """

    @timeout(120.0)
    def offer(self, load: float) -> LoadReport:
        """Run the generator script once at this load; return what it reports.

        Raises:
            CommandFailed: The script failed.
            NotReady: It did not end in time.
            CsitError: It reported no indicator, or this node offers no load.
        """
        raise CsitError(f"this node offers no load of {load:g}")

    def use(self) -> Mapping[str, InstanceUse]:
        """By instance, `<component>-<number>`; empty for a load. Cheap: asked each second."""
        return {}


class SplitService(SizedService):
    """A service whose instances are one part and whose load is another, or the same."""

    def __init__(self, instances: SizedService, load: SizedService) -> None:
        self._instances = instances
        self._load = load

    def offer(self, load: float) -> LoadReport:
        return self._load.offer(load)

    def use(self) -> Mapping[str, InstanceUse]:
        return self._instances.use()

    def facts(self) -> Mapping[str, str]:
        return self._instances.facts()

    def problems(self) -> tuple[str, ...]:
        return self._instances.problems()


class Orchestrator(Protocol):
    """Deploys a service in any size, one at a time."""

    def service(self, size: Size) -> SizedService:
        """A service that is not yet started."""


class IntervalClock(Protocol):
    """A clock that also calls back at intervals."""

    def now(self) -> float:
        """Seconds; only differences mean something."""

    def every(self, seconds: float, tick: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `tick` again and again, each time after so many seconds, until the context ends.

        It may be called in another thread, never after the context has ended. What it raises is raised at the end.
        """


class RealTime:
    """Fulfils `IntervalClock`."""

    def now(self) -> float:
        return time.monotonic()

    @contextmanager
    def every(self, seconds: float, tick: Callable[[], None]) -> Iterator[None]:
        """Call at fixed times: a late tick does not shift the others."""
        over = threading.Event()
        errors: list[BaseException] = []
        begin = self.now()

        def run() -> None:
            try:
                while not over.wait(seconds - (self.now() - begin) % seconds):
                    tick()
            except BaseException as error:  # thread boundary: raised where the context ends
                errors.append(error)

        thread = threading.Thread(target=run, name="ticks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if errors:
            raise errors[0]
