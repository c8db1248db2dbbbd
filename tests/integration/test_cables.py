"""Two machines and the cables between them: each makes its share of a plan on ports that it takes and gives back."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.plan import make_plan
from tests.integration.cable_machines import Lab, Remote

pytestmark = pytest.mark.root
FRAMES = 20
CABLES = {"tga": "enp1s0", "tgb": "enp2s0", "tgc": "enp3s0", "tgd": "enp4s0"}
TRIAL = Trial(load_pps=2000, duration_s=0.3, frame=frame("64B"))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with cabled_lab() as lab:
        yield lab


@contextmanager
def cabled_lab() -> Iterator[Lab]:
    with ExitStack() as stack:
        lab = Lab(("TG", "DUT1"))
        stack.callback(lab.close)
        for here, there in CABLES.items():
            lab.cable(("TG", here), ("DUT1", there), queues=2)
        yield lab


@pytest.fixture
def untouched(lab: Lab) -> Iterator[Lab]:
    """The lab, whose ports must be afterwards as they were."""
    before = {name: lab.state(name) for name in ("TG", "DUT1")}
    yield lab
    for name, ports in before.items():
        assert lab.state(name) == ports
        assert lab.namespaces(name) == []


def topology(tmp_path: Path, discriminator: str = "link", driver: str = "ring") -> Path:
    def ports(names: list[str]) -> dict[str, dict[str, str]]:
        return {f"port{n}": {"link": f"cable{n}", "device": name} for n, name in enumerate(names, 1)}

    nodes: dict[str, dict[str, Any]] = {
        "TG": {"type": "TG", "access": {"host": "tg"}, "generator": {"driver": driver}, "trex": {"ports": "af_packet"}},
        "DUT1": {"type": "DUT", "access": {"host": "dut"}, "vswitch": "linux_bridge", "containers": "linux_router"},
    }
    nodes["TG"]["interfaces"], nodes["DUT1"]["interfaces"] = ports(list(CABLES)), ports(list(CABLES.values()))
    nodes["DUT1"]["oversubscribe"] = True
    whole = {"metadata": {"version": 1, "name": "cables"}, "world": "lab", "discriminator": discriminator}
    path = tmp_path / f"{discriminator}-{driver}.yaml"
    path.write_text(yaml.safe_dump({**whole, "nodes": nodes}))
    return path


def cabled_plan(path: Path, service_type: str, rows: int, columns: int) -> Plan:
    cell = Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns)
    plan = make_plan(load_topology(path), cell, dict.fromkeys(("TG", "DUT1"), discover()))
    # Data threads are seen on the whole machine: others have names of their own, so that runs side by side do not meet.
    return Plan.model_validate_json(plan.model_dump_json().replace('"cs', '"ct'))


@pytest.fixture(scope="module")
def opened(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Remote, Remote]]:
    """A process on each machine that has opened it."""
    path = topology(tmp_path_factory.mktemp("lab"))
    with lab.side("TG", path) as tg, lab.side("DUT1", path) as dut:
        for side in (tg, dut):
            side.ask("open")
        for side in (tg, dut):
            side.answer()
        yield tg, dut
        for side in (tg, dut):
            side.do("close")


@pytest.fixture
def sides(opened: tuple[Remote, Remote]) -> Iterator[tuple[Remote, Remote]]:
    """Those processes, with nothing deployed before and after."""
    yield opened
    for side in opened:
        side.do("stop")


def lay(plan: Plan, *sides: Remote) -> None:
    for side in sides:
        side.do("lay", plan)


def received(side: Remote, before: dict[str, Any] | None = None) -> dict[str, int]:
    now = side.do("counters")
    return {name: count.rx_packets - (before[name].rx_packets if before else 0) for name, count in now.items()}


def missing(side: Remote, before: dict[str, Any], interface: str) -> str:
    """What a port has received instead of all frames; empty when it has them."""
    now = received(side, before)
    return "" if now[interface] == FRAMES else str(now)


@pytest.mark.parametrize("cell", [("CSC", 2, 1), ("CSP", 1, 2)])
def test_a_service_is_measured_over_cables(
    untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path, cell: tuple[str, int, int]
) -> None:
    service_type, rows, columns = cell
    plan = cabled_plan(topology(tmp_path), service_type, rows, columns)
    tg, dut = sides
    lay(plan, tg, dut)
    for side in sides:
        side.do("start")
    before = dut.do("counters")  # a physical port counts on from run to run
    result = tg.do("run", TRIAL)
    assert [(flow.sent, flow.received) for flow in result.flows] == [(600 // (2 * rows),) * 2] * (2 * rows), result.note
    seen = received(dut, before)
    assert set(seen.values()) == {600 // (2 * rows)}
    assert {name for name in seen if name.startswith("ctv")} == {port.interface for port in plan.ports("vswitch")}
    for side in sides:
        assert side.do("problems") == ()
    # Every data thread is where it was planned: on its own machine's CPU.
    for side, owners in ((tg, ["generator"]), (dut, ["vswitch", *(nf.name for nf in plan.functions)])):
        planned = {
            port.interface: frozenset({plan.cores.cpus(owner)[port.data_thread]})
            for owner in owners
            for port in plan.ports(owner)
        }
        assert side.do("affinity") == planned
        threads, cpus = side.do("sampled")
        assert threads == set(planned)
        assert cpus == {thread.cpu for thread in plan.cores.on("TG" if side is tg else None)}
    used = [name for name, port in CABLES.items() if f'"{name}"' in plan.model_dump_json()]
    assert len(used) == 2 * rows
    assert not set(used) & set(untouched.state("TG"))
    assert tg.do("stop") == dut.do("stop") == ()


def test_ports_are_given_back_as_they_were(untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path) -> None:
    """Ports of all sorts: up or down, with another MTU, promiscuous, without GRO, with a threaded NAPI."""
    mac = str(untouched.state("TG")["tgb"]["address"])
    for argv in (
        ("ip", "link", "set", "tga", "up", "mtu", "4000", "promisc", "on"),
        ("ethtool", "-K", "tgb", "gro", "on", "tso", "off"),
        ("ip", "link", "set", "tgb", "address", "02:11:22:33:44:55", "up"),
        ("ethtool", "-L", "tgb", "rx", "1", "tx", "2"),
        ("sh", "-c", "echo 1 > /sys/class/net/tgb/threaded"),
    ):
        untouched.run("TG", *argv)
    before = untouched.state("TG")
    assert (before["tga"]["up"], before["tga"]["mtu"], before["tga"]["promiscuous"]) == (True, 4000, True)
    assert before["tgb"]["threaded"] == "1\n"
    tg, dut = sides
    lay(cabled_plan(topology(tmp_path), "CSC", 1, 1), tg, dut)
    in_use = tg.do("inside", "generator", "ip", "-details", "link", "show", "ctg1p1")
    assert "mtu 1500" in in_use
    assert "06:00:00:00:01:01" in in_use
    assert "PROMISC" in in_use
    queues = tg.do("inside", "generator", "ethtool", "-l", "ctg1p2").split("Current")[1].split()
    assert queues[2:6] == ["RX:", "1", "TX:", "1"]
    assert "tga" not in untouched.state("TG")
    tg.do("stop")
    dut.do("stop")
    assert untouched.state("TG") == before
    for argv in (
        ("ip", "link", "set", "tga", "down", "mtu", "1500", "promisc", "off"),
        ("sh", "-c", "echo 0 > /sys/class/net/tgb/threaded"),
        ("ethtool", "-L", "tgb", "rx", "2", "tx", "2"),
        ("ethtool", "-K", "tgb", "gro", "off", "tso", "on"),
        ("ip", "link", "set", "tgb", "down", "address", mac),
    ):
        untouched.run("TG", *argv)


def test_ports_of_a_killed_run_are_given_back_by_the_next(tmp_path: Path) -> None:
    path = topology(tmp_path)
    plan = cabled_plan(path, "CSC", 1, 2)
    with cabled_lab() as lab:
        before = lab.state("DUT1")
        with lab.side("TG", path) as tg:
            tg.do("open")
            with lab.side("DUT1", path) as victim:
                victim.do("open")
                lay(plan, tg, victim)
                victim.do("start")
                assert "enp1s0" not in lab.state("DUT1")
                victim.kill()
            with lab.side("DUT1", path) as dut:
                removed = dut.do("open")
                given_back = [row.split(" of pid")[0] for row in removed[:2]]
                assert given_back == [f"gave port enp{number}s0 back" for number in (1, 2)]
                assert lab.state("DUT1") == before
                dut.do("lay", plan)
                tg.do("start")
                dut.do("start")
                assert all(flow.received == flow.sent for flow in tg.do("run", TRIAL).flows)
                dut.do("stop")
                dut.do("close")
            tg.do("stop")
            tg.do("close")


IN_USE = {
    r"enp1s0 carries the address 192\.0\.2\.1/24: it may be what this machine is reached by": (
        "ip addr add 192.0.2.1/24 dev enp1s0",
        "ip addr flush dev enp1s0",
    ),
    "port2: enp2s0 has the default route": (
        "ip link set enp2s0 up && ip route add default dev enp2s0",
        "ip link set enp2s0 down",
    ),
    "enp1s0 carries above": ("ip link add link enp1s0 name above type macvlan", "ip link del above"),
    "enp2s0 is a member of br9": (
        "ip link add br9 type bridge && ip link set enp2s0 master br9",
        "ip link del br9",
    ),
    "port1: no port enp1s0 in this network namespace, only .*other": (
        "ip link set enp1s0 name other",
        "ip link set other name enp1s0",
    ),
}
"""By reason: how a port is spoilt and mended."""


@pytest.mark.parametrize("reason", IN_USE)
def test_a_port_that_is_in_use_is_refused(
    untouched: Lab, sides: tuple[Remote, Remote], tmp_path: Path, reason: str
) -> None:
    (_, dut), (spoil, mend) = sides, IN_USE[reason]
    untouched.run("DUT1", "sh", "-c", spoil)
    try:
        during = untouched.state("DUT1")
        with pytest.raises(ConfigError, match=reason):
            dut.do("lay", cabled_plan(topology(tmp_path), "CSC", 1, 1))
        assert dut.do("stop") == ()
        assert untouched.state("DUT1") == during
    finally:
        untouched.run("DUT1", "sh", "-c", mend)


def test_instances_share_a_cable_by_mac_and_nothing_is_flooded(sides: tuple[Remote, Remote], tmp_path: Path) -> None:
    plan = cabled_plan(topology(tmp_path, "mac", "trex"), "CSC", 2, 1)
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


def test_a_cable_without_carrier_is_named(sides: tuple[Remote, Remote], tmp_path: Path) -> None:
    tg, dut = sides
    plan = cabled_plan(topology(tmp_path), "CSC", 1, 1)
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
    dut.do("lay", cabled_plan(topology(tmp_path), "CSC", 1, 1))
    # Somebody has taken the name at home meanwhile.
    untouched.run("DUT1", "ip", "link", "add", "enp1s0", "type", "veth", "peer", "name", "thief")
    with pytest.raises(CsitError, match=r"port enp1s0 cannot be given back: another port is called enp1s0 now"):
        dut.do("stop")
    assert "port enp1s0 in use as ctv1p1" in dut.do("leftovers")
    untouched.run("DUT1", "ip", "link", "del", "thief")
    assert "gave port enp1s0 back" in dut.do("clean")
    assert dut.do("leftovers") == ()
