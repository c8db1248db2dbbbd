"""The service of an agent: opens its machine, makes that machine's share of a plan, and drives it."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import (
    Call,
    CellRequest,
    Greeting,
    Hello,
    NodeInspection,
    NodeRequest,
    Role,
    ServiceRequest,
)
from resources.libraries.python.testbed.agent.deployed import PROBES, AgentDeployment
from resources.libraries.python.testbed.agent.role_calls import BY_NAME, RoleCall
from resources.libraries.python.testbed.worlds.machine import TestbedMachine

_PAUSE_S = 0.5
_STEPS = ("start", "stop")


class AgentService:
    """One node's machine, from `open` to `close`, with at most one cell on it.

    Args:
        fingerprint: Returns the environment.
        greeting: Identity of the agent's process; None in the process of the controller.
        machine_of: Makes the machine of a node.
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
        self.deployed = AgentDeployment()
        """The present cell or service."""
        self._started: list[Role] = []
        self._answers: Mapping[str, Callable[[Any], object]] = {
            calls.HELLO.name: self._hello,
            calls.LOOK.name: self._look,
            calls.OPEN.name: self._open,
            calls.FINGERPRINT.name: lambda _: fingerprint(),
            calls.PREPARE.name: self._prepare,
            calls.SITE.name: self._site,
            calls.LEFTOVERS.name: lambda plan: tuple(self.machine.leftovers(plan)),
            calls.CLEAN.name: lambda _: self.machine.clean(),
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
            Exception: The first of the failures; all that can be removed is removed all the same.
        """
        machine, self._machine = self._machine, None
        failures: list[Exception] = []
        if machine is not None:
            # The reverse order of starting. What cannot be stopped in an orderly way is removed by force.
            steps: list[Callable[[], object]] = [partial(self._stop, role) for role in reversed(Role)]
            for step in (*steps, machine.clean):
                try:
                    step()
                except Exception as error:  # a step boundary: the other steps must be taken too
                    failures.append(error)
            self.deployed.forget()
            machine.close()
        if failures:
            raise failures[0]

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
        return NodeInspection(
            machine.layout, machine.memory, tuple(machine.problems()), tuple(machine.warnings()), machine.numa_nodes()
        )

    def _open(self, request: NodeRequest) -> tuple[str, ...]:
        if self._machine is not None:
            raise CsitError("this agent has opened its machine already")
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
        if self._started:
            raise CsitError(f"there is a cell already, with its {', '.join(self._started)}")
        self.deployed.share = self.machine.share(work.plan, work.asked)
        return self.deployed.roles()

    def _of_role(self, call: RoleCall, arguments: Sequence[object]) -> object:
        if call.method in _STEPS and call.role not in PROBES:
            step = self._start if call.method == "start" else self._stop
            step(call.role)
            return None
        return self.deployed.call(call, arguments)

    def _start(self, role: Role) -> None:
        part = self.deployed.part(role)
        self._started.append(role)  # first: a part that is half started has to be stopped too
        part.start()

    def _stop(self, role: Role) -> None:
        if role not in self._started:
            return
        self._started.remove(role)
        with ExitStack() as stack:
            stack.callback(self.deployed.part(role).stop)
            stack.callback(self.deployed.stop_probes)

    def _site(self, sited: ServiceRequest) -> None:
        if self._started:
            raise CsitError(f"there is something deployed already: {', '.join(self._started)}")
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
