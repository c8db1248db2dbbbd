"""Topology files of FD.io CSIT: read as they are, but for secrets, which are refused with the way out."""

import re
from pathlib import Path

import pytest
import yaml

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import convert_topology, load_topology
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.csit_topology import GENERATOR_CORES, Secrets
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, cpus
from tests.unit.planning.labs import TWO_NODES, refused, written

MOVED = TWO_NODES.replace("in the clear", "env:CSIT_LAB_PASSWORD")


def test_a_password_is_refused_with_its_place_and_the_way_out(tmp_path: Path) -> None:
    said = refused(tmp_path, TWO_NODES)
    assert said.startswith(":16: nodes.TG.password: a password in a file is refused")
    assert "in the clear" not in said
    ways = ("./csit convert", "env:NAME", "keyring:SERVICE/USER", "ssh-copy-id -p 6001 tester@192.0.2.1")
    assert not [way for way in (*ways, "(the same at DUT1)") if way not in said]


@pytest.mark.parametrize(
    ("secret", "at"),
    [("password: 123456", ":16: nodes.TG.password"), ("password: ''", ":16: nodes.TG.password"),
     ("priv_key: '-----BEGIN secret'", ":16: nodes.TG.priv_key")],
)  # fmt: skip
def test_every_form_of_a_secret_is_refused(tmp_path: Path, secret: str, at: str) -> None:
    said = refused(tmp_path, MOVED, "password: env:CSIT_LAB_PASSWORD", secret)
    assert said.startswith(at) and " in a file is refused" in said
    assert "123456" not in said and "BEGIN" not in said


def test_moved_out_it_is_read_and_planned(tmp_path: Path) -> None:
    topology = load_topology(written(tmp_path, MOVED))
    tg, dut, access = topology.tg, topology.dut, topology.tg.access
    assert (topology.metadata.name, topology.world, topology.discriminator) == ("some_2n_testbed1", World.LAB, "mac")
    assert access is not None and (access.host, access.port, access.user) == ("192.0.2.1", 6001, "tester")
    assert access.password == "env:CSIT_LAB_PASSWORD"  # noqa: S105 - the name of a variable
    assert (tg.generator.driver, tg.generator.cores) == ("trex", GENERATOR_CORES)
    assert (dut.vswitch, dut.containers, dut.vms) == ("vpp", (NfKind("vpp"),), NfKind("qemu_vpp"))
    port = tg.interfaces["port1"]
    assert (port.mac_address, port.pci_address, port.rate_bps) == ("00:00:5e:00:53:01", "0000:3b:00.0", 10**11)
    assert list(tg.interfaces) == ["port1", "port2", "port5", "port6"], "those of the other NIC carry nothing"
    assert [(loop.a.port, loop.b.port) for loop in topology.loops] == [("port5", "port6")]
    ((there, back),) = topology.ways
    assert [(each.link, each.a.port, each.b.port) for each in (there, back)] == [
        ("link1", "port1", "port2"), ("link2", "port1", "port2"),
    ]  # fmt: skip
    plan = make_plan(topology, cell_of("CSC", 2, 2), dict.fromkeys(topology.nodes, cpus(32)))
    assert len(plan.segments) == 2 + 2


def test_without_a_password_keys_are_meant_and_braces_in_a_comment_are_no_template(tmp_path: Path) -> None:
    access = load_topology(written(tmp_path, MOVED.replace("    password: env:CSIT_LAB_PASSWORD\n", ""))).tg.access
    assert access is not None and access.password is None
    filled = MOVED.replace("---\n", "---\n# from {{ template }} and ${VARIABLE}\n", 1)
    assert load_topology(written(tmp_path, filled)).world is World.LAB


def test_our_keys_may_stand_beside_theirs(tmp_path: Path) -> None:
    data = yaml.safe_load(MOVED)
    data |= {"nic": "Intel-X710", "discriminator": "link"}
    data["nodes"]["TG"] |= {
        "generator": {"cores": 2},
        "access": {"jump": [{"host": "192.0.2.9"}]},
        "cpus": [{"cpus": "0-7", "cores": "0-7"}],
    }
    data["nodes"]["DUT1"] |= {"containers": ["vpp", "linux_router"], "oversubscribe": True}
    topology = load_topology(written(tmp_path, yaml.safe_dump(data, sort_keys=False)))
    ((there, back),) = topology.ways
    got = [(cable.link, *cable.models) for cable in (there, back)]
    assert got == [("link3", "Intel-X710"), ("link4", "Intel-X710")]
    assert topology.tg.interfaces["port3"].mac_address is None, "a place that was never filled in"
    assert (topology.tg.generator.driver, topology.tg.generator.cores) == ("trex", 2)
    assert topology.dut.containers == (NfKind("vpp"), NfKind("linux_router"))
    assert topology.tg.access is not None
    assert (topology.tg.access.host, topology.tg.access.jump[0].host) == ("192.0.2.1", "192.0.2.9")


