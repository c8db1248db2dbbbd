"""The service of an agent: opens its machine, makes that machine's share of a plan, and drives its roles."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import (
    BY_NAME,
    Call,
    CellRequest,
    Greeting,
    Hello,
    NodeInspection,
    NodeRequest,
    Role,
    RoleCall,
    ServiceRequest,
)
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds.machine import NodeService, TestbedMachine
from resources.libraries.python.testbed.roles.part import Part

_PAUSE_S = 0.5
_OF_A_SERVICE = (Role.INSTANCES, Role.LOAD)
PROBES = (Role.FEATURES, Role.TRACER, Role.COSTS, Role.STACKS, Role.HOPS)
"""Roles that run while traffic does."""


class _DeployedCables(Part):
    """All cables of a node as one part."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

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
        self.share: Parts | None = None
        self.service: NodeService | None = None

    def forget(self) -> None:
        """Forget both: all of it has been removed."""
        self.share = self.service = None

    def part(self, role: Role) -> Any:  # noqa: ANN401 - of the role's Protocol
        """Return what fulfils a role here.

        Raises:
            CsitError: Nothing does.
        """
        if role in _OF_A_SERVICE:
            if self.service is None:
                raise CsitError("this agent has no part of a service")
            return self.service
        if (found := self.by_role().get(role)) is None:
            raise CsitError(f"this node has no {role} in the present cell")
        return found

    def call(self, call: RoleCall, arguments: Sequence[object]) -> object:
        member = getattr(self.part(call.role), call.method)
        return member if call.is_property else member(*arguments)

    def stop_probes(self) -> None:
        """Stop probes that still run: they hold on to what is to be removed."""
        if self.share is not None:
            for role in PROBES:
                if (probe := self.by_role().get(role)) is not None:
                    probe.stop()

    def by_role(self) -> Mapping[Role, Any]:
        """What this machine has of the cell."""
        if self.share is None:
            raise CsitError("this agent has no cell")
        every = {role: getattr(self.share, role) for role in Role if role not in _OF_A_SERVICE}
        every[Role.CABLES] = _DeployedCables(self.share.cables) if self.share.cables else None
        return {role: part for role, part in every.items() if part not in (None, *ABSENT)}


