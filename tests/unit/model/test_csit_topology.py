"""Topology files of FD.io CSIT: read as they are, but for secrets, which are refused with the way out."""

from pathlib import Path

import pytest
import yaml

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import convert_topology, load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.csit_topology import GENERATOR_CORES, Secrets, is_csit, name_of
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.labs import TWO_NODES, written

MOVED = TWO_NODES.replace("in the clear", "env:CSIT_LAB_PASSWORD")


def test_a_password_is_refused_with_its_place_and_the_way_out(tmp_path: Path) -> None:
    path = written(tmp_path, TWO_NODES)
    with pytest.raises(ConfigError) as caught:
        load_topology(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:16: nodes.TG.password: a password in a file is refused")
    assert "in the clear" not in said
    assert "\n" not in said
    for way in (
        "./csit convert",
        "env:NAME",
        "keyring:SERVICE/USER",
        "ssh-copy-id -p 6001 tester@192.0.2.1",
        "(the same at DUT1)",
    ):
        assert way in said
    one = TWO_NODES.replace("password: in the clear", "password: env:A", 1)
    with pytest.raises(ConfigError, match=r":40: nodes\.DUT1\.password: a password in a file is refused"):
        load_topology(written(tmp_path, one))


@pytest.mark.parametrize("line", ["password: 123456", "password: ''", "priv_key: '-----BEGIN secret'"])
def test_every_form_of_a_secret_is_refused(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, MOVED.replace("password: env:CSIT_LAB_PASSWORD", line, 1))
    with pytest.raises(ConfigError, match=r":16: nodes\.TG\.(password|priv_key): a p.* in a file is refused") as caught:
        load_topology(path)
    assert "123456" not in str(caught.value)
    assert "BEGIN" not in str(caught.value)


def test_moved_out_it_is_read_and_planned(tmp_path: Path) -> None:
    topology = load_topology(written(tmp_path, MOVED))
    assert (topology.metadata.name, topology.world, topology.discriminator) == ("some_2n_testbed1", World.LAB, "mac")
    access = topology.tg.access
    assert access is not None
    assert (access.host, access.port, access.user, access.password) == (
        "192.0.2.1", 6001, "tester", "env:CSIT_LAB_PASSWORD",
    )  # fmt: skip
    assert (topology.tg.generator.driver, topology.tg.generator.cores) == ("trex", GENERATOR_CORES)
    assert (topology.dut.vswitch, topology.dut.containers, topology.dut.vms) == (
        "vpp", (NfKind("vpp"),), NfKind("qemu_vpp"),
    )  # fmt: skip
    port = topology.tg.interfaces["port1"]
    assert (port.mac_address, port.pci_address, port.rate_bps) == (
        "00:00:5e:00:53:01", "0000:3b:00.0", 100_000_000_000,
    )  # fmt: skip
    assert list(topology.tg.interfaces) == ["port1", "port2", "port5", "port6"], "those of the other NIC carry nothing"
    assert [(loop.a.port, loop.b.port) for loop in topology.loops] == [("port5", "port6")]
    ((there, back),) = topology.ways
    assert [(each.link, each.a.port, each.b.port) for each in (there, back)] == [
        ("link1", "port1", "port2"),
        ("link2", "port1", "port2"),
    ]
    given = dict.fromkeys(topology.nodes, layout((cpu, cpu, 0, 0) for cpu in range(32)))
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=2), given)
    assert len(plan.segments) == 2 + 2


def test_without_a_password_keys_are_meant(tmp_path: Path) -> None:
    lines = [line for line in MOVED.splitlines(keepends=True) if "password" not in line]
    access = load_topology(written(tmp_path, "".join(lines))).tg.access
    assert access is not None
    assert access.password is None


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
    assert [(cable.link, sorted(cable.models)) for cable in (there, back)] == [
        ("link3", ["Intel-X710"]),
        ("link4", ["Intel-X710"]),
    ]
    assert topology.tg.interfaces["port3"].mac_address is None, "a place that was never filled in"
    assert (topology.tg.generator.driver, topology.tg.generator.cores) == ("trex", 2)
    assert topology.dut.containers == (NfKind("vpp"), NfKind("linux_router"))
    assert topology.tg.access is not None
    assert (topology.tg.access.host, topology.tg.access.jump[0].host) == ("192.0.2.1", "192.0.2.9")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("subtype: TREX", "subtype: IXIA", r":10: nodes\.TG\.subtype: generator 'IXIA' is not supported; choose TREX"),
        ("host: 192.0.2.1\n", "hots: 192.0.2.1\n", r":12: nodes\.TG\.hots: unknown key; did you mean 'host'"),
        ("    host: 192.0.2.1\n", "", r":8: nodes\.TG\.host: is missing"),
        ('"0000:3B:00.0"', '"3B:00.0"', r"nodes\.TG\.interfaces\.port1\.pci_address: "),
        ("link: link2, model: Intel-E810CQ}\n", "link: elsewhere, model: Intel-E810CQ}\n", r"no path for a service"),
        ("port: 6001", "port: none", r":14: nodes\.TG\.port: "),
        ("username: tester", "username: NO", r":15: nodes\.TG\.username: NO without quotes is a boolean, .*: \"NO\"$"),
        ("env:CSIT_LAB_PASSWORD", "env:CSIT LAB PASSWORD", r":16: nodes\.TG\.password: a password in a file is"),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, before: str, after: str, expected: str) -> None:
    assert before in MOVED
    with pytest.raises(ConfigError, match=expected) as caught:
        load_topology(written(tmp_path, MOVED.replace(before, after, 1)))
    assert "\n" not in str(caught.value)


