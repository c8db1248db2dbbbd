"""Losses, duplicates and reordering of real packets: what the receiving program counts, and what tcpdump saw."""

import re
import selectors
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator, why_not_by_xdp
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.search.losses import LossPattern, losses_in_words, pattern_of
from tests.integration.numbered_captures import Seen, dumped, seen_at
from tests.veth_pair import (
    B64,
    IMIX,
    LEFT,
    NAMESPACE,
    RIGHT,
    TRIALS,
    generating,
    receive_by_napi,
    run,
    undisturbed,
    veth_pair,
)

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
INNER_LEFT, INNER_RIGHT = "innera", "innerb"
LOAD_PPS = 40_000.0
"""20 kpps in each direction: 80 packets in 4 ms."""
SOCKET_BYTES = 64 << 20
FORCED_RECEIVE_BUFFER = 33

Mechanism = Callable[[bytes], Sequence[bytes]]
"""What comes out for a frame that goes in."""


def untouched(frame: bytes) -> Sequence[bytes]:
    return (frame,)


def lose_bursts(lost: int, each: int) -> Mechanism:
    """Lose `lost` frames in a row, out of `each`."""
    seen = 0

    def mechanism(frame: bytes) -> Sequence[bytes]:
        nonlocal seen
        seen += 1
        return () if (seen + 7) % each < lost else (frame,)

    return mechanism


def lose_at_random(share: float) -> Mechanism:
    random = Random(4)
    return lambda frame: () if random.random() < share else (frame,)


def copy_at_random(share: float) -> Mechanism:
    random = Random(5)
    return lambda frame: (frame, frame) if random.random() < share else (frame,)


def two_paths(share: float, later: int) -> Mechanism:
    """Send a share of the frames over a path that is `later` frames longer."""
    random, seen = Random(6), 0
    waiting: list[tuple[int, bytes]] = []

    def mechanism(frame: bytes) -> Sequence[bytes]:
        nonlocal seen
        seen += 1
        due = [held for at, held in waiting if at <= seen]
        waiting[:] = [(at, held) for at, held in waiting if at > seen]
        if random.random() < share:
            waiting.append((seen + later, frame))
            return due
        return (frame, *due)

    return mechanism


class Forwarder:
    """Forwards between two interfaces, and does something to the frames of each direction."""

    def __init__(self, forward: Mechanism, reverse: Mechanism, *, flood: int = 0) -> None:
        self._mechanisms = {INNER_LEFT: forward, INNER_RIGHT: reverse}
        self._flood = flood
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        enter_namespace(NAMESPACE)
        sockets = {}
        for name in self._mechanisms:
            sockets[name] = sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sock.setsockopt(socket.SOL_SOCKET, FORCED_RECEIVE_BUFFER, SOCKET_BYTES)
            sock.bind((name, 0x0800))
            sock.setblocking(False)
        others = {INNER_LEFT: sockets[INNER_RIGHT], INNER_RIGHT: sockets[INNER_LEFT]}
        self._ready.set()
        with selectors.DefaultSelector() as selector:
            for name, sock in sockets.items():
                selector.register(sock, selectors.EVENT_READ, name)
            while not self._stop.is_set():
                for key, _ in selector.select(0.05):
                    self._forward(sockets[key.data], others[key.data], self._mechanisms[key.data])
        for sock in sockets.values():
            sock.close()

    def _forward(self, source: socket.socket, to: socket.socket, mechanism: Mechanism) -> None:
        for _ in range(64):
            try:
                frame, (_, _, kind, *_) = source.recvfrom(2000)
            except BlockingIOError:
                return
            if kind == socket.PACKET_OUTGOING:
                continue
            for each in mechanism(frame):
                to.send(each)
            if self._flood and frame[23] == socket.IPPROTO_UDP:
                self._flood -= 1
                source.send(frame)

    def __enter__(self) -> "Forwarder":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(params=["auto", "ring"])
def generator(request: pytest.FixtureRequest) -> Iterator[BuiltInGenerator]:
    """On two cables, to be joined by a forwarder."""
    if reason := why_not_by_xdp():
        pytest.skip(reason)
    with veth_pair(NAMESPACE, (LEFT, INNER_LEFT), napi=True):
        inside = ("ip", "-n", NAMESPACE, "link")
        run(*inside, "add", INNER_RIGHT, "type", "veth", "peer", "name", RIGHT)
        for name in (INNER_RIGHT, RIGHT):
            run(*inside, "set", name, "up")
            receive_by_napi(NAMESPACE, name)
        with generating(NAMESPACE, request.param) as built_in:
            yield built_in


