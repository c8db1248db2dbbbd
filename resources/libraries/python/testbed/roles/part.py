"""Roles of the deployed parts of a cell: vSwitch, network functions, traffic generator, and their common base."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.measurements.connections import ConnectionTable, Deletion
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets, Throttling
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.testbed.roles.patience import patience


@runtime_checkable
class Disturbable(Protocol):
    """A part of which one or more members can be hit by an event."""

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place later, and return at once. Targets that the part does not have are left out.

        What the event needs is done before the return: a member that is to be added is taken away.

        Raises:
            Unsupported: It cannot happen to this target.
        """

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        """Wait for the event, and return when it took place; empty where there was none.

        Raises:
            CsitError: It failed.
        """


@runtime_checkable
class Stateful(Protocol):
    """Network functions of which some keep a table of connections; results are by name of the network function."""

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        """Return the state of all tables; without network functions that keep none. Cheap: called after every trial.

        Raises:
            CsitError: A table cannot be read.
        """

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        """Let entries of UDP, and of closed TCP connections, expire after some time; return the tables.

        Args:
            timeout_s: Time without a packet after which an entry expires.

        Raises:
            CsitError: A timeout cannot be set.
        """

    @patience(120.0)
    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete all entries of all tables, without a pause between tables.

        Raises:
            CsitError: Entries cannot be deleted.
        """


class DeploymentPart(Protocol):
    """A part of a deployment."""

    @patience(7200.0)
    def start(self) -> None:
        """Bring it up and configure it, data threads on their planned cores."""

    @patience(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failed start."""


@runtime_checkable
class Preparable(Protocol):
    """A part whose start needs something that takes long and nothing of the parts before it."""

    def prepare(self) -> None:
        """Begin with that, and return at once. `DeploymentPart.stop` ends it, also without a start."""


class ObservablePart(DeploymentPart, Protocol):
    """A part that reports on itself."""

    def facts(self) -> Mapping[str, str]:
        """Return versions, and modes of operation on this machine, for the record. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with it now, a sentence each; empty when all is well. Cheap: called after every test."""


class ForwardingPart(ObservablePart, Protocol):
    """A part of the system under test: it has interfaces, and data threads that serve their receive queues."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Return logical CPUs on which the data thread of each receive queue may run, read back from the system.

        By the queue's name in the plan, which is that of the interface where it has one.
        """

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters by interface name."""


class VSwitch(ForwardingPart, Protocol):
    """Joins the ports of a plan to L2 segments."""


@runtime_checkable
class Accounting(Protocol):
    """A part whose program keeps accounts of its own work, such as cycles per packet by thread or graph node."""

    def begin_accounts(self) -> None:
        """Set its accounts to zero."""

    def accounts(self) -> Mapping[str, str]:
        """Return what they have counted since then, in the program's own words, by name of the part."""


@runtime_checkable
class Cabled(Protocol):
    """A part with ports of cables to other machines."""

    def without_link(self) -> tuple[str, ...]:
        """Return its ports of cables that have no link, by interface name. Cheap: polled while a cell is deployed.

        Raises:
            CsitError: It has ended, or does not answer.
        """


class DisturbableSwitch(VSwitch, Cabled, Disturbable, Accounting, Protocol):
    """A virtual switch that has cables, can be hit by events, and keeps accounts, where its driver can do that."""


class NetworkFunctions(ForwardingPart, Protocol):
    """All NFs of one kind in a plan. They start and stop together: one by one would cost minutes at 100 NFs."""


@runtime_checkable
class Processing(Protocol):
    """Network functions that count packets themselves: those that a monitor inspects pass no interface."""

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Return packets by name of the NF, since its start; without NFs that do not count.

        Cheap: called around every trial.

        Raises:
            CsitError: An NF has exited, or its counters cannot be read.
        """


@runtime_checkable
class CpuLimited(Protocol):
    """Network functions of which some have a limit of CPU time (`model.request.function.Limits`)."""

    def throttling(self) -> Mapping[str, Throttling]:
        """Return throttling by name of the NF, since its start; without NFs that have no such limit."""


class ProcessingFunctions(NetworkFunctions, Processing, Disturbable, Stateful, Accounting, Protocol):
    """Network functions of which some count packets, can be hit by events, have connections, or keep accounts."""


class TrafficGenerator(ObservablePart, Protocol):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    @patience(120.0, lambda trial: trial.duration_s)
    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    @patience(120.0, lambda trial: 10 * trial.duration_s)
    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Return the highest offered load, measured or known from the links, and a load to begin a search at."""


class GeneratorApi(Protocol):
    """A generator of a lab that the controller drives over the network, without access to its machine."""

    @property
    def address(self) -> str:
        """URL of the API: testbeds that have the same one cannot be used at the same time."""

    def problems(self) -> tuple[PreflightProblem, ...]:
        """Return why it cannot be used. Changes nothing."""

    def open(self) -> tuple[str, ...]:
        """Stop what an earlier run has left sending, and try all ports; return what was stopped, a sentence each.

        Raises:
            Unsupported: It answers, and lacks a port.
            InUse: Another program sends by it.
            CsitError: It cannot be reached.
        """

    def generator(self, plan: Plan) -> TrafficGenerator:
        """Return the generator of a cell."""


class MeteredGenerator(TrafficGenerator, Protocol):
    """A generator with counters of its own ports."""

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters by interface name; empty where it has no interfaces."""
