"""Two machines and the cables between them: each makes its share of a plan on ports that it takes and gives back."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from tests.integration.cable_machines import Remote, side
from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab

pytestmark = [pytest.mark.root, needs_lab]
FRAMES = 20
LAB = {"queues": 2}


def ports_of(lab: Lab, name: str) -> dict[str, dict[str, object]]:
    """Everything that a user can see of the ports of a machine."""
    run, found = lab.nodes[name].run, {}
    for row in json.loads(run("ip", "-json", "-details", "link")):
        port = row["ifname"]
        is_cable = row.get("linkinfo", {}).get("info_kind") == "veth"
        found[port] = {
            **{key: row.get(key) for key in ("address", "mtu", "group", "promiscuity", "num_rx_queues", "master")},
            "up": "UP" in row["flags"],
            "promiscuous": "PROMISC" in row["flags"],
            "features": run("ethtool", "-k", port),
            "queues": run("ethtool", "-l", port) if is_cable else "",
            "threaded": run("cat", f"/sys/class/net/{port}/threaded"),
        }
    return found


@pytest.fixture
def untouched(lab: Lab) -> Iterator[Lab]:
    """The lab, whose ports must be afterwards as they were."""
    before = {name: ports_of(lab, name) for name in lab.nodes}
    yield lab
    for name, ports in before.items():
        assert ports_of(lab, name) == ports
        assert not lab.nodes[name].run("ip", "netns", "list")


def topology(lab: Lab, folder: Path, driver: str = "ring", **changes: Any) -> Topology:
    chosen = {
        f"port{number}": {"mac_address": None} for number in range(1, 5)
    }  # by the plan, other than the port's own
    tg = {"generator": {"driver": driver}, "trex": {"ports": "af_packet"}, "interfaces": chosen}
    return load_topology(lab.topology(folder, nodes={"TG": tg}, **changes))


def cabled_plan(topology: Topology, instances: int = 1) -> Plan:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=instances, nf_nodes=1)
    plan = make_plan(topology, cell, dict.fromkeys(("TG", "DUT1"), discover()))
    # Data threads are seen on the whole machine: others have names of their own, so that runs side by side do not meet.
    return Plan.model_validate_json(plan.model_dump_json().replace('"cs', '"ct'))


@pytest.fixture(scope="module")
def opened(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Remote, Remote]]:
    """A process on each machine that has opened it."""
    described = topology(lab, tmp_path_factory.mktemp("lab"))
    with side(lab, "TG", described) as tg, side(lab, "DUT1", described) as dut:
        for each in (tg, dut):  # one after the other: they share the kernel's limit of real-time threads
            each.do("open")
        yield tg, dut
        for each in (dut, tg):
            each.do("close")


@pytest.fixture
def sides(opened: tuple[Remote, Remote]) -> Iterator[tuple[Remote, Remote]]:
    """Those processes, with nothing deployed before and after."""
    yield opened
    for each in opened:
        each.do("stop")


def lay(plan: Plan, *sides: Remote) -> None:
    for each in sides:
        each.do("lay", plan)


def received(side: Remote, before: dict[str, Any] | None = None) -> dict[str, int]:
    now = side.do("counters")
    return {name: count.rx_packets - (before[name].rx_packets if before else 0) for name, count in now.items()}


def missing(side: Remote, before: dict[str, Any], interface: str) -> str:
    """What a port has received instead of all frames; empty when it has them."""
    now = received(side, before)
    return "" if now[interface] == FRAMES else str(now)


def test_ports_are_given_back_as_they_were(untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path) -> None:
    """Ports of all sorts: up or down, with another MTU, promiscuous, without GRO, with a threaded NAPI."""
    mac = str(ports_of(untouched, "TG")["cab2"]["address"])
    for argv in (
        ("ip", "link", "set", "cab1", "down", "mtu", "4000", "promisc", "on"),
        ("ethtool", "-K", "cab2", "gro", "on", "tso", "off"),
        ("ip", "link", "set", "cab2", "address", "02:11:22:33:44:55"),
        ("ethtool", "-L", "cab2", "rx", "1", "tx", "2"),
        ("sh", "-c", "echo 1 > /sys/class/net/cab2/threaded"),
    ):
        untouched.nodes["TG"].run(*argv)
    before = ports_of(untouched, "TG")
    assert (before["cab1"]["up"], before["cab1"]["mtu"], before["cab1"]["promiscuous"]) == (False, 4000, True)
    assert (before["cab2"]["up"], before["cab2"]["threaded"]) == (True, "1\n")
    tg, dut = sides
    lay(cabled_plan(topology(untouched, tmp_path)), tg, dut)
    in_use = tg.do("inside", "generator", "ip", "-details", "link", "show", "ctg1p1")
    assert "mtu 1500" in in_use
    assert "06:00:00:00:01:01" in in_use
    assert "PROMISC" in in_use
    queues = tg.do("inside", "generator", "ethtool", "-l", "ctg1p2").split("Current")[1].split()
    assert queues[2:6] == ["RX:", "1", "TX:", "1"]
    assert "cab1" not in ports_of(untouched, "TG")
    tg.do("stop")
    dut.do("stop")
    assert ports_of(untouched, "TG") == before
    for argv in (
        ("ip", "link", "set", "cab1", "up", "mtu", "1500", "promisc", "off"),
        ("sh", "-c", "echo 0 > /sys/class/net/cab2/threaded"),
        ("ethtool", "-L", "cab2", "rx", "2", "tx", "2"),
        ("ethtool", "-K", "cab2", "gro", "off", "tso", "on"),
        ("ip", "link", "set", "cab2", "address", mac),
    ):
        untouched.nodes["TG"].run(*argv)


IN_USE = {
    r"cab1 carries the address 192\.0\.2\.1/24: it may be what this machine is reached by": (
        "ip addr add 192.0.2.1/24 dev cab1",
        "ip addr flush dev cab1",
    ),
    "port2: cab2 has the default route": (
        "ip route add default dev cab2",
        "ip route del default dev cab2",
    ),
    "cab1 carries above": ("ip link add link cab1 name above type macvlan", "ip link del above"),
    "cab2 is a member of br9": (
        "ip link add br9 type bridge && ip link set cab2 master br9",
        "ip link del br9",
    ),
    "port1: no port cab1 in this network namespace, only .*other": (
        "ip link set cab1 down && ip link set cab1 name other",
        "ip link set other name cab1 && ip link set cab1 up",
    ),
}
"""By reason: how a port is spoilt and mended."""


@pytest.mark.parametrize("reason", IN_USE)
def test_a_port_that_is_in_use_is_refused(
    untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path, reason: str
) -> None:
    (_, dut), (spoil, mend) = sides, IN_USE[reason]
    untouched.nodes["DUT1"].run("sh", "-c", spoil)
    try:
        during = ports_of(untouched, "DUT1")
        with pytest.raises(ConfigError, match=reason):
            dut.do("lay", cabled_plan(topology(untouched, tmp_path)))
        assert dut.do("stop") == ()
        assert ports_of(untouched, "DUT1") == during
    finally:
        untouched.nodes["DUT1"].run("sh", "-c", mend)


def test_instances_share_a_cable_by_mac_and_nothing_is_flooded(
    lab: Lab, sides: tuple[Remote, Remote], tmp_path: Path
) -> None:
    plan = cabled_plan(topology(lab, tmp_path, "trex", discriminator="mac"), 2)
    assert max(len(segment.members) for segment in plan.segments) == 3
    tg, dut = sides
    # The built-in generator cannot tell flows of one port apart: frames are sent by hand.
    tg.do("lay", plan.model_copy(update={"flows": ()}))
    dut.do("lay", plan)
    dut.do("start")
    for flow in plan.flows:
        nf = f"ctn{flow.instance}x1"
        before, generator = dut.do("counters"), tg.do("counters")
        tg.do("send", flow, FRAMES)
        wait_until(f"frames of {flow}", partial(missing, tg, generator, flow.rx_interface), 30.0)
        entry = f"{nf}i1" if flow.tx_interface.endswith("p1") else f"{nf}i2"
        functions = {name: count for name, count in received(dut, before).items() if name.startswith("ctn")}
        assert functions == {name: FRAMES if name == entry else 0 for name in functions}
        # Nobody else has seen them, neither as received nor as sent.
        assert received(tg, generator) == {name: FRAMES if name == flow.rx_interface else 0 for name in generator}
        now = dut.do("counters")
        assert {name for name in now if now[name].tx_packets > before[name].tx_packets} == {
            f"{nf}i2" if entry.endswith("i1") else f"{nf}i1",
            f"ctv{flow.instance}x1i{entry[-1]}",
            f"ctv0p{flow.rx_interface[-1]}",
        }
    assert dut.do("problems") == ()
    dut.do("inside", "vswitch", "ip", "link", "set", "ctv2x1i1", "nomaster")
    assert dut.do("problems") == ("ctv2x1i1 is no member of bridge ctb0x1 any more",)


def test_a_cable_without_carrier_is_named(lab: Lab, sides: tuple[Remote, Remote], tmp_path: Path) -> None:
    tg, dut = sides
    plan = cabled_plan(topology(lab, tmp_path))
    lay(plan, tg, dut)
    dut.do("start")
    assert dut.do("without_link") == ()
    tg.do("inside", "generator", "ip", "link", "set", "ctg1p2", "down")
    wait_until("the loss of the carrier", lambda: "" if dut.do("problems") else "no problem", 30.0)
    assert dut.do("problems") == ("ctv1p2 has no carrier",)
    assert dut.do("without_link") == ("ctv1p2",)


def test_what_gives_back_fails_loudly_and_stays_on_record(
    untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path
) -> None:
    _, dut = sides
    dut.do("lay", cabled_plan(topology(untouched, tmp_path)))
    # Somebody has taken the name at home meanwhile.
    untouched.nodes["DUT1"].run("ip", "link", "add", "cab1", "type", "veth", "peer", "name", "thief")
    with pytest.raises(CsitError, match=r"port cab1 cannot be given back: another port is called cab1 now"):
        dut.do("stop")
    assert "port cab1 in use as ctv1p1" in dut.do("leftovers")
    untouched.nodes["DUT1"].run("ip", "link", "del", "thief")
    assert "gave port cab1 back" in dut.do("clean")
    assert dut.do("leftovers") == ()