ONLY_XDP = pytest.mark.parametrize("generator", ["auto"], indirect=True)


def dumped_trial(
    generator: BuiltInGenerator, trial: Trial, folder: Path, forwarder: Callable[[], Forwarder]
) -> tuple[TrialResult, dict[Direction, Seen]]:
    """A trial in which all packets were sent; one in which the machine stood still is repeated on a new forwarder."""
    if not shutil.which("tcpdump"):
        pytest.skip("tcpdump is not installed")
    left, right = folder / "left.pcap", folder / "right.pcap"
    for _ in range(TRIALS):
        with forwarder(), dumped(INNER_LEFT, left, NAMESPACE), dumped(INNER_RIGHT, right, NAMESPACE):
            result = generator.run(trial)
        if result.sent == round(trial.load_pps * trial.duration_s):
            break
    assert result.sent == round(trial.load_pps * trial.duration_s), result.note
    return result, seen_at(left, right)


def counting(duration_s: float, load_pps: float = LOAD_PPS, frame: object = B64) -> Trial:
    return Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, count_losses=True, purpose="losses")


def test_bursts_and_random_losses_are_distinguished_and_counted_as_by_tcpdump(
    generator: BuiltInGenerator, tmp_path: Path
) -> None:
    def forwarder() -> Forwarder:
        return Forwarder(lose_bursts(32, 80), lose_at_random(0.001))

    result, seen = dumped_trial(generator, counting(2.0), tmp_path, forwarder)
    bursts, random = result.losses
    for flow in result.losses:
        seen[flow.direction].agrees_with(flow)
    assert (bursts.lost, pattern_of(bursts)) == (16_000, LossPattern.PERIODIC)
    assert losses_in_words(bursts) == "bursts of 32 every 4 ms (40.0 % lost)"
    assert random.lost >= 15 and pattern_of(random) is LossPattern.RANDOM
    assert re.fullmatch(r"1 in (1,\d|[6-9])\d\d at random", losses_in_words(random)), losses_in_words(random)
    assert bursts.burst_s == pytest.approx(0.0016, rel=0.1)


def test_copies_and_a_longer_path_are_counted_as_tcpdump_does(generator: BuiltInGenerator, tmp_path: Path) -> None:
    def forwarder() -> Forwarder:
        return Forwarder(copy_at_random(0.01), two_paths(0.02, later=5))

    # As many packets as in a second elsewhere, so slowly that a busy machine receives them all.
    result, seen = dumped_trial(generator, counting(5.0, 8_000.0), tmp_path, forwarder)
    copied, reordered = result.losses
    for flow in result.losses:
        seen[flow.direction].agrees_with(flow)
    assert copied.duplicates > 100 and not copied.order.reordered and not copied.lost
    assert reordered.order.reordered and reordered.order.reordered > 200
    assert max(reordered.order.extents, key=lambda pair: pair[1])[0] in {4, 5}
    assert "duplicates" in losses_in_words(copied) and "packets reordered" in losses_in_words(reordered)


@ONLY_XDP
def test_a_mix_of_frame_sizes_is_counted(generator: BuiltInGenerator) -> None:
    with Forwarder(lose_bursts(1, 100), untouched):
        result = undisturbed(generator, counting(0.5, frame=IMIX))
    assert [flow.lost for flow in result.losses] == [100, 0]
    assert losses_in_words(result.losses[0]) == "single packets every 5 ms (1 in 100 lost)"


@ONLY_XDP
def test_packets_of_another_flow_are_not_taken_for_those_of_this_one(generator: BuiltInGenerator) -> None:
    with Forwarder(untouched, untouched, flood=300):
        result = generator.run(counting(0.5, 8_000.0))
    assert [(flow.lost, flow.duplicates) for flow in result.losses] == [(0, 0), (0, 0)]
    assert sum(flow.foreign for flow in result.losses) == 300
    assert "packets of other flows or trials arrived" in "; ".join(map(losses_in_words, result.losses))


@ONLY_XDP
def test_ordinary_trials_run_between_those_that_count(generator: BuiltInGenerator) -> None:
    with Forwarder(untouched, untouched):
        for _ in range(2):
            counted = generator.run(counting(0.1, 10_000.0))
            assert [flow.lost for flow in counted.losses] == [0, 0]
            plain = generator.run(Trial(load_pps=10_000, duration_s=0.1, frame=B64, probe_pps=100))
            assert plain.received == plain.sent > 900
            assert [row.received for row in plain.latency] == [row.sent for row in plain.latency]
