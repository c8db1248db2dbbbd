"""Simulated NFs whose memory grows with the load and ends at a bound.

Such an NF holds each packet for some time in a buffer of a pool, as one that reassembles, reorders or queues does, and
refuses packets that find no buffer free. With the offered load `a`, packets per second times the time of holding, the
number of buffers in use has the distribution of Erlang's loss system: a Poisson distribution of mean `a` that ends at
the number of buffers. Its last probability is the share of packets refused. So memory and throughput bend softly where
`a` reaches the number of buffers, and memory scatters by itself.
"""

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from resources.libraries.python.drivers.sim.flows import crosses
from resources.libraries.python.drivers.sim.impairment import memory_bytes
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import NfKind


class BufferPool(Frozen):
    """Buffers of an NF, beside its working set."""

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

    Args:
        plan: Has the NFs.
        pools: By the kind of NFs that have one each.
        key: Of the random numbers.
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
