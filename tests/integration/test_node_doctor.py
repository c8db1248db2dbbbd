"""The doctor on real machines: this one, and a lab in namespaces with real SSH servers."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.model.findings import CheckFinding, Severity
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.maintenance import doctor
from resources.libraries.python.testbed.node.facts import gather
from tests.builders import shipped
from tests.integration import lab as labs
from tests.integration.robot_runs import csit

LAB = {"cables": 4}
BIG = "/var/tmp"  # noqa: S108 - the node's own
pytestmark = pytest.mark.parallel
needs_lab = [pytest.mark.root, pytest.mark.skipif(bool(labs.missing()), reason=labs.missing())]


@pytest.fixture(autouse=True)
def _short_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Observers of noise stop all that runs beside these tests: a lab's nodes have the CPUs of this machine.

    Not those of the program itself, which two tests start.
    """
    monkeypatch.setattr(doctor, "_NOISE_S", 0.02)


def look(path: Path, **options: Any) -> list[CheckFinding]:
    return doctor.examine(load_topology(path), **options)


def problems(findings: list[CheckFinding]) -> list[str]:
    return [str(finding) for finding in findings if finding.level is Severity.PROBLEM]


def of(findings: list[CheckFinding], check: str, place: str = "nodes.") -> list[CheckFinding]:
    return [finding for finding in findings if finding.check == check and finding.place.startswith(place)]


def test_facts_of_this_machine_are_those_that_others_find() -> None:
    testbed = shipped("local")
    facts = gather(LocalConnection(), testbed.nodes.values(), sys.executable)
    assert [tuple(row) for row in facts.machine.cpu.rows if row[0] in {each.cpu for each in discover().cpus}] == [
        (row.cpu, row.core, row.socket, row.node) for row in discover().cpus
    ]
    shown = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    assert facts.machine.memory.total_mb == int(shown["MemTotal"].split()[0]) // 1024
    assert facts.machine.hostname == subprocess.check_output(["hostname"], text=True).strip()
    assert abs(facts.clock_offset_s) <= facts.clock_error_s, "a machine's clock differs from itself"
    assert "lo" in facts.ports.interfaces


def test_doctor_for_machines() -> None:
    done = csit("doctor", "--format", "json")
    said = json.loads(done.stdout)
    assert done.returncode == bool(said["problem"])
    assert said["ok"] + said["warning"] + said["problem"] == len(said["findings"])
    assert {"drivers", "noise"} <= {finding["check"] for finding in said["findings"]}


