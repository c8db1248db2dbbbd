"""Events under real packets: what a capture beside the generator saw is what the timelines say, to the packet."""

import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.functions.openvpn.driver import missing as openvpn_missing
from resources.libraries.python.drivers.functions.testpmd.driver import missing as missing_testpmd
from resources.libraries.python.drivers.functions.vm.accelerator import missing as missing_qemu
from resources.libraries.python.drivers.generators.builtin.frames import NUMBER_OFFSET
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.ovs import Ovs
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing as missing_for_ovs
from resources.libraries.python.drivers.vswitches.vpp.driver import VppSwitch
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.model.measurements.trial import Direction, FlowTimeline, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.outage.analysis import impacts
from resources.libraries.python.studies.outage.model import OutageSpec, TargetedEvent
from resources.libraries.python.studies.outage.planning import starved
from resources.libraries.python.testbed.deployment.cell import Deployment
from resources.libraries.python.testbed.roles.part import ForwardingPart
from tests.builders import shipped
from tests.integration.robot_runs import (
    LOCAL,
    network_state,
    run_robot,
    study_record,
    study_suite,
    wait_for_network_state,
)
from tests.integration.user_space import (
    NO_VPP,
    cell,
    deployed,
    is_as_planned,
    planned,
    send_and_count,
    topology_with,
    vpp_topology,
)

NO_CAPTURE = "" if path_of("tcpdump") else "tcpdump is missing"
NO_OPENVPN = "; ".join(map(str, openvpn_missing()))
NO_TESTPMD = "; ".join(map(str, missing_testpmd()))
NO_NFT = "; ".join(map(str, nft_missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT or NO_CAPTURE), reason=NO_NFT or NO_CAPTURE)]
TOPOLOGY = shipped("local")
NUMBERED = "udp dst port 49190"
SPEC = """
name: small
instances: 2
nf_kinds: [linux_firewall, linux_router]
frame: 128B-ip6
share: 0.1
search: quick,width=0.5,sum=0.5
repetitions: 2
before_s: 0.2
after_s: 0.6
events:
  - {event: kill, target: instance-2}
  - {event: restart, target: nf-1-1}
  - {event: pause, target: nf-1-1, hold_s: 0.1}
  - {event: add, target: nf-1-1}
  - {event: reload, target: nf-1-1}
  - {event: move, target: nf-1-1}
  - {event: move, target: vswitch}
  - {event: reload, target: vswitch}
"""
STUDENT_OF_2 = 12.7062
"""Quantile 0.975 of Student's t with one degree of freedom, from a table."""

Captured = tuple[int, int]
"""Arrival of a packet in nanoseconds, and its number."""


def packets_in(file: Path) -> list[Captured]:
    """Numbered packets of a file that tcpdump has written with nanoseconds."""
    content, place, found = file.read_bytes(), 24, list[Captured]()
    while place < len(content):
        seconds, nanoseconds, length, _ = struct.unpack_from("=4I", content, place)
        (number,) = struct.unpack_from("!I", content, place + 16 + NUMBER_OFFSET)
        found.append((seconds * 10**9 + nanoseconds, number))
        place += 16 + length
    return found


@contextmanager
def captured(interfaces: list[str], folder: Path) -> Iterator[dict[str, list[Captured]]]:
    """Packets of the load that arrive at ports of the generator, by tcpdump; complete when the context ends."""
    found: dict[str, list[Captured]] = {}
    running = {}
    for name in interfaces:
        argv = ["ip", "netns", "exec", "csit-generator", "tcpdump", "-i", name, "-Q", "in", "-nn", "-s", "64", "-B"]
        argv += ["16384", "-U", "--nano", "--immediate-mode", "-w", str(folder / f"{name}.pcap"), NUMBERED]
        running[name] = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        for name, program in running.items():
            assert program.stderr is not None
            said = ""
            while "listening on" not in said:
                line = program.stderr.readline()
                assert line, f"tcpdump at {name}: {said}"
                said += line
        yield found
        time.sleep(0.3)  # the last packets are on their way from the kernel to tcpdump
    finally:
        for name, program in running.items():
            program.terminate()
            _, said = program.communicate(timeout=20)
            assert " 0 packets dropped by kernel" in said.replace("\n", " "), said
            found[name] = packets_in(folder / f"{name}.pcap")


def part_of(deployment: Deployment, target: str) -> ForwardingPart:
    return deployment.parts.switch if target == "vswitch" else deployment.parts.functions


