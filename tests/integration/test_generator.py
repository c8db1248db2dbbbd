"""The built-in generator over real veth pairs, sending in either way."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from hdrh.histogram import HdrHistogram

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator, why_not_by_xdp
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.traffic import Protocol
from tests.veth_pair import (
    B64,
    IMIX,
    IMIX_WEIGHTS,
    LEFT,
    NAMESPACE,
    RIGHT,
    captured,
    generating,
    plan,
    receive_by_napi,
    run,
    undisturbed,
    veth_pair,
)

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cable(sending: Sending) -> Iterator[None]:
    """Two ports; what arrives is taken on the sender's CPU before it sends more, so nothing can be lost."""
    with veth_pair(NAMESPACE, (LEFT, RIGHT), napi=sending == "xdp"):
        yield


@pytest.fixture(scope="module", params=["ring", "xdp", "af_xdp"])
def sending(request: pytest.FixtureRequest) -> Sending:
    """How to send."""
    if request.param == "xdp" and (reason := why_not_by_xdp()):
        pytest.skip(reason)
    return cast(Sending, request.param)


@pytest.fixture
def generator(cable: None, sending: Sending) -> Iterator[BuiltInGenerator]:  # noqa: ARG001 - must be there first
    """A started generator: one at a time, as an AF_XDP socket has the queue of its port to itself."""
    with generating(NAMESPACE, sending) as ring:
        yield ring
    assert ring.pids() == ()


@pytest.mark.parametrize("load_pps", [100.0, 1234.5, 20_000.0, 100_000.0])
def test_every_packet_is_sent_on_time_and_counted(generator: BuiltInGenerator, load_pps: float) -> None:
    trial = Trial(load_pps=load_pps, duration_s=0.5, frame=B64)
    result = undisturbed(generator, trial)
    assert result.sent == pytest.approx(2 * round(load_pps / 2 * 0.5), rel=0.001)
    assert result.received == result.sent
    forward, reverse = result.flows
    assert abs(forward.sent - reverse.sent) <= 1
    assert result.offered_pps == pytest.approx(load_pps, rel=0.001)
    assert result.offered_duration_s == pytest.approx(result.sent / load_pps, abs=0.0012)
    assert result.latency == ()


def test_frames_on_the_wire(generator: BuiltInGenerator) -> None:
    packets = 254 * 10
    result, capture = captured(generator, Trial(load_pps=packets * 2 / 0.5, duration_s=0.5, frame=B64), RIGHT)
    assert result.sent == packets * 2
    assert len(capture.frames) == packets
    assert {len(frame) for frame in capture.frames} == {60}
    sources = Counter(struct.unpack_from("!I", frame, 26)[0] for frame in capture.frames)
    first = struct.unpack("!I", socket.inet_aton("10.0.1.1"))[0]
    assert sorted(sources) == list(range(first, first + 254))
    assert set(sources.values()) == {10}
    for frame in capture.frames[:254]:
        assert sum(struct.unpack("!10H", frame[14:34])) % 0xFFFF == 0
        assert frame[23] == 61


def test_tcp_segments_on_the_wire_have_right_checksums(generator: BuiltInGenerator) -> None:
    packets = 254 * 10
    trial = Trial(load_pps=packets * 2 / 0.5, duration_s=0.5, frame=B64, protocol=Protocol.TCP)
    result, capture = captured(generator, trial, RIGHT)
    assert (result.sent, result.received) == (packets * 2, packets * 2)
    assert len(capture.frames) == packets
    assert len({frame[26:30] + frame[34:36] for frame in capture.frames}) == 254
    for frame in capture.frames[:254]:
        assert sum(struct.unpack("!10H", frame[14:34])) % 0xFFFF == 0
        segment = frame[26:34] + struct.pack("!HH", 6, len(frame) - 34) + frame[34:]
        assert sum(struct.unpack(f"!{len(segment) // 2}H", segment)) % 0xFFFF == 0


def test_a_mix_of_sizes_keeps_its_ratio(generator: BuiltInGenerator) -> None:
    _, capture = captured(generator, Trial(load_pps=24_000, duration_s=0.2, frame=IMIX), RIGHT)
    assert Counter(len(frame) + 4 for frame in capture.frames) == {size: n * 200 for size, n in IMIX_WEIGHTS.items()}


@pytest.mark.parametrize("frame_bytes", [64, 1518, 4000, 9018])
def test_frames_up_to_jumbo(generator: BuiltInGenerator, frame_bytes: int) -> None:
    frame = Frame(name="x", parts=(FramePart(frame_bytes=frame_bytes),))
    result, capture = captured(generator, Trial(load_pps=2000, duration_s=0.1, frame=frame, probe_pps=100), LEFT)
    assert result.received == result.sent == 200
    assert {len(data) + 4 for data in capture.frames} == {frame_bytes}
    assert len(capture.frames) == 110


