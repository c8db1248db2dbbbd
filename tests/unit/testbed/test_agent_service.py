"""What an agent makes of calls, from JSON to JSON, with a machine that only notes what is done to it."""

import json
import subprocess
import sys
from typing import cast

import pytest

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import (
    BY_NAME,
    CABLES,
    CALLS,
    GENERATOR,
    INSTANCES,
    PROTOCOL,
    SWITCH,
    Hello,
    NodeRequest,
    Role,
)
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from tests.unit.testbed.agent_service_runs import (
    SITED,
    TOPOLOGY,
    WORK,
    NotingGenerator,
    NotingMachine,
    ask,
    ask_role,
    service_on,
)


def deployed(machine: NotingMachine) -> AgentService:
    service = service_on(machine)
    assert ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1")) == ("removed network namespace csit-x",)
    assert ask(service, calls.PREPARE, WORK) == {Role.CABLES, Role.SWITCH}
    for remote in (CABLES, SWITCH):
        ask_role(service, remote, "start")
    return service


def test_a_vswitch_that_knows_of_no_cables_has_none_without_a_link() -> None:
    assert ask_role(deployed(NotingMachine()), SWITCH, "without_link") == ()


def test_a_plan_and_counters_pass_the_wire_unchanged() -> None:
    machine = NotingMachine()
    service = deployed(machine)
    assert ask_role(service, SWITCH, "counters") == {"csv1p1": InterfaceCounters(1, 2, 3, 4)}
    here = fingerprint()
    assert ask(service, calls.FINGERPRINT, None) == here
    machine.ports = {"pause frames of port1": "rx on, tx on"}
    with_ports = here.model_copy(update={"settings": {**here.settings, **machine.ports}})
    assert ask(service, calls.FINGERPRINT, None) == with_ports


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


def test_a_generator_that_was_prepared_is_stopped_also_without_a_start() -> None:
    machine = NotingMachine()
    machine.generator = NotingGenerator("generator", machine)
    service = service_on(machine)
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    assert Role.GENERATOR in cast(frozenset[Role], ask(service, calls.PREPARE, WORK))
    ask_role(service, GENERATOR, "prepare")
    service.close()
    assert machine.notes == ["open", "prepare generator", "stop generator", "clean", "close"]


def test_a_machine_that_is_being_cleaned_is_waited_for_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.libraries.python.testbed.agent.service._PAUSE_S", 0.01)
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
def test_a_controller_of_another_version_is_refused_in_a_sentence(hello: Hello, words: str) -> None:
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


USE = """
import json, os, sys
from pydantic import ValidationError
from resources.libraries.python.testbed.agent.calls import BY_NAME, CALLS

def used(validator):
    try:
        validator.validate_python(object())
    except ValidationError:
        pass
    return validator.pydantic_complete

for call in (*CALLS.values(), *(each.call for each in BY_NAME.values())):
    for side in ("asks", "gives"):
        if child := os.fork():
            os.waitpid(child, 0)
            continue
        try:
            outcome = used(getattr(call, side))
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(json.dumps([call.name, side, outcome]), flush=True)
        os._exit(0)
"""
"""Uses each validator in a process that has used no other one: pydantic builds them, and the models in them, then."""


@pytest.mark.slow
def test_validators_of_each_call_can_be_built_first() -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=PROJECT, capture_output=True, text=True, check=True, timeout=600
    )
    outcomes = {(name, side): outcome for name, side, outcome in map(json.loads, done.stdout.splitlines())}
    assert {key: outcome for key, outcome in outcomes.items() if outcome is not True} == {}
    assert outcomes.keys() == {(name, side) for name in (*CALLS, *BY_NAME) for side in ("asks", "gives")}
