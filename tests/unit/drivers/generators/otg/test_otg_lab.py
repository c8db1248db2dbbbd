"""An OTG server as the generator of a lab: its machine is not planned, its ports are those of the cables."""

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.generators.otg.flows import ServerPort, configuration, sent_flows, server_ports
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.nodes import TgNode
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.physical_ports import attached, silent
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.maintenance.doctor import examine
from resources.libraries.python.testbed.maintenance.machines import Machines
from resources.libraries.python.testbed.worlds.factory import layout_of, world_of

LAB = load_topology(PROJECT / "topologies" / "available" / "lab-2n-otg.yaml")
CELL = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=1)


def planned(discriminator: str) -> Plan:
    topology = LAB.model_copy(update={"discriminator": discriminator})
    return make_plan(topology, CELL, layout_of(topology))


def test_only_the_machine_of_the_system_under_test_is_reached_and_planned() -> None:
    with Machines(LAB) as machines:
        assert list(machines.places) == ["DUT1"]
    plan = planned("link")
    assert not plan.cores.elsewhere
    assert {thread.machine for thread in plan.cores.threads} == {None}
    assert plan.machines["generator"] == "TG"
    assert all(port.startswith("nodes.DUT1.") for port in silent(LAB))
    assert attached(LAB)[0] == "ports of TG: port1, port2, port3, port4 by its API"


@pytest.mark.parametrize(("discriminator", "used"), [("link", 4), ("vlan", 2), ("mac", 2)])
def test_ports_of_the_server_are_those_of_the_cables(discriminator: str, used: int) -> None:
    plan = planned(discriminator)
    ports = server_ports(plan, {"port1": "1/1", "port3": "1/3"})
    asked = configuration(
        sent_flows(plan.flows, Trial(load_pps=1e3, duration_s=1.0, frame=frame("64B")), latency=False), ports
    )
    named = {f"port{number}": f"port{number}" for number in range(1, used + 1)} | {"port1": "1/1"}
    assert asked["ports"] == [
        {"name": name, "location": "1/3" if name == "port3" else location} for name, location in named.items()
    ]
    ways = [tuple(each["tx_rx"]["port"].values()) for each in asked["flows"]]
    second = ("port3", "port4") if discriminator == "link" else ("port1", "port2")
    assert ways == [
        (near, [far]) for one, other in (("port1", "port2"), second) for near, far in ((one, other), (other, one))
    ]
    tags = [
        each["packet"][1]["vlan"]["id"]["value"] for each in asked["flows"] if each["packet"][1]["choice"] == "vlan"
    ]
    assert tags == ([101, 101, 102, 102] if discriminator == "vlan" else [])


def test_a_port_without_a_location_is_the_device() -> None:
    ports = {name: row.model_copy(update={"device": f"eth{name[-1]}"}) for name, row in LAB.tg.interfaces.items()}
    nodes = LAB.nodes | {"TG": LAB.tg.model_copy(update={"interfaces": ports})}
    plan = make_plan(LAB.model_copy(update={"nodes": nodes}), CELL, layout_of(LAB))
    assert set(server_ports(plan, {}).values()) == {ServerPort(f"port{n}", f"eth{n}") for n in range(1, 5)}


class _Api:
    """A generator of a lab that is not there."""

    def __init__(self, node: TgNode) -> None:
        del node

    def problems(self) -> tuple[str, ...]:
        return ("no answer; start it",)


def test_the_doctor_says_that_the_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_registry, "load", {driver_registry.generators()["otg"].api: _Api}.__getitem__)
    (finding,) = [row for row in examine(_unreachable(LAB)) if row.place == "nodes.TG"]
    assert (finding.level, finding.check, finding.what, finding.fix) == (
        "problem",
        "generator",
        "no answer",
        "start it",
    )


def _unreachable(topology: Topology) -> Topology:
    """The same, with a DUT that nothing waits for."""
    dut = topology.dut
    access = dut.access.model_copy(update={"host": "127.0.0.1", "port": 1}) if dut.access else None
    return topology.model_copy(update={"nodes": topology.nodes | {"DUT1": dut.model_copy(update={"access": access})}})


def test_a_peer_cannot_take_its_place() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    asked = MeasurementRequest(
        test_type=TestType.MRR, cell=cell, frame=frame("64B"), profile=profile("ladder"), generator="iperf3"
    )  # fmt: skip
    world = world_of(LAB)
    with pytest.raises(Unsupported, match=r"^TG is driven over its API: no iperf3 can run there$"):
        world.parts(planned("link"), asked)
