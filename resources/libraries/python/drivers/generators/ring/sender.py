"""Sending from TX rings: paced by a schedule, or as fast as the core can."""

import errno
import math
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.parallel_calls import BackgroundCloser, together
from resources.libraries.python.drivers.generators.builtin.sender import (
    EVERY_S,
    GRACE_S,
    LossWatch,
    Schedule,
    SentTraffic,
    schedules,
)
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.ring.tx_ring import LoadFrames, Ring, TxRing, XdpSocketRing
from resources.libraries.python.errors import CsitError

_BURST = 127
"""Frames of one flow per system call at most: half a veth queue. On time it is what became due since the last round.
Each call may have to wake up the receiver, which takes as long as 30 frames: small bursts are dear."""
_NEVER_S = float("inf")
_TRIED_BYTES = 128
_SPIN_S = 120e-6
"""A sleep ends this much before the next packet is due: waking up takes up to that long."""


_CATCH_UP = 1.1
_CATCH_UP_LIMIT = 2.0
_SOCKET_BYTES = 64 << 20
_ERROR = struct.Struct("=IBBBBII")
_STAMP = struct.Struct("=qq")


class ProbeSender:
    """Sends the probe frames of one flow."""

    def __init__(self, flow: FlowSpec) -> None:
        """Open the socket.

        Raises:
            CsitError: the kernel refused.
        """
        self._flow = flow
        self._ever = self._first = 0
        self._stamps_ns = np.zeros(0, dtype=np.int64)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_SNDBUFFORCE, _SOCKET_BYTES)
            self._socket.setsockopt(kernel.SOL_PACKET, kernel.PACKET_QDISC_BYPASS, 1)
            self._socket.bind((flow.tx_interface, 0))
            self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_TIMESTAMPING, kernel.TX_SOFTWARE_STAMPS)
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {flow.tx_interface} sends no probes: {error.strerror}") from error

    def prepare(self, pattern: Sequence[int], probes: int, mark: int = 0, flows: int = 0) -> None:
        """Make ready for a trial.

        `pattern`: Frame sizes with FCS in sending order.
        `probes`: How many will be sent.
        `mark`: Of the frames, a number of 32 bits; 0 for that of probes.
        `flows`: 5-tuples; 0: one for each source address.
        """
        while self._take_stamp():  # those of an earlier trial that broke off
            pass
        self._frames = frames.ProbeFrames(self._flow, pattern, mark, count=flows)
        self._first = self._ever
        self._stamps_ns = np.zeros(probes, dtype=np.int64)

    @property
    def sent(self) -> int:
        """Probes sent in this trial."""
        return self._ever - self._first

    def send(self) -> None:
        """Send the next probe and take its time stamp, which the kernel has when `send` returns.

        Raises:
            CsitError: the interface is gone or down.
        """
        try:
            self._socket.send(self._frames.frame(self.sent), socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # a full queue on the far side: sent and lost
                interface = self._flow.tx_interface
                raise CsitError(f"generator port {interface} sends no probes: {error.strerror}") from error
        self._ever += 1
        self._take_stamp()

    def stamps_ns(self) -> NDArray[np.int64]:
        """When each probe left, nanoseconds since the epoch, 0 when not known, shape (probes,)."""
        while self._take_stamp():
            pass
        return self._stamps_ns

    def _take_stamp(self) -> bool:
        try:
            _, ancillary, _, _ = self._socket.recvmsg(0, 256, kernel.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        stamp = number = None
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, kernel.SO_TIMESTAMPING):
                seconds, nanoseconds = _STAMP.unpack_from(data)
                stamp = seconds * 1_000_000_000 + nanoseconds
            elif (level, kind) == (kernel.SOL_PACKET, kernel.PACKET_TX_TIMESTAMP):
                # the kernel counts 32 bits over the socket's life, this trial's probes begin at `first`
                number = (_ERROR.unpack_from(data)[6] - self._first) & 0xFFFFFFFF
        if stamp is not None and number is not None and number < len(self._stamps_ns):
            self._stamps_ns[number] = stamp
        return True

    def close(self) -> None:
        self._socket.close()


class Pacer:
    """Says how many packets may be out by now.

    On time that is what the schedule says. After a stall longer than a queue could hide, the missing packets are not
    thrown at the system under test in one burst, which it would have to drop: the sender goes on at 1.1 to 2 times the
    rate, as needed to be on time at the end, until it meets the schedule again.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._slack = schedule.slack
        self._speed_pps = 0.0
        self._anchor_s = 0.0
        self._anchor = 0
        self.worst_lag_s = 0.0

    def allowed(self, elapsed_s: float, sent: int) -> int:
        """Packets that may have been sent by now.

        `elapsed_s`: time since the start of the schedule.
        """
        due = self._schedule.due(elapsed_s)
        if sent < due:
            self.worst_lag_s = max(self.worst_lag_s, elapsed_s - self._schedule.time_of(sent))
        if due - sent <= self._slack and not self._speed_pps:
            return due
        if self._speed_pps:
            caught = self._anchor + int((elapsed_s - self._anchor_s) * self._speed_pps)
            if caught >= due and due - sent <= self._slack:
                self._speed_pps = 0.0
                return due
            if caught - sent <= self._slack:
                return min(caught, due)
        return self._fall_behind(elapsed_s, sent, due)

    def _fall_behind(self, elapsed_s: float, sent: int, due: int) -> int:
        schedule = self._schedule
        left_s = schedule.length_s - elapsed_s
        needed_pps = (schedule.total - sent) / left_s if left_s > 0 else math.inf
        slowest, fastest = _CATCH_UP * schedule.rate_pps, _CATCH_UP_LIMIT * schedule.rate_pps
        self._speed_pps = min(max(slowest, needed_pps), fastest)
        self._anchor_s, self._anchor = elapsed_s, sent + self._slack
        return min(self._anchor, due)


def send_paced(
    rings: Sequence[Ring],
    schedule: Schedule,
    probes: Sequence[ProbeSender],
    probe_schedule: Schedule,
    watch: LossWatch,
) -> SentTraffic:
    """Send load and probes when they are due.

    Raises:
        CsitError: an interface does not send.
    """
    clock = time.monotonic
    flows = len(rings)
    counts = [0] * flows
    sent = probes_sent = current = 0
    total, probe_total = schedule.total, probe_schedule.total
    # half a slot aside, so that a probe does not always queue behind a load frame sent at the same moment
    probe_offset = 0.5 * schedule.time_of(1) if total else 0.0
    probe_due_s = probe_offset if probe_total else _NEVER_S
    pacer = Pacer(schedule)
    first_s = last_s = 0.0
    end_s = max(schedule.length_s, probe_schedule.length_s + probe_offset) + GRACE_S
    look_s = EVERY_S if watch.needed else _NEVER_S
    aborted = False
    start = clock()
    while sent < total or probes_sent < probe_total:
        elapsed = clock() - start
        if elapsed > end_s:
            break
        if elapsed >= probe_due_s:
            probes[probes_sent % flows].send()
            probes_sent += 1
            probe_due_s = probe_schedule.time_of(probes_sent) + probe_offset if probes_sent < probe_total else _NEVER_S
            continue
        if elapsed >= look_s:
            aborted = watch.ends_it(
                [count + sender.sent for count, sender in zip(counts, probes, strict=True)] if probes else counts
            )
            if aborted:
                break
            look_s = elapsed + EVERY_S
            continue
        allowed = pacer.allowed(elapsed, sent)
        if allowed <= sent:
            idle_s = min(schedule.time_of(sent) if sent < total else end_s, probe_due_s, look_s) - elapsed - _SPIN_S
            if idle_s > 0:
                time.sleep(idle_s)
            continue
        burst = schedule.share(current, allowed) - counts[current]
        if burst > 0:
            handed = rings[current].send(min(burst, _BURST))
            if handed:
                first_s = first_s if sent else elapsed
                counts[current] += handed
                sent += handed
                last_s = elapsed
        current = current + 1 if current + 1 < flows else 0
    offered_s = last_s - first_s + schedule.time_of(1) if sent else 0.0
    if not total:  # probes only
        offered_s = clock() - start
    probed = tuple(sender.sent for sender in probes) or (0,) * flows
    stamps_ns = [sender.stamps_ns() for sender in probes]
    return SentTraffic(tuple(counts), probed, offered_s, pacer.worst_lag_s if total else 0.0, aborted, stamps_ns)


def send_unpaced(rings: Sequence[Ring], duration_s: float) -> SentTraffic:
    """Send load frames as fast as possible.

    `rings`: one per flow; they take turns.

    Raises:
        CsitError: an interface does not send.
    """
    clock = time.monotonic
    counts = [0] * len(rings)
    start = clock()
    end = start + duration_s
    while clock() < end:
        for flow, ring in enumerate(rings):
            counts[flow] += ring.send(_BURST)
    return SentTraffic(tuple(counts), (0,) * len(rings), clock() - start, 0.0)


class RingSender:
    """Fulfils `builtin.sender.Sender`. The rings stay from trial to trial as long as the frame sizes do."""

    name = "AF_PACKET TX ring"
    numbers = False
    _ring: type[Ring] = TxRing

    def __init__(self, flows: Sequence[FlowSpec], captured: CapturedLoad | None = None) -> None:
        self._flows = tuple(flows)
        self._captured = captured
        self._made: tuple[tuple[int, ...], bool, bool, int, bool] | None = None
        self._rings: list[Ring] = []
        self._probes: list[ProbeSender] = []
        self._load = self._probe = Schedule(0.0, len(self._flows), 0)
        self._duration_s, self._unpaced = 0.0, False
        self._aside = BackgroundCloser()

    def prepare(self, spec: TrialSpec) -> None:
        """Fill the rings with the trial's frames.

        Raises:
            CsitError: a port is gone or refuses the frames.
        """
        self._duration_s, self._unpaced = spec.duration_s, spec.load_pps is None
        self._load, self._probe = schedules(spec, len(self._flows))
        if (wanted := (spec.frame_bytes, spec.udp, spec.tcp, spec.flows, spec.captured)) != self._made:
            self._empty()
            captured = self._captured if spec.captured else None
            frames_of = partial(LoadFrames, udp=spec.udp, tcp=spec.tcp, flows=spec.flows, captured=captured)
            loads = [frames_of(flow, spec.frame_bytes) for flow in self._flows]
            self._rings = together([partial(self._ring, load) for load in loads])
            self._made = wanted
        for ring in self._rings:
            ring.rewind()
        if self._probe.total:
            self._probes = self._probes or [ProbeSender(flow) for flow in self._flows]
            for index, sender in enumerate(self._probes):
                sender.prepare(spec.frame_bytes, self._probe.per_flow, spec.mark_of(index), spec.flows)

    def send(self, watch: LossWatch) -> SentTraffic:
        if self._unpaced:
            return send_unpaced(self._rings, self._duration_s)
        probes = self._probes if self._probe.total else ()
        return send_paced(self._rings, self._load, probes, self._probe, watch)

    def _empty(self) -> None:
        self._made = None
        self._aside.close(self._rings)
        self._rings = []

    def close(self) -> None:
        self._empty()
        self._aside.close(self._probes)
        self._probes = []
        self._aside.wait()


class XdpSocketSender(RingSender):
    """Sends by AF_XDP sockets."""

    name = "AF_XDP"
    _ring = XdpSocketRing

    def __init__(self, flows: Sequence[FlowSpec], captured: CapturedLoad | None = None) -> None:
        """Try every port without sending anything.

        Raises:
            Unsupported: The kernel or an interface has no such socket.
        """
        super().__init__(flows, captured)
        copies = set()
        for flow in flows:
            with closing(XdpSocketRing(LoadFrames(flow, (_TRIED_BYTES,)))) as ring:
                copies.add(ring.copies)
        self.name = f"AF_XDP, {' and '.join('copied' if each else 'zero-copy' for each in sorted(copies))}"
