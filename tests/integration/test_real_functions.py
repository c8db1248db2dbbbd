"""Gateways, monitors, nginx and programs of the user's own with real packets, within limits and without."""

import os
import signal
import sys
from functools import partial

import pytest

from resources.libraries.python.drivers.functions.monitor import DRIVERS as MONITOR_DRIVERS
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import processes_of
from resources.libraries.python.drivers.host.cgroups.cgroups import discover
from resources.libraries.python.drivers.host.cpu.thread_scheduling import SCHED_DEADLINE
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.testbed.kinds import machine
from tests.integration.local_fabric import send
from tests.integration.local_functions import TOPOLOGY, done, named, running, trial
from tests.integration.user_space import processes, send_and_count

LACKING = "; ".join(
    str(each)
    for each in machine.missing_for_some(TOPOLOGY.dut)
    if "NFs of kind" in str(each) and not any(f"kind {own}" in str(each) for own in ("suricata", "openvpn"))
)
pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("nginx"),
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
]
FRAMES = 20
GATEWAY, NAT, PROCESS = NfKind("linux_gateway"), NfKind("linux_nat"), NfKind("process")
MONITORS = tuple(NfKind(each.name) for each in MONITOR_DRIVERS if each.name != "suricata")
"""Those of Debian 12; Suricata has a file of its own."""
NGINX = (NfKind("nginx_proxy"), NfKind("nginx_balancer"))
WAITING = f"""import subprocess, time
subprocess.Popen(["nsenter", "--net=/proc/{os.getpid()}/ns/net", "setsid", "sleep", "4711"])
while True: time.sleep(60)"""
"""It has a process that leaves its network namespace."""

COUNTING = """import sys
(row,) = (line.split() for line in open("/proc/net/dev") if line.strip().startswith(sys.argv[1] + ":"))
print("packets", row[2])"""


def test_a_gateway_looks_both_addresses_of_every_packet_up_and_all_kinds_of_monitors_see_all_of_them() -> None:
    with running(GATEWAY, *MONITORS) as deployment:
        send_and_count(deployment)
        assert named("nf-1-1") == {"accepted": 2 * FRAMES, "refused": 0}
        found = done(deployment)
        assert found == {
            "nf-1-1": ProcessedPackets(2 * FRAMES),
            **{f"nf-1-{node}": ProcessedPackets(2 * FRAMES, 0) for node in range(2, 2 + len(MONITORS))},
        }
        facts = deployment.facts()["functions"]
        assert set(facts) == {GATEWAY, *MONITORS}
        assert "stand-in for an intrusion detection system" in facts[NfKind("ngrep")]


def test_a_monitor_that_is_too_slow_drops_and_every_packet_is_accounted_for() -> None:
    """Stopped, it takes nothing out of its ring: once that is full, all the rest is dropped, and still forwarded."""
    with running(NfKind("pktstat")) as deployment:
        (pid,) = processes("pktstat")
        os.kill(pid, signal.SIGSTOP)
        result = deployment.parts.generator.run(trial(100_000.0))
        os.kill(pid, signal.SIGCONT)
        found = done(deployment)["nf-1-1"]
        assert found.dropped is not None
        assert found.dropped > 0
        assert result.received <= found.packets + found.dropped <= result.sent
    with pytest.raises(AssertionError, match="pktstat of nf-1-1 was killed by SIGKILL"), running(NfKind("pktstat")):
        os.kill(next(iter(processes("pktstat"))), signal.SIGKILL)


def test_a_passive_monitor_sees_copies_of_both_ways() -> None:
    tap = Tap(position=1, kind=NfKind("ngrep"), limits=Limits(cpu=0.5, memory_mib=64))
    with running(NfKind("linux_router"), taps=(tap,)) as deployment:
        result = deployment.parts.generator.run(trial())
        assert result.received == result.sent
        found = done(deployment)
        assert found == {"nf-1-1": ProcessedPackets(result.sent), "tap-1-1": ProcessedPackets(result.sent, 0)}


