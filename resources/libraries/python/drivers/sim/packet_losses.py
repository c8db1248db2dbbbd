"""Losses, reordering and duplicates in a simulated system, packet by packet.

The truth is a mechanism: packets arrive at equal distances at a finite queue whose server pauses regularly, some are
dropped at random, some take a longer path, and some are copied.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from random import Random
from typing import Annotated

import numpy as np
from pydantic import Field

from resources.libraries.python.drivers.generators.losses import NumberedArrivals, count_losses
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import FlowLosses

MOST_PACKETS = 200_000
"""Maximum number of packets of a flow in a simulated trial."""
_NS = 1_000_000_000

Ratio = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=10)]


class PacketLosses(Frozen):
    """Mechanisms that lose, delay and copy packets while losses are counted."""

    queue: Annotated[int, Field(ge=1, le=100_000)] = 256
    """Packets of a flow that wait; others are dropped."""
    pause_every_s: Seconds = 0.0
    """The server pauses this often; 0 for never."""
    pause_s: Seconds = 0.0
    """Length of a pause."""
    random_ratio: Ratio = 0.0
    """Share of packets dropped at random."""
    detour_ratio: Ratio = 0.0
    """Share of packets that take a longer path."""
    detour_s: Seconds = 0.0
    """Its additional delay."""
    copied_ratio: Ratio = 0.0
    """Share of packets that arrive twice."""


def flow_losses(
    truth: PacketLosses, flow: Flow, rng: Random, *, packets: int, load_pps: float, capacity_pps: float, begin_ns: int
) -> FlowLosses:
    """Send packets through the mechanisms and count what arrives.

    Args:
        truth: The mechanisms.
        flow: The flow.
        rng: Of this flow.
        packets: Packets to send.
        load_pps: Rate at which they are sent.
        capacity_pps: Rate of the server.
        begin_ns: When the first one is sent, since the epoch.
    """
    arrivals: list[tuple[float, int]] = []
    for number, departure_s in _served(truth, packets, load_pps, capacity_pps):
        if rng.random() < truth.random_ratio:
            continue
        arrives_s = departure_s + (truth.detour_s if rng.random() < truth.detour_ratio else 0.0)
        arrivals.append((arrives_s, number))
        if rng.random() < truth.copied_ratio:
            arrivals.append((arrives_s, number))
    arrivals.sort()
    found = count_losses(_received([number for _, number in arrivals], packets), (begin_ns, _NS / load_pps))
    return FlowLosses(instance=flow.instance, direction=flow.direction, **asdict(found))


def _served(truth: PacketLosses, packets: int, load_pps: float, capacity_pps: float) -> Iterator[tuple[int, float]]:
    """Packets that found room in the queue, and when they left it."""
    waiting: deque[float] = deque()
    free_s = 0.0
    for number in range(packets):
        now_s = number / load_pps
        while waiting and waiting[0] <= now_s:
            waiting.popleft()
        if len(waiting) >= truth.queue:
            continue
        free_s = max(free_s, now_s) + 1 / capacity_pps
        if truth.pause_every_s and free_s % truth.pause_every_s < truth.pause_s:
            free_s += truth.pause_s - free_s % truth.pause_every_s
        waiting.append(free_s)
        yield number, free_s


def _received(sequence: list[int], packets: int) -> NumberedArrivals:
    """What a receiver counts of packets that arrive in this order."""
    came = np.zeros(packets, dtype=np.bool_)
    late: list[tuple[int, int]] = []
    arrived = following = 0
    for number in sequence:
        if came[number]:
            continue
        came[number] = True
        if number < following:
            late.append((number, arrived))
        following = max(following, number + 1)
        arrived += 1
    numbers, orders = np.array(late, dtype=np.int64).reshape(-1, 2).T
    none = np.zeros(0, dtype=np.int64)
    return NumberedArrivals(came, none, none, len(sequence) - arrived, numbers, orders, len(late))
