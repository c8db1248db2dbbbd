"""Tunnels as NFs with real packets: encrypted on their way, unchanged behind it, counted, and nothing left."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.openvpn.driver import missing as missing_openvpn
from resources.libraries.python.drivers.functions.wireguard.driver import in_kernel
from resources.libraries.python.drivers.functions.wireguard.driver import missing as missing_wireguard
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import processes_of
from resources.libraries.python.drivers.host.cgroups.cgroups import discover
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import shipped
from tests.integration.local_fabric import TTL, packet, send
from tests.integration.local_functions import done
from tests.integration.tunnel_packets import arrives, heard_by, listener
from tests.integration.user_space import (
    deployed,
    is_as_planned,
    kill_run,
    machine_stays_as_it_was,
    processes,
    send_and_count,
)

pytestmark = [pytest.mark.parallel, pytest.mark.usefixtures("awake"), pytest.mark.root]
NO_OPENVPN = "; ".join(map(str, missing_openvpn()))
# That of the kernel has a test on machines of its own.
NO_WIREGUARD = "; ".join(map(str, missing_wireguard(in_kernel=False))) or "the kernel has WireGuard" * in_kernel()
TOPOLOGY = shipped("local")
ROUTER, OPENVPN, WIREGUARD = map(NfKind, ("linux_router", "openvpn", "wireguard"))
needs_openvpn = pytest.mark.skipif(bool(NO_OPENVPN), reason=NO_OPENVPN)
KINDS = [
    pytest.param(OPENVPN, marks=needs_openvpn),
    pytest.param(WIREGUARD, marks=pytest.mark.skipif(bool(NO_WIREGUARD), reason=NO_WIREGUARD)),
]
PROGRAMS = {OPENVPN: "openvpn", WIREGUARD: "wireguard-go"}
CIPHERS = {OPENVPN: "AES-256-GCM", WIREGUARD: "ChaCha20-Poly1305"}
FRAMES = 20
LOAD_PPS = 1000.0
"""So low that the first queue, of 256 packets each way, holds what comes while the machine does something else."""
FOLDERS = [DIRECTORY / "run" / f"{kind}-{side}" for kind in PROGRAMS for side in ("left", "right")]
VICTIM = """
import time
from tests.integration.test_tunnels import TOPOLOGY, NfKind, cell
from tests.integration.user_space import deployed
with deployed(TOPOLOGY, cell(NfKind("KIND"))):
    print("deployed", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with machine_stays_as_it_was("openvpn"), machine_stays_as_it_was("wireguard-go"):
        yield
    assert not list(Path("/var/run/wireguard").glob("*.sock"))
    assert not [folder for folder in FOLDERS if folder.exists()]


def cell(*kinds: NfKind, limits: tuple[Limits, ...] = ()) -> Cell:
    return Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=len(kinds), nf_kinds=kinds, limits=limits)


@contextmanager
def running(*kinds: NfKind, limits: tuple[Limits, ...] = (), frame_name: str = "64B") -> Iterator[Deployment]:
    with deployed(TOPOLOGY, cell(*kinds, limits=limits), frame_name) as deployment:
        yield deployment
        is_as_planned(deployment)


def trial(load_pps: float = LOAD_PPS, protocol: Protocol | None = None) -> Trial:
    plain = Trial(load_pps=load_pps, duration_s=0.5, frame=frame("128B"), purpose="sweep")
    return plain.model_copy(update={"probe_pps": 0.0 if protocol else 100.0, "protocol": protocol})


