"""Labs: reachable nodes, cables that carry a service, parts that belong to the world."""

import re
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.cabling import Socket, ways
from resources.libraries.python.model.testbed.topology import Topology

AVAILABLE = Path(__file__).parents[3] / "topologies" / "available"
TWO = (AVAILABLE / "lab-2n-kernel.yaml").read_text(encoding="utf-8")
THREE = (AVAILABLE / "lab-3n-vpp.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "before", "after", "expected"),
    [
        (TWO, "link: link1, device: enp59s0f0", "link: link9, device: enp59s0f0", r"'link9' has 1 end"),
        (THREE, "port2: {link: link2,", "port2: {link: link3,", r"link: 'link3' has 3 ends"),
        (
            TWO,
            "    access: {host: 192.0.2.31, user: csit}\n",
            "",
            r":\d+: nodes\.TG: access .* is required in world lab",
        ),
        (TWO, "driver: ring", "driver: otg", r"nodes\.TG\.access: not allowed: the controller drives otg over its API"),
        (TWO, "driver: ring", "driver: sim", r"nodes\.TG: generator\.driver: sim is allowed in world sim only"),
        (TWO, "vms: qemu", "vms: sim", r"nodes\.DUT1: vms: sim is allowed in world sim only"),
        (TWO, "cores: 2}", "cores: 2}\n    shares_machine_with: DUT1", r"nodes of a lab are machines of their own"),
        (THREE, "containers: vpp\n", "containers: linux_router\n", r"nodes\.DUT2\.containers: differs from the first"),
        (THREE, "driver: i40e, numa_node: 0", "driver: i40e, numa_node: 1", r"TG\.interfaces: on NUMA node 1, but"),
        (TWO, "user: csit", "user: csit, password: abc", r"nodes\.TG\.access\.password: a password in a file is"),
        (TWO, "user: csit", "user: csit, silence_s: 1", r"nodes\.TG\.access\.silence_s: 1 is below the minimum of 5"),
        (TWO, "user: csit", "user: csit, python: /sbin/halt", r"nodes\.TG\.access\.python: no name of a Python; write"),
        (TWO, "world: lab", "world: lab\nnic: Intel-X710", r"no cable ends at a NIC of model 'Intel-X710'"),
    ],
)
def test_a_mistake_is_reported_with_its_place(
    tmp_path: Path, text: str, before: str, after: str, expected: str
) -> None:
    path = tmp_path / "lab.yaml"
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=expected) as caught:
        load_topology(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("    type: TG\n", "    type: TG\n    access: {host: 192.0.2.31, user: csit}\n", "access"),
        ("    type: TG\n", '    type: TG\n    cpus: [{cpus: "0-3", cores: "0-3"}]\n', "cpus"),
        ("    type: TG\n", "    type: TG\n    uio_driver: vfio-pci\n", "uio_driver"),
        ("{driver: otg}", "{driver: otg, cores: 2}", "generator.cores"),
        ("port2: {", 'port2: {pci_address: "0000:3b:00.1", ', "interfaces.port2.pci_address"),
        ("port2: {", "port2: {driver: i40e, ", "interfaces.port2.driver"),
        ("port2: {", "port2: {uio_driver: igb_uio, ", "interfaces.port2.uio_driver"),
        ("port2: {", "port2: {nic_vfs: 1, ", "interfaces.port2.nic_vfs"),
        ("port2: {", "port2: {numa_node: 0, ", "interfaces.port2.numa_node"),
        ("port2: {", "port2: {rx_queues: 4, ", "interfaces.port2.rx_queues"),
    ],
)
def test_keys_of_a_machine_are_refused_where_only_the_api_of_the_generator_is_used(
    tmp_path: Path, before: str, after: str, place: str
) -> None:
    path = tmp_path / "lab.yaml"
    text = (AVAILABLE / "lab-2n-otg.yaml").read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    expected = f"nodes.TG.{place}: not allowed: the controller drives otg over its API, and uses nothing of its machine"
    with pytest.raises(ConfigError, match=rf":\d+: {re.escape(expected)}$"):
        load_topology(path)


