"""Plans that join the generator's ports to each other: over veth pairs, or cables from the TG of a lab to itself."""

from itertools import product
from typing import Any

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.planning.loop_back import (
    MAX_FLOWS,
    VETH,
    loop_back_plan,
    loop_cables,
    no_cable,
    port_kind,
)
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.physical_ports import located, silent
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.node.checks.ports import used_ports
from tests.builders import cell_of, shipped
from tests.unit.planning.labs import lab, looped

LOCAL = shipped("local")


def cpus(count: int, threads: int = 1) -> CpuLayout:
    return layout((cpu, cpu // threads, 0, 0) for cpu in range(count))


def with_generator(topology: Topology, **changed: object) -> Topology:
    said = topology.model_dump(mode="json")
    said["nodes"][topology.tg_name]["generator"].update(changed)
    return Topology.model_validate(said)


SOCKETS = with_generator(LOCAL, driver="iperf3")


def senders_and_receivers(plan: Plan) -> tuple[set[int], set[int]]:
    mine = plan.cores.cpus(GENERATOR)
    receiving = {mine[port.data_thread] for port in plan.ports()}
    return set(mine) - receiving, receiving


def test_frames_are_received_on_another_core_and_with_a_single_cpu_the_plan_says_that_it_is_shared() -> None:
    for count in (2, 4, 28):
        plan = loop_back_plan(LOCAL, cpus(count), 3)
        senders, receivers = senders_and_receivers(plan)
        assert len(senders) == len(receivers) == 1 and not senders & receivers
        assert not plan.warnings
    senders, receivers = senders_and_receivers(loop_back_plan(LOCAL, cpus(8, 2), 1))
    assert {cpu // 2 for cpu in senders}.isdisjoint(cpu // 2 for cpu in receivers)
    plan = loop_back_plan(LOCAL, cpus(1), 1)
    assert plan.cores.cpus(GENERATOR) == (0,)
    (warning,) = plan.warnings
    assert "frames are received on CPU 0, which also sends: TG has no other CPU" in warning


def test_each_flow_has_ports_and_addresses_of_its_own_and_two_sending_cpus_have_every_other_flow() -> None:
    plan = loop_back_plan(LOCAL, cpus(4), MAX_FLOWS)
    ports = {name for flow in plan.flows for name in (flow.tx_interface, flow.rx_interface)}
    macs = {mac for flow in plan.flows for mac in (flow.source_mac, flow.destination_mac)}
    assert len(ports) == len(macs) == 2 * MAX_FLOWS
    ends = {frozenset((link.a.interface, link.b.interface)) for link in plan.links}
    assert {frozenset((flow.tx_interface, flow.rx_interface)) for flow in plan.flows} == ends
    assert max(map(len, ports)) <= 15
    assert not (plan.functions or plan.segments or plan.taps)
    plan = loop_back_plan(with_generator(LOCAL, cores=2), cpus(8), 4)
    assert [flow.direction for flow in plan.flows] == ["forward", "reverse"] * 2
    senders, receivers = senders_and_receivers(plan)
    assert (len(senders), len(receivers)) == (2, 1) and not senders & receivers


@pytest.mark.parametrize(
    ("topology", "flows", "why"),
    [
        (LOCAL, 0, f"0 flows; a loop-back has 1 to {MAX_FLOWS}"),
        (LOCAL, MAX_FLOWS + 1, f"{MAX_FLOWS + 1} flows; a loop-back has 1 to {MAX_FLOWS}"),
        (SOCKETS, 3, "3 flows; iperf3 sends both ways, so an even number from 2 to 64"),
        (shipped("local-otg"), 1, "looped back over a veth pair by this project; auto, xdp, af_xdp, ring, "),
    ],
)
def test_what_cannot_be_looped_back_is_refused(topology: Topology, flows: int, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        loop_back_plan(topology, cpus(4), flows)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_generator_that_polls_receives_on_its_own_cpus_as_in_a_test(cores: int) -> None:
    topology = with_generator(LOCAL, driver="trex", cores=cores)
    plan = loop_back_plan(topology, cpus(8), 4)
    tested = make_plan(topology, cell_of("CSC", 2), cpus(8))
    assert plan.cores.cpus(GENERATOR) == tested.cores.cpus(GENERATOR)
    ports = {port.interface: port.data_thread for port in plan.ports()}
    assert ports == {port.interface: port.data_thread for port in tested.ports(GENERATOR)}
    assert not plan.warnings
    assert [flow.sources for flow in plan.flows] == [flow.sources for flow in tested.flows]


def test_a_generator_of_sockets_sends_both_ways() -> None:
    plan = loop_back_plan(SOCKETS, cpus(4), 4)
    assert [(flow.instance, flow.direction) for flow in plan.flows] == list(product((1, 2), Direction))
    assert len(plan.links) == 2 and {flow.sources for flow in plan.flows} == {1}
    first, back = plan.flows[:2]
    assert (first.source_ip, first.destination_ip) == (back.destination_ip, back.source_ip)
    assert (first.source_mac, first.tx_interface) == (back.destination_mac, back.rx_interface)


CELL = cell_of()


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
    with_numa, plain = located(topology, found), located(without, found)
    assert digest_of_model(make_plan(with_numa, CELL, {})) == digest_of_model(make_plan(plain, CELL, {}))
    assert no_cable(with_numa) == no_cable(topology) and no_cable(topology) != no_cable(without)
    again = Topology.model_validate(topology.model_dump(mode="json"))
    assert again.tg.interfaces == without.tg.interfaces


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
    topology = looped(kernel_lab())
    assert (port_kind(topology), no_cable(topology)) == ("i40e 10 Gb/s by the kernel", None)
    modelled = looped(shipped("available/lab-2n-vpp"))
    assert port_kind(modelled).startswith(f"{next(iter(modelled.tg.interfaces.values())).model} ")


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (kernel_lab(), "(port1, port2)"),
        (looped(kernel_lab(), rate_bps=25 * 10**9), "loop10 - loop11 (i40e 25 Gb/s by the kernel)"),
        (looped(kernel_lab(), driver="ice"), "loop10 - loop11 (ice 10 Gb/s by the kernel)"),
        (looped(lab(tg_cores=16, trex={"ports": "dpdk"}), pci_address=None), "loop10 - loop11 (TRex on DPDK needs"),
        (looped(of_two_kinds()), "port1 (i40e 10 Gb/s by the kernel); port2 (ice 10 Gb/s by the kernel)"),
        (looped(shipped("available/lab-2n-kernel")), "port1, port2, port3, port4 are unknown"),
    ],
)
def test_without_a_cable_of_the_nic_the_ports_are_named(topology: Topology, said: str) -> None:
    assert not loop_cables(topology)
    assert port_kind(topology) == VETH
    assert said in str(no_cable(topology))
