"""Passive NFs on real vSwitches: each gets every frame of its segment both ways, and takes nothing from the others."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.roles.part import VSwitch
from tests.builders import plan_of, shipped
from tests.integration.local_fabric import linux_routers, send
from tests.integration.robot_runs import network_state, wait_for_network_state

pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.usefixtures("awake")]
FRAMES = 20
WITH_OVS = pytest.mark.skipif(bool(list(missing("auto"))), reason="; ".join(map(str, missing("auto"))))


def tcpdump_at(*positions: int) -> tuple[Tap, ...]:
    return tuple(Tap(position=position, kind=NfKind("tcpdump")) for position in positions)


def open_vswitch(plan: Plan, fabric: Fabric, machine: MachineLock) -> OpenVSwitch:
    dut = shipped("local-ovs").dut
    return OpenVSwitch(dut, DriverContext(plan, fabric, machine, 1518))


@contextmanager
def deployed(plan: Plan, machine: MachineLock, testbed: str) -> Iterator[tuple[Fabric, VSwitch]]:
    """A cell whose passive NFs run no program: what comes to them is counted all the same."""
    fabric = Fabric(plan, machine)
    switch: VSwitch = LinuxBridge(plan, fabric) if testbed == "local" else open_vswitch(plan, fabric, machine)
    with ExitStack() as stack:
        for part in (fabric, switch, linux_routers(plan, fabric, machine)):
            stack.callback(part.stop)
            part.start()
        yield fabric, switch


def received(fabric: Fabric, plan: Plan) -> dict[str, InterfaceCounters]:
    return fabric.counters([GENERATOR, *(tap.name for tap in plan.taps)])


@pytest.mark.parametrize("testbed", ["local", pytest.param("local-ovs", marks=WITH_OVS)])
def test_copies_of_both_ways_reach_every_tap_once(machine: MachineLock, testbed: str) -> None:
    before = network_state()
    plan = plan_of(testbed, "CSC", taps=tcpdump_at(1, 2, 2))
    with deployed(plan, machine, testbed) as (fabric, switch):
        for flow in plan.flows:
            then = received(fabric, plan)
            wanted = {name: FRAMES if name in {flow.rx_interface, *taps(plan)} else 0 for name in then}
            fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
            wait_until(f"copies of {flow.direction}", partial(difference, fabric, plan, then, wanted), 30.0)
        both = 2 * FRAMES
        inline = {port: row for port, row in switch.counters().items() if "t" not in port}
        assert set(inline.values()) == {InterfaceCounters(FRAMES, FRAMES, 0, 0)}
        assert {row for port, row in switch.counters().items() if "t" in port} == {InterfaceCounters(0, both, 0, 0)}
        assert set(fabric.counters([tap.name for tap in plan.taps]).values()) == {InterfaceCounters(both, 0, 0, 0)}
        assert switch.problems() == ()
    wait_for_network_state(before)


def test_a_path_without_nfs_has_copies_too(machine: MachineLock) -> None:
    plan = plan_of("local", "CSC", nf_nodes=0, taps=tcpdump_at(1))
    with deployed(plan, machine, "local") as (fabric, _):
        for flow in plan.flows:
            then = received(fabric, plan)
            fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
            wanted = {name: FRAMES if name in {flow.rx_interface, *taps(plan)} else 0 for name in then}
            wait_until(f"copies of {flow.direction}", partial(difference, fabric, plan, then, wanted), 30.0)


def taps(plan: Plan) -> list[str]:
    return [tap.interface for tap in plan.taps]


def difference(fabric: Fabric, plan: Plan, before: dict[str, InterfaceCounters], wanted: dict[str, int]) -> str:
    """Frames that the generator and passive NFs received; empty when they are the wanted ones."""
    counted = {name: (now - before[name]).rx_packets for name, now in received(fabric, plan).items()}
    return "" if counted == wanted else str(counted)