def lines_of(
    deployment: Deployment, event: PartEvent, target: str, after_s: float = 0.9, rate_pps: float = 2000.0
) -> tuple[TrialResult, EventOccurrence]:
    """One trial with an event about 0.9 s after its begin; less where the generator starts late."""
    part = part_of(deployment, target)
    trial = Trial(
        load_pps=rate_pps * len(deployment.plan.flows),
        duration_s=0.9 + after_s,
        frame=frame("64B"),
        timeline_s=0.001,
        purpose="outage",
    )
    part.disturb(Disturbance(targets=(target,), event=event, after_s=1.0, hold_s=0.2))
    result = deployment.parts.generator.run(trial)
    (happened,) = part.disturbed()
    return result, happened


@pytest.mark.parametrize(
    ("event", "target"),
    [
        (PartEvent.KILL, "nf-1-1"),
        (PartEvent.PAUSE, "nf-1-1"),
        (PartEvent.RESTART, "vswitch"),
        (PartEvent.PAUSE, "vswitch"),
    ],
)
def test_lost_packets_are_those_that_a_capture_did_not_see(event: PartEvent, target: str, tmp_path: Path) -> None:
    with deployed(TOPOLOGY, cell("CSC", 2, 1, (NfKind("linux_router"),))) as deployment:
        flows = {(flow.instance, flow.direction): flow.rx_interface for flow in deployment.plan.flows}
        with captured([*flows.values()], tmp_path) as seen:
            result, happened = lines_of(deployment, event, target)
        lines = result.timelines
    assert len(lines) == 4
    for line in lines:
        sent = sum(line.sent)
        assert 2400 < sent <= 3600, "fewer where the machine stood still"
        arrived = seen[flows[line.instance, line.direction]]
        assert sum(line.received) == len(arrived), "as tcpdump has it"
        numbers = {number for _, number in arrived}
        lost = [number for gap in line.gaps for number in range(gap.first, gap.first + gap.packets)]
        assert lost == [number for number in range(sent) if number not in numbers], "the gaps of the capture"
        assert sum(gap.packets for gap in line.gaps) == sent - sum(line.received)
    found = impacts(lines, happened)
    for impact in found:
        rows = [seen[flows[impact.instance, direction]] for direction in Direction]
        sent = sum(sum(line.sent) for line in lines if line.instance == impact.instance)
        assert impact.lost + impact.lost_before == sent - sum(map(len, rows)), "packets that tcpdump did not see"
        if impact.recovery_s is not None and impact.gap_s > 0.01:
            gap_s = max(after - before for row in rows for (before, _), (after, _) in pairwise(row)) / 1e9
            assert impact.gap_s == pytest.approx(gap_s, abs=0.001), "the longest time between packets at tcpdump"
    hit, other = found
    if event is PartEvent.KILL:
        assert hit.recovery_s is None and hit.first_packet_s is None
        assert 0.5 < hit.outage_s < 1.2
    elif event is PartEvent.PAUSE:
        assert 0.19 < hit.outage_s < 0.8
        assert hit.first_packet_s and 0.19 < hit.first_packet_s < 0.8
    if target != "vswitch":
        assert other.outage_s < 0.5 * hit.outage_s
    elif event is PartEvent.PAUSE:
        assert 0.19 < other.outage_s < 0.8, "all instances are hit"


@dataclass(frozen=True)
class Product:
    """A testbed with a product, and a part of it that is hit."""

    lacking: str
    topology: Callable[[], Topology]
    target: str = "vswitch"
    kind: str = "linux_router"
    after_s: float = 4.0
    """Load from the event on, where a restart does not take longer."""
    is_back: bool = True
    """Whether it passes packets again before the load ends."""
    service_type: str = "CSC"
    counted_again: bool = False
    """Whether frames are counted at every hop after it was started again without load."""
    moved: Mapping[PartEvent, str] = field(default_factory=dict)
    """Events that move it or replace its rules, and what is then said to have happened."""


RULES = 1000
MOVED = {PartEvent.MOVE: "data threads pinned to another CPU"}


def ovs_topology(ports: str) -> Topology:
    """Open vSwitch with a thousand rules."""
    testbed = topology_with(ports=ports)
    ovs = testbed.dut.settings(Ovs).model_copy(update={"openflow_rules": RULES})
    dut = testbed.dut.model_copy(update={"ovs": ovs})
    return testbed.model_copy(update={"nodes": {**testbed.nodes, "DUT1": dut}})


