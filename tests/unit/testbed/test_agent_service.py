"""What an agent makes of calls, from JSON to JSON, with a machine that only notes; and what it gets of a service."""

import json
import stat
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pydantic import TypeAdapter

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.service.load import Specifications, load_specifications
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent import bundle, calls
from resources.libraries.python.testbed.agent.bundle import BundledFile, ServiceBundle, as_on_node, bundled, write
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from tests.builders import shell_program
from tests.unit.testbed.agent_service_runs import (
    DEPLOYMENT,
    SITED,
    TOPOLOGY,
    WORK,
    WORKLOAD,
    NotingMachine,
    NotingPart,
    ask,
    ask_role,
    service_on,
)


def opened(machine: NotingMachine) -> AgentService:
    service = service_on(machine)
    assert ask(service, calls.OPEN, calls.NodeRequest(TOPOLOGY, "DUT1")) == ("removed network namespace csit-x",)
    return service


def deployed(machine: NotingMachine) -> AgentService:
    service = opened(machine)
    assert ask(service, calls.PREPARE, WORK) == {calls.Role.CABLES, calls.Role.SWITCH}
    for remote in (calls.CABLES, calls.SWITCH):
        ask_role(service, remote, "start")
    return service


def test_a_plan_and_counters_pass_the_wire_unchanged() -> None:
    machine = NotingMachine()
    service = deployed(machine)
    assert ask_role(service, calls.SWITCH, "counters") == {"csv1p1": InterfaceCounters(1, 2, 3, 4)}
    assert ask_role(service, calls.SWITCH, "without_link") == (), "as of any vSwitch that knows of no cables"
    here = fingerprint()
    assert ask(service, calls.FINGERPRINT, None) == here
    machine.ports = {"pause frames of port1": "rx on, tx on"}
    with_ports = here.model_copy(update={"settings": {**here.settings, **machine.ports}})
    assert ask(service, calls.FINGERPRINT, None) == with_ports


@pytest.mark.parametrize("fails", ["", "stop switch", "stop cable2", "clean"])
def test_what_was_started_is_stopped_in_reverse_order_whatever_fails(fails: str) -> None:
    machine = NotingMachine(fails)
    with pytest.raises(CsitError, match=f"cannot {fails}") if fails else nullcontext():
        deployed(machine).close()
    assert machine.notes == [
        "open", "start cable1", "start cable2", "start switch",
        "stop switch", "stop cable2", "stop cable1", "clean", "close",
    ]  # fmt: skip


def test_what_failed_to_start_or_was_only_prepared_is_stopped_too() -> None:
    machine = NotingMachine("start cable2")
    service = opened(machine)
    ask(service, calls.PREPARE, WORK)
    with pytest.raises(CsitError, match="cannot start cable2"):
        ask_role(service, calls.CABLES, "start")
    ask_role(service, calls.CABLES, "stop")
    ask_role(service, calls.CABLES, "stop")
    assert machine.notes[-3:] == ["start cable2", "stop cable2", "stop cable1"]
    machine = NotingMachine()
    machine.generator = NotingPart("generator", machine)
    service = opened(machine)
    assert calls.Role.GENERATOR in cast(frozenset[calls.Role], ask(service, calls.PREPARE, WORK))
    ask_role(service, calls.GENERATOR, "prepare")
    service.close()
    assert machine.notes == ["open", "prepare generator", "stop generator", "clean", "close"]


def test_a_machine_that_is_being_cleaned_is_waited_for_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.libraries.python.testbed.agent.service._PAUSE_S", 0.01)
    with pytest.raises(InUse, match="by pid 7"):
        ask(service_on(NotingMachine(busy=1)), calls.OPEN, calls.NodeRequest(TOPOLOGY, "DUT1"))
    machine = NotingMachine(busy=1)
    ask(service_on(machine), calls.OPEN, calls.NodeRequest(TOPOLOGY, "DUT1", wait_s=30.0))
    assert machine.notes == ["open"]


def test_a_part_of_a_service_is_driven_and_removed_as_that_of_a_cell() -> None:
    machine = NotingMachine()
    service = opened(machine)
    ask(service, calls.SITE, SITED)
    ask_role(service, calls.INSTANCES, "start")
    with pytest.raises(CsitError, match="there is something deployed already: instances"):
        ask(service, calls.SITE, SITED)
    assert ask_role(service, calls.INSTANCES, "use") == {"edge-1": InstanceUse(1.5, None, 7)}
    assert ask_role(service, calls.INSTANCES, "offer", 30.0) == LoadReport(15.0, {"detected": 1.0}, (30.0, 0.0))
    assert ask_role(service, calls.INSTANCES, "facts") == {"edge": "1.0"}
    service.close()
    assert machine.notes == ["open", "start service", "offer 30", "stop service", "clean", "close"]


