"""Cables from the TG of a lab to itself: no service goes over them, and the generator is looped back over them."""

import re
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.planning.loop_back import VETH, loop_back_plan, loop_cables, no_cable, port_kind
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.physical_ports import located, silent
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.node.checks.ports import used_ports
from tests.builders import shipped
from tests.unit.planning.labs import TWO_NODES, lab, looped, written

KIND = "i40e 10 Gb/s by the kernel"
CELL = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


def kernel_lab(**changes: Any) -> Topology:
    return lab(vswitch="linux_bridge", generator="ring", containers="linux_router", **changes)


def of_two_kinds(**port: Any) -> Topology:
    said = kernel_lab().model_dump(mode="json")
    said["nodes"]["TG"]["interfaces"]["port2"] |= {"driver": "ice", **port}
    return Topology.model_validate(said)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("discriminator", ["link", "vlan"])
def test_services_are_planned_as_without_them(discriminator: Any, first: bool) -> None:
    without = kernel_lab(discriminator=discriminator)
    with_loop = looped(without, first=first)
    assert with_loop.ways == without.ways
    assert list(with_loop.tg.interfaces) == ["port1", "port2", "loop10", "loop11"]
    assert used_ports(with_loop, "TG") == list(with_loop.tg.interfaces), "the doctor looks at them"
    assert used_ports(with_loop, "DUT1") == list(without.dut.interfaces)
    assert digest_of_model(make_plan(with_loop, CELL, {})) == digest_of_model(make_plan(without, CELL, {}))


@pytest.mark.parametrize(
    "port",
    [
        {"driver": None, "pci_address": None, "numa_node": 9},
        {"driver": "ice", "rate_bps": 10**9, "numa_node": 1},
        {"pci_address": None},
        {"driver": "veth", "numa_node": 1},
    ],
)
@pytest.mark.parametrize("ports", ["auto", "dpdk", "af_packet"])
@pytest.mark.parametrize("first", [False, True])
def test_a_cable_of_another_nic_changes_nothing(ports: str, port: dict[str, Any], first: bool) -> None:
    without = lab(tg_cores=16, trex={"ports": ports})
    topology = looped(without, first=first, **port)
    if ports == "af_packet" and port == {"pci_address": None}:
        assert topology.loops, "sockets of the kernel need no address"
        return
    assert topology.tg.interfaces == without.tg.interfaces
    assert not topology.loops and list(topology.unused_loop_ports) == ["loop10", "loop11"]
    assert used_ports(topology, "TG") == ["port1", "port2"], "the doctor leaves it alone"
    assert silent(topology) == silent(without)
    found = {"TG": {"port1": 0, "port2": 0, "loop10": 0, "loop11": 0}, "DUT1": {"port1": 0, "port2": 0}}
    with_numa = located(topology, found)
    assert digest_of_model(make_plan(with_numa, CELL, {})) == digest_of_model(
        make_plan(located(without, found), CELL, {})
    )
    assert no_cable(with_numa) == no_cable(topology) and no_cable(topology) != no_cable(without)
    again = Topology.model_validate(topology.model_dump(mode="json"))
    assert again.tg.interfaces == without.tg.interfaces


def test_a_file_of_csit_with_a_cable_of_another_nic_is_planned_as_without_it(tmp_path: Path) -> None:
    lines = TWO_NODES.replace("password: in the clear", "password: env:CSIT_LAB_PASSWORD").splitlines(keepends=True)
    other = [
        re.sub(r"pci_address.*}", "link: loop, model: Some-NIC}", line) if "loop" in line else line for line in lines
    ]
    without = [line for line in lines if "loop" not in line]
    assert sum("Some-NIC" in line for line in other) == len(lines) - len(without) == 2
    loaded, plain = (load_topology(written(tmp_path, "".join(text))) for text in (other, without))
    assert loaded.tg.interfaces == plain.tg.interfaces
    given = dict.fromkeys(plain.nodes, layout((cpu, cpu, 0, 0) for cpu in range(32)))
    assert digest_of_model(make_plan(loaded, CELL, given)) == digest_of_model(make_plan(plain, CELL, given))
    why = (
        r"Intel-E810CQ ice 100 Gb/s by DPDK .*, and no cable to itself joins two of that kind: port5 - port6 \(.*known"
    )
    assert re.search(why, str(no_cable(loaded)))


def test_a_dut_has_no_cable_to_itself() -> None:
    said = kernel_lab().model_dump(mode="json")
    ports = said["nodes"]["DUT1"]["interfaces"]
    ports |= {name: {**ports["port1"], "link": "loop"} for name in ("port8", "port9")}
    with pytest.raises(ValueError, match=r"'loop' joins two ports of one node \(DUT1.port8, DUT1.port9\)"):
        Topology.model_validate(said)