PRODUCTS = {
    **{
        f"ovs-{ports}": Product(
            "; ".join(map(str, missing_for_ovs(ports))),
            partial(ovs_topology, ports),
            after_s=after_s,
            moved={PartEvent.RELOAD: f"{RULES} OpenFlow rules replaced", **MOVED},
        )
        for ports, after_s in (("auto", 8.0), ("system", 3.0))
    },
    "vpp-vswitch": Product(NO_VPP, vpp_topology, counted_again=True),
    "vpp-nf": Product(NO_VPP, partial(vpp_topology, vswitch="linux_bridge"), "nf-1-1", "vpp", counted_again=True),
    "vpp-memif-vswitch": Product(NO_VPP, vpp_topology, "vswitch", "vpp", counted_again=True),
    "vpp-memif-nf": Product(NO_VPP, vpp_topology, "nf-1-1", "vpp", counted_again=True),
    "testpmd": Product(
        NO_TESTPMD, partial(topology_with, vswitch="linux_bridge"), "nf-1-1", "testpmd", counted_again=True, moved=MOVED
    ),
    "qemu": Product("; ".join(map(str, missing_qemu())), lambda: TOPOLOGY, "nf-1-1", "qemu", 2.0, False, "VSC"),
}


@pytest.mark.usefixtures("awake")
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_hit_by_every_event_and_the_other_instance_goes_on(name: str) -> None:
    """Paused, restarted, its rules replaced and its threads moved, and killed at last."""
    product = PRODUCTS[name]
    if product.lacking:
        pytest.skip(product.lacking)
    asked = cell(product.service_type, 2, 1, (NfKind(product.kind),))
    spec = OutageSpec(
        name="restart",
        instances=2,
        nf_kinds=asked.nf_kinds,
        frame=frame("64B"),
        events=(TargetedEvent(event=PartEvent.RESTART, target=product.target),),
    )
    refused = starved(spec, product.topology().dut.vswitch, make_plan(product.topology(), asked, discover()))
    with deployed(product.topology(), asked) as deployment:
        pauses(deployment, product)
        if refused:
            print(*refused.values())
        else:
            restarts(deployment, product)
        if product.moved:
            moves(deployment, product)
        ends(deployment, product)


def pauses(deployment: Deployment, product: Product) -> None:
    result, happened = lines_of(deployment, PartEvent.PAUSE, product.target)
    hit, other = impacts(result.timelines, happened)
    print(f"pause: {hit.outage_s:.3f} s, longest delay {(hit.during.worst_ns or 0) / 1e9:.3f} s")
    assert hit.outage_s > 0.1 or (hit.during.worst_ns or 0) > 0.1e9, "packets are held, or dropped"
    assert not (problems := deployment.problems()), problems
    if product.target != "vswitch":
        assert other.outage_s < 0.15


LONGEST_RESTART_S = 60.0


def restarts(deployment: Deployment, product: Product) -> None:
    after_s, took_s = product.after_s, LONGEST_RESTART_S
    while after_s < 4 * LONGEST_RESTART_S:
        result, happened = lines_of(deployment, PartEvent.RESTART, product.target, after_s)
        assert not (problems := deployment.problems()), "; ".join(problems)
        took_s = (happened.ended_ns - happened.began_ns) / 1e9
        if took_s + 1.0 < after_s or not product.is_back:
            break
        after_s *= 2  # the machine is slow or busy: the load ended before the restart
    hit, other = impacts(result.timelines, happened)
    print(f"restart: {took_s:.3f} s, first packet {hit.first_packet_s}, {hit.lost} lost; other: {other.lost} lost")
    if product.is_back:
        assert hit.first_packet_s is not None, f"no packet passes again, and the restart took {took_s:.3f} s"
        assert 0.01 < hit.first_packet_s < took_s + 1.0, "packets pass when the restart has ended"
    if product.target == "vswitch":
        assert other.lost > 0
    else:
        assert other.outage_s < 0.5 * hit.outage_s
    again = deployment.parts.generator.run(Trial(load_pps=8000.0, duration_s=0.5, frame=frame("64B"), purpose="after"))
    assert again.received > 0.9 * again.sent
    assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)


def ends(deployment: Deployment, product: Product) -> None:
    result, happened = lines_of(deployment, PartEvent.KILL, product.target)
    hit, other = impacts(result.timelines, happened)
    print(f"kill: {hit.outage_s:.3f} s; other: {other.lost} lost")
    assert hit.recovery_s is None and 0.7 < hit.outage_s < 1.6
    # Its main thread may share a CPU with the generator, which kept it from ending.
    wait_until("end", lambda: "" if any("SIGKILL" in each for each in deployment.problems()) else "not seen", 5.0)
    if product.target != "vswitch":
        assert other.outage_s < 0.5 * hit.outage_s


