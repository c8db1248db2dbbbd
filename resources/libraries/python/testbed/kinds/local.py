"""The node of a local testbed: this machine, with the service of its agent in this process."""

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import Call, NodeInspection, NodeRequest, P, RemoteRole
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.remote.node import TestbedNode
from resources.libraries.python.testbed.roles.service import Orchestrator

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CompletedCall(Generic[R]):
    """Fulfils `node.Answer` for a call that was made at once."""

    value: R

    def result(self) -> R:
        """Return it."""
        return self.value


class LocalNode(TestbedNode):
    """This machine, used by direct calls: no process, no thread, no JSON."""

    def __init__(self, topology: Topology, service: AgentService | None = None) -> None:
        """Prepare; nothing is touched."""
        super().__init__(next(iter(topology.duts)))
        self._request = NodeRequest(topology, None)
        self._service = service or AgentService(fingerprint)

    def begin(self, call: Call[A, R], asked: A) -> CompletedCall[R]:
        return CompletedCall(cast(R, self._service.do(call, asked)))

    def role(self, remote: RemoteRole[P], more_s: float = 0.0) -> P:
        del more_s
        return cast(P, self._service.deployed.part(remote.role))

    def orchestrator(self, asked: Specifications) -> Orchestrator:
        return self._service.machine.orchestrator(asked)

    def look(self) -> NodeInspection:
        return self.call(calls.LOOK, self._request)

    def open(self) -> tuple[str, ...]:
        return self.call(calls.OPEN, self._request)

    def close(self) -> None:
        self._service.close()