@pytest.mark.parametrize("hello", [calls.Hello(9, "a" * 64), calls.Hello(calls.PROTOCOL, "b" * 64)])
def test_a_controller_of_another_version_is_refused(hello: calls.Hello) -> None:
    with pytest.raises(ConfigError, match=r"the agent speaks protocol|is not the controller's"):
        ask(service_on(NotingMachine()), calls.HELLO, hello)


WIRE = TypeAdapter(ServiceBundle)


def service(folder: Path, workload: str = "") -> Specifications:
    """A service in a folder, with its workload in a folder of its own where that is named."""
    load = folder / workload
    load.mkdir(parents=True, exist_ok=True)
    for path in (folder / "install.sh", folder / "remove.sh", load / "load.sh"):
        shell_program(path, "").chmod(0o775)
    (folder / "deployment.json").write_text(json.dumps({**DEPLOYMENT, "remove": "remove.sh"}))
    (load / "workload.json").write_text(json.dumps(WORKLOAD))
    return load_specifications(folder / "deployment.json", load / "workload.json")


def carried(asked: Specifications) -> ServiceBundle:
    """As it comes out at the other end of a wire."""
    return WIRE.validate_python(json.loads(json.dumps(WIRE.dump_python(bundled(asked), mode="json"))))


def test_scripts_lie_on_the_node_as_they_lay_at_home_also_those_of_another_folder(tmp_path: Path) -> None:
    home, there = tmp_path / "home", tmp_path / "there"
    asked = service(home)
    (home / "data" / ".hidden").mkdir(parents=True)
    (home / "data" / "subscribers.bin").write_bytes(bytes(range(256)))
    (home / "data" / "subscribers.bin").chmod(0o640)
    (home / "data" / "link").symlink_to("subscribers.bin")
    (home / "data" / ".hidden" / "key").write_text("secret")
    (home / ".env").write_text("secret")
    got = carried(asked)
    write(got, there)
    found = as_on_node(got, there)
    assert found.install == {"edge": there / "deployment" / "install.sh"}
    assert found.remove == there / "deployment" / "remove.sh"
    assert found.generator == there / "deployment" / "load.sh", "both files lie in one folder, which comes once"
    assert (found.deployment, found.workload) == (asked.deployment, asked.workload)
    names = {str(path.relative_to(there / "deployment")) for path in there.rglob("*") if path.is_file()}
    assert names == {
        "install.sh", "remove.sh", "load.sh", "deployment.json", "workload.json", "data/subscribers.bin", "data/link",
    }  # fmt: skip
    data = there / "deployment" / "data"
    assert (data / "subscribers.bin").read_bytes() == (data / "link").read_bytes() == bytes(range(256))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in there.rglob("*.*")}
    assert (modes["install.sh"], modes["subscribers.bin"]) == (0o755, 0o640), "only its owner may change a script"
    got = bundled(service(tmp_path, "calls"))
    assert got.generator == "workload/load.sh"
    assert {"workload/load.sh", "deployment/install.sh"} <= {file.path for file in got.files}


def test_a_script_of_another_folder_and_more_than_scripts_need_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "service").mkdir()
    service(tmp_path / "service")
    outside = shell_program(tmp_path / "install.sh", "")
    path = tmp_path / "service" / "deployment.json"
    path.write_text(path.read_text().replace('"install.sh"', '"../install.sh"'))
    asked = load_specifications(path, tmp_path / "service" / "workload.json")
    with pytest.raises(ConfigError, match=rf"^{outside} is outside of {tmp_path}/service, which is what nodes"):
        bundled(asked)
    asked = service(tmp_path)
    monkeypatch.setattr(bundle, "MAX_BYTES", 1000)
    (tmp_path / "capture.pcap").write_bytes(bytes(1001))
    with pytest.raises(ConfigError, match=rf"^{tmp_path}: more than 1000 bytes; nodes of a lab get all of"):
        bundled(asked)


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("passwd", "/etc/passwd", "leads out of"),
        ("etc", "/etc", "is a link to a folder"),
        ("gone", "no-such-file", "cannot be brought to a node: No such file"),
    ],
)
def test_links_that_lead_elsewhere_are_refused(tmp_path: Path, name: str, target: str, says: str) -> None:
    asked = service(tmp_path)
    (tmp_path / name).symlink_to(target)
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/{name} {says}"):
        bundled(asked)


@pytest.mark.parametrize("path", ["../out", "a/../../out", "{tmp_path}/out", "deployment/../../out"])
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, path: str) -> None:
    file = BundledFile(path.format(tmp_path=tmp_path), 0o644, b"")
    got = replace(bundled(service(tmp_path / "home")), files=(file,))
    with pytest.raises(CsitError, match=rf"leads out of {tmp_path}/there$"):
        write(got, tmp_path / "there")
    assert not list(tmp_path.glob("**/out"))
