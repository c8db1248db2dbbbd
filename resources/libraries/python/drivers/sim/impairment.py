"""Impairments of simulated systems: faults of single NFs, bounded pools of buffers, and losses of packets.

A fault of a single NF in a single chain is loss, delay, a short queue, a co-located load or too little memory. In every
other chain, and alone, the same NF works as the calibration says: that is what makes the chain stand out.

Losses, reordering and duplicates are simulated packet by packet. The truth is a mechanism: packets arrive at equal
distances at a finite queue whose server pauses regularly, some are dropped at random, some take a longer path, and some
are copied.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from random import Random
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from resources.libraries.python.drivers.generators.losses import NumberedArrivals, count_losses
from resources.libraries.python.drivers.sim.flows import crosses
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import FlowLosses
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.kinds import NfKind

_FaultRatio = Annotated[float, Field(ge=0, lt=1)]
"""Below 1: a faulty NF still forwards something."""
_MIB = 2**20
_MIN_LEFT = 0.05
_PAGE_BYTES = 4096
_PAGES_PER_PACKET = 0.02
"""Assumed: pages read again for each packet by an NF that has none of its working set in memory."""


class Impairment(Frozen):
    """One NF of one chain, and what is wrong with it there."""

    chain: Annotated[tuple[NfKind, ...], Field(min_length=1)]
    """Kinds of the chain's NFs from TG port 1 to TG port 2, passive ones included."""
    nf: str
    """Name in the plan, such as `nf-1-2`."""
    loss_ratio: _FaultRatio = 0.0
    """Share of packets lost inside the NF, which no port counts."""
    delay_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    """More latency for each packet."""
    queue_loss_ratio: _FaultRatio = 0.0
    """Share of packets for which the NF's receive queue has no room when the chain is fully utilized; below, less in
    proportion."""
    stolen_ratio: _FaultRatio = 0.0
    """Share of the NF's CPU time that a co-located load takes."""


def impaired(plan: Plan, faults: Sequence[Impairment]) -> Mapping[str, Impairment]:
    """The faults that a cell has, by the NF.

    Raises:
        ConfigError: The chain has no such NF, the NF has two faults, or it is passive and cannot lose or delay packets.
    """
    kinds = tuple(_kinds(plan.cell))
    found: dict[str, Impairment] = {}
    inline = {each.name for each in plan.nfs}
    for fault in faults:
        if fault.chain != kinds:
            continue
        where = f"simulation.impaired: {fault.nf}"
        if fault.nf not in {each.name for each in plan.all_nfs}:
            raise ConfigError(f"{where}: the chain has {', '.join(each.name for each in plan.all_nfs)}")
        if fault.nf in found:
            raise ConfigError(f"{where}: it has two faults in one chain; put their amounts into one")
        if fault.nf not in inline and (fault.loss_ratio or fault.delay_s or fault.queue_loss_ratio):
            raise ConfigError(f"{where}: it is passive, so that it can neither lose nor delay packets of the chain")
        found[fault.nf] = fault
    return found


def memory_bytes(plan: Plan) -> dict[str, float]:
    """Resident memory of each NF: its working set, or its limit where that is less."""
    wanted = {each.name: each.kind.driver.simulated.memory_mib for each in plan.all_nfs}
    return {
        each.name: _MIB * min(wanted[each.name], each.limits.memory_mib or wanted[each.name]) for each in plan.all_nfs
    }


def missing_memory(plan: Plan) -> dict[str, float]:
    """Share of each NF's working set for which its memory limit has no room, in [0, 1)."""
    wanted = {each.name: _MIB * each.kind.driver.simulated.memory_mib for each in plan.all_nfs}
    return {name: 1 - there / wanted[name] for name, there in memory_bytes(plan).items()}


def memory_left_ratio(plan: Plan) -> dict[str, float]:
    """Share of each NF's capacity that missing memory leaves.

    An NF that has half of its working set in memory forwards a quarter: it waits for the other half.
    """
    return {name: max(_MIN_LEFT, (1 - missing) ** 2) for name, missing in missing_memory(plan).items()}


def pages_read_bytes(missing: float, packets: float) -> float:
    """Read from storage for so many packets, with so much of the working set missing."""
    return _PAGE_BYTES * _PAGES_PER_PACKET * missing * packets


def _kinds(cell: Cell) -> Iterator[NfKind | None]:
    """In the order of packets from TG port 1."""
    for node in range(1, cell.nf_nodes + 2):
        yield from (tap.kind for tap in cell.taps if tap.position == node)
        if node <= cell.nf_nodes:
            yield cell.kind_of(node)


MAX_PACKETS = 200_000
"""Maximum number of packets of a flow in a simulated trial."""
_NS = 1_000_000_000

_PacketRatio = Annotated[float, Field(ge=0, le=1)]
"""Up to 1: all packets may be lost, delayed or copied."""
Seconds = Annotated[float, Field(ge=0, le=10)]


class PacketLosses(Frozen):
    """Mechanisms that lose, delay and copy packets while losses are counted."""

    queue: Annotated[int, Field(ge=1, le=100_000)] = 256
    """Packets of a flow that wait; others are dropped."""
    pause_every_s: Seconds = 0.0
    """The server pauses this often; 0 for never."""
    pause_s: Seconds = 0.0
    """Length of a pause."""
    random_ratio: _PacketRatio = 0.0
    """Share of packets dropped at random."""
    detour_ratio: _PacketRatio = 0.0
    """Share of packets that take a longer path."""
    detour_s: Seconds = 0.0
    """Its additional delay."""
    copied_ratio: _PacketRatio = 0.0
    """Share of packets that arrive twice."""


