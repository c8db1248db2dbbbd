"""Applies a Plan through the roles inside one ExitStack: whatever was started is stopped, in reverse order."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from resources.libraries.python.errors import CsitError, NotReady, RunStopped, SystemBroken
from resources.libraries.python.model.measurements.counters import InterfaceCounters, Sample
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Affinity
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.part import (
    DeploymentPart,
    NetworkFunctions,
    Preparable,
    TrafficGenerator,
    VSwitch,
)


class Deployment:
    """One cell, deployed from `__enter__` to `__exit__`."""

    def __init__(self, plan: Plan, parts: Parts) -> None:
        self.plan = plan
        self.parts = parts
        self.deploy_s: float | None = None
        self.remove_s: float | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        begin = time.monotonic()
        try:
            with ExitStack() as stack:
                for part in self.parts.in_order():
                    if isinstance(part, Preparable):
                        stack.callback(part.stop)
                        part.prepare()
                for part in self.parts.in_order():
                    # Before start: stopping is safe after a failed start, and a half-started part must be stopped too.
                    stack.callback(part.stop)
                    try:
                        part.start()
                    except NotReady as error:
                        if found := self._problems_before(part):
                            raise SystemBroken("; ".join((*found, str(error)))) from error
                        raise
                self._stack = stack.pop_all()
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            if (cause := _first(error)) is not error:  # stopping the other parts failed, too
                raise SystemBroken(f"{cause}; {error}") from cause
            raise
        self.deploy_s = time.monotonic() - begin
        return self

    def _problems_before(self, failed: DeploymentPart) -> tuple[str, ...]:
        """Problems of the parts that were started before: if one has crashed, that explains the timeout of the next."""
        roles: tuple[VSwitch | NetworkFunctions | TrafficGenerator, ...]
        roles = (self.parts.switch, self.parts.functions, self.parts.generator)
        found: list[str] = []
        for earlier in roles if failed in roles else ():
            if earlier is failed:
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

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters of vSwitch and NFs by interface name, and of the generator's interfaces where there are any."""
        parts = self.parts
        return {**parts.generator_counters(), **parts.switch.counters(), **parts.functions.counters()}

    def sample(self) -> Sample:
        """How CPUs and data threads have spent their time; nothing where the world cannot tell."""
        return self.parts.sampler.read() if self.parts.sampler else Sample()

    def facts(self) -> dict[str, dict[str, str]]:
        parts = self.parts
        rows = (("vswitch", parts.switch), ("functions", parts.functions), ("generator", parts.generator))
        return {role: found for role, part in rows if (found := dict(part.facts()))}

    def problems(self) -> tuple[str, ...]:
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


def _first(error: BaseException) -> BaseException:
    """The failed start behind errors of stopping: an ExitStack chains them by their context."""
    while error.__cause__ is None and isinstance(error.__context__, CsitError | OSError):
        error = error.__context__
    return error
