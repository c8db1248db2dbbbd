"""The sending loops: paced by a schedule, or as fast as the core can."""

import time
from collections.abc import Sequence

from resources.libraries.python.drivers.generators.builtin.abort import EVERY_S, LossWatch
from resources.libraries.python.drivers.generators.builtin.schedule import GRACE_S, Schedule
from resources.libraries.python.drivers.generators.builtin.sender import SentTraffic
from resources.libraries.python.drivers.generators.ring.pacer import Pacer
from resources.libraries.python.drivers.generators.ring.probe import ProbeSender
from resources.libraries.python.drivers.generators.ring.tx_ring import TxRing

_BURST = 127
"""Frames of one flow per system call at most: half a veth queue. On time it is what became due since the last round.
Each call may have to wake up the receiver, which takes as long as 30 frames: small bursts are dear."""
_NEVER_S = float("inf")
_SPIN_S = 120e-6
"""A sleep ends this much before the next packet is due: waking up takes up to that long."""


def send_paced(
    rings: Sequence[TxRing],
    schedule: Schedule,
    probes: Sequence[ProbeSender],
    probe_schedule: Schedule,
    watch: LossWatch,
) -> SentTraffic:
    """Send load and probes when they are due.

    Args:
        rings: one per flow.
        schedule: of the load.
        probes: one per flow, or none.
        probe_schedule: of the probes.
        watch: says when to end early.

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


def send_unpaced(rings: Sequence[TxRing], duration_s: float) -> SentTraffic:
    """Send load frames as fast as possible.

    Args:
        rings: one per flow; they take turns.
        duration_s: how long.

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
