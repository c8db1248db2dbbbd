"""Labs: cables that carry a service, from the generator through all DUTs and back; how ports are driven."""

from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.attachment import Attachment, attachment_of
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode
from resources.libraries.python.model.testbed.topology import Socket, Topology, ways
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.kinds.machine import past_the_kernel
from tests.builders import cell_of
from tests.unit.planning.labs import lab

AVAILABLE = Path(__file__).parents[3] / "topologies" / "available"


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


def test_order_of_ports_at_the_generator_decides_and_only_cables_of_one_nic_model_make_ways() -> None:
    there = sockets("TG p1 b", "TG p2 a", "DUT1 p1 a", "DUT1 p2 b")
    ((first, second),) = ways(there, "TG", ["DUT1"], None)
    assert (first.a.port, first.b.port, second.a.port, second.b.port) == ("p1", "p2", "p1", "p2")
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


PCI = "0000:3b:00.0"
CELL = cell_of()


def port(**keys: Any) -> Interface:
    return Interface.model_validate({"link": "a", "pci_address": PCI, **keys})


def dut(vswitch: str, **keys: Any) -> DutNode:
    ports = {"p1": {"link": "a"}, "p2": {"link": "b"}}
    row = {"type": "DUT", "vswitch": vswitch, "containers": "linux_router", "interfaces": ports}
    return DutNode.model_validate({**row, **keys})


def tg(driver: str, **keys: Any) -> TgNode:
    ports = {"p1": {"link": "a"}, "p2": {"link": "b"}}
    return TgNode.model_validate({"type": "TG", "generator": {"driver": driver}, "interfaces": ports, **keys})


@pytest.mark.parametrize("user", [dut("vpp"), dut("ovs"), tg("trex")])
@pytest.mark.parametrize(
    "known",
    [
        *({"driver": name} for name in ("ice", "i40e", "iavf", "ixgbe", "igb", "e1000", "e1000e", "virtio_net")),
        *({"driver": name} for name in ("virtio-pci", "vmxnet3", "ena", "hns3", "bnxt_en", "gve")),
        *({"model": name} for name in ("Intel-E810CQ", "Intel-XXV710", "Intel-X710", "Amazon-Nitro-50G")),
        {"driver": "something-new", "uio_driver": "vfio-pci"},
        {"driver": "vfio-pci"},
    ],
)
def test_a_nic_that_dpdk_knows_is_driven_by_dpdk(user: DutNode | TgNode, known: dict[str, str]) -> None:
    assert attachment_of(port(**known), user) is Attachment.DPDK


@pytest.mark.parametrize("known", [{"driver": "mlx5_core"}, {"model": "Mellanox-CX6DX"}, {"driver": "mlx4_core"}])
@pytest.mark.parametrize("user", [dut("vpp"), dut("ovs"), tg("trex"), dut("ovs", uio_driver="vfio-pci")])
def test_mellanox_ports_are_never_unbound(user: DutNode | TgNode, known: dict[str, str]) -> None:
    found = attachment_of(port(**known), user)
    assert (found, found.unbinds) == (Attachment.BIFURCATED, False)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (dut("linux_bridge", uio_driver="vfio-pci"), Attachment.KERNEL),
        (tg("ring"), Attachment.KERNEL),
        (tg("xdp"), Attachment.KERNEL),
        (tg("trex", trex={"ports": "af_packet"}), Attachment.KERNEL),
        (dut("vpp", vpp={"ports": "af_packet"}), Attachment.KERNEL),
        (dut("vpp", vpp={"ports": "af_xdp"}), Attachment.AF_XDP),
        (dut("vpp", vpp={"ports": "native"}), Attachment.NATIVE),
        (dut("ovs", ovs={"ports": "system"}), Attachment.KERNEL),
        (dut("ovs", ovs={"ports": "af_xdp"}), Attachment.AF_XDP),
    ],
)
def test_sockets_only_where_they_are_asked_for(user: DutNode | TgNode, expected: Attachment) -> None:
    assert attachment_of(port(driver="ice"), user) is expected


def test_a_virtual_port_is_the_kernels_rdma_for_mellanox_and_dpdk_needs_a_pci_address() -> None:
    assert attachment_of(Interface(link="a", device="veth0", driver="veth"), dut("vpp")) is Attachment.KERNEL
    user = dut("vpp", vpp={"ports": "rdma"})
    assert attachment_of(port(driver="mlx5_core"), user) is Attachment.RDMA
    with pytest.raises(Inconsistency, match="rdma driver is for mlx5 ports, this one is ice"):
        attachment_of(port(driver="ice"), user)
    with pytest.raises(Inconsistency, match="needs a pci_address"):
        attachment_of(Interface(link="a", device="ens1", driver="ice"), dut("ovs", ovs={"ports": "dpdk"}))


@pytest.mark.parametrize(
    ("user", "section"),
    [(dut("vpp"), "vpp: {ports: af_packet}"), (dut("ovs"), "ovs: {ports: system}"), (tg("trex"), "trex: {ports: af_")],
)
def test_an_unknown_nic_is_refused_with_both_ways_out(user: DutNode | TgNode, section: str) -> None:
    for keys in ({}, {"driver": "foo"}):
        with pytest.raises(Inconsistency, match="`uio_driver: vfio-pci` for DPDK") as caught:
            attachment_of(port(**keys), user)
        assert section in str(caught.value)


def test_the_plan_says_how_ports_are_driven_and_only_where_it_must() -> None:
    topology = lab(1, vswitch="vpp", uio_driver="igb_uio")
    plan = make_plan(topology, CELL, {})
    nics = [each.nic for link in plan.links for each in (link.a, link.b) if each.nic is not None]
    assert {nic.attachment for nic in nics} == {Attachment.DPDK}
    assert [port.nic.uio_driver for port in past_the_kernel(topology.dut, plan) if port.nic] == ["igb_uio"] * 2
    assert [port.nic.uio_driver for port in past_the_kernel(topology.tg, plan) if port.nic] == [None] * 2
    kernel = make_plan(lab(1, vswitch="linux_bridge", generator="ring", containers="linux_router"), CELL, {})
    assert "attachment" not in kernel.model_dump_json()
    assert "uio_driver" not in kernel.model_dump_json()
