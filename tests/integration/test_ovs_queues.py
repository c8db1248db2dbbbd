"""What waits in the sockets of Open vSwitch, and what is lost there: real packets, and a program that stands still."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.ownership.processes import is_stopped
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.sampler.features import LinuxFeatureSampler
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.deployment.cell import Deployment, VSwitchFlush
from resources.libraries.python.testbed.roles.watching import FeatureSampler
from tests.integration.local_fabric import send
from tests.integration.user_space import (
    cell,
    counters,
    deployed,
    processes,
    send_and_count,
    topology_with,
)

pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("ovs"),
    pytest.mark.skipif(bool(list(missing("auto"))), reason="; ".join(map(str, missing("auto")))),
]
WITH_DPDK = pytest.mark.skipif(bool(list(missing("dpdk"))), reason="; ".join(map(str, missing("dpdk"))))
SENT = 4000
"""More than a ring of AF_XDP holds, which are 2048 packets, and more than a socket holds, some 256."""
RING = 2048
AT_ONCE = 100
"""Fewer than the ring of a veth port holds, of which the kernel takes them in its turn."""
READ_WITHIN_S = 30.0
Rows = dict[str, tuple[float | None, ...]]


def sampler_of(deployment: Deployment) -> FeatureSampler:
    sampler = deployment.parts.features
    assert sampler is not None
    return sampler


def pid_of(program: str) -> int:
    (pid,) = (pid for pid, line in processes(program).items() if str(DIRECTORY) in line)
    return pid


def ended(sampler: FeatureSampler) -> Rows:
    return {row.feature: row.values for row in sampler.stop() if row.owner == VSWITCH}


def has_sockets(sampler: FeatureSampler) -> list[bool]:
    """Whether the sockets of Open vSwitch are in each reading so far, the one at the beginning included."""
    assert isinstance(sampler, LinuxFeatureSampler)
    return ["socket_dropped_pps" in amounts[VSWITCH] for _, amounts in sampler._readings]


def send_all(flow: Flow) -> None:
    for _ in range(SENT // AT_ONCE):
        send(flow, AT_ONCE)
        time.sleep(0.004)


@contextmanager
def standing_still() -> Iterator[None]:
    """Stop Open vSwitch, and wait for the fact: a busy CPU lets a thread take the signal when it has its turn."""
    pid = pid_of("ovs-vswitchd")

    def running() -> str:
        return str([task.name for task in Path(f"/proc/{pid}/task").iterdir() if not is_stopped(int(task.name))] or "")

    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until("stop of all threads of ovs-vswitchd", running, READ_WITHIN_S, pause_s=0.01)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def received_while_it_stands(deployment: Deployment) -> Rows:
    """One second in which packets come and nobody takes them, two in which they are taken."""
    sampler = sampler_of(deployment)
    sampler.start()
    with standing_still():
        namespaces.run_inside("csit-generator", partial(send_all, deployment.plan.flows[0]))
        time.sleep(1.1)
    time.sleep(2.0)
    return ended(sampler)


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def all_of(values: tuple[float | None, ...]) -> float:
    return sum(value for value in values if value is not None)


def test_sockets_of_af_xdp_report_backlog_and_drops() -> None:
    with deployed(topology_with(ports="auto"), cell("CSC", 1, 1)) as deployment:
        send_and_count(deployment)
        if "AF_XDP" not in deployment.facts()["vswitch"]["datapath"]:
            pytest.skip("this Open vSwitch has no ports of AF_XDP")
        before, came = counters(deployment), deployment.plan.flows[0].rx_interface
        found = received_while_it_stands(deployment)
        standing, *_, left = found["queued_packets"]
        assert standing is not None and left is not None
        assert RING - 64 < standing <= RING, "the ring into Open vSwitch is full"
        assert 0 < left < standing, "Open vSwitch leaves what a port does not take in that port's ring"
        found = received_while_it_stands(deployment)
        lost, still = all_of(found["socket_dropped_pps"]), found["queued_packets"][-1]
        assert lost > 50, "that ring overflows"
        assert still is not None
        now = counters(deployment)
        dropped = sum(
            now[port.interface].rx_dropped + now[port.interface].tx_dropped
            - before[port.interface].rx_dropped - before[port.interface].tx_dropped
            for port in deployment.plan.ports(VSWITCH)
        )  # fmt: skip
        received = now[came].rx_packets - before[came].rx_packets
        assert received + dropped + lost + still == pytest.approx(2 * SENT, abs=0.02 * lost + 2)
        sampler_of(deployment).start()
        for _ in range(100):
            namespaces.run_inside("csit-generator", partial(send, deployment.plan.flows[0], 1))
            time.sleep(0.015)
        time.sleep(0.6)
        last = ended(sampler_of(deployment))["queued_packets"][-1]
        assert last is not None and last <= 1, "the next packets take along what stayed, and one may be the last"


def test_packet_sockets_report_drops_and_the_memory_of_their_backlog() -> None:
    with deployed(topology_with(ports="system"), cell("CSC", 1, 1)) as deployment:
        send_and_count(deployment)
        came = deployment.plan.flows[0].rx_interface
        before = counters(deployment)[came].rx_packets
        found = received_while_it_stands(deployment)
        standing, *_, left = found["queued_kib"]
        assert standing is not None
        assert standing > 100
        assert left == 0
        lost, received = all_of(found["socket_dropped_pps"]), counters(deployment)[came].rx_packets - before
        assert lost > 0.8 * SENT
        assert SENT - received == pytest.approx(lost, rel=0.02)
        assert "queued_packets" not in found, "what it does not send for lack of memory nobody counts"
        assert (
            "queued_packets of vswitch: some of its losses are not counted"
            in sampler_of(deployment).facts()["features left out"]
        )


def test_what_an_overload_leaves_in_the_rings_is_not_received_in_the_next_trial() -> None:
    topology = topology_with(ports="auto")
    with deployed(topology, cell("CSC", 1, 1)) as deployment:
        run, flows, clearing = deployment.parts.generator.run, len(deployment.plan.flows), VSwitchFlush(topology)

        def offered(load_pps: float) -> TrialResult:
            return run(Trial(load_pps=load_pps, duration_s=0.5, frame=frame("64B"), purpose="sweep"))

        for _ in range(2):
            with standing_still():  # a slow machine has no load that would overload it
                overload = offered(20_000.0)
            assert overload.received < 0.9 * overload.sent
            clearing.after(overload)
            clearing.before(run, overload.trial, flows)
            calm = offered(500.0)
            assert 0.9 * calm.sent <= calm.received <= calm.sent


@pytest.mark.parametrize("ports", ["auto", "system"])
def test_one_that_is_killed_has_no_values_and_nothing_stays_open(ports: str) -> None:
    with deployed(topology_with(ports=ports), cell("CSC", 1, 1)) as deployment:
        send_and_count(deployment)
        descriptors = open_descriptors()
        sampler, pid = sampler_of(deployment), pid_of("ovs-vswitchd")
        sampler.start()
        # A second whose reading comes late has no values; two in a row are rare.
        wait_until("the first seconds", lambda: "" if len(has_sockets(sampler)) > 2 else "no readings", READ_WITHIN_S)
        os.kill(pid, signal.SIGKILL)
        wait_until("a second without it", lambda: "sockets" if has_sockets(sampler)[-1] else "", READ_WITHIN_S)
        values = ended(sampler)["socket_dropped_pps"]
        assert set(values) == {0.0, None}
        assert values[-1] is None
        assert open_descriptors() == descriptors


def test_where_copies_are_sent_rings_count_no_losses_with_a_note() -> None:
    asked = cell("CSC", 1, 1).model_copy(update={"taps": (Tap(position=1, kind=NfKind("tcpdump")),)})
    with deployed(topology_with(ports="af_xdp"), asked) as deployment:
        sampler = sampler_of(deployment)
        sampler.start()
        time.sleep(1.1)
        assert "socket_dropped_pps" not in ended(sampler)
        assert "queues of vswitch: it sends copies" in sampler.facts()["features left out"]


@WITH_DPDK
def test_what_dpdk_loses_is_left_out_and_said() -> None:
    with deployed(topology_with(ports="dpdk"), cell("CSC", 1, 1)) as deployment:
        sampler = sampler_of(deployment)
        sampler.start()
        time.sleep(1.1)
        assert "socket_dropped_pps" not in ended(sampler)
        assert (
            "queues of vswitch: its packet sockets have rings, whose losses the kernel reports only once"
            in sampler.facts()["features left out"]
        )
