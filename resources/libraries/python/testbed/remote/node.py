"""Nodes of a testbed, and a service on two of them. One of a lab has an agent, which comes back when the node does."""

import logging
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, TypeVar

from resources.libraries.python.drivers.host.ownership.processes import user
from resources.libraries.python.errors import ConnectionFailed, CsitError, HostRefused, NotReady
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.bundle import ServiceBundle
from resources.libraries.python.testbed.agent.calls import (
    INSTANCES,
    LOAD,
    Call,
    Hello,
    NodeInspection,
    NodeRequest,
    P,
    RemoteRole,
    Role,
    ServiceRequest,
)
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.remote.link import AgentLink, Pending
from resources.libraries.python.testbed.remote.proxies import combined, proxy
from resources.libraries.python.testbed.roles.service import Orchestrator, SizedService, SplitService

Connect = Callable[[str, Access], Connection]
"""Makes the way to a node from its name and how it is reached."""
RETURN_S = 600.0
"""A server takes minutes to boot."""
_REMOVE_S = 70.0
"""An agent that is cut off finds that out after the silence, and then needs some time to remove everything."""
_BETWEEN_S = 2.0
_TELL_S = 30.0
_log = logging.getLogger(__name__)
A = TypeVar("A")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Answer(Protocol[R_co]):
    """Of a call that was begun."""

    def result(self) -> R_co:
        """Wait for it; raises what the call raised."""


class TestbedNode(ABC):
    """A node from the first call to `close`; without a connection it is this machine.

    `python`: The node's Python, by name or path.
    """

    def __init__(self, name: str, python: str = "", prefix: str = "") -> None:
        self.name = name
        self.python = python
        self.prefix = prefix

    @property
    def connection(self) -> Connection | None:
        """Connection to the node, by which it is reserved; None in this process."""
        return None

    @property
    def lost(self) -> str:
        """Why its agent is gone; empty while it is there, or was never called."""
        return ""

    def reach(self) -> None:  # noqa: B027 - this machine needs no connection
        """Connect to it.

        Raises:
            ConnectionFailed: It cannot be reached.
        """

    @abstractmethod
    def begin(self, call: Call[A, R], asked: A) -> Answer[R]:
        """Call it, beside others; raises as `AgentLink.begin`."""

    def call(self, call: Call[A, R], asked: A) -> R:
        """Call it and wait for the answer."""
        return self.begin(call, asked).result()

    @abstractmethod
    def role(self, remote: RemoteRole[P], more_s: float = 0.0) -> P:
        """Return a role of the cell or service that is prepared there, whose calls may take so much longer."""

    def orchestrator(self, asked: Specifications) -> Orchestrator | None:
        """Return what deploys and loads services on this node alone; None for a node of a lab."""
        del asked
        return None

    @abstractmethod
    def look(self) -> NodeInspection:
        """Inspect the node; nothing is changed."""

    @abstractmethod
    def open(self) -> tuple[str, ...]:
        """Take the machine; return what an earlier run had left there.

        Raises:
            InUse: Another run has it.
            Unsupported: It lacks something.
        """

    def recover(self) -> tuple[str, ...]:
        """Wait for a node that was lost, and take it into use again; return what was removed there.

        Raises:
            CsitError: It does not come back.
        """
        return ()

    @abstractmethod
    def close(self) -> None:
        """Remove everything of this run and give the machine back.

        Raises:
            CsitError: Something could not be removed.
        """

    def disconnect(self) -> None:  # noqa: B027
        """Close the connection."""