class TestLab:
    pytestmark = needs_lab

    def test_a_lab_where_all_is_well(self, lab: labs.Lab, tmp_path: Path) -> None:
        findings = look(lab.topology(tmp_path))
        assert not problems(findings)
        assert {finding.place.split(".")[1] for finding in findings} == {"TG", "DUT1"}
        links = of(findings, "link")
        assert len(links) == 4 and {link.level for link in links} == {Severity.OK}
        assert "TG.port1 (cab1) - DUT1.port1 (cab1)" in links[0].what
        (ports,) = of(findings, "ports", "nodes.DUT1")
        assert "port2 is cab2 (veth)" in ports.what
        # Their CPUs are those of this machine: what disturbs them, and by how much, is not of the lab.
        noise = of(findings, "noise")
        assert sorted(each.place for each in noise) == ["nodes.DUT1", "nodes.TG"]
        assert all("observed without" not in each.what and re.search(r"\d (µs|ms|s)\b", each.what) for each in noise), (
            noise
        )

    @pytest.mark.skipif(shutil.which("ipmitool") is None, reason="ipmitool is not installed")
    @pytest.mark.skipif(Path("/dev/ipmi0").exists(), reason="this machine has a BMC")
    def test_energy_meters_are_asked_on_their_nodes(self, lab: labs.Lab, tmp_path: Path) -> None:
        findings = look(lab.topology(tmp_path, nodes={"DUT1": {"energy": {"meter": "ipmi"}}}))
        (of_dut,) = of(findings, "energy", "nodes.DUT1")
        assert of_dut.level is Severity.WARNING and "gave no power: Could not open device at /dev/ipmi0" in of_dut.what
        (of_tg,) = of(findings, "energy", "nodes.TG")
        assert of_tg.level is Severity.OK and ("no energy meter: " in of_tg.what or " W by powercap: " in of_tg.what)

    def test_a_missing_port_and_a_missing_trex(self, lab: labs.Lab, tmp_path: Path) -> None:
        changes = {
            "TG": {"generator": {"driver": "trex"}, "trex": {"directory": "/opt/nowhere"}},
            "DUT1": {"interfaces": {"port2": {"device": "nope9"}}},
        }
        trex, port = sorted(problems(look(lab.topology(tmp_path, nodes=changes))), key=lambda text: "nope9" in text)
        assert trex.startswith("nodes.TG.trex.directory: TRex: /opt/nowhere has no TRex")
        assert port.startswith("nodes.DUT1.interfaces.port2.device: port: there is no port nope9; there are cab1, cab2")

    def test_a_port_that_is_down_or_has_an_address(self, lab: labs.Lab, tmp_path: Path) -> None:
        node = lab.nodes["DUT1"]
        try:
            node.run("ip", "link", "set", "cab1", "down")
            node.run("ip", "address", "add", "198.51.100.7/24", "dev", "cab2")
            findings = look(lab.topology(tmp_path))
        finally:
            node.run("ip", "link", "set", "cab1", "up")
            node.run("ip", "address", "flush", "dev", "cab2")
        (down,) = [finding for finding in of(findings, "link") if finding.level is not Severity.OK]
        assert "DUT1.port1 (cab1) is down" in down.what and "ip link set cab1 up" in down.fix
        (used,) = problems(findings)
        assert used.startswith("nodes.DUT1.interfaces.port2: in use: cab2 has the address 198.51.100.7")

    def test_a_stopped_server_is_one_line_and_the_others_are_looked_at(self, lab: labs.Lab, tmp_path: Path) -> None:
        lab.nodes["DUT1"].kill_sshd()
        try:
            done = csit("doctor", str(lab.topology(tmp_path)))
        finally:
            lab.nodes["DUT1"].start_sshd()
        assert done.returncode == 1
        of_dut = [line for line in done.stdout.splitlines() if "nodes.DUT1" in line]
        assert len(of_dut) == 1 and "nothing listens on port 22" in of_dut[0]
        assert "nodes.TG: python: " in done.stdout
        *lines, summary = done.stdout.splitlines()
        assert {line.split()[0] for line in lines} <= {"ok", "warning", "problem"}
        assert summary.startswith(f"{tmp_path}/lab.yaml: 1 problem, ")

    def test_another_host_key_is_reported_with_the_fix(self, lab: labs.Lab, tmp_path: Path) -> None:
        path = lab.topology(tmp_path)
        lab.nodes["TG"].swap_host_key()
        try:
            (text,) = problems(look(path))
        finally:
            lab.trust()
        assert (
            text.startswith("nodes.TG.access: reach: ") and "shows another host key" in text and "ssh-keygen -R" in text
        )

    def test_a_user_without_sudo_and_a_python_that_is_not_there(
        self, lab: labs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CSIT_LAB_GUEST", lab.passwords["guest"])
        guest = {"user": "guest", "key_file": None, "password": "env:CSIT_LAB_GUEST"}
        changes = {"TG": {"access": guest}, "DUT1": {"access": {"python": "/opt/python3.99"}}}
        findings = look(lab.topology(tmp_path, nodes=changes))
        texts = problems(findings)
        assert any(text.startswith("nodes.TG.access.become: sudo: ") and "NOPASSWD" in text for text in texts)
        (python,) = [text for text in texts if text.startswith("nodes.DUT1")]
        assert python.startswith("nodes.DUT1.access.python: ") and "/opt/python3.99 does not run there" in python
        assert of(findings, "python", "nodes.TG"), "what needs no rights is known all the same"

    def test_a_disk_that_is_full_and_processors_that_are_not_there(self, lab: labs.Lab, tmp_path: Path) -> None:
        path = lab.topology(tmp_path, nodes={"DUT1": {"cpus": [{"cpus": "0-63", "cores": "0-63"}]}})
        lab.fill_disk("DUT1", BIG)
        try:
            cpus, disk = sorted(problems(look(path)), key=lambda text: "disk" in text)
        finally:
            lab.free_disk("DUT1", BIG)
        assert disk.startswith("nodes.DUT1: disk: /var/tmp has 0 of ")
        assert cpus.startswith("nodes.DUT1.cpus: cpus: CPUs ") and "63 are not online" in cpus