def test_a_reader_that_reaches_no_node_may_ignore_secrets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, TWO_NODES)
    topology = load_topology(path, Secrets.IGNORE)
    assert topology.tg.access is not None and topology.tg.access.password is None
    assert "ignored nodes.TG.password and nodes.DUT1.password" in caplog.text
    assert f"`./csit convert {path}`" in caplog.text
    assert "in the clear" not in caplog.text


def test_a_converted_file_is_the_same_testbed_without_its_secrets(tmp_path: Path) -> None:
    topology, made = convert_topology(written(tmp_path, TWO_NODES))
    again = load_topology(written(tmp_path, yaml.safe_dump(made.data, sort_keys=False), "converted.yaml"))
    assert again == topology
    moved = load_topology(written(tmp_path, MOVED))
    assert topology == moved, "one password for all nodes is one variable"
    assert "in the clear" not in f"{made}"
    said = "\n".join(made.notes)
    assert "nodes.TG.password: not copied; access.password is env:CSIT_LAB_PASSWORD" in said
    assert "nodes.TG.interfaces: left out port7" in said and "nodes.DUT1.interfaces: left out ip4_address" in said


def test_different_passwords_are_different_variables_and_a_key_is_a_file(tmp_path: Path) -> None:
    text = TWO_NODES.replace("in the clear", "another one", 1).replace(
        "    uio_driver: vfio-pci\n", "    priv_key: |\n      -----BEGIN PRIVATE KEY-----\n      secret\n"
    )
    topology, made = convert_topology(written(tmp_path, text))
    tg, dut = topology.tg.access, topology.dut.access
    assert tg is not None and dut is not None
    assert (tg.password, dut.password) == ("env:CSIT_LAB_PASSWORD_TG", "env:CSIT_LAB_PASSWORD_DUT1")
    assert dut.key_file == "~/.ssh/some_2n_testbed1-DUT1"
    assert made.secrets == ("nodes.TG.password", "nodes.DUT1.password", "nodes.DUT1.priv_key")
    assert not [secret for secret in ("another one", "in the clear", "BEGIN") if secret in f"{made}"]


def test_only_files_of_csit_are_converted(tmp_path: Path) -> None:
    path = written(tmp_path, "metadata: {version: 1, name: lab}\nworld: lab\nnodes: {}\n")
    with pytest.raises(ConfigError, match=r"no topology file of FD\.io CSIT"):
        convert_topology(path)


@pytest.mark.parametrize(
    ("model", "rate_bps"),
    [("Amazon-Nitro-200G", 16_000_000_000), ("azure-mlx-40g", 40_000_000_000), ("virtual", 100_000_000)],
)
def test_ports_of_clouds_have_the_rate_that_the_provider_allows(tmp_path: Path, model: str, rate_bps: int) -> None:
    text = MOVED.replace("Intel-E810CQ", model).replace("driver: ice, ", "").replace("        driver: ice\n", "")
    assert load_topology(written(tmp_path, text)).dut.interfaces["port1"].rate_bps == rate_bps


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
    assert before in MOVED
    source, output = written(tmp_path, MOVED.replace(before, after, 1)), tmp_path / "lab.yaml"
    make_app(["convert"])(["convert", str(source), "-o", str(output)], standalone_mode=False)
    said = capsys.readouterr().err
    assert "warning: " in said
    assert warning in said
    with pytest.raises(ConfigError, match=re.escape(warning)):
        load_topology(output)


def test_a_file_of_csit_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_topology(written(tmp_path, MOVED.replace("53:02", "53:01")))
    assert "nodes.TG.interfaces.port2.mac_address: 00:00:5e:00:53:01 is the MAC address of TG.port1 too" in caplog.text


@pytest.mark.parametrize("mac", ['""', "", '" "', "'00:00:00:00:00:00'", "00-00-00-00-00-00"])
def test_a_mac_address_that_was_never_filled_in_is_not_known(tmp_path: Path, mac: str) -> None:
    text = MOVED.replace('"00:00:5E:00:53:01"', mac).replace('"00:00:5e:00:53:02"', mac)
    topology = load_topology(written(tmp_path, text))
    assert {port.mac_address for port in topology.tg.interfaces.values()} == {None}
    assert topology.address_problems == ()