class AgentService:
    """One node's machine, from `open` to `close`, with at most one cell on it.

    `greeting`: Identity of the agent's process; None in the process of the controller.
    """

    def __init__(
        self,
        fingerprint: Callable[[], Environment],
        greeting: Greeting | None = None,
        machine_of: Callable[[Topology, str | None], TestbedMachine] = TestbedMachine,
    ) -> None:
        self._greeting = greeting
        self._machine_of = machine_of
        self._machine: TestbedMachine | None = None
        self._inspected: tuple[Topology, str | None, TestbedMachine] | None = None
        """Inspected and not opened yet, so that `open` does not check it again."""
        self.deployed = AgentDeployment()
        """The present cell or service."""
        self._begun: set[Role] = set()
        """Parts that have to be stopped."""
        self._steps: Mapping[str, Callable[[Role], None]] = {
            "prepare": self._prepare_part,
            "start": self._start,
            "stop": self._stop,
        }
        self._answers: Mapping[str, Callable[[Any], object]] = {
            calls.HELLO.name: self._hello,
            calls.LOOK.name: self._look,
            calls.OPEN.name: self._open,
            calls.FINGERPRINT.name: lambda _: self._with_settings(fingerprint()),
            calls.PREPARE.name: self._prepare,
            calls.SITE.name: self._site,
            calls.LEFTOVERS.name: lambda plan: tuple(self.machine.leftovers(plan)),
            calls.CLEAN.name: lambda _: self.machine.clean(),
            calls.CLOCK.name: lambda _: time.time_ns(),
            calls.CLOSE.name: lambda _: self.close(),
        }

    def do(self, call: Call[Any, Any], asked: object) -> object:
        """Do a call that is no role's, for a caller in this process."""
        return self._answers[call.name](asked)

    def answer(self, name: str, value: object) -> object:
        """Do what is asked, from plain JSON values to plain JSON values.

        Raises:
            ConfigError: There is no such call, or its value is not of its type.
            Exception: Whatever a driver raises.
        """
        of_role = BY_NAME.get(name)
        call = calls.CALLS.get(name) if of_role is None else of_role.call
        if call is None:
            raise ConfigError(f"an agent of protocol {calls.PROTOCOL} knows no call '{name}'")
        try:
            asked = call.asks.validate_python(value)
        except ValueError as error:
            raise ConfigError(f"the call '{name}' is not of protocol {calls.PROTOCOL}: {error}") from error
        result = self.do(call, asked) if of_role is None else self._of_role(of_role, asked)
        return call.gives.dump_python(result, mode="json")

    def close(self) -> None:
        """Remove everything and give the machine back. Safe to call more than once.

        Raises:
            CsitError: Something could not be removed; all that can be is removed all the same.
        """
        machine, self._machine = self._machine, None
        if machine is not None:
            # The reverse order of starting. What cannot be stopped in an orderly way is removed by force.
            stops = (partial(self._stop, role) for role in reversed(Role))
            take_all((*stops, machine.clean, self.deployed.forget, machine.close))

    def _hello(self, hello: Hello) -> Greeting:
        mine = self._greeting
        if mine is None:
            raise CsitError("this process has no agent of its own")
        if hello.protocol != mine.protocol:
            raise ConfigError(f"the agent speaks protocol {mine.protocol}, the controller {hello.protocol}")
        if hello.project != mine.project:
            raise ConfigError(
                f"the agent's copy of this project ({mine.project[:12]}) is not the controller's ({hello.project[:12]})"
            )
        return mine

    def _look(self, request: NodeRequest) -> NodeInspection:
        machine = self._machine_of(request.topology, request.node)
        self._inspected = request.topology, request.node, machine
        return NodeInspection(
            machine.layout,
            machine.memory,
            machine.problems(),
            machine.warnings(),
            machine.numa_nodes(),
            machine.unsampled(),
        )

    def _with_settings(self, found: Environment) -> Environment:
        settings = {} if self._machine is None else self._machine.settings()
        return found.model_copy(update={"settings": {**found.settings, **settings}})

    def _open(self, request: NodeRequest) -> tuple[str, ...]:
        if self._machine is not None:
            raise CsitError("this agent has opened its machine already")
        inspected, self._inspected = self._inspected, None
        if inspected is not None and inspected[:2] == (request.topology, request.node):
            machine = inspected[2]
        else:
            machine = self._machine_of(request.topology, request.node)
        deadline = time.monotonic() + request.wait_s
        while True:
            try:
                removed = machine.open()
            except InUse:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            except BaseException:
                machine.close()
                raise
            else:
                self._machine = machine
                return tuple(removed)

    def _prepare(self, work: CellRequest) -> frozenset[Role]:
        if self._begun:
            raise CsitError(f"a cell is already deployed: {', '.join(sorted(self._begun))}")
        self.deployed.share = self.machine.share(work.plan, work.asked, work.capture)
        return frozenset(self.deployed.by_role())

    def _of_role(self, call: RoleCall, arguments: Sequence[object]) -> object:
        step = self._steps.get(call.method)
        if step is not None and call.role not in PROBES:
            return step(call.role)
        return self.deployed.call(call, arguments)

    def _prepare_part(self, role: Role) -> None:
        part = self.deployed.part(role)
        self._begun.add(role)
        part.prepare()

    def _start(self, role: Role) -> None:
        part = self.deployed.part(role)
        self._begun.add(role)  # first: a part that is half started has to be stopped too
        part.start()

    def _stop(self, role: Role) -> None:
        if role not in self._begun:
            return
        self._begun.remove(role)
        with ExitStack() as stack:
            stack.callback(self.deployed.part(role).stop)
            stack.callback(self.deployed.stop_probes)

    def _site(self, sited: ServiceRequest) -> None:
        if self._begun:
            raise CsitError(f"there is something deployed already: {', '.join(sorted(self._begun))}")
        machine = self.machine
        part = machine.instances if sited.role is Role.INSTANCES else machine.load
        self.deployed.service = part(sited.brought, sited.size, sited.cable)

    @property
    def machine(self) -> TestbedMachine:
        """The machine.

        Raises:
            CsitError: It is not open.
        """
        if self._machine is None:
            raise CsitError("this agent has not opened its machine")
        return self._machine