def test_a_missing_nic_is_reported_with_those_present(tmp_path: Path) -> None:
    path = written(tmp_path, f"{MOVED}nic: Mellanox-CX6DX\n")
    with pytest.raises(ConfigError, match=r"no cable ends at a NIC of model .*there are Intel-E810CQ, Intel-X710"):
        load_topology(path)


def test_the_form_is_known_by_its_metadata() -> None:
    nodes: dict[str, object] = {"TG": {}}
    assert is_csit({"metadata": {"version": 0.1, "schema": []}, "nodes": nodes})
    assert is_csit({"metadata": {"version": 0.1}, "nodes": nodes})
    assert not is_csit({"metadata": {"version": 1, "name": "lab"}, "world": "lab", "nodes": nodes})
    assert not is_csit({"metadata": {"version": 1}, "nodes": nodes})
    assert not is_csit("words")
    assert not is_csit({"metadata": [], "nodes": nodes})
    assert [name_of(stem) for stem in ("lf_2n_x", "2n lab", "é" * 80)] == ["lf_2n_x", "t2n-lab", "t" + "-" * 62]


def test_a_reader_that_reaches_no_node_may_ignore_secrets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, TWO_NODES)
    topology = load_topology(path, Secrets.IGNORE)
    assert topology.tg.access is not None
    assert topology.tg.access.password is None
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
    for note in (
        "nodes.TG.password: not copied; access.password is env:CSIT_LAB_PASSWORD",
        "nodes.TG.generator: added, driver trex, cores 8",
        "nodes.TG: host, port, username, password moved to access",
        "nodes.TG: left out subtype, model, arch, bus",
        "nodes.TG.interfaces: left out port7, whose links join no other node",
        "nodes.DUT1.interfaces: left out ip4_address of each",
    ):
        assert note in said


def test_different_passwords_are_different_variables_and_a_key_is_a_file(tmp_path: Path) -> None:
    text = TWO_NODES.replace("in the clear", "another one", 1).replace(
        "    uio_driver: vfio-pci\n", "    priv_key: |\n      -----BEGIN PRIVATE KEY-----\n      secret\n"
    )
    topology, made = convert_topology(written(tmp_path, text))
    tg, dut = topology.tg.access, topology.dut.access
    assert tg is not None
    assert dut is not None
    assert (tg.password, dut.password) == ("env:CSIT_LAB_PASSWORD_TG", "env:CSIT_LAB_PASSWORD_DUT1")
    assert dut.key_file == "~/.ssh/some_2n_testbed1-DUT1"
    assert made.secrets == ("nodes.TG.password", "nodes.DUT1.password", "nodes.DUT1.priv_key")
    for secret in ("another one", "in the clear", "BEGIN"):
        assert secret not in f"{made}"


def test_only_files_of_csit_are_converted(tmp_path: Path) -> None:
    path = written(tmp_path, "metadata: {version: 1, name: lab}\nworld: lab\nnodes: {}\n")
    with pytest.raises(ConfigError, match=r"no topology file of FD\.io CSIT"):
        convert_topology(path)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "host: 192.0.2.1\n",
            'host: "{{ tg_public_ip }}"\n',
            r":12: a template: fill in \{\{ tg_public_ip \}\} and all other",
        ),
        ("    interfaces:\n", "    interfaces:\n${TG_INTERFACES}\n", r":20: a template: fill in \$\{TG_INTERFACES\}"),
    ],
)
def test_a_template_is_named_as_one(tmp_path: Path, before: str, after: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_topology(written(tmp_path, MOVED.replace(before, after, 1)))
    filled = MOVED.replace("---\n", "---\n# from {{ template }} and ${VARIABLE}\n", 1)
    assert load_topology(written(tmp_path, filled)).world is World.LAB


@pytest.mark.parametrize(
    ("model", "rate_bps"),
    [("Amazon-Nitro-200G", 16_000_000_000), ("azure-mlx-40g", 40_000_000_000), ("virtual", 100_000_000)],
)
def test_ports_of_clouds_have_the_rate_that_the_provider_allows(tmp_path: Path, model: str, rate_bps: int) -> None:
    text = MOVED.replace("Intel-E810CQ", model).replace("driver: ice, ", "").replace("        driver: ice\n", "")
    assert load_topology(written(tmp_path, text)).dut.interfaces["port1"].rate_bps == rate_bps
