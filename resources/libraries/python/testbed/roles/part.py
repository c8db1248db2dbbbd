"""Roles of the deployed parts of a cell: vSwitch, network functions, traffic generator, and their common base.

A capability that a part lacks has a default here: callers need not ask what a part is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import (
    ConnectionTable,
    Deletion,
    InterfaceCounters,
    ProcessedPackets,
    Throttling,
)
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan

_Method = TypeVar("_Method", bound=Callable[..., Any])
_ATTRIBUTE = "__timeout__"


@dataclass(frozen=True, slots=True)
class CallTimeout:
    """When a caller gives up: later than any driver by itself."""

    seconds: float = 60.0
    more: Callable[..., float] = lambda *_: 0.0
    """Seconds on top, from the arguments of the call."""


def timeout(seconds: float, more: Callable[..., float] = lambda *_: 0.0) -> Callable[[_Method], _Method]:
    """Declare how long a method of a role may take. Without it, `CallTimeout()` holds."""

    def declare(method: _Method) -> _Method:
        setattr(method, _ATTRIBUTE, CallTimeout(seconds, more))
        return method

    return declare


def timeout_of(method: Callable[..., Any]) -> CallTimeout:
    """Return the declared timeout of a method."""
    return getattr(method, _ATTRIBUTE, CallTimeout())


class Part:
    """A part of a deployment."""

    @timeout(7200.0)
    def start(self) -> None:
        """Bring it up and configure it, data threads on their planned cores."""

    @timeout(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failed start."""


class ReportingPart(Part):
    """A part that reports on itself."""

    def facts(self) -> Mapping[str, str]:
        """Return versions, and modes of operation on this machine, for the record. After `start`."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with it now, a sentence each; empty when all is well. Cheap: called after every test."""
        return ()

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters by interface name; empty where it has no interfaces."""
        return {}


class ForwardingPart(ReportingPart):
    """A part of the system under test: it has interfaces, and data threads that serve their receive queues."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Return logical CPUs on which the data thread of each receive queue may run, read back from the system.

        By the queue's name in the plan, which is that of the interface where it has one.
        """
        return {}

    def begin_accounts(self) -> tuple[str, ...]:
        """Set to zero what its programs count of their own work by node; return the names of those that count any."""
        return ()

    def accounts(self) -> tuple[NodeCost, ...]:
        """Return what was counted since then, of nodes that had packets."""
        return ()

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place later, and return at once. Targets that the part does not have are left out.

        What the event needs is done before the return: a member that is to be added is taken away.

        Raises:
            Unsupported: It cannot happen to this target.
        """
        raise Unsupported(f"{coming.event} is not possible for {', '.join(coming.targets)} with its driver")

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        """Wait for the event, and return when it took place; empty where there was none.

        Raises:
            CsitError: It failed.
        """
        return ()


class VSwitch(ForwardingPart):
    """Joins the ports of a plan to L2 segments."""

    def without_link(self) -> tuple[str, ...]:
        """Return its ports of cables that have no link, by interface name. Cheap: polled while a cell is deployed.

        Raises:
            CsitError: It has ended, or does not answer.
        """
        return ()


class NetworkFunctions(ForwardingPart):
    """All NFs of one kind in a plan. They start and stop together: one by one would cost minutes at 100 NFs.

    What NFs report of themselves is by name of the NF.
    """

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Return packets since its start; without NFs that do not count, as those that a monitor inspects.

        Cheap: called around every trial.

        Raises:
            CsitError: An NF has exited, or its counters cannot be read.
        """
        return {}

    def throttling(self) -> Mapping[str, Throttling]:
        """Return throttling since its start; without NFs that have no limit of CPU time."""
        return {}

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        """Return the state of all tables; without network functions that keep none. Cheap: called after every trial.

        Raises:
            CsitError: A table cannot be read.
        """
        return {}

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        """Let entries of UDP, and of closed TCP connections, expire after so long without a packet; return the tables.

        Raises:
            CsitError: A timeout cannot be set.
        """
        del timeout_s
        return {}

    @timeout(120.0)
    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete all entries of all tables, without a pause between tables.

        Raises:
            CsitError: Entries cannot be deleted.
        """
        return {}


class TrafficGenerator(ReportingPart, ABC):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    def prepare(self) -> None:
        """Begin what takes long and needs no other part; return at once. `stop` ends it, also without a start."""

    @abstractmethod
    @timeout(120.0, lambda trial: trial.duration_s)
    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    @abstractmethod
    @timeout(120.0, lambda trial: 10 * trial.duration_s)
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
