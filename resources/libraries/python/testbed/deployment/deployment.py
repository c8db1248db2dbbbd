"""Applies a Plan through the roles inside one ExitStack: whatever was started is stopped, in reverse order."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Self

from resources.libraries.python.drivers.host.ownership.cleanup_steps import raise_all
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import CsitError, NotReady, RunStopped, SystemBroken
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import HostState, InterfaceCounters, Sample
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Affinity
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.part import Part, ReportingPart

_LINKS_PAUSE_S = 0.1


class Deployment:
    """One cell, deployed from `__enter__` to `__exit__`."""

    def __init__(self, plan: Plan, parts: Parts) -> None:
        self.plan = plan
        self.parts = parts
        self.deploy_s: float | None = None
        self.remove_s: float | None = None
        self._stack = ExitStack()
        self._failures: list[Exception] = []
        """Of stopping parts."""

    def __enter__(self) -> Self:
        begin = time.monotonic()
        try:
            with ExitStack() as stack:
                stack.callback(self._stop, self.parts.generator)
                self.parts.generator.prepare()
                for part in self.parts.in_order():
                    # Before start: stopping is safe after a failed start, and a half-started part must be stopped too.
                    stack.callback(self._stop, part)
                    with self._explaining(part):
                        part.start()
                with self._explaining():
                    self._wait_for_cables()
                self._stack = stack.pop_all()
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            if self._failures:  # stopping the other parts failed, too
                raise_all([each for each in self._failures if isinstance(each, RunStopped)])
                raise SystemBroken("; ".join(dict.fromkeys(map(str, (error, *self._failures))))) from error
            raise
        self.deploy_s = time.monotonic() - begin
        return self

    def _wait_for_cables(self) -> None:
        """Wait until all cables of the vSwitches have a link, also those from one DUT to the next.

        Generators wait for their own ends when they start. Those of a vSwitch can have a link only afterwards: a
        generator that drives its ports past the kernel brings them up then.

        Raises:
            NotReady: One has none.
        """
        if any(link.medium is Medium.CABLE for link in self.plan.links):
            wait_until("links of cables", self._without_link, CABLES_WITHIN_S, _LINKS_PAUSE_S)

    def _without_link(self) -> str:
        """Physical ports of the vSwitches that have no link, as `DUT1.port2 (csv1p2)`."""
        down = set(self.parts.switch.without_link())
        ports = (port for link in self.plan.links for port in (link.a, link.b) if port.interface in down)
        named: dict[str, str] = {}  # instances that share a cable by VLANs have a port each
        for port in ports:
            name = port.nic.port if port.nic is not None else port.interface
            named.setdefault(f"{self.plan.machines.get(port.owner, port.owner)}.{name}", port.interface)
        return f"no link at {', '.join(f'{port} ({name})' for port, name in named.items())}" if named else ""

    @contextmanager
    def _explaining(self, starting: Part | None = None) -> Iterator[None]:
        """Name the problems of started parts when a wait times out: if one has crashed, that is the reason.

        `starting`: The part whose start waits, which is not asked itself; None when all have been started.

        Raises:
            SystemBroken: The wait has timed out, and there are problems.
            NotReady: It has, and there are none.
        """
        try:
            yield
        except NotReady as error:
            said = self._ports_without_link() if starting is None else ()  # by the error itself
            problems = self._problems_before(starting)
            if found := [text for text in problems if not any(name in text.split() for name in said)]:
                raise SystemBroken("; ".join((*found, str(error)))) from error
            raise

    def _ports_without_link(self) -> tuple[str, ...]:
        with suppress(CsitError):  # a vSwitch that does not answer, which its problems tell
            return self.parts.switch.without_link()
        return ()

    def _problems_before(self, starting: Part | None) -> tuple[str, ...]:
        """Problems of the parts that were started before one, or of all."""
        roles: tuple[ReportingPart, ...] = (self.parts.switch, self.parts.functions, self.parts.generator)
        found: list[str] = []
        for earlier in roles if starting is None or starting in roles else ():
            if earlier is starting:
                break
            try:
                found += earlier.problems()
            except CsitError as error:
                found.append(str(error))
        return tuple(found)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begin = time.monotonic()
        self._stack.close()
        self.remove_s = time.monotonic() - begin
        raise_all(self._failures)

    def _stop(self, part: Part) -> None:
        try:
            part.stop()
        except (CsitError, OSError) as error:
            self._failures.append(error)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters of vSwitch and NFs by interface name, and of the generator's interfaces where there are any."""
        parts = self.parts
        return {**parts.generator.counters(), **parts.switch.counters(), **parts.functions.counters()}

    def sample(self) -> Sample:
        """How CPUs and data threads have spent their time; nothing where the world cannot tell."""
        return self.parts.sampler.read() if self.parts.sampler else Sample()

    def state(self) -> HostState:
        """Everything else that the machine counts; nothing where the world cannot tell."""
        return self.parts.sampler.state() if self.parts.sampler else HostState()

    def facts(self) -> dict[str, dict[str, str]]:
        parts = self.parts
        rows = (("vswitch", parts.switch), ("functions", parts.functions), ("generator", parts.generator))
        return {role: found for role, part in rows if (found := dict(part.facts()))}

    def problems(self) -> tuple[str, ...]:
        """Faults of the parts, a sentence each."""
        found = self._look()
        # A program may have ended after its own part was looked at: then another part has lost its link, and a second
        # look finds the cause.
        return (self._look() or found) if found else ()

    def _look(self) -> tuple[str, ...]:
        parts = self.parts
        return (*parts.switch.problems(), *parts.functions.problems(), *parts.generator.problems())

    def affinity(self) -> tuple[Affinity, ...]:
        """Planned and real placement of the data thread of every receive queue of the system under test."""
        actual = {**self.parts.switch.affinity(), **self.parts.functions.affinity()}
        ports = [port for link in self.plan.links for port in (link.a, link.b) if port.interface in actual]
        cpus = {owner: self.plan.cores.cpus(owner) for owner in {port.owner for port in ports}}
        return tuple(
            Affinity(
                owner=port.owner,
                interface=port.interface,
                queue=queue,
                planned_cpu=cpus[port.owner][thread],
                actual_cpus=tuple(sorted(actual.get(name, ()))),
            )
            for port in ports
            for queue, (name, thread) in enumerate(zip(port.queue_names, port.queues, strict=True))
        )
