"""Calls of an agent: those of the machine, and those of roles, derived from the Protocols: all that can be called.

A request is `{"id": 7, "call": "open", "value": …}`, its answer `{"id": 7, "value": …}` or `{"id": 7, "error": …}`;
`{"cancel": 7}` interrupts a call whose caller has given up. `{"beat": …}` is the heartbeat of either side.

The call of a role's method is `<role>.<method>`, its value the list of the arguments. A property is a call without any.
"""

# mypy: disable-error-code="type-abstract"
# A Protocol is looked at here; no object is made of it.

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, TypeVar, get_origin, get_type_hints

from pydantic import Base64Bytes, TypeAdapter

from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.roles import watching
from resources.libraries.python.testbed.roles.part import NetworkFunctions, Part, TrafficGenerator, VSwitch, timeout_of
from resources.libraries.python.testbed.roles.service import SizedService
from resources.libraries.python.testbed.services.bundle import ServiceBundle

A = TypeVar("A")
R = TypeVar("R")

PROTOCOL = 5
"""Another number where a call was changed or went away."""
_BEAT_S = 2.0


def beat_s(silence_s: float) -> float:
    """Interval of heartbeats for a peer that counts as lost after so much silence."""
    return min(_BEAT_S, silence_s / 4)


class Role(StrEnum):
    """A role on a node, in the order of starting: of a cell, of a multi-component service, or a probe."""

    CABLES = "cables"
    SWITCH = "switch"
    FUNCTIONS = "functions"
    GENERATOR = "generator"
    INSTANCES = "instances"
    LOAD = "load"
    SAMPLER = "sampler"
    FEATURES = "features"
    TRACER = "tracer"
    COSTS = "costs"
    STACKS = "stacks"
    HOPS = "hops"


@dataclass(frozen=True, slots=True)
class Hello:
    """Protocol version and sources of the controller."""

    protocol: int
    project: str
    """Digest of the project's sources."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Versions and identity of the agent."""

    protocol: int
    project: str
    python: str
    hostname: str
    pid: int
    boot_id: str | None
    """Another one after each start of the node's kernel."""


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """Argument of calls about the whole node."""

    topology: Topology
    node: str | None
    """Name in the topology; None for a machine that has all of the testbed."""
    wait_s: float = 0.0
    """How long to wait for a machine that is in use: an agent that was cut off may still be cleaning up."""


@dataclass(frozen=True, slots=True)
class NodeInspection:
    """Layout of a node, and the problems that were found; nothing was changed."""

    layout: CpuLayout
    memory: MemoryLayout | None
    problems: tuple[PreflightProblem, ...]
    warnings: tuple[PreflightProblem, ...]
    numa_nodes: Mapping[str, int | None] = field(default_factory=dict)
    """NUMA nodes of its ports, by their names in the topology; None where the machine does not know."""
    unsampled: PreflightProblem | None = None
    """Why call stacks cannot be sampled there; None where they can."""


@dataclass(frozen=True, slots=True)
class CellRequest:
    """Argument of `prepare`."""

    plan: Plan
    asked: MeasurementRequest
    capture: Base64Bytes | None = None
    """Contents of the capture whose packets are the load."""


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """Argument of `site`: a service in one size, and the node's role in it."""

    brought: ServiceBundle
    size: Size
    role: Role
    """INSTANCES or LOAD."""
    cable: Port
    """This node's end of it."""


@dataclass(frozen=True)
class Call(Generic[A, R]):
    """One thing to ask for."""

    name: str
    argument: Any
    """Type of its argument."""
    result: Any
    within_s: float = 60.0
    """When the controller gives up; longer than any driver waits by itself."""

    @cached_property
    def asks(self) -> TypeAdapter[A]:
        """Validator of the argument; made on first use, because no process makes all calls."""
        return TypeAdapter(self.argument)

    @cached_property
    def gives(self) -> TypeAdapter[R]:
        """Validator of the result."""
        return TypeAdapter(self.result)


_Nothing = type(None)

