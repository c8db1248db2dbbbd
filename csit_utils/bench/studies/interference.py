"""Interference studies of simulated testbeds, from specification to record, against the known truth.

Each study has five network functions, one of each type of Zeng et al., with newly drawn sensitivities and pressures.
The truth is the simulation without noise. Placements are advised from pairs alone: three and more co-located NFs are
predicted from pairs, by another rule than the simulation's model of contention.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import inf
from random import Random
from statistics import fmean
from typing import NamedTuple

from csit_utils.bench.studies.known_truth import BoundedQuantity
from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.truth import SimulatedTruth
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.interference.analysis.study import SERVERS
from resources.libraries.python.studies.interference.colocation_server import SharedServer
from resources.libraries.python.studies.interference.model.record import (
    Contender,
    Interference,
    InterferenceSpec,
    NfType,
)
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

SHARE_BOUND = 4.0
"""Promised worst error of a measured share of network I/O, in percentage points."""
SENSITIVITY_BOUND = 3.0
"""Promised worst error of the row mean of a network function, in percentage points."""
REGRET_BOUND = 4.0
"""Promised mean shortfall of the advised placement from the best capacity, in percent."""

SHARES = (0.0, 0.2, 0.4, 0.6)
MOST_TOGETHER = 4
_TOPOLOGY = PROJECT / "topologies" / "sim.yaml"
_CONTENDERS = (
    Contender(name="gateway", type=NfType.GATEWAY, kind=NfKind("linux_gateway")),
    Contender(name="monitor", type=NfType.MONITOR, kind=NfKind("pktstat")),
    Contender(name="inspection", type=NfType.INSPECTION, kind=NfKind("suricata")),
    Contender(name="balancer", type=NfType.BALANCER, kind=NfKind("nginx_balancer")),
    Contender(name="proxy", type=NfType.NAT, kind=NfKind("nginx_proxy")),
)
_FEW = 2
"""Contenders of studies of up to `MOST_TOGETHER` co-located NFs, to bound the number of combinations."""
_REPETITIONS = 10
_FRAME = "512B"
_SAME = 1e-9

Servers = tuple[tuple[str, ...], ...]


class ShareError(NamedTuple):
    """A measured share of network I/O, in [0, 1], and the truth."""

    together: int
    truth: float
    measured: float


class PairsError(NamedTuple):
    """Errors of a study of pairs; throughputs are normalized to the baseline."""

    share: ShareError
    row_error: float
    """The largest error of a row mean."""
    regret: float
    """(best capacity - capacity of the advised placement) / best capacity, in [0, 1], under the truth."""


def table(studies: int) -> list[BoundedQuantity]:
    """Measure simulated testbeds of each kind.

    Args:
        studies: Testbeds of each kind, at least 1; from 4 on, every share of `SHARES` occurs.
    """
    pairs = [pairs_of(number) for number in range(studies)]
    shares = [*(each.share for each in pairs), *(each for number in range(studies) for each in crowd_of(number))]
    truths = ", ".join(f"{100 * share:.0f}" for share in sorted({each.truth for each in shares}))
    lines = [
        BoundedQuantity(
            f"share of network I/O, {together} NFs",
            100 * max((abs(each.measured - each.truth) for each in shares if each.together == together), default=inf),
            SHARE_BOUND,
            "points",
            f"worst of {studies}; truths {truths} %",
        )
        for together in range(2, MOST_TOGETHER + 1)
    ]
    worst = max(each.row_error for each in pairs)
    regret = fmean(each.regret for each in pairs)
    most = 100 * max(each.regret for each in pairs)
    best = sum(each.regret < _SAME for each in pairs)
    return [
        *lines,
        BoundedQuantity("sensitivity (row mean)", 100 * worst, SENSITIVITY_BOUND, "points", f"worst row of {studies}"),
        BoundedQuantity(
            "regret of the advised placement",
            100 * regret,
            REGRET_BOUND,
            "%",
            f"mean of {studies}; {best} optimal, {most:.1f} % at worst",
        ),
    ]


def crowd_of(number: int) -> Iterator[ShareError]:
    """Measure the share of network I/O of three and four co-located NFs; `number` selects truth and constants."""
    truth = SHARES[number % len(SHARES)]
    draw = Random(f"crowd/{number}")  # noqa: S311 (reproducible, not secret)
    topology = _testbed(draw, number, network_part=truth)
    chosen = tuple(draw.sample(_CONTENDERS, _FEW))
    spec = _spec(chosen, together=MOST_TOGETHER, guarantee=True)
    found = _measured(topology, spec)
    for together, share in found.network_shares.items():
        if together > 2:  # pairs are those of all five types
            yield ShareError(together, truth, share)


def pairs_of(number: int) -> PairsError:
    """Measure all pairs of the five types and advise a placement; `number` selects truth and constants."""
    part = SHARES[number % len(SHARES)]
    topology = _testbed(Random(f"pairs/{number}"), number, network_part=part)  # noqa: S311 (reproducible, not secret)
    spec = _spec(_CONTENDERS, guarantee=True)
    found = _measured(topology, spec)
    share = ShareError(2, part, inf if found.network_share is None else found.network_share)
    truth = _KnownAnswer(topology, spec)
    names = [each.name for each in _CONTENDERS]
    rows = [abs(found.sensitivity[one] - fmean(truth.normalized(one, (other,)) for other in names)) for one in names]
    best = max(truth.capacity(servers) for servers in _placements(names))
    return PairsError(share, max(rows), (best - truth.capacity(found.advice[0].best.servers)) / best)


class _KnownAnswer:
    """Normalized throughputs of the simulation without noise."""

    def __init__(self, topology: Topology, spec: InterferenceSpec) -> None:
        whole = spec.model_copy(update={"together": len(spec.contenders)})
        self._server = SharedServer(topology, SimulatedTestbed(topology), whole, None)
        self._simulation = simulation_of(topology)
        self._pps: dict[tuple[str, ...], float] = {}
        self._frame = spec.frame

    def normalized(self, target: str, against: Sequence[str]) -> float:
        """Return the throughput of a target beside co-located NFs over its baseline."""
        return self._throughput(target, *sorted(against)) / self._throughput(target)

    def capacity(self, servers: Servers) -> float:
        """Return the sum of normalized throughputs of a placement."""
        return sum(
            self.normalized(name, (*server[:at], *server[at + 1 :]))
            for server in servers
            for at, name in enumerate(server)
        )

    def _throughput(self, *colocated: str) -> float:
        if colocated not in self._pps:
            truth = SimulatedTruth(self._server.plan(colocated), self._simulation)
            self._pps[colocated] = truth.capacity_pps(self._frame, (1,))
        return self._pps[colocated]


def _placements(names: Sequence[str]) -> Iterator[Servers]:
    for places in product(range(SERVERS), repeat=len(names)):
        yield tuple(
            tuple(name for name, at in zip(names, places, strict=True) if at == server) for server in range(SERVERS)
        )


def _testbed(draw: Random, seed: int, **more: float) -> Topology:
    """The simulated testbed with constants of contention drawn from their whole plausible range."""
    kinds = [each.kind for each in _CONTENDERS]
    drawn: Mapping[str, object] = {
        "seed": seed,
        "sensitivity": {kind: draw.uniform(0.3, 0.95) for kind in kinds},
        "half_pressure": {kind: draw.uniform(0.1, 0.8) for kind in kinds},
        "pressure": {kind: draw.uniform(0.1, 0.9) for kind in kinds},
        **more,
    }
    topology = load_topology(_TOPOLOGY)
    return topology.model_copy(update={"simulation": {**(topology.simulation or {}), **drawn}})


def _spec(contenders: tuple[Contender, ...], **more: object) -> InterferenceSpec:
    return InterferenceSpec.model_validate(
        {"name": "bench", "contenders": contenders, "frame": frame(_FRAME), "repetitions": _REPETITIONS, **more}
    )


def _measured(topology: Topology, spec: InterferenceSpec) -> Interference:
    world = SimulatedTestbed(topology)
    study = InterferenceTest(topology, world, spec, world.environment())
    study.plan()
    study.measure(study.loads_pps())
    return study.result()
