"""Simulated testbeds that count deployments and that break as told."""

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import Any

from resources.libraries.python.errors import ConnectionFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.sweep.model import Rates
from resources.libraries.python.studies.sweep.planning import SweepRequest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests import builders

SIM = builders.SIM.model_copy(update={"simulation": {**(builders.SIM.simulation or {}), "line_rate_pps": 1e6}})
"""At 10 Gbit/s each trial at the line rate opens half a million connections."""
LOST = "DUT1: the agent ended with 137"
ROUTER_SWEEP = SweepRequest(
    name="router", cell=builders.cell_of("CSP", nf_kinds=(NfKind("linux_router"),)), frame=frame("64B"), flows=1,
    protocol=Protocol.IP, duration_s=1, rates=Rates(start_pps=1000, stop_pps=5000, step_pps=1000), width=None,
)  # fmt: skip
"""Five loads of a second each."""


class Killed(BaseException):
    """In the place of a signal that nothing can catch."""


@cache
def environment() -> Environment:
    return SimulatedTestbed(SIM).environment()


class World(SimulatedTestbed):
    """Counts deployments; is killed before one, breaks in the first trial of some, or lacks programs of NFs.

    With an error of a lost connection a node is lost, and comes back only when it is waited for.
    """

    def __init__(
        self, killed_before: int | None = None, breaks: Collection[int] = (), error: CsitError | None = None,
        topology: Topology = SIM, lacks: Collection[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(topology)
        self._killed_before, self._breaks, self._lacks = killed_before, breaks, set(lacks)
        self.error = error or ConnectionFailed(LOST)
        self.deployed = self.recovered = 0
        self.lost = False

    def environment(self) -> Environment:
        return environment()

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        if self.lost:
            raise ConnectionFailed(LOST)
        if self.deployed == self._killed_before:
            raise Killed
        self.deployed += 1
        if found := self._lacks & {function.kind for function in plan.functions}:
            raise Unsupported(f"{found.pop()} missing")
        parts = super().parts(plan, asked)
        return replace(parts, generator=self._cut(parts)) if self.deployed in self._breaks else parts

    def _cut(self, parts: Parts) -> Any:
        """A generator that breaks, or whose node is lost, while it sends."""

        def run(_: Trial) -> TrialResult:
            self.lost = isinstance(self.error, ConnectionFailed)
            raise self.error

        return builders.Altered(parts.generator, run=run)

    def recover(self) -> None:
        self.recovered += self.lost
        self.lost = False


class Equipped(SimulatedTestbed):
    """Its parts have other probes, such as `hops`, or none."""

    def __init__(self, **probes: object) -> None:
        super().__init__(builders.SIM)
        self._probes: Any = probes

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        return replace(super().parts(plan, asked), **self._probes)


class Probe:
    """A probe that has seen something, or cannot."""

    cpu_s = None

    def __init__(
        self, seen: tuple[Any, ...] = (), starts: CsitError | None = None, ends: CsitError | None = None, **facts: str
    ) -> None:
        self._seen, self._starts, self._ends, self._facts = seen, starts, ends, facts
        self.running = False

    def start(self) -> None:
        self.running = True
        if self._starts is not None:
            raise self._starts

    def stop(self) -> tuple[Any, ...]:
        self.running = False
        if self._ends is not None:
            raise self._ends
        return self._seen

    def facts(self) -> dict[str, str]:
        return self._facts