def test_nginx_sends_on_load_and_probes_of_both_ways_also_before_and_behind_a_nat() -> None:
    with running(NGINX[0], NAT, NGINX[1]) as deployment:
        result = deployment.parts.generator.run(trial(probe_pps=100.0))
        assert result.received == result.sent
        assert all(each.received == each.sent and each.p50_ns for each in result.latency)
        sent = result.sent + sum(each.sent for each in result.latency)
        assert done(deployment) == {
            "nf-1-1": ProcessedPackets(sent, 0), "nf-1-2": ProcessedPackets(sent), "nf-1-3": ProcessedPackets(sent, 0)
        }  # fmt: skip
        assert named("nf-1-2")["translated"] == pytest.approx(sent / 2, abs=1)  # each way has its own flows
        with pytest.raises(Unsupported, match="takes UDP datagrams only"):
            deployment.parts.generator.run(trial(protocol=Protocol.IP))
        for flow in deployment.plan.flows:
            namespaces.run_inside("csit-generator", partial(send, flow, result.sent // len(deployment.plan.flows)))
        wait_until("packets past nginx", lambda: "" if len(deployment.problems()) == 2 else "no problem", 10.0)
        (first, _) = deployment.problems()
        assert first.startswith("nf-1-1 received ")
        assert first.endswith("were UDP of the ports 49191, 49190")
        deployment.parts.generator.run(trial(20_000.0))  # most of what came is datagrams again


def test_a_quota_throttles_data_threads_and_program_and_counts_it() -> None:
    with running(NfKind("tcpdump"), limits=(Limits(cpu=0.02, memory_mib=64),)) as deployment:
        confined = processes_of(discover().folders("csit-nf-1-1"))
        program, first, second = sorted(map(os.sched_getscheduler, confined))
        assert (program, first, second) == (os.SCHED_OTHER, SCHED_DEADLINE, SCHED_DEADLINE)
        result = deployment.parts.generator.run(trial(100_000.0))
        assert result.received < 0.9 * result.sent
        held = deployment.parts.functions.throttling()["nf-1-1"]
        assert held.throttled > 0
        assert held.still_s > 0.05
        assert deployment.facts()["functions"]["limits of nf-1-1"] == "0.02 CPUs, 64 MiB"
    assert not [folder for folder in discover().folders("csit-nf-1-1") if folder.exists()]


@pytest.mark.parametrize("limits", [Limits(memory_mib=64), Limits(network_pps=50_000)])
def test_a_program_without_a_quota_of_cpu_time_keeps_its_real_time(limits: Limits) -> None:
    """With CONFIG_RT_GROUP_SCHED, a control group of CPU time takes no program that runs in real time."""
    with running(NfKind("tcpdump"), limits=(limits,)) as deployment:
        (program,) = processes("tcpdump")
        assert os.sched_getscheduler(program) == os.SCHED_RR
        confined = processes_of(folder for folder in discover().folders("csit-nf-1-1") if folder.exists())
        assert set(confined) == ({program} if limits.memory_mib else set())
        result = deployment.parts.generator.run(trial())
        assert result.received == result.sent
    assert not [folder for folder in discover().folders("csit-nf-1-1") if folder.exists()]


def test_a_users_program_gets_its_interfaces_counts_and_is_stopped_as_specified(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("program")
    stopped = folder / "stopped"
    program = UserProgram(
        start=(sys.executable, "-c", WAITING, "{left}", "{right}"),
        stop=(sys.executable, "-c", f"open({str(stopped)!r}, 'w').write('{{left}} {{right}}')"),
        stat=(sys.executable, "-c", COUNTING, "{left}"),
    )
    with running(PROCESS, programs=(program,)) as deployment:
        assert any("csn1x1i1 csn1x1i2" in command for command in processes("python").values())
        result = deployment.parts.generator.run(trial())
        assert result.received == result.sent
        assert done(deployment) == {"nf-1-1": ProcessedPackets(result.sent // 2)}
        assert any("4711" in command for command in processes("sleep").values())
    assert not any("4711" in command for command in processes("sleep").values())
    assert stopped.read_text() == "csn1x1i1 csn1x1i2"
    gone = UserProgram(start=("no-such-program",))
    with pytest.raises(CsitError, match=r"^the program of nf-1-1 is not there: no-such-program$"):
        running(PROCESS, programs=(gone,)).__enter__()