def flow_losses(
    truth: PacketLosses, flow: Flow, rng: Random, *, packets: int, load_pps: float, capacity_pps: float, begin_ns: int
) -> FlowLosses:
    """Send packets through the mechanisms and count what arrives.

    `begin_ns`: When the first one is sent, since the epoch.
    """
    draw = np.random.default_rng(rng.getrandbits(64)).random
    numbers, leave_s = _served(truth, packets, load_pps, capacity_pps)
    kept = draw(len(numbers)) >= truth.random_ratio
    numbers, leave_s = numbers[kept], leave_s[kept]
    arrive_s = leave_s + np.where(draw(len(numbers)) < truth.detour_ratio, truth.detour_s, 0.0)
    copies = 1 + (draw(len(numbers)) < truth.copied_ratio)
    numbers, arrive_s = np.repeat(numbers, copies), np.repeat(arrive_s, copies)
    sequence = numbers[np.lexsort((numbers, arrive_s))]
    found = count_losses(_received(sequence, packets), (begin_ns, _NS / load_pps))
    return FlowLosses(instance=flow.instance, direction=flow.direction, **asdict(found))


def _served(
    truth: PacketLosses, packets: int, load_pps: float, capacity_pps: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers of packets that found room in the queue, and when they left it in seconds."""
    numbers = np.arange(packets)
    if load_pps <= capacity_pps and not truth.pause_every_s:  # none waits
        return numbers, numbers / load_pps + 1 / capacity_pps
    found = list(_queued(truth, packets, load_pps, capacity_pps))
    return np.array([number for number, _ in found], dtype=np.int64), np.array([leave_s for _, leave_s in found])


def _queued(truth: PacketLosses, packets: int, load_pps: float, capacity_pps: float) -> Iterator[tuple[int, float]]:
    """Yield number and departure in seconds of each packet that finds room in the queue."""
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


def _received(sequence: NDArray[np.int64], packets: int) -> NumberedArrivals:
    """Counts of a receiver for packets that arrive in this order."""
    came = np.zeros(packets, dtype=np.bool_)
    came[sequence] = True
    _, firsts = np.unique(sequence, return_index=True)
    arrived = sequence[np.sort(firsts)]  # without copies
    late = np.flatnonzero(arrived < np.maximum.accumulate(arrived)) if len(arrived) else np.zeros(0, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    return NumberedArrivals(came, none, none, len(sequence) - len(arrived), arrived[late], late, len(late))


class BufferPool(Frozen):
    """Buffers of an NF, beside its working set: its memory grows with the load and ends at a bound.

    Such an NF holds each packet for some time in a buffer of a pool, as one that reassembles, reorders or queues does,
    and refuses packets that find no buffer free. With the offered load `a`, packets per second times the time of
    holding, the number of buffers in use has the distribution of Erlang's loss system: a Poisson distribution of mean
    `a` that ends at the number of buffers. Its last probability is the share of packets refused. So memory and
    throughput bend softly where `a` reaches the number of buffers, and memory scatters by itself.
    """

    buffers: Annotated[int, Field(ge=1, le=100_000)]
    buffer_bytes: Annotated[int, Field(ge=1, le=1_000_000)] = 2048
    hold_s: Annotated[float, Field(gt=0, le=10)] = 0.01
    """Time for which a packet keeps its buffer."""

    @property
    def capacity_pps(self) -> float:
        """The truth: the load, both ways, that keeps as many buffers as there are."""
        return self.buffers / self.hold_s

    def refused_ratio(self, load_pps: float) -> float:
        """Share of packets that find no buffer at a load."""
        return float(_in_use(self.buffers, load_pps * self.hold_s)[-1]) if load_pps > 0 else 0.0

    def draw_bytes(self, load_pps: float, rng: Random) -> int:
        """Memory of the buffers in use at some moment under a load."""
        if load_pps <= 0:
            return 0
        below = np.cumsum(_in_use(self.buffers, load_pps * self.hold_s))
        return self.buffer_bytes * int(np.searchsorted(below, rng.random() * below[-1]))


@lru_cache(maxsize=4)
def _in_use(buffers: int, load: float) -> NDArray[np.float64]:
    """Probability of each number of buffers in use, from none to all."""
    counts = np.arange(1, buffers + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(load) - np.log(counts))])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


class BufferPools:
    """The pools of a cell.

    `pools`: By the kind of NFs that have one each.
    """

    def __init__(self, plan: Plan, pools: Mapping[NfKind, BufferPool], key: str) -> None:
        self._pools = {nf.name: pools[nf.kind] for nf in plan.nfs if nf.kind in pools}
        paths = {(path.instance, path.direction): path for path in plan.paths}
        ways = [paths[flow.instance, flow.direction] for flow in plan.flows]
        self._share = {name: sum(crosses(way, frozenset({name})) for way in ways) / len(ways) for name in self._pools}
        self._working_set = memory_bytes(plan)
        self._held = dict.fromkeys(self._pools, 0)
        self._rng = Random(f"{key}/buffers")  # noqa: S311 (reproducible, not secret)
        self.refused: dict[str, float] = {}
        """Share of packets that each NF with a pool refuses in the present trial."""

    def begin(self, load_pps: float) -> None:
        """Begin a trial of the whole cell, both ways; buffers keep what they have at its end."""
        loads = {name: share * load_pps for name, share in self._share.items()}
        self.refused = {name: pool.refused_ratio(loads[name]) for name, pool in self._pools.items()}
        self._held = {name: pool.draw_bytes(loads[name], self._rng) for name, pool in self._pools.items()}

    def memory_bytes(self) -> dict[str, int]:
        """Memory of each NF: its working set, and buffers in use."""
        return {name: round(used) + self._held.get(name, 0) for name, used in self._working_set.items()}
