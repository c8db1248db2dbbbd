"""IPv6 through vSwitches and NFs of the local testbed: counts agree with tcpdump, nftables, conntrack and trafgen."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.drivers.functions.testpmd.driver import missing as missing_testpmd
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links.namespaces import name_of
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing as missing_for_ovs
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import shipped
from tests.captures import packets_of
from tests.integration.local_functions import conntrack, named
from tests.integration.numbered_captures import arriving
from tests.integration.user_space import NO_VPP, NO_VPP_IPSEC, planned, prepared, topology_with, vpp_topology, with_tg

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(bool(list(missing())), reason="; ".join(map(str, missing()))),
]
LOCAL = shipped("local")


@contextmanager
def running(topology: Topology, *kinds: str, rows: int = 1) -> Iterator[Deployment]:
    """A deployed chain of IPv6."""
    cell = Cell(service_type=ServiceType.CSC, nf_chains=rows, nf_nodes=len(kinds), nf_kinds=tuple(map(NfKind, kinds)))
    plan = make_plan(topology, cell, discover(), ip_version=6)
    with prepared(topology, cell, plan, frame_name="128B-ip6") as parts, Deployment(plan, parts) as deployment:
        yield deployment
        assert deployment.problems() == ()


def read(file: Path, *expression: str) -> list[str]:
    """What tcpdump says of the packets in a file that an expression selects."""
    done = subprocess.run(
        ["tcpdump", "-nn", "-vv", "-r", str(file), *expression], capture_output=True, text=True, check=False
    )
    return [line for line in done.stdout.splitlines() if "UDP" in line or "ICMP6" in line]


@pytest.mark.parametrize("driver", ["auto", "ring"])
def test_ipv6_crosses_a_router_and_a_firewall_and_tcpdump_agrees(tmp_path: Path, driver: str) -> None:
    trial = Trial(load_pps=4000, duration_s=0.5, frame=frame("128B-ip6-300f"))
    with running(with_tg(LOCAL, driver), "linux_router", "linux_firewall", rows=1) as deployment:
        generator, plan = deployment.parts.generator, deployment.plan
        forward = plan.flows[0]
        with arriving(forward.rx_interface, tmp_path / "arrived.pcap", "ip6 and udp") as wait_for:
            result = generator.run(trial)
            assert [(flow.sent, flow.received) for flow in result.flows] == [(1000, 1000)] * 2
            wait_for(1000)
        arrived = read(tmp_path / "arrived.pcap")
        assert len(arrived) == 1000, arrived[:3]
        assert all("[udp sum ok]" in line and "hlim 62" in line for line in arrived)
        assert len({line.split(" > ")[0].split()[-1] for line in arrived}) == 300
        assert all(f" > {forward.destination_ip}.49191: " in line for line in arrived)
        assert named("nf-1-2")["accepted"] == 2000
        probed = generator.run(trial.model_copy(update={"probe_pps": 100.0}))
        assert [(row.sent, row.received) for row in probed.latency] == [(50, 50)] * 2
        assert all(row.min_ns and row.min_ns > 1000 for row in probed.latency)
        counted = generator.run(trial.model_copy(update={"count_losses": True}))
        assert [(row.sent, row.received, row.duplicates) for row in counted.losses] == [(1000, 1000, 0)] * 2


def test_two_instances_keep_their_packets_apart() -> None:
    with running(LOCAL, "linux_router", rows=2) as deployment:
        result = deployment.parts.generator.run(
            Trial(load_pps=4000, duration_s=0.5, frame=frame("82B-ip6"), probe_pps=50)
        )
        assert [(flow.instance, flow.received) for flow in result.flows] == [(1, 500), (1, 500), (2, 500), (2, 500)]
        hops = deployment.counters()
        for path in deployment.plan.paths:
            for hop in path.hops[1:-1]:
                counters = hops[hop.interface]
                assert (counters.rx_packets if hop.counter == "rx" else counters.tx_packets) >= 525, hop
        for function in deployment.plan.functions:
            inside = ["ip", "netns", "exec", name_of(function.name)]
            grep = [*inside, "grep", "-rh", "Icmp6OutMsgs", "/proc/net/dev_snmp6"]
            own = subprocess.run(grep, capture_output=True, text=True, check=True).stdout.split()[1::2]
            assert own == ["0"] * 3, "of the loopback and both ports: what an NF sends by itself would be counted"


@dataclass(frozen=True)
class Path6:
    """A vSwitch and NFs that packets of IPv6 pass."""

    topology: Callable[[], Topology]
    kinds: tuple[str, ...]
    hop_limit: int
    """On arrival; 64 when sent."""
    lacking: str = ""


TESTPMD, OVS = "; ".join(map(str, missing_testpmd())), "; ".join(map(str, missing_for_ovs("auto")))
PATHS = {
    "ovs": Path6(topology_with, ("linux_router",), 63, OVS),
    "ovs-system": Path6(partial(topology_with, ports="system"), ("linux_router", "testpmd"), 63, OVS or TESTPMD),
    "testpmd": Path6(partial(topology_with, vswitch="linux_bridge"), ("testpmd",), 64, TESTPMD),
    "vpp": Path6(vpp_topology, ("vpp", "linux_router"), 62, NO_VPP),
    "vpp-ipsec": Path6(partial(vpp_topology, vswitch="linux_bridge"), ("vpp_ipsec",), 63, NO_VPP_IPSEC),
    "vpp-nf": Path6(partial(vpp_topology, vswitch="linux_bridge"), ("vpp",), 63, NO_VPP),
}


@pytest.mark.parametrize("name", PATHS)
def test_ipv6_crosses_vswitches_and_functions_in_user_space(tmp_path: Path, name: str) -> None:
    path = PATHS[name]
    if path.lacking:
        pytest.skip(path.lacking)
    trial = Trial(load_pps=2000, duration_s=0.5, frame=frame("128B-ip6-100f"), probe_pps=100)
    with running(path.topology(), *path.kinds) as deployment:
        forward = deployment.plan.flows[0]
        with arriving(forward.rx_interface, tmp_path / "arrived.pcap", "ip6 and udp") as wait_for:
            result = deployment.parts.generator.run(trial)
            first = [result.flows[0].received, result.latency[0].received]
            wait_for(sum(first))
        counts = [(row.sent, row.received) for row in result.flows] + [
            (row.sent, row.received) for row in result.latency
        ]
        assert all(0.5 * sent < received <= sent for sent, received in counts), counts
        arrived = read(tmp_path / "arrived.pcap", "dst port 49191")
        assert [len(arrived), len(read(tmp_path / "arrived.pcap")) - len(arrived)] == first
        assert all(f"hlim {path.hop_limit}," in line and "[udp sum ok]" in line for line in arrived), arrived[0]
        assert len(set(map(sender, arrived))) == 100, "in turns, five packets of each"
        assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)


def sender(line: str) -> tuple[str, int]:
    """Source address and port of a packet that tcpdump describes."""
    found = re.search(r" (\S+)\.(\d+) > ", line)
    assert found, line
    return found[1], int(found[2])


def sent_by_trafgen(flow: Flow, senders: list[tuple[str, int]], bytes_of_data: int, folder: Path) -> None:
    """Have trafgen compose and send a datagram of each sender."""
    (folder / "frames.cfg").write_text(
        "".join(
            f"{{ eth(da={flow.destination_mac}, sa={flow.source_mac}), "
            f"ipv6(sa={address}, da={flow.destination_ip}, hl=64), "
            f"udp(sp={port}, dp=49191), fill(0, {bytes_of_data}) }}\n"
            for address, port in senders
        )
    )
    words = ["trafgen", "--cpus", "1", "-n", str(len(senders)), "-t", "200us", "-i", str(folder / "frames.cfg")]
    subprocess.run(
        ["ip", "netns", "exec", "csit-generator", *words, "-o", flow.tx_interface], capture_output=True, check=True
    )


@pytest.mark.skipif(not (path_of("conntrack") and shutil.which("trafgen")), reason="needs conntrack and trafgen")
def test_a_stateful_firewall_and_a_gateway_see_the_same_packets_from_trafgen(tmp_path: Path) -> None:
    flows, ours, peers = 300, tmp_path / "ours.pcap", tmp_path / "trafgen.pcap"
    trial = Trial(load_pps=2000 * 2, duration_s=flows / 2000, frame=frame(f"128B-ip6-{flows}f"))
    with running(LOCAL, "linux_stateful_firewall", "linux_gateway") as deployment:
        forward = deployment.plan.flows[0]

        def counted(file: Path, send: Callable[[], object]) -> tuple[dict[str, int], int]:
            conntrack("nf-1-1", "-F")
            before = named("nf-1-2")
            with arriving(forward.rx_interface, file, "ip6 and udp") as wait_for:
                send()
                wait_for(flows)
            assert len(conntrack("nf-1-1", "-f", "ipv6", "-L").splitlines()) == flows
            accepted = {name: number - before[name] for name, number in named("nf-1-2").items()}
            return accepted, int(conntrack("nf-1-1", "-C"))

        one_way = trial.model_copy(update={"only": forward.direction, "load_pps": 2000})
        found = counted(ours, lambda: deployment.parts.generator.run(one_way))
        assert found == ({"accepted": flows, "refused": 0}, flows)
        senders = sorted(set(map(sender, read(ours))))
        assert found == counted(peers, lambda: sent_by_trafgen(forward, senders, 128 - 4 - 62, tmp_path))
        assert sorted(packets_of(ours)) == sorted(packets_of(peers)), "the same packets, to the byte"
        both = deployment.parts.generator.run(trial)
        assert [(flow.sent, flow.received) for flow in both.flows] == [(flows, flows)] * 2
