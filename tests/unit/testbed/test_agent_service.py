"""What an agent makes of calls, from JSON to JSON, with a machine that only notes what is done to it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.result import Asked
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Share, Size
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import (
    PROTOCOL,
    CellRequest,
    Greeting,
    Hello,
    NodeRequest,
    Role,
    ServiceRequest,
)
from resources.libraries.python.testbed.agent.role_calls import CABLES, INSTANCES, ROLE_CALLS, SWITCH, RemoteRole
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment.parts import NodeParts as CellShare
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from resources.libraries.python.testbed.services.bundle import BundledFile, ServiceBundle
from resources.libraries.python.testbed.worlds.machine import TestbedMachine

TOPOLOGY = load_topology(Path(__file__).parents[3] / "topologies" / "sim.yaml")
CELL = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=2)
WORK = CellRequest(
    make_plan(TOPOLOGY, CELL, TOPOLOGY.dut.layout),
    Asked(test_type=TestType.MRR, cell=CELL, frame=frame("IMIX"), profile=profile("quick")),
)
SITED = ServiceRequest(
    ServiceBundle(
        DeploymentSpec.model_validate(
            {
                "vnf_name": "edges",
                "components": [{"name": "edge", "short": "ed", "flavors": ["small"]}],
                "flavors": {"small": {"vcpus": 1, "memory_mb": 64}},
                "install": "install.sh",
                "mode": "exhaustive",
            }
        ),
        WorkloadSpec.model_validate({"range": {"min": 1, "max": 3}, "increase": 1, "generator": "load.sh"}),
        {"edge": "deployment/install.sh"},
        None,
        "deployment/load.sh",
        (BundledFile("deployment/install.sh", 0o755, b"\x00\xff"),),
    ),
    Size(components={"edge": Share(flavor="small")}),
    Role.INSTANCES,
    Port(owner="service-bridge", interface="uplink", mac="02:c5:ff:00:00:02", data_thread=0),
)
GREETING = Greeting(PROTOCOL, "a" * 64, "3.11.2", "dut1", 7, None)


class NotingPart:
    """A part that fails where it is told to."""

    def __init__(self, name: str, machine: "NotingMachine") -> None:
        self._name, self._machine = name, machine

    def start(self) -> None:
        self._machine.note(f"start {self._name}")

    def stop(self) -> None:
        self._machine.note(f"stop {self._name}")

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return {"csv1p1": InterfaceCounters(1, 2, 3, 4)}


class NotingService(NotingPart):
    """A node's part in a service: whatever it is asked to be."""

    def __init__(self, machine: "NotingMachine") -> None:
        super().__init__("service", machine)

    def use(self) -> Mapping[str, InstanceUse]:
        return {"edge-1": InstanceUse(1.5, None, 7)}

    def offer(self, load: float) -> LoadReport:
        self._machine.note(f"offer {load:g}")
        return LoadReport(load / 2, {"detected": 1.0}, (load, 0.0))

    def facts(self) -> Mapping[str, str]:
        return {"edge": "1.0"}


class NotingMachine:
    """A machine with a vSwitch that stands on two cables."""

    def __init__(self, fails: str = "", busy: int = 0) -> None:
        self.notes: list[str] = []
        self._fails, self._busy = fails, busy

    def note(self, text: str) -> None:
        self.notes.append(text)
        if text == self._fails:
            raise CsitError(f"cannot {text}")

    def open(self) -> tuple[str, ...]:
        if self._busy:
            self._busy -= 1
            raise InUse("this machine is in use by pid 7")
        self.note("open")
        return ("removed network namespace csit-x",)

    def share(self, plan: object, asked: object) -> CellShare:
        assert (plan, asked) == (WORK.plan, WORK.asked)
        cables = (NotingPart("cable1", self), NotingPart("cable2", self))
        return CellShare(cables, cast(Any, NotingPart("switch", self)), None, None, None)

    def instances(self, brought: ServiceBundle, size: Size, cable: Port) -> "NotingService":
        assert (brought, size, cable) == (SITED.brought, SITED.size, SITED.cable)
        return NotingService(self)

    def load(self, brought: ServiceBundle, size: Size, cable: Port) -> "NotingService":
        return self.instances(brought, size, cable)

    def clean(self) -> tuple[str, ...]:
        self.note("clean")
        return ()

    def close(self) -> None:
        self.note("close")


def service_on(machine: NotingMachine) -> AgentService:
    return AgentService(fingerprint, GREETING, lambda *_: cast(TestbedMachine, machine))


def ask(service: AgentService, call: calls.Call[Any, Any], value: object) -> object:
    """As over a wire."""
    sent = json.loads(json.dumps(call.asks.dump_python(value, mode="json")))
    return call.gives.validate_python(json.loads(json.dumps(service.answer(call.name, sent))))


