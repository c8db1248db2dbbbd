"""What an agent's machine has of a cell or of a multi-component service, by role."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.testbed.agent.calls import Role
from resources.libraries.python.testbed.agent.role_calls import RoleCall
from resources.libraries.python.testbed.deployment.parts import NodeParts
from resources.libraries.python.testbed.roles.function import Processing
from resources.libraries.python.testbed.roles.part import DeploymentPart
from resources.libraries.python.testbed.services.node_services import NodeService

_OF_A_SERVICE = (Role.INSTANCES, Role.LOAD)
PROBES = (Role.FEATURES, Role.TRACER, Role.COSTS)
"""Roles that run while traffic does."""


class _Cables:
    """All cables of a node as one part."""

    def __init__(self, parts: Sequence[DeploymentPart]) -> None:
        self._parts = parts

    def __bool__(self) -> bool:
        return bool(self._parts)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        with ExitStack() as stack:
            for part in self._parts:
                stack.callback(part.stop)


class AgentDeployment:
    """At most one cell's share, and one part of a service. A call of a role that is not here is a CsitError."""

    def __init__(self) -> None:
        self.share: NodeParts | None = None
        self.service: NodeService | None = None

    def forget(self) -> None:
        """Forget both: all of it has been removed."""
        self.share = self.service = None

    def roles(self) -> frozenset[Role]:
        """Roles of the share that this machine has."""
        return frozenset(role for role, part in self._by_role().items() if part)

    def part(self, role: Role) -> Any:  # noqa: ANN401 - of the role's Protocol
        """Return what fulfils a role here.

        Raises:
            CsitError: Nothing does.
        """
        found = self._service() if role in _OF_A_SERVICE else self._by_role()[role]
        if found is None:
            raise CsitError(f"this node has no {role} in the present cell")
        return found

    def generator_counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters of the generator's interfaces here."""
        return self._share().generator_counters()

    def call(self, call: RoleCall, arguments: Sequence[object]) -> object:
        """Call a method of a role, or read its property."""
        target = self.part(call.role)
        if (call.role, call.method) == (Role.GENERATOR, "counters"):
            return self.generator_counters()
        if call.method == "processed" and not isinstance(target, Processing):
            return {}
        member = getattr(target, call.method)
        return member if call.is_property else member(*arguments)

    def stop_probes(self) -> None:
        """Stop probes that still run: they hold on to what is to be removed."""
        if self.share is not None:
            for probe in (self.share.features, self.share.tracer, self.share.costs):
                if probe is not None:
                    probe.stop()

    def _by_role(self) -> Mapping[Role, object]:
        share = self._share()
        return {
            Role.CABLES: _Cables(share.cables),
            Role.SWITCH: share.switch,
            Role.FUNCTIONS: share.functions,
            Role.GENERATOR: share.generator,
            Role.SAMPLER: share.sampler,
            Role.FEATURES: share.features,
            Role.TRACER: share.tracer,
            Role.COSTS: share.costs,
        }

    def _service(self) -> NodeService:
        if self.service is None:
            raise CsitError("this agent has no part of a service")
        return self.service

    def _share(self) -> NodeParts:
        if self.share is None:
            raise CsitError("this agent has no cell")
        return self.share
