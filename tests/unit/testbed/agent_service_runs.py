"""An agent over a machine that only notes what is asked of it."""

import json
from collections.abc import Mapping
from typing import Any, cast

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.service.spec import DeploymentSpec, Share, Size
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.bundle import BundledFile, ServiceBundle
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from resources.libraries.python.testbed.roles.part import VSwitch
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from tests.builders import SIM as TOPOLOGY
from tests.builders import cell_of

CELL = cell_of("CSC", 2, 2)
WORK = calls.CellRequest(
    make_plan(TOPOLOGY, CELL, TOPOLOGY.dut.layout),
    MeasurementRequest(test_type=TestType.MRR, cell=CELL, frame=frame("IMIX"), profile=profile("quick")),
)
DEPLOYMENT: dict[str, Any] = {
    "vnf_name": "edges", "components": [{"name": "edge", "short": "ed", "flavors": ["small"]}],
    "flavors": {"small": {"vcpus": 1, "memory_mb": 64}}, "install": "install.sh", "mode": "exhaustive",
}  # fmt: skip
WORKLOAD = {"range": {"min": 1, "max": 3}, "increase": 1, "generator": "load.sh", "duration_s": 1}
SITED = calls.ServiceRequest(
    ServiceBundle(
        DeploymentSpec.model_validate(DEPLOYMENT),
        WorkloadSpec.model_validate(WORKLOAD),
        {"edge": "deployment/install.sh"},
        None,
        "deployment/load.sh",
        (BundledFile("deployment/install.sh", 0o755, b"\x00\xff"),),
    ),
    Size(components={"edge": Share(flavor="small")}),
    calls.Role.INSTANCES,
    Port(owner="service-bridge", interface="uplink", mac="02:c5:ff:00:00:02", data_thread=0),
)

GREETING = calls.Greeting(calls.PROTOCOL, "a" * 64, "3.11.2", "dut1", 7, None)


class NotingPart(VSwitch):
    """A part that fails at the step given to its machine."""

    def __init__(self, name: str, machine: "NotingMachine") -> None:
        self._name, self._machine = name, machine

    def start(self) -> None:
        self._machine.note(f"start {self._name}")

    def stop(self) -> None:
        self._machine.note(f"stop {self._name}")

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return {"csv1p1": InterfaceCounters(1, 2, 3, 4)}

    def prepare(self) -> None:
        self._machine.note(f"prepare {self._name}")


class NotingService(NotingPart):
    """A node's part in a service: whatever it is asked to be."""

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
        self.ports: dict[str, str] = {}
        self.generator: Any = ABSENT[2]
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

    def share(self, plan: object, asked: object, capture: bytes | None = None) -> Parts:
        assert (plan, asked, capture) == (WORK.plan, WORK.asked, None)
        cables = (NotingPart("cable1", self), NotingPart("cable2", self))
        return Parts(cables, NotingPart("switch", self), generator=self.generator)

    def instances(self, brought: ServiceBundle, size: Size, cable: Port) -> "NotingService":
        assert (brought, size, cable) == (SITED.brought, SITED.size, SITED.cable)
        return NotingService("service", self)

    def settings(self) -> dict[str, str]:
        return self.ports

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


def ask_role(service: AgentService, remote: calls.RemoteRole[Any], method: str, *arguments: object) -> object:
    """Call a method of a role, as over a wire."""
    return ask(service, calls.ROLE_CALLS[remote.role][method].call, arguments)