def ask_role(service: AgentService, remote: RemoteRole[Any], method: str, *arguments: object) -> object:
    """Call a method of a role, as over a wire."""
    return ask(service, ROLE_CALLS[remote.role][method].call, arguments)


def deployed(machine: NotingMachine) -> AgentService:
    service = service_on(machine)
    assert ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1")) == ("removed network namespace csit-x",)
    assert ask(service, calls.PREPARE, WORK) == {Role.CABLES, Role.SWITCH}
    for remote in (CABLES, SWITCH):
        ask_role(service, remote, "start")
    return service


def test_a_plan_and_counters_pass_the_wire_unchanged() -> None:
    service = deployed(NotingMachine())
    assert ask_role(service, SWITCH, "counters") == {"csv1p1": InterfaceCounters(1, 2, 3, 4)}
    assert ask(service, calls.FINGERPRINT, None) == fingerprint()


def test_what_was_started_is_stopped_in_reverse_order_when_the_controller_is_gone() -> None:
    machine = NotingMachine()
    deployed(machine).close()
    assert machine.notes == [
        "open", "start cable1", "start cable2", "start switch",
        "stop switch", "stop cable2", "stop cable1", "clean", "close",
    ]  # fmt: skip


@pytest.mark.parametrize("fails", ["stop switch", "stop cable2", "clean"])
def test_what_cannot_be_stopped_does_not_keep_the_rest(fails: str) -> None:
    machine = NotingMachine(fails)
    with pytest.raises(CsitError, match=f"cannot {fails}"):
        deployed(machine).close()
    assert machine.notes[-5:] == ["stop switch", "stop cable2", "stop cable1", "clean", "close"]


def test_what_failed_to_start_is_stopped_too() -> None:
    machine = NotingMachine("start cable2")
    with pytest.raises(CsitError, match="cannot start cable2"):
        deployed(machine)
    service = service_on(machine)
    machine.notes.clear()
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    ask(service, calls.PREPARE, WORK)
    with pytest.raises(CsitError):
        ask_role(service, CABLES, "start")
    ask_role(service, CABLES, "stop")
    ask_role(service, CABLES, "stop")
    assert machine.notes[-2:] == ["stop cable2", "stop cable1"]


def test_a_machine_that_is_being_cleaned_is_waited_for_where_that_is_asked() -> None:
    with pytest.raises(InUse, match="by pid 7"):
        ask(service_on(NotingMachine(busy=1)), calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    machine = NotingMachine(busy=1)
    ask(service_on(machine), calls.OPEN, NodeRequest(TOPOLOGY, "DUT1", wait_s=30.0))
    assert machine.notes == ["open"]


def test_a_part_of_a_service_is_driven_and_removed_as_that_of_a_cell() -> None:
    machine = NotingMachine()
    service = service_on(machine)
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    ask(service, calls.SITE, SITED)
    ask_role(service, INSTANCES, "start")
    with pytest.raises(CsitError, match="there is something deployed already: instances"):
        ask(service, calls.SITE, SITED)
    assert ask_role(service, INSTANCES, "use") == {"edge-1": InstanceUse(1.5, None, 7)}
    assert ask_role(service, INSTANCES, "offer", 30.0) == LoadReport(15.0, {"detected": 1.0}, (30.0, 0.0))
    assert ask_role(service, INSTANCES, "facts") == {"edge": "1.0"}
    service.close()
    assert machine.notes == ["open", "start service", "offer 30", "stop service", "clean", "close"]


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        (Hello(PROTOCOL + 1, "a" * 64), f"the agent speaks protocol {PROTOCOL}, the controller {PROTOCOL + 1}"),
        (Hello(PROTOCOL, "b" * 64), "(aaaaaaaaaaaa) is not the controller's (bbbbbbbbbbbb)"),
    ],
)
def test_who_does_not_fit_is_told_so_in_a_sentence(hello: Hello, words: str) -> None:
    with pytest.raises(ConfigError) as found:
        ask(service_on(NotingMachine()), calls.HELLO, hello)
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("reboot", None, "knows no call 'reboot'"),
        ("switch.reboot", [], "knows no call 'switch.reboot'"),
        ("everything.start", [], "knows no call 'everything.start'"),
        ("generator.run", ["fast"], "the call 'generator.run' is not of protocol"),
        ("switch.counters", [], "this agent has no cell"),
        ("load.offer", [1.0], "this agent has no part of a service"),
        ("clean", None, "this agent has not opened its machine"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(name: str, value: object, words: str) -> None:
    with pytest.raises(CsitError, match=words):
        service_on(NotingMachine()).answer(name, value)
