"""The service of an agent: opens its machine, makes that machine's share of a plan, and drives it."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import (
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
        greeting: Who this is.
        fingerprint: Looks at the machine.
        machine_of: Makes the machine of a node.
    """

    def __init__(
        self,
        greeting: Greeting,
        fingerprint: Callable[[], Environment],
        machine_of: Callable[[Topology, str], TestbedMachine] = TestbedMachine,
    ) -> None:
        self._greeting = greeting
        self._machine_of = machine_of
        self._machine: TestbedMachine | None = None
        self._deployed = AgentDeployment()
        self._started: list[Role] = []
        self._answers: Mapping[str, Callable[[Any], object]] = {
            calls.HELLO.name: self._hello,
            calls.LOOK.name: self._look,
            calls.OPEN.name: self._open,
            calls.FINGERPRINT.name: lambda _: fingerprint(),
            calls.PREPARE.name: self._prepare,
            calls.SITE.name: self._site,
            calls.LEFTOVERS.name: lambda plan: tuple(self._opened().leftovers(plan)),
            calls.CLEAN.name: lambda _: self._opened().clean(),
            calls.CLOSE.name: lambda _: self.close(),
        }

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
        result = self._answers[name](asked) if of_role is None else self._of_role(of_role, asked)
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
            self._deployed.forget()
            machine.close()
        if failures:
            raise failures[0]

    def _hello(self, hello: Hello) -> Greeting:
        mine = self._greeting
        if hello.protocol != mine.protocol:
            raise ConfigError(f"the agent speaks protocol {mine.protocol}, the controller {hello.protocol}")
        if hello.project != mine.project:
            raise ConfigError(
                f"the agent's copy of this project ({mine.project[:12]}) is not the controller's ({hello.project[:12]})"
            )
        return mine

    def _look(self, place: NodeRequest) -> NodeInspection:
        machine = self._machine_of(place.topology, place.node)
        return NodeInspection(
            machine.layout, machine.memory, tuple(machine.problems()), tuple(machine.warnings()), machine.numa_nodes()
        )

    def _open(self, place: NodeRequest) -> tuple[str, ...]:
        if self._machine is not None:
            raise CsitError("this agent has opened its machine already")
        machine = self._machine_of(place.topology, place.node)
        deadline = time.monotonic() + place.wait_s
        while True:
            try:
                removed = machine.open()
            except InUse:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                self._machine = machine
                return tuple(removed)

    def _prepare(self, work: CellRequest) -> frozenset[Role]:
        if self._started:
            raise CsitError(f"there is a cell already, with its {', '.join(self._started)}")
        self._deployed.share = self._opened().share(work.plan, work.asked)
        return self._deployed.roles()

    def _of_role(self, call: RoleCall, arguments: Sequence[object]) -> object:
        if call.method in _STEPS and call.role not in PROBES:
            step = self._start if call.method == "start" else self._stop
            step(call.role)
            return None
        return self._deployed.call(call, arguments)

    def _start(self, role: Role) -> None:
        self._started.append(role)  # first: what is half started has to be stopped too
        for part in self._deployed.parts(role):
            part.start()

    def _stop(self, role: Role) -> None:
        if role not in self._started:
            return
        failures: list[Exception] = []
        for stop in (self._deployed.stop_probes, *(part.stop for part in reversed(self._deployed.parts(role)))):
            try:
                stop()
            except Exception as error:  # a step boundary: the others must be stopped too
                failures.append(error)
        self._started.remove(role)
        if failures:
            raise failures[0]

    def _site(self, sited: ServiceRequest) -> None:
        if self._started:
            raise CsitError(f"there is something deployed already: {', '.join(self._started)}")
        machine = self._opened()
        part = machine.instances if sited.role is Role.INSTANCES else machine.load
        self._deployed.service = part(sited.brought, sited.size, sited.cable)

    def _opened(self) -> TestbedMachine:
        if self._machine is None:
            raise CsitError("this agent has not opened its machine")
        return self._machine
