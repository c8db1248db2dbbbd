"""Addresses that cannot be right: refused in files of this project, warned of in those of FD.io CSIT."""

import re
from pathlib import Path

import pytest
import yaml

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from tests.unit.planning.labs import TWO_NODES, written

LABS = Path(__file__).parents[3] / "topologies" / "available"
LAB = (LABS / "lab-2n-vpp.yaml").read_text(encoding="utf-8")
CSIT = TWO_NODES.replace("in the clear", "env:LAB_PASSWORD")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("53:12", "53:11", r":37: nodes\.TG\.interfaces\.port2\.mac_address: .* is the MAC address of TG\.port1 t"),
        ("53:21", "53:12", r":58: nodes\.DUT1\.interfaces\.port1\.mac_address: .* the MAC address of TG\.port2"),
        ("00:00:5e:00:53:21", "00-00-5E-00-53-12", r"DUT1\.interfaces\.port1\.mac_address: .* of TG\.port2 too"),
        ("00:00:5e:00:53:21", "03:00:5e:00:53:21", r"03:00:5e:00:53:21 is a multicast address, which no port has"),
        ("00:00:5e:00:53:21", "ff:ff:ff:ff:ff:ff", r"is a multicast address"),
        ("00:00:5e:00:53:21", "00:00:00:00:00:00", r"is no address of a port; leave the key out"),
        ("0000:17:00.1", "0000:17:00.0", r":37: nodes\.TG\.interfaces\.port2\.pci_address: .* the PCI address of TG"),
        ("192.0.2.12", "192.0.2.11", r":41: nodes\.DUT1\.access\.host: 192\.0\.2\.11 port 22 is TG too; each node of"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_right_is_refused(tmp_path: Path, before: str, after: str, expected: str) -> None:
    assert before in LAB
    with pytest.raises(ConfigError, match=expected) as caught:
        load_topology(written(tmp_path, LAB.replace(before, after, 1)))
    assert "\n" not in str(caught.value)


def test_two_ports_of_a_node_are_two_devices(tmp_path: Path) -> None:
    kernel = (LABS / "lab-2n-kernel.yaml").read_text(encoding="utf-8")
    assert load_topology(written(tmp_path, kernel)).address_problems == ()
    with pytest.raises(ConfigError, match=r":19: nodes\.TG\.interfaces\.port2\.device: .* is the device of TG\.port1"):
        load_topology(written(tmp_path, kernel.replace("enp59s0f1", "enp59s0f0", 1)))


@pytest.mark.parametrize(("tg", "dut"), [("2001:db8::1", "2001:DB8:0:0::1"), ("tg.lab", "TG.lab.")])
def test_two_spellings_of_a_host_are_one_machine(tmp_path: Path, tg: str, dut: str) -> None:
    hosts = LAB.replace("host: 192.0.2.11", f"host: '{tg}'").replace("host: 192.0.2.12", f"host: '{dut}'")
    with pytest.raises(ConfigError, match=r"DUT1\.access\.host: .* is TG too"):
        load_topology(written(tmp_path, hosts))


def test_two_machines_have_the_same_pci_addresses_and_one_host_two_ports_of_ssh(tmp_path: Path) -> None:
    assert load_topology(written(tmp_path, LAB)).address_problems == ()
    one_host = LAB.replace("host: 192.0.2.12", "host: 192.0.2.11, port: 2222")
    assert load_topology(written(tmp_path, one_host)).address_problems == ()


def test_a_port_that_is_not_measured_on_is_looked_at_too(tmp_path: Path) -> None:
    data = yaml.safe_load(LAB)
    extra = {"port3": {"link": "loop", "mac_address": "00:00:5e:00:53:11"}, "port4": {"link": "loop"}}
    data["nodes"]["TG"]["interfaces"] |= extra
    with pytest.raises(ConfigError, match=r"TG\.interfaces\.port3\.mac_address: .* of TG\.port1 too"):
        load_topology(written(tmp_path, yaml.safe_dump(data)))


@pytest.mark.parametrize(
    ("before", "after", "warning"),
    [
        ("53:02", "53:01", "nodes.TG.interfaces.port2.mac_address: 00:00:5e:00:53:01 is the MAC address of TG"),
        ("0000:3b:00.1", "0000:3b:00.0", "nodes.TG.interfaces.port2.pci_address: 0000:3b:00.0 is the PCI address of"),
        ("0.2.2\n    arch: x86_64\n    port: 22", "0.2.1\n    port: 6001", "host: 192.0.2.1 port 6001 is TG too"),
    ],
)  # fmt: skip
def test_of_a_file_of_csit_it_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, warning: str
) -> None:
    assert before in CSIT
    source, output = written(tmp_path, CSIT.replace(before, after, 1)), tmp_path / "lab.yaml"
    make_app(["convert"])(["convert", str(source), "-o", str(output)], standalone_mode=False)
    said = capsys.readouterr().err
    assert "warning: " in said
    assert warning in said
    with pytest.raises(ConfigError, match=re.escape(warning)):
        load_topology(output)


def test_a_file_of_csit_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_topology(written(tmp_path, CSIT.replace("53:02", "53:01")))
    assert "nodes.TG.interfaces.port2.mac_address: 00:00:5e:00:53:01 is the MAC address of TG.port1 too" in caplog.text


@pytest.mark.parametrize("mac", ['""', "", '" "', "'00:00:00:00:00:00'", "00-00-00-00-00-00"])
def test_a_mac_address_that_was_never_filled_in_is_not_known(tmp_path: Path, mac: str) -> None:
    text = CSIT.replace('"00:00:5E:00:53:01"', mac).replace('"00:00:5e:00:53:02"', mac)
    topology = load_topology(written(tmp_path, text))
    assert {port.mac_address for port in topology.tg.interfaces.values()} == {None}
    assert topology.address_problems == ()


def test_a_numa_node_of_minus_one_is_not_known(tmp_path: Path) -> None:
    topology = load_topology(written(tmp_path, LAB.replace("numa_node: 0", "numa_node: -1")))
    assert {port.numa_node for port in topology.dut.interfaces.values()} == {None}
    with pytest.raises(ConfigError, match=r"numa_node: -2 is below the minimum of 0"):
        load_topology(written(tmp_path, LAB.replace("numa_node: 0", "numa_node: -2")))


def test_a_port_behind_a_volume_management_device_has_a_long_domain(tmp_path: Path) -> None:
    text = LAB.replace("0000:17:00.0", "10000:E1:00.0").replace("0000:17:00.1", "10000:E1:00.1")
    topology = load_topology(written(tmp_path, text))
    assert topology.dut.interfaces["port1"].pci_address == "10000:e1:00.0"