class LabNode(TestbedNode):
    """A node that is used over a connection, by an agent."""

    def __init__(self, topology: Topology, name: str, connect: Connect, runtimes: Runtimes) -> None:
        access = topology.nodes[name].access
        if access is None:
            raise CsitError(f"nodes.{name}: no access given")
        super().__init__(name, access.python, f"{name}: ")
        self._access = access
        self._request = NodeRequest(topology, name)
        self._connect = connect
        self._runtimes = runtimes
        self._link: AgentLink | None = None
        self._is_open = False
        self._given_up = ""
        self._agent_pid: int | None = None
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The same connection for the whole life of the node; made when it is first needed."""
        if self._connection is None:
            self._connection = self._connect(self.name, self._access)
        return self._connection

    @property
    def lost(self) -> str:
        return self._given_up or (self._link.lost if self._link is not None else "")

    def reach(self) -> None:
        self.connection.run(["true"])

    def begin(self, call: Call[A, R], asked: A) -> Pending[R]:
        return self.link.begin(call, asked)

    def role(self, remote: RemoteRole[P], more_s: float = 0.0) -> P:
        return proxy(remote, self.link, more_s)

    @property
    def link(self) -> AgentLink:
        """The agent, started when there is none yet. A lost one stays lost until `recover`.

        Raises:
            ConnectionFailed: The node cannot be reached, or the agent is gone.
            CsitError: An agent cannot be started there.
        """
        if self._given_up:
            raise ConnectionFailed(self._given_up)
        if self._link is None:
            self._link = self._start()
        if self._link.lost:
            raise ConnectionFailed(self._link.lost)
        return self._link

    def look(self) -> NodeInspection:
        return self.link.call(calls.LOOK, self._request)

    def open(self, wait_s: float = 0.0) -> tuple[str, ...]:
        """Take the machine; say what an earlier run had left there.

        `wait_s`: How long to wait for a machine that is in use.

        Raises:
            InUse: Another run has it.
            Unsupported: It lacks something.
        """
        request = NodeRequest(self._request.topology, self.name, wait_s)
        removed = self.link.call(calls.OPEN, request, wait_s)
        self._is_open = True
        return tuple(f"{self.name}: {line}" for line in removed)

    def recover(self, within_s: float = RETURN_S) -> tuple[str, ...]:
        """Where the agent was lost: wait for the node, start another agent, and let it remove what the first one left.

        Returns:
            What was removed; nothing where nothing was lost.

        Raises:
            NotReady: The node does not come back; from then on it is not waited for again.
            CsitError: It came back, and cannot be used.
        """
        if not self.lost:
            return ()
        if self._given_up:
            raise ConnectionFailed(self._given_up)
        try:
            return self._come_back(self.lost, within_s)
        except CsitError as error:
            self._given_up = str(error)
            raise

    def _come_back(self, why: str, within_s: float) -> tuple[str, ...]:
        begin = time.monotonic()
        reported_s = begin - _TELL_S
        while True:
            self._end_agent()
            try:
                self._continue_agent()
                self._link = self._start()
                return self.open(self._access.silence_s + _REMOVE_S) if self._is_open else ()
            except HostRefused:
                raise
            except (ConnectionFailed, NotReady) as error:
                last = str(error)
            now = time.monotonic()
            if now - begin > within_s:
                raise NotReady(f"{self.name}, which was lost ({why}),", now - begin, last)
            if now - reported_s >= _TELL_S:
                _log.warning("%s: waiting for up to %.0f s: %s", self.name, within_s - (now - begin), last)
                reported_s = now
            time.sleep(_BETWEEN_S)

    def close(self) -> None:
        """Give the machine back and end the agent; the connection stays until `disconnect`.

        Raises:
            CsitError: Something could not be removed.
        """
        with ExitStack() as steps:
            steps.callback(self._leave_agent)
            if self._is_open and self._link is not None and not self._link.lost:
                self._link.call(calls.CLOSE, None)
            self._is_open = False

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave_agent(self) -> None:
        """End the agent; one that was lost, also in the last call, is continued in case it was only stopped."""
        lost = self.lost
        self._end_agent()
        if lost and not self._given_up:
            try:
                self._continue_agent()
            except CsitError as error:
                _log.warning("%s: agent %s, which was lost, is not continued: %s", self.name, self._agent_pid, error)

    def _continue_agent(self) -> None:
        """Continue the lost agent, in case it was stopped (SIGSTOP): else it would hold the machine for ever.

        It then notices that the controller is gone, and removes everything. The signal harms no other process that may
        have got its number.
        """
        if self._agent_pid is not None:
            self.connection.run(["kill", "-CONT", str(self._agent_pid)], check=False, root=True)
            self._agent_pid = None

    def _end_agent(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _start(self) -> AgentLink:
        runtime, program = self._runtimes.install(self.connection, self.python)
        who = f"{user()}@{platform.node()} pid {os.getpid()}"
        silence_s = self._access.silence_s
        options = ["--controller", who, "--silence-s", str(silence_s)]
        channel = self.connection.open([self.python, "-I", str(program), *options], root=True)
        link = AgentLink(self.name, channel, silence_s)
        try:
            greeting = link.call(calls.HELLO, Hello(calls.PROTOCOL, runtime.project))
        except BaseException:
            link.close()
            raise
        self._agent_pid = greeting.pid
        _log.info("%s: agent %d on %s, Python %s", self.name, greeting.pid, greeting.hostname, greeting.python)
        return link


@dataclass(frozen=True, slots=True)
class RemoteOrchestrator:
    """Fulfils `roles.service.Orchestrator` on two nodes of a lab."""

    brought: ServiceBundle
    cable: tuple[Port, Port]
    nodes: Callable[[], tuple[TestbedNode, TestbedNode]]
    names: str

    def service(self, size: Size) -> "RemoteService":
        """A service that is not yet started.

        Raises:
            PlanError: The DUT is too small for it.
            Unsupported: A node lacks something.
            CsitError: A node was lost and does not come back.
        """
        loading, serving = self.nodes()
        near, far = self.cable
        pending = [
            serving.begin(calls.SITE, ServiceRequest(self.brought, size, Role.INSTANCES, far)),
            loading.begin(calls.SITE, ServiceRequest(self.brought, size, Role.LOAD, near)),
        ]
        for each in pending:
            each.result()
        workload = self.brought.workload
        return RemoteService(
            serving.role(INSTANCES),
            loading.role(LOAD, workload.duration_s + workload.within_s),
            f"from {loading.name} over {self.names}",
        )


class RemoteService(SplitService):
    """A service by calls to agents. While one offers a load, the other says what is used."""

    def __init__(self, instances: SizedService, load: SizedService, origin: str) -> None:
        super().__init__(instances, load)
        self._origin = origin
        self._both = combined(LOAD, [load, instances])

    def start(self) -> None:
        """Bring both up, side by side; the cable gets its carrier when both ends are up."""
        self._both.start()

    def facts(self) -> Mapping[str, str]:
        """Facts of the instances, and origin of the load."""
        return {**self._instances.facts(), "load": self._origin}

    def problems(self) -> tuple[str, ...]:
        """Instances that have lost processes, a cable without carrier."""
        return self._both.problems()

    def stop(self) -> None:
        """Remove everything, side by side. What is on a node that was lost is removed there by its agent."""
        self._both.stop()