def test_a_frame_the_port_cannot_take_is_an_error(cable: None, sending: Sending) -> None:  # noqa: ARG001
    run("ip", "-n", NAMESPACE, "link", "set", LEFT, "mtu", "1500")
    frame = Frame(name="9000B", parts=(FramePart(frame_bytes=9000),))
    try:
        with generating(NAMESPACE, sending) as ring:
            with pytest.raises(CsitError, match=r"ringa takes frames up to 1518 bytes, asked for 9000"):
                ring.run(Trial(load_pps=10, duration_s=0.1, frame=frame))
            again = ring.run(Trial(load_pps=1000, duration_s=0.1, frame=B64))
            assert 0 < again.received == again.sent
    finally:
        run("ip", "-n", NAMESPACE, "link", "set", LEFT, "mtu", "9000")


@pytest.mark.parametrize("load_pps", [0.0, 10_000.0])
def test_latency_of_every_probe(generator: BuiltInGenerator, load_pps: float) -> None:
    trial = Trial(load_pps=load_pps, duration_s=0.5, frame=B64, probe_pps=200)
    for _ in range(2):  # the second time sockets and time stamp numbers go on
        result = undisturbed(generator, trial)
        assert len(result.latency) == 2
        for flow in result.latency:
            # One less where the machine had something else to do when the last one was due.
            assert flow.sent == flow.received and 98 <= flow.sent <= 100, result.note
            assert flow.min_ns is not None and flow.p50_ns is not None and flow.max_ns is not None
            assert 100 < flow.min_ns <= flow.p50_ns <= flow.max_ns < 1_000_000_000
            assert flow.p50_ns < 10_000_000
            assert flow.histogram is not None
            assert HdrHistogram.decode(flow.histogram).get_total_count() == flow.sent
    assert result.received == result.sent == pytest.approx(load_pps * 0.5, rel=0.001)


@contextmanager
def dropping(every: int) -> Iterator[str]:
    """Ports joined by a bridge in another namespace, which drops every n-th packet that comes in from the left."""
    ports, bridge = f"{NAMESPACE}-ports", f"{NAMESPACE}-bridge"
    try:
        for name in (ports, bridge):
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "-n", bridge, "link", "add", "ringbr", "type", "bridge", "mcast_snooping", "0")
        run("ip", "-n", bridge, "link", "set", "ringbr", "up")
        for port, far in ((LEFT, "ringfa"), (RIGHT, "ringfb")):
            run("ip", "-n", ports, "link", "add", port, "type", "veth", "peer", "name", far, "netns", bridge)
            run("ip", "-n", bridge, "link", "set", far, "master", "ringbr", "up")
            run("ip", "-n", ports, "link", "set", port, "up")
            receive_by_napi(bridge, far)
            receive_by_napi(ports, port)
        rules = (
            "add table netdev ring; "
            "add chain netdev ring left { type filter hook ingress device ringfa priority 0; }; "
            f"add rule netdev ring left numgen inc mod {every} 0 drop"
        )
        run("ip", "netns", "exec", bridge, "nft", rules)
        yield ports
    finally:
        for name in (ports, bridge):
            run("ip", "netns", "del", name)


def test_loss_is_counted_per_direction(sending: Sending) -> None:
    with dropping(10) as ports, generating(ports, sending) as ring:
        result = ring.run(Trial(load_pps=20_000, duration_s=0.5, frame=B64))
        forward, reverse = result.flows
        # A machine that is busy otherwise may send a few less; that all are sent is the business of other tests.
        assert forward.sent - forward.received == pytest.approx(forward.sent / 10, abs=1)
        assert reverse.sent == reverse.received > 4000
        assert result.loss_ratio == pytest.approx(0.05, rel=0.05)
        result = ring.run(Trial(load_pps=0, duration_s=0.5, frame=B64, probe_pps=200))
        forward_latency, reverse_latency = result.latency
        assert (forward_latency.sent, forward_latency.received) == (100, 90)
        assert (reverse_latency.sent, reverse_latency.received) == (100, 100)
        assert (result.sent, result.received, result.loss_ratio) == (0, 0, None)


def test_a_hopeless_trial_ends_early(sending: Sending) -> None:
    with dropping(2) as ports, generating(ports, sending) as ring:
        trial = Trial(load_pps=20_000, duration_s=2.0, frame=B64, abort_loss_ratio=0.0)
        result = undisturbed(ring, trial)
        assert result.aborted, result.note
        assert result.offered_duration_s < 1.0
        assert result.sent < 20_000
        forward, reverse = result.flows
        assert forward.received == pytest.approx(forward.sent / 2, abs=1)
        assert reverse.received == reverse.sent
        # a quarter is lost: never more than a third, and more than a twentieth once a fifth has been sent
        trial = trial.model_copy(update={"duration_s": 1.0})
        whole = undisturbed(ring, trial.model_copy(update={"abort_loss_ratio": 0.33}))
        assert not whole.aborted and whole.offered_duration_s == pytest.approx(1.0, abs=0.1)
        part = ring.run(trial.model_copy(update={"abort_loss_ratio": 0.05}))
        assert part.aborted and part.offered_duration_s < 0.9
        assert part.sent - part.received > 0.05 * 20_000