def test_a_nic_is_chosen_in_a_lab_only(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    sim = AVAILABLE.parent / "sim.yaml"
    path.write_text(sim.read_text(encoding="utf-8") + "nic: Intel-X710\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="nic: allowed in world lab only"):
        load_topology(path)


def test_ports_of_other_nics_may_be_on_another_numa_node(tmp_path: Path) -> None:
    text = (AVAILABLE / "lab-2n-vpp.yaml").read_text(encoding="utf-8")
    more = "".join(
        f'      port{port}: {{link: {link}, model: Intel-X710, numa_node: 1, pci_address: "0000:5e:00.{port}"}}\n'
        for port, link in ((3, "c"), (4, "d"))
    )
    head, tail = text.split("  DUT1:\n")
    path = tmp_path / "lab.yaml"
    path.write_text(f"{head}{more}  DUT1:\n{tail}{more}", encoding="utf-8")
    assert load_topology(path).dut.numa_node == 0
    path.write_text(f"{path.read_text()}nic: Intel-X710\n", encoding="utf-8")
    topology = load_topology(path)
    assert (topology.dut.numa_node, topology.tg.numa_node, list(topology.dut.interfaces)) == (1, 1, ["port3", "port4"])
    assert Topology.model_validate_json(topology.model_dump_json()) == topology
    path.write_text(
        path.read_text().replace("link: d, model: Intel-X710, numa_node: 1", "link: d, model: Intel-X710, numa_node: 0")
    )
    with pytest.raises(ConfigError, match=r":\d+: nodes\.DUT1\.interfaces: on NUMA nodes \[0, 1\]"):
        load_topology(path)


def test_ways_are_walked_from_the_generator_and_back() -> None:
    two = load_topology(AVAILABLE / "lab-2n-kernel.yaml").ways
    assert [[cable.link for cable in way] for way in two] == [["link1", "link2"], ["link3", "link4"]]
    assert [(cable.a.node, cable.b.node) for cable in two[0]] == [("TG", "DUT1"), ("DUT1", "TG")]
    three = load_topology(AVAILABLE / "lab-3n-vpp.yaml").ways
    assert [[(cable.a.node, cable.b.node) for cable in way] for way in three] == [
        [("TG", "DUT1"), ("DUT1", "DUT2"), ("DUT2", "TG")]
    ]
    assert load_topology(AVAILABLE.parent / "sim.yaml").ways == ()


def sockets(*rows: str) -> list[Socket]:
    """From `NODE port link model`."""
    found = []
    for row in rows:
        node, port, link, *model = row.split()
        found.append(Socket(node, port, link, model[0] if model else None, node.startswith("DUT")))
    return found


def test_order_of_ports_at_the_generator_decides_and_not_that_at_the_dut() -> None:
    there = sockets("TG p1 b", "TG p2 a", "DUT1 p1 a", "DUT1 p2 b")
    ((first, second),) = ways(there, "TG", ["DUT1"], None)
    assert (first.a.port, first.b.port, second.a.port, second.b.port) == ("p1", "p2", "p1", "p2")


def test_only_cables_of_one_nic_model_make_ways() -> None:
    there = sockets(
        "TG p1 a X", "TG p2 b Y", "TG p3 c X", "TG p4 d Y", "DUT1 p1 a X", "DUT1 p2 b Y", "DUT1 p3 c X", "DUT1 p4 d Y"
    )
    assert [[cable.link for cable in way] for way in ways(there, "TG", ["DUT1"], None)] == [["a", "c"]]
    assert [[cable.link for cable in way] for way in ways(there, "TG", ["DUT1"], "Y")] == [["b", "d"]]


@pytest.mark.parametrize(
    ("rows", "duts", "expected"),
    [
        (["TG p1 a", "DUT1 p1 a"], ["DUT1"], r"two cables TG - DUT1, and there are a \(TG\.p1 - DUT1\.p1\)"),
        (
            ["TG p1 a", "TG p2 b", "DUT1 p1 a", "DUT2 p1 b"],
            ["DUT1", "DUT2"],
            r"a cable for each of TG - DUT1, DUT1 - DUT2, DUT2 - TG, and there are a .*, b \(TG\.p2 - DUT2\.p1\)",
        ),
        (["TG p1 a", "TG p2 a"], ["DUT1"], "there are no cables"),
        (["TG p1 a X", "DUT1 p1 a X", "TG p2 b Y", "DUT1 p2 b Y"], ["DUT1"], "1 links are of other NIC models"),
    ],
)
def test_cables_that_carry_no_service_are_named(rows: list[str], duts: list[str], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        ways(sockets(*rows), "TG", duts, None)
