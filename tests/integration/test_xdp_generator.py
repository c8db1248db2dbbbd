"""When the generator sends by XDP live frames and when it does not, and every frame size through a service."""

import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from statistics import median

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator, why_not_by_xdp
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.generators.xdp import bpf, memory
from resources.libraries.python.drivers.generators.xdp.sender import Registration, takes_redirected
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from tests.builders import shipped
from tests.integration.user_space import cell, deployed
from tests.veth_pair import B64, IMIX, LEFT, NAMESPACE, RIGHT, captured, generating, plan, run, undisturbed, veth_pair

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
XDP, RING = "XDP live frames", "AF_PACKET TX ring"


@pytest.fixture(autouse=True)
def _works_here() -> None:
    if reason := why_not_by_xdp():
        pytest.skip(reason)


@pytest.fixture
def generator() -> Iterator[BuiltInGenerator]:
    """Of the best kind, on a cable that takes XDP frames."""
    with veth_pair(NAMESPACE, (LEFT, RIGHT), napi=True), generating(NAMESPACE) as built_in:
        yield built_in


def test_the_ring_is_used_otherwise_with_the_reason() -> None:
    with veth_pair(NAMESPACE, (LEFT, RIGHT)):
        with generating(NAMESPACE) as built_in:
            facts = built_in.facts()
            assert facts["sending"] == RING
            assert facts["not XDP"] == f"{LEFT} takes no XDP frames: its peer does not receive by NAPI (GRO is off)"
            result = undisturbed(built_in, Trial(load_pps=1000, duration_s=0.1, frame=B64))
            assert result.sent == 100
            assert 90 <= result.received <= 100  # a moment in which the machine stands still is not what this is about
        with pytest.raises(CsitError, match=f"cannot send by XDP live frames: {LEFT} takes no XDP frames"):
            BuiltInGenerator(plan(), NAMESPACE, "xdp").start()


def test_runs_of_a_registered_program_wait_for_no_grace_period() -> None:
    with closing(bpf.XdpProgram("csit_generator")) as program:
        np.frombuffer(program.memory, memory.SHARED, count=1)["state"]["done"] = 1

        def run_s() -> float:
            took = []
            for _ in range(9):
                begin_s = time.perf_counter()
                program.run_live(bytes(60), 1, times=2)
                took.append(time.perf_counter() - begin_s)
            return median(took)

        alone_s = run_s()
        with closing(Registration(program)):
            registered_s = run_s()
        print(f"a run takes {alone_s * 1e3:.2f} ms, of a registered program {registered_s * 1e3:.2f} ms")
        assert registered_s < 0.2 * alone_s
        assert run_s() > 5 * registered_s, "it is in the dispatcher no longer"


def test_a_peer_that_receives_by_napi_only_after_the_port_came_up_is_noticed() -> None:
    """As on the other node of a lab, whose ports become those of its vSwitch meanwhile."""

    def late() -> bool:
        enter_namespace(NAMESPACE)
        run("ip", "link", "set", RIGHT, "down")
        for port in (LEFT, RIGHT):
            run("ethtool", "-K", port, "gro", "on")
        run("ip", "link", "set", RIGHT, "up")
        return takes_redirected(LEFT)

    with veth_pair(NAMESPACE, (LEFT, RIGHT)):
        assert not aside(late), "the kernel looks when LEFT comes up"
        with generating(NAMESPACE) as built_in:
            assert built_in.facts() == {"sending": XDP}


def test_frames_larger_than_a_page_are_sent_by_the_ring_with_a_note(generator: BuiltInGenerator) -> None:
    assert generator.facts() == {"sending": XDP}, "chosen where it works"
    large = undisturbed(generator, Trial(load_pps=2000, duration_s=0.2, frame=frame("9000B"), probe_pps=50))
    assert (large.sent, large.received) == (400, 400)
    assert "sent by the TX ring: the kernel runs no XDP live frames of 8996 bytes" in (large.note or "")
    assert [flow.received for flow in large.latency] == [10, 10]
    small = undisturbed(generator, Trial(load_pps=2000, duration_s=0.2, frame=B64))
    assert small.received == 400 and "ring" not in (small.note or "")
    probed = generator.run(Trial(load_pps=10_000, duration_s=0.5, frame=B64, probe_pps=200))
    for flow in probed.latency:  # a cable without threads: a few microseconds, of which the clock's reading is a part
        assert flow.min_ns is not None and 100 < flow.min_ns < 100_000
        assert flow.p50_ns is not None and flow.p50_ns < 1_000_000


def test_load_and_probes_of_a_mix_have_its_sizes_in_its_proportions(generator: BuiltInGenerator) -> None:
    trial = Trial(load_pps=24_000, duration_s=0.2, frame=IMIX, probe_pps=600)
    result, capture = captured(generator, trial, RIGHT)
    assert result.latency[0].received == 120
    for protocol, cycles in ((61, 200), (17, 10)):
        data = [row for row in capture.frames if row[23] == protocol]
        assert Counter(len(row) + 4 for row in data) == {size: n * cycles for size, n in ((64, 7), (570, 4), (1518, 1))}
        for row in data:
            assert sum(struct.unpack("!10H", row[14:34])) % 0xFFFF == 0
            assert struct.unpack_from("!H", row, 16)[0] == len(row) - 14
    numbers = [struct.unpack_from("!I", row, 46)[0] for row in capture.frames if row[23] == 17]
    assert numbers == list(range(120))


def test_packets_of_the_flows_alternate_on_time(generator: BuiltInGenerator) -> None:
    result = generator.run(Trial(load_pps=10_001, duration_s=0.5, frame=B64))
    assert [flow.sent for flow in result.flows] == [2500, 2500]
    assert result.offered_duration_s == pytest.approx(5000 / 10_001, abs=0.0012)


@pytest.mark.usefixtures("generator")
def test_the_kernel_is_asked_what_a_port_takes() -> None:
    def ask() -> tuple[bool, bool]:
        enter_namespace(NAMESPACE)
        run("ethtool", "-K", RIGHT, "gro", "off")
        return takes_redirected(LEFT), takes_redirected(RIGHT)

    assert aside(ask) == (False, True)
    with pytest.raises(CsitError, match="does not report XDP features of none"):
        takes_redirected("none")
    assert socket.if_nametoindex("lo") == 1  # the test itself stayed where it was


@pytest.mark.parametrize("name", ["64B", "1518B", "9000B", "IMIX"])
def test_every_frame_size_crosses_a_service_with_its_latency(name: str) -> None:
    trial = Trial(load_pps=8000, duration_s=0.6, frame=frame(name), probe_pps=200)
    with deployed(shipped("local"), cell("CSC", 2, 2), name) as deployment:
        result = deployment.parts.generator.run(trial)
        facts = deployment.facts()["generator"]
    assert facts == {"sending": XDP}
    assert ("sent by the TX ring" in (result.note or "")) is (name == "9000B")
    assert [(flow.sent, flow.received) for flow in result.flows] == [(1200, 1200)] * 4, result.note
    for flow in result.latency:
        assert (flow.sent, flow.received) == (120, 120)
        assert flow.min_ns is not None and flow.p99_ns is not None and flow.max_ns is not None
        assert 1000 < flow.min_ns <= flow.p99_ns <= flow.max_ns < 1_000_000_000
