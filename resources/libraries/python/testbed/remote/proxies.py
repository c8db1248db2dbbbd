"""Roles on nodes as objects of their Protocols: each method is a call to the node's agent."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from resources.libraries.python.drivers.host.ownership.cleanup_steps import raise_all
from resources.libraries.python.errors import ConnectionFailed
from resources.libraries.python.model.measurements.disturbance import EventOccurrence
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.testbed.agent.calls import CLOCK, ROLE_CALLS, RemoteRole, Role, RoleCall
from resources.libraries.python.testbed.remote.link import AgentLink, Pending

P = TypeVar("P")
_Base = TypeVar("_Base", bound="Proxy | _Combined")
Merge = Callable[[Sequence[Any]], Any]
"""Makes one result of those of several nodes."""
_CLOCK_READINGS = 8
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Difference of a node's clock."""

    ahead_ns: int
    """The node's clock minus the controller's."""
    error_s: float
    """How wrong that may be: half of the round trip."""


def clock_offset(link: AgentLink) -> ClockOffset:
    """Measure how far the clock of a node is ahead of the controller's.

    Of several exchanges the one with the shortest round trip counts, as in NTP's clock filter (RFC 5905, section 10).
    """
    found = []
    for _ in range(_CLOCK_READINGS):
        began_ns = time.perf_counter_ns()
        asked_ns = time.time_ns()  # a pause between the two is part of the round trip, and so of the error
        at_ns = link.call(CLOCK, None)
        round_trip_ns = time.perf_counter_ns() - began_ns
        found.append(ClockOffset(at_ns - asked_ns - round_trip_ns // 2, round_trip_ns / 2e9))
    return min(found, key=lambda each: each.error_s)


class Proxy:
    """A role on one node; a subclass for each role has its methods. Times that it returns are by our clock.

    The agent's life is its own: when it is gone, so is all that it made. So `stop` and properties of a lost node do not
    fail.

    `more_s`: How much longer than usual calls may take.
    """

    role: Role

    def __init__(self, link: AgentLink, more_s: float = 0.0) -> None:
        self._link = link
        self._more_s = more_s

    @property
    def node(self) -> str:
        """Name of the node."""
        return self._link.name

    def ask(self, call: RoleCall, *arguments: object) -> Any:  # noqa: ANN401 - of the method's type
        """Call the node."""
        return self.finish(call.method, self.begin(call.method, *arguments))

    def begin(self, method: str, *arguments: object) -> Pending[Any] | None:
        """Begin a call, beside those of other nodes; None for one that a lost node need not do any more."""
        call = ROLE_CALLS[self.role][method]
        try:
            return self._link.begin(call.call, arguments, call.more_s(*arguments) + self._more_s)
        except ConnectionFailed as error:
            self._leave(call, error)
            return None

    def finish(self, method: str, pending: Pending[Any] | None) -> Any:  # noqa: ANN401 - of the method's type
        """Wait for the result of a call."""
        call = ROLE_CALLS[self.role][method]
        try:
            result = call.nothing if pending is None else pending.result()
        except ConnectionFailed as error:  # it was lost in this call
            self._leave(call, error)
            result = call.nothing
        if method == "problems":
            return tuple(f"{self.node}: {text}" for text in result)
        return self._by_our_clock(result) if method == "disturbed" and result else result

    def _by_our_clock(self, events: Sequence[EventOccurrence]) -> tuple[EventOccurrence, ...]:
        clock = clock_offset(self._link)
        return tuple(
            each.model_copy(
                update={
                    "began_ns": each.began_ns - clock.ahead_ns,
                    "ended_ns": each.ended_ns - clock.ahead_ns,
                    "clock_error_s": clock.error_s,
                }
            )
            for each in events
        )

    def _leave(self, call: RoleCall, error: ConnectionFailed) -> None:
        """Leave a call to the node, which was lost; raise the error of one that must not be missed."""
        if not (call.is_property or call.method == "stop"):
            raise error
        _log.info("%s: %s is left to the node: %s", self.node, call.call.name, error)


class _TimedProxy(Proxy):
    """A generator. The total duration of a trial is the one seen from here, with the way to the node and back."""

    def begin(self, method: str, *arguments: object) -> Pending[Any] | None:
        if method == "run":
            self._began_s = time.monotonic()
        return super().begin(method, *arguments)

    def finish(self, method: str, pending: Pending[Any] | None) -> Any:  # noqa: ANN401 - of the method's type
        result = super().finish(method, pending)
        if method != "run":
            return result
        found: TrialResult = result.model_copy(update={"total_duration_s": time.monotonic() - self._began_s})
        if not found.timelines:
            return found
        clock = clock_offset(self._link)
        lines = tuple(each.moved(-clock.ahead_ns, clock.error_s) for each in found.timelines)
        return found.model_copy(update={"timelines": lines})


class _Combined:
    """One role on several nodes, between which the order does not matter; a subclass for each role."""

    def __init__(self, proxies: Sequence[Proxy], merge: Mapping[str, Merge]) -> None:
        self._proxies = tuple(proxies)
        self._merge = merge

    def ask(self, call: RoleCall, *arguments: object) -> Any:  # noqa: ANN401 - of the method's type
        """Call all nodes at the same time; the first failure, of a stop all, is raised when all have answered."""
        pending = [(each, each.begin(call.method, *arguments)) for each in self._proxies]
        results, failures = [], list[Exception]()
        for each, one in pending:
            try:
                results.append(each.finish(call.method, one))
            except Exception as error:  # a step boundary: the other nodes go on meanwhile, and are waited for
                failures.append(error)
        if failures:
            raise_all(failures if call.method == "stop" else failures[:1])
        if call.method in self._merge:
            return self._merge[call.method](results)
        if call.method == "facts":
            return _facts({each.node: row for each, row in zip(self._proxies, results, strict=True)})
        if call.returns is tuple:
            return tuple(item for result in results for item in result)
        if call.returns is type(None):
            return None
        return {key: value for result in results for key, value in result.items()}  # names are unique on a testbed


def proxy(remote: RemoteRole[P], link: AgentLink, more_s: float = 0.0) -> P:
    """Return a role on a node.

    `more_s`: How much longer than usual calls may take.
    """
    base = _TimedProxy if remote.role is Role.GENERATOR else Proxy
    return cast(P, _class_of(remote.role, base)(link, more_s))


def combined(remote: RemoteRole[P], proxies: Sequence[P], merge: Mapping[str, Merge] | None = None) -> P:
    """Return a role that several nodes fulfil as one.

    Results that are mappings or tuples are joined; a fact in which nodes differ has a row for each.

    `proxies`: Made by `proxy`, of this role or of one with the same Protocol.
    """
    return cast(P, _class_of(remote.role, _Combined)(cast(Sequence[Proxy], proxies), merge or {}))


@cache
def _class_of(role: Role, base: type[_Base]) -> type[_Base]:
    """A subclass with the methods of a role."""

    def member(which: RoleCall) -> object:
        def call(self: Proxy | _Combined, *arguments: object) -> Any:  # noqa: ANN401 - of the method's type
            return self.ask(which, *arguments)

        return property(call) if which.is_property else call

    members = {name: member(call) for name, call in ROLE_CALLS[role].items()}
    return type(f"{role.title()}{base.__name__}", (base,), {"role": role, **members})


def _facts(rows: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Facts of all nodes; one in which they differ has a row for each."""
    facts: dict[str, str] = {}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        found = {node: row[name] for node, row in rows.items() if name in row}
        if len(set(found.values())) == 1:
            facts[name] = next(iter(found.values()))
        else:
            facts |= {f"{name} of {node}": text for node, text in found.items()}
    return facts