HELLO: Call[Hello, Greeting] = Call("hello", Hello, Greeting, 300.0)
"""It loads every driver first, which takes half a minute on an emulated machine; one that died is noticed at once."""
LOOK: Call[NodeRequest, NodeInspection] = Call("look", NodeRequest, NodeInspection, 60.0)
OPEN: Call[NodeRequest, tuple[str, ...]] = Call("open", NodeRequest, tuple[str, ...], 180.0)
FINGERPRINT: Call[None, Environment] = Call("fingerprint", _Nothing, Environment)
PREPARE: Call[CellRequest, frozenset[Role]] = Call("prepare", CellRequest, frozenset[Role])
"""Returns what the node has of the cell."""
SITE: Call[ServiceRequest, None] = Call("site", ServiceRequest, _Nothing, 120.0)
"""Nothing is made, as by `prepare`; but it has files to carry."""
LEFTOVERS: Call[Plan | None, tuple[str, ...]] = Call("leftovers", Plan | None, tuple[str, ...], 60.0)
CLEAN: Call[None, tuple[str, ...]] = Call("clean", _Nothing, tuple[str, ...], 180.0)
CLOCK: Call[None, int] = Call("clock", _Nothing, int)
"""Returns the node's time in nanoseconds since the epoch."""
CLOSE: Call[None, None] = Call("close", _Nothing, _Nothing, 180.0)

CALLS: Mapping[str, Call[Any, Any]] = {
    call.name: call for call in (HELLO, LOOK, OPEN, FINGERPRINT, PREPARE, SITE, LEFTOVERS, CLEAN, CLOCK, CLOSE)
}


P = TypeVar("P")


@dataclass(frozen=True)
class RemoteRole(Generic[P]):
    """A role that a node can fulfil for a controller."""

    role: Role
    protocol: type[P]


CABLES = RemoteRole(Role.CABLES, Part)
SWITCH = RemoteRole(Role.SWITCH, VSwitch)
FUNCTIONS = RemoteRole(Role.FUNCTIONS, NetworkFunctions)
GENERATOR = RemoteRole(Role.GENERATOR, TrafficGenerator)
INSTANCES = RemoteRole(Role.INSTANCES, SizedService)
LOAD = RemoteRole(Role.LOAD, SizedService)
SAMPLER = RemoteRole(Role.SAMPLER, watching.Sampler)
FEATURES = RemoteRole(Role.FEATURES, watching.FeatureSampler)
TRACER = RemoteRole(Role.TRACER, watching.Tracer)
COSTS = RemoteRole(Role.COSTS, watching.CostMeter)
STACKS = RemoteRole(Role.STACKS, watching.StackSampler)
HOPS = RemoteRole(Role.HOPS, watching.HopTimer)


@dataclass(frozen=True)
class RoleCall:
    """A method of a role as a call."""

    role: Role
    method: str
    is_property: bool
    returns: Any
    """Origin of its return type: NoneType, tuple, Mapping, or a class."""
    call: Call[Sequence[Any], Any]
    more_s: Callable[..., float]
    """How much longer than usual it may take, from its arguments."""

    @property
    def nothing(self) -> Any:  # noqa: ANN401 - of the return type
        """Result of a node that is lost: what it had is gone."""
        return {tuple: (), Mapping: {}}.get(self.returns)


def _role_calls(remote: RemoteRole[Any]) -> Mapping[str, RoleCall]:
    found = {}
    for name, member in inspect.getmembers_static(remote.protocol):
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        hints = get_type_hints(function)
        returns = hints.pop("return")
        wait = timeout_of(function)
        arguments: Any = tuple[tuple(hints.values())] if hints else tuple[()]  # type: ignore[misc] # made here
        call: Call[Sequence[Any], Any] = Call(f"{remote.role}.{name}", arguments, returns, wait.seconds)
        found[name] = RoleCall(
            remote.role, name, isinstance(member, property), get_origin(returns) or returns, call, wait.more
        )
    return found


ROLE_CALLS: Mapping[Role, Mapping[str, RoleCall]] = {
    remote.role: _role_calls(remote)
    for remote in (
        CABLES,
        SWITCH,
        FUNCTIONS,
        GENERATOR,
        INSTANCES,
        LOAD,
        SAMPLER,
        FEATURES,
        TRACER,
        COSTS,
        STACKS,
        HOPS,
    )
}
"""By role and method."""
BY_NAME: Mapping[str, RoleCall] = {each.call.name: each for calls in ROLE_CALLS.values() for each in calls.values()}