def test_a_full_queue_is_loss_of_the_system_not_of_the_generator(sending: Sending) -> None:
    name = f"{NAMESPACE}-slow"
    # the receiving threads share the sender's CPU, so that they cannot keep up with it
    with veth_pair(name, (LEFT, RIGHT), receive_cpu=0), generating(name, sending) as ring:
        result = ring.run(Trial(load_pps=2e7, duration_s=0.3, frame=B64))
        assert 0 < result.received < result.sent
        assert "met a full queue" in (result.note or "")
        counters = subprocess.run(
            ("ip", "netns", "exec", name, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True
        ).stdout
    passed = dropped = 0
    for line in counters.splitlines()[2:]:
        numbers = [int(number) for number in line.partition(":")[2].split()]
        passed, dropped = passed + numbers[9], dropped + numbers[11]
    assert result.sent == passed + dropped
    assert result.received == passed


def test_a_worker_per_direction_where_there_are_two_cpus(cable: None, sending: Sending) -> None:  # noqa: ARG001
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    with generating(NAMESPACE, sending, plan(cpus=(0, 1))) as ring:
        assert [os.sched_getaffinity(pid) for pid in ring.pids()] == [{0}, {1}]
        result = undisturbed(ring, Trial(load_pps=20_000, duration_s=0.5, frame=B64, probe_pps=100))
    assert [flow.direction for flow in result.flows] == [Direction.FORWARD, Direction.REVERSE]
    assert [flow.received for flow in result.flows] == [flow.sent for flow in result.flows]
    assert result.sent == pytest.approx(10_000, rel=0.05)
    assert [flow.received for flow in result.latency] == [flow.sent for flow in result.latency]


def test_a_killed_worker_is_an_error_at_once(cable: None, sending: Sending) -> None:  # noqa: ARG001
    ring = BuiltInGenerator(plan(), NAMESPACE, sending)
    ring.start()
    (pid,) = ring.pids()
    killed_at = []

    def kill() -> None:
        killed_at.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(0.3, kill)
    timer.start()
    with pytest.raises(CommandFailed, match=r"builtin\.worker was killed by SIGKILL"):
        ring.run(Trial(load_pps=10_000, duration_s=20, frame=B64))
    assert time.monotonic() - killed_at[0] < 5.0  # of the 20 s that it would have sent
    with pytest.raises(CommandFailed):
        ring.run(Trial(load_pps=10_000, duration_s=1, frame=B64))
    ring.stop()
    ring.stop()
    with pytest.raises(CsitError, match="has not been started"):
        ring.run(Trial(load_pps=10_000, duration_s=1, frame=B64))


def test_workers_do_not_outlive_a_killed_driver(cable: None, sending: Sending) -> None:  # noqa: ARG001
    script = (
        "import sys\n"
        "from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator\n"
        "from resources.libraries.python.model.plan import Plan\n"
        "from resources.libraries.python.model.measurements.trial import Trial\n"
        f"ring = BuiltInGenerator(Plan.model_validate_json(sys.stdin.readline()), {NAMESPACE!r}, {sending!r})\n"
        "ring.start()\n"
        "print(ring.pids()[0], flush=True)\n"
        "ring.run(Trial.model_validate_json(sys.stdin.readline()))\n"
    )
    trial = Trial(load_pps=1000, duration_s=60, frame=B64)
    with subprocess.Popen(
        (sys.executable, "-c", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as driver:
        assert driver.stdin is not None and driver.stdout is not None
        driver.stdin.write(f"{plan().model_dump_json()}\n{trial.model_dump_json()}\n")
        driver.stdin.flush()
        worker = Path("/proc") / driver.stdout.readline().strip()
        assert worker.exists()
        driver.kill()
    deadline = time.monotonic() + 20.0
    while worker.exists() and "Z" not in (worker / "stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "the worker lives on"


def test_ports_that_are_not_ready(cable: None, sending: Sending) -> None:  # noqa: ARG001
    with pytest.raises(CsitError, match="namespace csit-ring-none cannot be opened"):
        BuiltInGenerator(plan(), "csit-ring-none").start()
    run("ip", "-n", NAMESPACE, "link", "set", RIGHT, "down")
    try:
        ring = BuiltInGenerator(plan(), NAMESPACE, sending)
        with pytest.raises(NotReady, match=f"carrier of the generator's ports not ready .* {LEFT}, {RIGHT} down"):
            ring.start()
        assert ring.pids() == ()
    finally:
        run("ip", "-n", NAMESPACE, "link", "set", RIGHT, "up")
    ring.start()
    with pytest.raises(CsitError, match="started already"):
        ring.start()
    run("ip", "-n", NAMESPACE, "link", "set", LEFT, "down")
    try:
        with pytest.raises(CsitError, match="does not send: Network is down"):
            ring.run(Trial(load_pps=1000, duration_s=0.1, frame=B64))
    finally:
        run("ip", "-n", NAMESPACE, "link", "set", LEFT, "up")
        ring.stop()