def files() -> Iterator[Path]:
    """What the programs of tunnels have in their folders."""
    return (path for folder in FOLDERS if folder.exists() for path in folder.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame_bytes", [64, 1518, 9000])
def test_packets_are_encrypted_inside_and_unchanged_behind_it(frame_bytes: int, kind: NfKind) -> None:
    payload = os.urandom(frame_bytes - 18 - 28)
    with (
        running(kind, frame_name=f"{frame_bytes}B") as deployment,
        namespaces.run_inside("csit-nf-1-1", partial(listener, "lo")) as loopback,
    ):
        for number, flow in enumerate(deployment.plan.flows, 1):
            with namespaces.run_inside("csit-generator", partial(listener, flow.rx_interface)) as behind:
                namespaces.run_inside("csit-generator", partial(send, flow, 1, payload))
                wanted = packet(flow, payload, ttl=TTL - 2)  # routed into the tunnel, and out of it
                arrived: list[bytes] = []
                wait_until("the packet", partial(arrives, behind, arrived, wanted), 60.0)
            inside = heard_by(loopback)
            # Loopback shows each packet as it leaves and as it comes. One of its own, so no fragments.
            assert len(inside) == 2
            assert min(map(len, inside)) > frame_bytes
            assert not any(payload in each for each in inside)
            assert done(deployment) == {"nf-1-1": ProcessedPackets(number, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_packet_goes_through_the_tunnel_also_beside_others_and_is_counted(kind: NfKind) -> None:
    with running(ROUTER, kind, kind) as deployment:
        send_and_count(deployment)
        tunnels = {f"nf-1-{node}": ProcessedPackets(2 * FRAMES, 0) for node in (2, 3)}
        assert done(deployment) == {"nf-1-1": ProcessedPackets(2 * FRAMES), **tunnels}
        result = deployment.parts.generator.run(trial())
        assert result.received == result.sent
        assert all(each.received == each.sent and each.p50_ns for each in result.latency)
        sent = 2 * FRAMES + result.sent + sum(each.sent for each in result.latency)
        assert done(deployment)["nf-1-3"] == ProcessedPackets(sent, 0)
        others = deployment.parts.generator.run(trial(protocol=Protocol.IP))
        assert others.received == others.sent
        fact = deployment.facts()["functions"][kind]
        assert fact.lower().startswith(PROGRAMS[kind])
        assert CIPHERS[kind] in fact


@needs_openvpn
def test_keys_are_gone_once_the_tunnel_carries_and_no_command_line_has_had_one() -> None:
    with running(OPENVPN):
        kept = list(files())
        assert {path.name for path in kept} == {"certificate.pem", "nf-1-1.log", "openvpn.conf"}
        assert not [path for path in kept if "PRIVATE" in path.read_text()]
        assert {len(line.split()) for line in processes("openvpn").values()} == {3}
        assert {os.sched_getscheduler(pid) for pid in processes("openvpn")} == {os.SCHED_RR}


@pytest.mark.skipif(bool(NO_WIREGUARD), reason=NO_WIREGUARD)
def test_keys_of_wireguard_are_in_no_file_and_no_command_line() -> None:
    with running(WIREGUARD):
        assert {path.name for path in files()} == {"nf-1-1.log"}
        assert {tuple(line.split()[1:]) for line in processes("wireguard-go").values()} == {
            ("--foreground", "nf-1-1-wgl"),
            ("--foreground", "nf-1-1-wgr"),
        }
        assert {os.sched_getscheduler(pid) for pid in processes("wireguard-go")} == {os.SCHED_RR}


@needs_openvpn
def test_what_is_too_much_is_dropped_and_accounted_for() -> None:
    with running(OPENVPN) as deployment:
        (left,) = (pid for pid, line in processes("openvpn").items() if "openvpn-left" in line)
        os.kill(left, signal.SIGSTOP)
        deployment.parts.generator.run(trial(20_000.0))
        os.kill(left, signal.SIGCONT)
        received = sum(deployment.counters()[name].rx_packets for name in ("csn1x1i1", "csn1x1i2"))

        def unsettled() -> str:
            found = done(deployment)["nf-1-1"]
            return "" if found.packets + (found.dropped or 0) == received else f"{found} of {received}"

        wait_until("the queues to be empty", unsettled, 60.0)
        # Two queues of packets came through in the end, that of the device and that of the socket.
        assert (done(deployment)["nf-1-1"].dropped or 0) > received / 2


@pytest.mark.skipif(bool(NO_WIREGUARD), reason=NO_WIREGUARD)
def test_an_end_of_wireguard_that_was_killed_is_named() -> None:
    with deployed(TOPOLOGY, cell(WIREGUARD)) as deployment:
        (pid,) = (pid for pid, line in processes("wireguard-go").items() if "wgl" in line)
        os.kill(pid, signal.SIGKILL)
        (problem,) = deployment.problems()
        assert problem.startswith("wireguard-left of nf-1-1 was killed by SIGKILL")
        result = deployment.parts.generator.run(trial())
        assert (result.sent > 0, result.received) == (True, 0)


@needs_openvpn
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_end_that_was_killed_is_named_and_nothing_passes_its_tunnel_by(side: str) -> None:
    with deployed(TOPOLOGY, cell(OPENVPN)) as deployment:
        (pid,) = (pid for pid, line in processes("openvpn").items() if f"openvpn-{side}" in line)
        os.kill(pid, signal.SIGKILL)
        (problem,) = deployment.problems()
        assert problem.startswith(f"openvpn-{side} of nf-1-1 was killed by SIGKILL; it said last: ")
        assert "Initialization Sequence Completed" in problem
        with pytest.raises(CsitError, match=f"nf-1-1 has no device tun-{side}: that end of its tunnel has ended"):
            done(deployment)
        result = deployment.parts.generator.run(trial())
        assert (result.sent > 0, result.received) == (True, 0)


@needs_openvpn
def test_packets_that_pass_a_tunnel_by_are_said() -> None:
    with deployed(TOPOLOGY, cell(OPENVPN)) as deployment:
        argv = ["ip", "-n", "csit-nf-1-1", "rule", "del", "iif", "csn1x1i1"]
        subprocess.run(argv, check=True)
        deployment.parts.generator.run(trial(20_000.0))
        (problem,) = deployment.problems()
        assert problem.startswith("nf-1-1 received ")
        assert problem.endswith(" went into its tunnel")


@needs_openvpn
def test_a_tunnel_keeps_its_limits() -> None:
    with running(OPENVPN, limits=(Limits(cpu=0.1, memory_mib=64),)) as deployment:
        confined = processes_of(discover().folders("csit-nf-1-1"))
        assert set(processes("openvpn")) <= set(confined)
        assert {os.sched_getscheduler(pid) for pid in processes("openvpn")} == {os.SCHED_OTHER}

        def not_held() -> str:
            """On a busy machine a tunnel may not get as much as its limit grants."""
            result = deployment.parts.generator.run(trial(50_000.0))
            assert 0 < result.received < 0.9 * result.sent
            held = deployment.parts.functions.throttling()["nf-1-1"]
            return "" if held.throttled else f"{held}"

        wait_until("a tunnel held at its limit", not_held, 60.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_leaves_no_tunnel(kind: NfKind) -> None:
    mark = {OPENVPN: "openvpn.conf", WIREGUARD: "-wg"}[kind]
    kill_run(VICTIM.replace("KIND", kind), PROGRAMS[kind], mark)
