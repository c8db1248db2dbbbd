"""Roles of probes while traffic runs: use of CPUs, features per second, events of the kernel, delays, costs, energy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from resources.libraries.python.model.measurements.counters import Cost, HostState, Sample
from resources.libraries.python.model.measurements.energy import MeterSeries
from resources.libraries.python.model.measurements.features import FeatureSeries, HopDelay, StateGraph
from resources.libraries.python.model.measurements.stacks import NodeStacks
from resources.libraries.python.testbed.roles.part import timeout


class FeatureSampler(Protocol):
    """Reads features of VNFs, vSwitch and machine each second, all in one loop."""

    def start(self) -> None:
        """Begin to read."""

    @timeout(120.0)
    def stop(self) -> tuple[FeatureSeries, ...]:
        """End; return a value for each whole second since `start`. Safe to call after a failure."""

    @property
    def cpu_s(self) -> float | None:
        """Processor time of the sampler itself from `start` to `stop`, in seconds; None in a simulation."""

    def facts(self) -> Mapping[str, str]:
        """Which sources there are on this machine, and which are missing."""


class Tracer(Protocol):
    """Follows the threads of VNFs through events of the kernel."""

    def start(self) -> None:
        """Begin to trace."""

    @timeout(120.0)
    def stop(self) -> tuple[StateGraph, ...]:
        """End; return a graph for each VNF that has events. Safe to call after a failure."""

    @property
    def cpu_s(self) -> float | None:
        """Processor time of the tracer itself from `start` to `stop`, in seconds; None in a simulation."""

    def facts(self) -> Mapping[str, str]:
        """Which events are traced, and why no others."""


class HopTimer(Protocol):
    """Stamps the generator's probes at every port of their path, and says which part delays them."""

    def start(self) -> None:
        """Begin, before a trial with probes.

        Raises:
            Unsupported: No port can be seen here.
        """

    def stop(self) -> tuple[HopDelay, ...]:
        """End; return the delay of each part in each direction since `start`. Safe to call after a failure.

        The parts of a direction add up to the time between the first and the last hop that are visible on one node.
        """

    def facts(self) -> Mapping[str, str]:
        """Where packets were seen, and where not, or why there are no delays. After `stop`."""


class CostMeter(Protocol):
    """Adds up what NFs use, exactly from `start` to `stop`: for times that are no whole seconds."""

    def start(self) -> None:
        """Begin."""

    @timeout(120.0)
    def stop(self) -> Mapping[str, Cost]:
        """End; return the cost by the NF's name in the plan. Safe to call after a failure."""

    def facts(self) -> Mapping[str, str]:
        """Which sources are missing on this machine. After `start`."""


class StackSampler(Protocol):
    """Samples the call stacks of the data CPUs of vSwitch and NFs."""

    @timeout(60.0)
    def start(self) -> None:
        """Begin to sample.

        Raises:
            Unsupported: This machine cannot.
        """

    @timeout(300.0)
    def stop(self) -> tuple[NodeStacks, ...]:
        """End; return the stacks since `start`, of each machine. Safe to call after a failure.

        Raises:
            CsitError: The samples cannot be read.
        """


class Sampler(Protocol):
    """Reads how CPUs and data threads spend their time."""

    def read(self) -> Sample:
        """Times since boot. What cannot be read is left out. Cheap: one read before and one after a trial."""

    def state(self) -> HostState:
        """Everything else that differs between trials. What cannot be read is left out. Takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of the meters of all nodes."""

    series: Sequence[MeterSeries]
    unmetered: Mapping[str, str] = field(default_factory=dict)
    """Why a node has no meter, by node."""


class EnergyMeters(Protocol):
    """Reads the meters of all nodes for some time."""

    def begin(self, duration_s: float) -> None:
        """Begin to read, for at most this long."""

    def now(self) -> float:
        """Seconds since the epoch by the clock of the samples."""

    def end(self) -> Readings:
        """Wait until the time is over, and return what was read. Safe to call after a failure."""