@pytest.mark.parametrize("discriminator", ["link", "vlan"])
def test_each_cable_carries_a_flow_each_way_with_the_addresses_of_its_nics(discriminator: Any) -> None:
    topology = looped(kernel_lab(discriminator=discriminator, tg_cores=8), 2)
    plan = loop_back_plan(topology, {}, 4, loop_cables(topology))
    assert [[port.nic.device for port in (link.a, link.b) if port.nic] for link in plan.links] == [
        ["l10", "l11"], ["l20", "l21"],
    ]  # fmt: skip
    assert {link.medium for link in plan.links} == {Medium.CABLE}
    ports = {port.interface: port for port in plan.ports(GENERATOR)}
    assert len(ports) == 4 and all(port.vlan is port.trunk is None for port in ports.values())
    assert [(ports[flow.tx_interface].nic.device, ports[flow.rx_interface].nic.device) for flow in plan.flows] == [
        ("l10", "l11"), ("l11", "l10"), ("l20", "l21"), ("l21", "l20"),
    ]  # fmt: skip
    for flow in plan.flows:
        assert flow.source_mac == ports[flow.tx_interface].mac == ports[flow.tx_interface].nic.mac_address
        assert flow.destination_mac == ports[flow.rx_interface].mac
    tested = make_plan(kernel_lab(discriminator="link", tg_cores=8), CELL, {})
    assert plan.cores.cpus(GENERATOR) == tested.cores.cpus(GENERATOR), "received as in a test"
    assert [port.data_thread for port in ports.values()] == 2 * [port.data_thread for port in tested.ports(GENERATOR)]
    assert set(plan.machines.values()) == {"TG", "DUT1"} and not plan.warnings
    highest = max_rate(plan, frame("64B"))
    assert highest is not None and highest.flow_pps == pytest.approx(14.88e6, rel=1e-3)


@pytest.mark.parametrize("flows", [0, 1, 3, 4])
def test_more_flows_than_cables_have_ways_are_refused(flows: int) -> None:
    topology = looped(kernel_lab())
    with pytest.raises(PlanError, match=f"{flows} flows; .*so 1 cable from TG to itself: an even number to 2"):
        loop_back_plan(topology, {}, flows, loop_cables(topology))


def test_polled_ports_have_the_queues_of_a_test() -> None:
    topology = looped(lab(tg_cores=16, trex={"ports": "dpdk"}))
    plan = loop_back_plan(topology, {}, 2, loop_cables(topology))
    tested = make_plan(topology, CELL, {})
    assert [port.queues for port in plan.ports(GENERATOR)] == [port.queues for port in tested.ports(GENERATOR)]
    assert all(port.nic and port.nic.attachment.unbinds for port in plan.ports(GENERATOR))
    assert port_kind(topology) == "i40e 10 Gb/s by DPDK (vfio-pci)"


def test_what_is_measured_is_kept_for_the_nic() -> None:
    topology = looped(kernel_lab())
    assert (port_kind(topology), no_cable(topology)) == (KIND, None)
    assert port_kind(kernel_lab()) == port_kind(shipped("local")) == VETH
    modelled = looped(shipped("available/lab-2n-vpp"))
    assert port_kind(modelled).startswith(f"{next(iter(modelled.tg.interfaces.values())).model} ")


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (kernel_lab(), "(port1, port2)"),
        (looped(kernel_lab(), rate_bps=25 * 10**9), "loop10 - loop11 (i40e 25 Gb/s by the kernel)"),
        (looped(kernel_lab(), driver="ice"), "loop10 - loop11 (ice 10 Gb/s by the kernel)"),
        (looped(kernel_lab(), model="unknown", driver=None), "loop10 - loop11 (unknown 10 Gb/s by the kernel)"),
        (looped(lab(tg_cores=16, trex={"ports": "dpdk"}), pci_address=None), "loop10 - loop11 (TRex on DPDK needs"),
        (looped(of_two_kinds()), "port1 (i40e 10 Gb/s by the kernel); port2 (ice 10 Gb/s by the kernel)"),
        (looped(shipped("available/lab-2n-kernel")), "port1, port2, port3, port4 are unknown"),
        (looped(of_two_kinds(driver=None)), "port2 are unknown"),
    ],
)
def test_without_a_cable_of_the_nic_the_ports_are_named(topology: Topology, said: str) -> None:
    assert not loop_cables(topology)
    assert port_kind(topology) == VETH
    assert said in str(no_cable(topology))