@pytest.mark.usefixtures("awake")
@pytest.mark.parametrize("name", [name for name, product in PRODUCTS.items() if product.counted_again])
def test_a_program_that_was_started_again_is_connected_as_before(name: str) -> None:
    """Started again without load, with frames counted at every hop; at the first try, as no load is measured."""
    product = PRODUCTS[name]
    if product.lacking:
        pytest.skip(product.lacking)
    with deployed(product.topology(), cell("CSC", 2, 1, (NfKind(product.kind),))) as deployment:
        connects_again(deployment, product)


def connects_again(deployment: Deployment, product: Product) -> None:
    events = {PartEvent.RESTART: "SIGKILL, then started again"}
    if product.target != "vswitch":
        events[PartEvent.ADD] = "started"
    part = part_of(deployment, product.target)
    for event, what in events.items():
        part.disturb(Disturbance(targets=(product.target,), event=event, after_s=0.0))
        (happened,) = part.disturbed()
        assert happened.what == what
        send_and_count(deployment)
        is_as_planned(deployment)


def cpus(deployment: Deployment) -> dict[str, tuple[int, ...]]:
    """CPUs of all data threads by interface, read back."""
    return {row.interface: row.actual_cpus for row in deployment.affinity()}


def only_moved(deployment: Deployment, target: str, before: dict[str, tuple[int, ...]]) -> None:
    """See that all data threads of a part, and no others, are on other CPUs than before."""
    ports, after = {port.interface for port in deployment.plan.ports(target)}, cpus(deployment)
    assert ports and all(after[port] and not set(after[port]) & set(before[port]) for port in ports), after
    assert {port: each for port, each in after.items() if port not in ports} == {
        port: each for port, each in before.items() if port not in ports
    }, "of no other instance"


def moves(deployment: Deployment, product: Product) -> None:
    """Replace rules and pin data threads to other CPUs under load."""
    before = cpus(deployment)
    for event, what in product.moved.items():
        result, happened = lines_of(deployment, event, product.target)
        hit, other = impacts(result.timelines, happened)
        print(f"{event}: {hit.lost} lost, other {other.lost}; {(happened.ended_ns - happened.began_ns) / 1e6} ms")
        assert happened.what == what
        assert result.received > 0.9 * result.sent, "packets go on to pass"
        assert deployment.problems() == ()
    only_moved(deployment, product.target, before)


@pytest.mark.usefixtures("awake")
@pytest.mark.skipif(bool(NO_VPP), reason=NO_VPP)
@pytest.mark.parametrize("name", ["vpp-vswitch", "vpp-nf", "vpp-memif-nf"])
def test_vpp_is_moved_and_its_access_list_replaced_under_load(name: str) -> None:
    product = PRODUCTS[name]
    testbed = partial(vpp_topology, vswitch="linux_bridge" if name == "vpp-nf" else "vpp", acl_rules=1000)
    with deployed(testbed(), cell("CSC", 2, 1, (NfKind(product.kind),))) as deployment:
        moves(deployment, replace(product, moved={PartEvent.RELOAD: "access list of 1000 rules replaced", **MOVED}))
        facts = deployment.facts()["vswitch" if product.target == "vswitch" else "functions"]
        assert "1000 rules on each port" in facts.values()
        switch = deployment.parts.switch
        if isinstance(switch, VppSwitch):
            switch.begin_accounts()
            sent = deployment.parts.generator.run(Trial(load_pps=8000.0, duration_s=0.2, frame=frame("64B"))).sent
            (found,) = [row.packets for row in switch.accounts() if row.node == "acl-plugin-in-ip4-l2"]
            assert found >= 0.9 * sent, "packets are looked up"


def silence_s(line: FlowTimeline) -> float:
    """The longest time in which the generator sent no packet of a flow."""
    return max((len(list(row)) for count, row in groupby(line.sent) if not count), default=0) * line.bin_s


RATE_PPS = 150_000
"""In sum over all flows."""


