"""Plans that join the generator's ports to each other."""

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.loop_back import MAX_FLOWS, loop_back_plan
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.plan import make_plan
from tests.builders import shipped

LOCAL = shipped("local")


def cpus(count: int, threads: int = 1) -> CpuLayout:
    return layout((cpu, cpu // threads, 0, 0) for cpu in range(count))


def with_generator(topology: Topology, **changed: object) -> Topology:
    said = topology.model_dump(mode="json")
    said["nodes"][topology.tg_name]["generator"].update(changed)
    return Topology.model_validate(said)


def senders_and_receivers(plan: Plan) -> tuple[set[int], set[int]]:
    mine = plan.cores.cpus(GENERATOR)
    receiving = {mine[port.data_thread] for link in plan.links for port in (link.a, link.b)}
    return set(mine) - receiving, receiving


@pytest.mark.parametrize("count", [2, 4, 28])
def test_frames_are_received_on_another_cpu_than_they_are_sent_from(count: int) -> None:
    plan = loop_back_plan(LOCAL, cpus(count), 3)
    senders, receivers = senders_and_receivers(plan)
    assert len(senders) == len(receivers) == 1 and not senders & receivers
    assert not plan.warnings


def test_the_receiving_cpu_is_no_sibling_of_the_sending_one() -> None:
    senders, receivers = senders_and_receivers(loop_back_plan(LOCAL, cpus(8, 2), 1))
    assert {cpu // 2 for cpu in senders}.isdisjoint(cpu // 2 for cpu in receivers)


def test_with_a_single_cpu_the_plan_says_that_it_is_shared() -> None:
    plan = loop_back_plan(LOCAL, cpus(1), 1)
    assert plan.cores.cpus(GENERATOR) == (0,)
    (warning,) = plan.warnings
    assert "frames are received on CPU 0, which also sends: TG has no other CPU" in warning


def test_each_flow_has_a_pair_of_ports_and_addresses_of_its_own() -> None:
    plan = loop_back_plan(LOCAL, cpus(4), MAX_FLOWS)
    assert len({flow.tx_interface for flow in plan.flows} | {flow.rx_interface for flow in plan.flows}) == 2 * MAX_FLOWS
    assert (
        len({flow.source_mac for flow in plan.flows} | {flow.destination_mac for flow in plan.flows}) == 2 * MAX_FLOWS
    )
    ends = {frozenset((link.a.interface, link.b.interface)) for link in plan.links}
    assert {frozenset((flow.tx_interface, flow.rx_interface)) for flow in plan.flows} == ends
    assert all(len(port.interface) <= 15 for link in plan.links for port in (link.a, link.b))
    assert not (plan.functions or plan.segments or plan.taps)


def test_two_sending_cpus_have_every_other_flow() -> None:
    plan = loop_back_plan(with_generator(LOCAL, cores=2), cpus(8), 4)
    assert [flow.direction for flow in plan.flows] == ["forward", "reverse"] * 2
    senders, receivers = senders_and_receivers(plan)
    assert (len(senders), len(receivers)) == (2, 1) and not senders & receivers


def test_on_a_lab_the_machine_is_that_of_the_generator() -> None:
    lab = shipped("available/lab-2n-kernel")
    everywhere = dict.fromkeys(lab.nodes, cpus(16))
    plan = loop_back_plan(lab, everywhere, 2)
    data = [thread for thread in plan.cores.threads if thread.role is ThreadRole.DATA]
    assert {thread.machine for thread in data} == {lab.tg_name}
    assert plan.machines[GENERATOR] == lab.tg_name
    assert all(port.nic is None for link in plan.links for port in (link.a, link.b))


@pytest.mark.parametrize("flows", [0, MAX_FLOWS + 1])
def test_a_number_of_flows_out_of_bounds_is_refused(flows: int) -> None:
    with pytest.raises(PlanError, match=f"{flows} flows; a loop-back has 1 to {MAX_FLOWS}"):
        loop_back_plan(LOCAL, cpus(4), flows)


def test_a_generator_that_cannot_be_looped_back_is_named() -> None:
    with pytest.raises(PlanError, match="looped back over a veth pair by this project; auto, xdp, af_xdp, ring, "):
        loop_back_plan(shipped("local-otg"), cpus(4), 1)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_generator_that_polls_receives_on_its_own_cpus_as_in_a_test(cores: int) -> None:
    topology = with_generator(LOCAL, driver="trex", cores=cores)
    plan = loop_back_plan(topology, cpus(8), 4)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=1)
    tested = make_plan(topology, cell, cpus(8))
    assert plan.cores.cpus(GENERATOR) == tested.cores.cpus(GENERATOR)
    ports = {port.interface: port.data_thread for link in plan.links for port in (link.a, link.b)}
    assert ports == {port.interface: port.data_thread for port in tested.ports(GENERATOR)}
    assert not plan.warnings
    assert [flow.sources for flow in plan.flows] == [flow.sources for flow in tested.flows]


def test_a_generator_of_sockets_sends_both_ways() -> None:
    plan = loop_back_plan(with_generator(LOCAL, driver="iperf3"), cpus(4), 4)
    assert [(flow.instance, flow.direction) for flow in plan.flows] == [
        (1, "forward"), (1, "reverse"), (2, "forward"), (2, "reverse")
    ]  # fmt: skip
    assert len(plan.links) == 2 and {flow.sources for flow in plan.flows} == {1}
    first, back = plan.flows[:2]
    assert (first.source_ip, first.destination_ip) == (back.destination_ip, back.source_ip)
    assert (first.source_mac, first.tx_interface) == (back.destination_mac, back.rx_interface)
    with pytest.raises(PlanError, match="3 flows; iperf3 sends both ways, so an even number from 2 to 64"):
        loop_back_plan(with_generator(LOCAL, driver="iperf3"), cpus(4), 3)
