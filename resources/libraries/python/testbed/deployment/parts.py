"""The drivers that bring one plan to life."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.planning.placement.cores import Layouts
from resources.libraries.python.testbed.roles import watching
from resources.libraries.python.testbed.roles.part import NetworkFunctions, Part, TrafficGenerator, VSwitch
from resources.libraries.python.testbed.roles.service import IntervalClock, Orchestrator


class _Elsewhere(TrafficGenerator):
    """A generator that is on another machine."""

    def run(self, trial: Trial) -> TrialResult:
        raise CsitError(f"the generator is on another machine: no trial at {trial.load_pps:.0f} pps")

    def highest_loads(self, trial: Trial) -> HighestLoads:
        raise CsitError(f"the generator is on another machine: no loads for frames of {trial.frame}")


ABSENT = (VSwitch(), NetworkFunctions(), _Elsewhere())
"""Parts of a cell that are on other machines."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Drivers of one cell, or of one machine's share of it, not yet started. What is on another machine is `ABSENT`."""

    cables: tuple[Part, ...] = ()
    """Base of the other parts: namespaces and links; started first, stopped last."""
    switch: VSwitch = ABSENT[0]
    functions: NetworkFunctions = ABSENT[1]
    generator: TrafficGenerator = ABSENT[2]
    """What the vSwitch did not take in shows in its counters, where it has interfaces."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; virtual in a simulation."""
    sampler: watching.Sampler | None = None
    """Use of the planned CPUs, and of data threads, where the testbed can tell; so are the others."""
    features: watching.FeatureSampler | None = None
    """Features of NFs, vSwitch and machine each second."""
    tracer: watching.Tracer | None = None
    """Events of the NFs' threads."""
    costs: watching.CostMeter | None = None
    """Resource usage of NFs and vSwitch in the course of a trial."""
    stacks: watching.StackSampler | None = None
    """Call stacks of the data CPUs."""
    hops: watching.HopTimer | None = None
    """Delay of probes by part."""

    def in_order(self) -> tuple[Part, ...]:
        """Return the parts in the order in which they are started."""
        return (*self.cables, self.switch, self.functions, self.generator)


@dataclass(frozen=True, slots=True)
class Host:
    """Where services of several components are deployed, and what watches them."""

    orchestrator: Orchestrator
    time: IntervalClock
    """As it passes there."""
    simulation: Mapping[str, Any] | None = None
    """Parameters of a simulated service."""


class Testbed(ABC):
    """Nodes on which cells are deployed; open for a whole run. By default it lacks nothing, and nothing is left."""

    drivers: Mapping[str, str]
    """Role to driver name."""
    simulation: Mapping[str, Any] | None = None
    """Parameters of a simulated world."""
    way: str | None = None
    """Driver of the generator in place of the topology's, as its qualification says."""
    on_trial: Callable[[TrialResult], None] = staticmethod(lambda _: None)
    """Is given the result of each trial of a cell."""

    @property
    @abstractmethod
    def layout(self) -> Layouts:
        """Logical CPUs of the DUT, or of all nodes by name."""

    def problems(self) -> tuple[PreflightProblem, ...]:
        """Return what nodes lack. Changes nothing."""
        return ()

    def warnings(self) -> tuple[PreflightProblem, ...]:
        """Return what the testbed lacks for some cells only, whose tests are then skipped; as `problems`."""
        return ()

    def open(self) -> tuple[str, ...]:
        """Check that the testbed can be used, reserve it and clean it; return what was cleaned up.

        Raises:
            Unsupported: The machine lacks something.
            CsitError: It is in use.
        """
        return ()

    @abstractmethod
    def environment(self) -> Environment:
        """Fingerprint of the open world, the DUT's first; opening may have changed settings."""

    @abstractmethod
    def noise(self, duration_s: float) -> tuple[CpuNoise, ...]:
        """Observe the noise floor of all CPUs that plans may use, on all nodes at the same time.

        `duration_s`: How long they are observed; nothing may run on them meanwhile.

        Raises:
            CsitError: A node cannot be asked.
        """

    def unsampled(self) -> tuple[PreflightProblem, ...]:
        """Return why call stacks cannot be sampled on a node. Changes nothing."""
        return ()

    @abstractmethod
    def meters(self) -> watching.EnergyMeters:
        """Return what reads the energy meters of all nodes."""

    @abstractmethod
    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        """Drivers for a cell."""

    @abstractmethod
    def loop_back(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        """Links and generator, whose ports are joined to each other, for a plan of `planning.loop_back`."""

    @abstractmethod
    def host(self, asked: Specifications, folder: Path) -> Host:
        """Return what deploys a multi-component service in any size.

        Raises:
            Unsupported: Not supported on this testbed.
        """

    def recover(self) -> None:  # noqa: B027
        """Wait for what was lost of the world, such as a node that reboots, and take it into use again.

        Raises:
            CsitError: It does not come back.
        """

    @abstractmethod
    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """Leftovers of this run while no cell is deployed; empty when all is clean."""

    def clean(self) -> tuple[str, ...]:
        """Remove by force what is there of this run; say what was removed.

        Raises:
            CsitError: Something could not be removed.
        """
        return ()

    def close(self) -> None:  # noqa: B027
        """Give the world back."""