def test_losses_are_resolved_to_a_millisecond_at_more_than_100_kpps() -> None:
    asked = cell("CSC", 2, 1, (NfKind("linux_router"),))
    with deployed(TOPOLOGY, asked) as deployment:
        flows = len(deployment.plan.flows)
        result, happened = lines_of(deployment, PartEvent.PAUSE, "nf-1-1", rate_pps=RATE_PPS / flows)
        before = cpus(deployment)
        moved, _ = lines_of(deployment, PartEvent.MOVE, "nf-1-1", after_s=0.3)
        only_moved(deployment, "nf-1-1", before)
        assert moved.received > 0.9 * moved.sent, "packets go on to pass"
    assert result.offered_pps > 100_000
    assert len(result.timelines) == flows
    sent = {(flow.instance, flow.direction): flow.sent for flow in result.flows}
    for line in result.timelines:
        assert line.bin_s == 0.001
        assert sum(line.sent) == sent[line.instance, line.direction], "no packet without a number"
        assert sum(line.received) + sum(gap.packets for gap in line.gaps) == sum(line.sent)
    hit, other = impacts(result.timelines, happened)
    length_s = (happened.ended_ns - happened.began_ns) / 1e9
    assert length_s > 0.2
    # A machine that stands still at its begin or end has packets wait, or sends none: the trial shows how long.
    delay_s = max(each.worst_ns or 0 for each in (hit.before, hit.during, hit.after)) / 1e9
    stood_still_s = delay_s + max(map(silence_s, result.timelines))
    assert hit.gap_s == pytest.approx(length_s, abs=0.001 + stood_still_s), "as long as forwarding was off"
    print(
        f"{RATE_PPS} pps, bins of 1 ms: gap {hit.gap_s:.4f} s of a pause of {length_s:.4f} s, other {other.lost} lost"
    )


@pytest.mark.skipif(bool(NO_OPENVPN), reason=NO_OPENVPN)
def test_processes_that_are_stopped_and_continued_pass_packets_again(tmp_path: Path) -> None:
    with deployed(TOPOLOGY, cell("CSC", 2, 1, (NfKind("openvpn"),))) as deployment:
        with captured([flow.rx_interface for flow in deployment.plan.flows], tmp_path) as seen:
            result, happened = lines_of(deployment, PartEvent.PAUSE, "nf-1-1")
        assert not (problems := deployment.problems()), "; ".join(problems)
    assert happened.what == "SIGSTOP, SIGCONT"
    assert 0.19 < (happened.ended_ns - happened.began_ns) / 1e9 < 0.5
    assert sum(sum(line.received) for line in result.timelines) == sum(map(len, seen.values()))
    hit, other = impacts(result.timelines, happened)
    assert hit.recovery_s is not None
    assert (hit.during.worst_ns and hit.during.worst_ns > 0.1e9) or hit.outage_s > 0.1, (
        "it holds packets, or drops them"
    )
    assert other.outage_s < 0.15


def test_a_study_sends_real_packets_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = network_state()
    suite = study_suite(tmp_path, "outage/routers.yaml", SPEC)
    run_robot(tmp_path / "out", *LOCAL, "-i", "ROUTERS", sources=[suite])
    wait_for_network_state(before)
    found = study_record(tmp_path / "out").outage
    assert found is not None
    assert found.coverage == (16, 16)
    assert found.spec.frame.ip_version == 6
    assert found.ndr_pps and found.rate_pps == pytest.approx(0.1 * found.ndr_pps / 4, rel=0.01), "of each flow"
    assert all(impact.sent == pytest.approx(2 * 0.8 * found.rate_pps, rel=0.01) for trial in found.trials
               for impact in trial.impacts)  # fmt: skip
    supported = "linux_bridge supports kill, restart, pause, move"
    assert found.refused == {"reload vswitch": f"reload is not possible for vswitch: {supported}"}
    assert {trial.done for trial in found.trials if trial.event.startswith("move ")} == {
        "data threads pinned to another CPU"
    }
    effects = {(each.event, each.instance): each for each in found.effects}
    kill = effects["kill instance-2", 2]
    assert kill.recovered == 0 and kill.outage_s.mean > 0.45
    restart, add = (effects[f"{name} nf-1-1", 1] for name in ("restart", "add"))
    assert restart.recovered == 2 and restart.first_packet_s is not None
    assert add.first_packet_s is not None and add.first_packet_s.mean < 0.6
    pause = effects["pause nf-1-1", 1]
    assert 0.095 < pause.outage_s.mean < 0.4
    # A pause of the machine may hit any of them: but most of what the one hit loses is not lost by the other one.
    other = effects["kill instance-2", 1]
    assert other.lost.mean < 0.5 * kill.lost.mean
    assert kill.is_target and kill.is_significant and not other.is_target and not other.is_significant
    for each in (kill, other):
        one, two = (impact.lost for trial in found.trials if trial.event == each.event for impact in trial.impacts
                    if impact.instance == each.instance)  # fmt: skip
        half = STUDENT_OF_2 * abs(one - two) / 2
        assert (each.lost.low, each.lost.high) == pytest.approx(((one + two) / 2 - half, (one + two) / 2 + half))
    assert (tmp_path / "out" / "characterization" / "Routers" / "outage_effects.csv").exists()
