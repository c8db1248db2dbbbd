"""Highest rates: known figures of Ethernet, and what sharing a cable leaves to each instance."""

import pytest

from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.linerate import line_rate_pps, max_rate, port_rate_pps
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.labs import lab

B64 = frame("64B")


@pytest.mark.parametrize(
    ("rate_bps", "name", "expected"),
    [
        (10e9, "64B", 14_880_952),
        (10e9, "1518B", 812_743),
        (25e9, "64B", 37_202_380),
        (100e9, "64B", 148_809_523),
        (100e9, "9000B", 1_385_809),
        (10e9, "IMIX", 10e9 / 8 / ((7 * 84 + 4 * 590 + 1538) / 12)),
    ],
)
def test_line_rates_are_those_of_ethernet(rate_bps: float, name: str, expected: float) -> None:
    assert line_rate_pps(rate_bps, frame(name)) == pytest.approx(expected, abs=1)


def test_a_nic_may_do_less_than_its_line() -> None:
    slow = Nic(port="port1", model="Intel-E810CQ")
    assert port_rate_pps(slow, B64) == (58_500_000, "Intel-E810CQ is limited to 58.5 Mpps")
    large = port_rate_pps(slow, frame("1518B"))
    assert large is not None
    assert large[0] == pytest.approx(100e9 / 8 / 1538)
    slower = port_rate_pps(slow.model_copy(update={"rate_bps": 25 * 10**9}), B64)
    assert slower is not None
    assert slower[0] == pytest.approx(37_202_380, abs=1), "a line that the file says is slower decides"
    assert port_rate_pps(Nic(port="port1", model="unheard-of"), B64) is None


@pytest.mark.parametrize(
    ("word", "duts", "flow_pps"),
    [
        ("link", 1, 10e9 / 8 / 84),
        ("mac", 1, 10e9 / 8 / 84 / 3),
        ("vlan", 1, 10e9 / 8 / 88 / 3),
        ("mac", 2, 10e9 / 8 / 84 / 3),
    ],
)
def test_instances_share_what_the_cable_carries(word: str, duts: int, flow_pps: float) -> None:
    topology = lab(duts, 3, discriminator=word)  # type: ignore[arg-type]
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=3, nf_nodes=1), {})
    found = max_rate(plan, B64)
    assert found is not None
    assert found.flow_pps == pytest.approx(flow_pps)
    assert found.direction_pps == pytest.approx(3 * flow_pps)
    assert found.aggregate_pps == pytest.approx(6 * flow_pps)
    assert ("shared by 3 instances" in found.reason) == (word != "link")
    assert found.reason.startswith("DUT1.port1: 10 Gb/s are 1")


def test_the_slowest_cable_on_the_way_decides_for_all() -> None:
    topology = lab(1, 2)
    slow = topology.dut.interfaces["port4"].model_copy(update={"rate_bps": 10**9})
    dut = topology.dut.model_copy(update={"interfaces": {**topology.dut.interfaces, "port4": slow}})
    slower = topology.model_copy(update={"nodes": {**topology.nodes, "DUT1": dut}})
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=2)
    found = max_rate(make_plan(slower, cell, {}), B64)
    assert found is not None
    assert found.aggregate_pps == pytest.approx(4 * 1e9 / 8 / 84), "flows are sent at one rate"
    assert found.reason.startswith("DUT1.port4: 1 Gb/s")


def test_without_speeds_nothing_is_known() -> None:
    topology = lab(1, 1)
    nodes = {
        name: node.model_copy(
            update={
                "interfaces": {key: row.model_copy(update={"rate_bps": None}) for key, row in node.interfaces.items()}
            }
        )
        for name, node in topology.nodes.items()
    }
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    assert max_rate(make_plan(topology.model_copy(update={"nodes": nodes}), cell, {}), B64) is None
