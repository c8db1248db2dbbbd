"""Calls of an agent that are derived from the Protocols of the roles: their methods are all that can be called.

The call of a method is `<role>.<method>`, its value the list of the arguments. A property is a call without arguments.
"""

# mypy: disable-error-code="type-abstract"
# A Protocol is looked at here; no object is made of it.

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_origin, get_type_hints

from pydantic import TypeAdapter

from resources.libraries.python.testbed.agent.calls import Call, Role
from resources.libraries.python.testbed.roles.part import (
    DeploymentPart,
    DisturbableSwitch,
    MeteredGenerator,
    ProcessingFunctions,
)
from resources.libraries.python.testbed.roles.patience import patience_of
from resources.libraries.python.testbed.roles.service import SizedService
from resources.libraries.python.testbed.roles.watching import (
    CostMeter,
    FeatureSampler,
    Sampler,
    StackSampler,
    Tracer,
)

P = TypeVar("P")


@dataclass(frozen=True)
class RemoteRole(Generic[P]):
    """A role that a node can fulfil for a controller."""

    role: Role
    protocol: type[P]


CABLES = RemoteRole(Role.CABLES, DeploymentPart)
SWITCH = RemoteRole(Role.SWITCH, DisturbableSwitch)
FUNCTIONS = RemoteRole(Role.FUNCTIONS, ProcessingFunctions)
GENERATOR = RemoteRole(Role.GENERATOR, MeteredGenerator)
INSTANCES = RemoteRole(Role.INSTANCES, SizedService)
LOAD = RemoteRole(Role.LOAD, SizedService)
SAMPLER = RemoteRole(Role.SAMPLER, Sampler)
FEATURES = RemoteRole(Role.FEATURES, FeatureSampler)
TRACER = RemoteRole(Role.TRACER, Tracer)
COSTS = RemoteRole(Role.COSTS, CostMeter)
STACKS = RemoteRole(Role.STACKS, StackSampler)


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
        wait = patience_of(function)
        arguments: Any = tuple[tuple(hints.values())] if hints else tuple[()]  # type: ignore[misc] # made here
        call: Call[Sequence[Any], Any] = Call(
            f"{remote.role}.{name}", TypeAdapter(arguments), TypeAdapter(returns), wait.seconds
        )
        found[name] = RoleCall(
            remote.role, name, isinstance(member, property), get_origin(returns) or returns, call, wait.more
        )
    return found


ROLE_CALLS: Mapping[Role, Mapping[str, RoleCall]] = {
    remote.role: _role_calls(remote)
    for remote in (CABLES, SWITCH, FUNCTIONS, GENERATOR, INSTANCES, LOAD, SAMPLER, FEATURES, TRACER, COSTS, STACKS)
}
"""By role and method."""
BY_NAME: Mapping[str, RoleCall] = {each.call.name: each for calls in ROLE_CALLS.values() for each in calls.values()}
