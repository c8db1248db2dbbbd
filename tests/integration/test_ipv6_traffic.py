"""IPv6 through routers, firewalls and bridges of the local testbed: counts of the generator agree with tcpdump's."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment.deployment import Deployment
from tests.integration.local_functions import named
from tests.integration.robot_runs import PROJECT
from tests.integration.user_space import prepared
from tests.realtime import LOSS, realtime

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
    pytest.mark.skipif(bool(list(missing())), reason="; ".join(map(str, missing()))),
]
LOCAL = load_topology(PROJECT / "topologies" / "local.yaml")


def sending(topology: Topology, driver: str) -> Topology:
    """The same testbed with another way of sending."""
    said = topology.model_dump(mode="json")
    said["nodes"][topology.tg_name]["generator"]["driver"] = driver
    return Topology.model_validate(said)


@contextmanager
def running(topology: Topology, *kinds: str, rows: int = 1) -> Iterator[Deployment]:
    """A deployed chain of IPv6."""
    cell = Cell(service_type=ServiceType.CSC, nf_chains=rows, nf_nodes=len(kinds), nf_kinds=tuple(map(NfKind, kinds)))
    plan = make_plan(topology, cell, discover(), ip_version=6)
    with prepared(topology, cell, plan, frame_name="128B-ip6") as parts, Deployment(plan, parts) as deployment:
        yield deployment
        assert deployment.problems() == ()


@contextmanager
def tcpdump(interface: str, file: Path, expected: int) -> Iterator[None]:
    """Write the packets that arrive at a port of the generator into a file, until it has so many."""
    words = ["tcpdump", "-i", interface, "-Q", "in", "-B", "65536", "-U", "--immediate-mode", "-w", str(file)]
    words += ["-Z", "root", "ip6 and udp"]
    with subprocess.Popen(
        ["ip", "netns", "exec", "csit-generator", *words], stderr=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any("listening on" in line for line in process.stderr)
        try:
            yield
            wait_until("packets in the file", lambda: "" if len(read(file)) >= expected else "fewer", 10.0)
        finally:
            process.terminate()
        said = process.stderr.read()
    assert "\n0 packets dropped by kernel" in said, said


def read(file: Path, *expression: str) -> list[str]:
    """What tcpdump says of the packets in a file that an expression selects."""
    done = subprocess.run(
        ["tcpdump", "-nn", "-vv", "-r", str(file), *expression], capture_output=True, text=True, check=False
    )
    return [line for line in done.stdout.splitlines() if "UDP" in line or "ICMP6" in line]


@realtime(LOSS)
@pytest.mark.parametrize("driver", ["auto", "ring"])
def test_ipv6_crosses_a_router_and_a_firewall_and_tcpdump_agrees(tmp_path: Path, driver: str) -> None:
    trial = Trial(load_pps=4000, duration_s=0.5, frame=frame("128B-ip6-300f"))
    with running(sending(LOCAL, driver), "linux_router", "linux_firewall", rows=1) as deployment:
        generator, plan = deployment.parts.generator, deployment.plan
        forward = plan.flows[0]
        with tcpdump(forward.rx_interface, tmp_path / "arrived.pcap", 1000):
            result = generator.run(trial)
            assert [(flow.sent, flow.received) for flow in result.flows] == [(1000, 1000)] * 2
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


@realtime(LOSS)
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


def test_a_nat_is_refused_in_a_sentence() -> None:
    with pytest.raises(PlanError, match="IPv6 does not apply to an NF of kind linux_nat"), running(LOCAL, "linux_nat"):
        pass
