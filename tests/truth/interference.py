"""Interference studies of simulated testbeds, from specification to record, against the known truth.

Each study has up to five network functions, one of each type of Zeng et al., with newly drawn sensitivities, pressures
and noise. The truth is the simulation without noise, whose model of contention is not the one that predicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from statistics import fmean
from typing import NamedTuple

from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.truth import SimulatedTruth
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.interference import model
from resources.libraries.python.studies.interference.analysis.estimates import ALPHA
from resources.libraries.python.studies.interference.analysis.study import SERVERS
from resources.libraries.python.studies.interference.model import Contender, InterferenceSpec, NfType
from resources.libraries.python.studies.interference.run import SharedServer
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import simulated_by
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share
from tests.unit.studies.interference.simulated_studies import measured
from tests.unit.studies.interference.simulated_studies import spec as spec_of

_VERIFIED = 3
_TIMES = 3
"""Studies of pairs for each one of placements."""
_CONTENDERS = (
    Contender(name="gateway", type=NfType.GATEWAY, kind=NfKind("linux_gateway")),
    Contender(name="monitor", type=NfType.MONITOR, kind=NfKind("pktstat")),
    Contender(name="inspection", type=NfType.INSPECTION, kind=NfKind("suricata")),
    Contender(name="balancer", type=NfType.BALANCER, kind=NfKind("nginx_balancer")),
    Contender(name="proxy", type=NfType.NAT, kind=NfKind("nginx_proxy")),
)
_NAMES = tuple(each.name for each in _CONTENDERS)
_SAME = 1e-9

Servers = tuple[tuple[str, ...], ...]


class PairsOutcome(NamedTuple):
    """A study of pairs beside its truth."""

    missed: dict[str, list[bool]]
    """By quantity: whether each interval leaves out the truth."""
    wrong: bool
    """Whether any rank range leaves out the true rank."""
    named: bool
    """Whether both a most sensitive and a most aggressive network function were named without a tie."""
    regret: float
    """(best capacity - capacity of the placement advised from pairs) / best capacity, in [0, 1], under the truth."""


class VerifiedPlacement(NamedTuple):
    """A placement that was advised after the best ones were measured as they are."""

    regret: float
    """As of `PairsOutcome`."""
    tied: bool
    """Whether the truly best one is among those that the advice does not tell apart from the advised one."""
    measurements: int
    """That verification took."""


def table(studies: int) -> list[BoundedQuantity]:
    """Simulate so many testbeds with placements, and three times as many of pairs, with and without interference."""
    pairs = each_of(pairs_of, range(_TIMES * studies))
    alarms = each_of(is_false_alarm, range(_TIMES * studies))
    placed = each_of(placement_of, range(studies))
    named = sum(each.named for each in pairs)
    regrets = [100 * each.regret for each in pairs]
    missed = [each for each in placed if each.regret > _SAME]
    note = f"{sum(each.tied for each in missed)} of {len(missed)} are named as ties; worst "
    note += f"{100 * max(each.regret for each in placed):.2f} % below the best; "
    note += f"{fmean(each.measurements for each in placed):.0f} measurements on average"
    return [
        *(
            share(f"truth outside of the interval: {name}", [out for each in pairs for out in each.missed[name]], 7)
            for name in pairs[0].missed
        ),
        share("wrong order", [each.wrong for each in pairs], 5, note=f"{named} name both extremes"),
        share("false alarm without interference", alarms, 5),
        BoundedQuantity("mean regret of the placement advised from pairs", fmean(regrets), 4, "%"),
        share("verified placement is not the best", [each.regret > _SAME for each in placed], 5, note=note),
    ]


def pairs_of(number: int) -> PairsOutcome:
    """Measure all pairs of the five types and advise a placement; `number` selects truth, noise and constants.

    Every third study has small effects: sensitivities of a few percent.
    """
    draw = Random(f"pairs/{number}")
    part = draw.uniform(0, 0.9)
    sensitivities = (0.02, 0.15) if number % 3 == 2 else (0.3, 0.95)
    topology = _testbed(draw, number, sensitivities, network_part=part, noise=draw.uniform(0.01, 0.04))
    spec = _spec(_CONTENDERS, guarantee=True, repetitions=draw.choice((5, 10)))
    found = measured(spec, topology=topology)
    findings = found.findings
    truth = _KnownAnswer(topology, spec)
    matrix = {(one, other): truth.normalized(one, (other,)) for one, other in product(_NAMES, _NAMES)}
    rows = {name: fmean(matrix[name, other] for other in _NAMES) for name in _NAMES}
    columns = {name: fmean(matrix[other, name] for other in _NAMES) for name in _NAMES}
    shares = [each for each in findings.shares if each.together == 2 and each.share is not None]
    intervals: dict[str, list[tuple[model.EstimatedValue | None, float]]] = {
        "normalized throughput": [
            (model.EstimatedValue(value=row.mean, low=row.low, high=row.high), matrix[row.target, row.against[0]])
            for row in found.matrix
        ],
        "sensitivity": [(each.normalized, rows[each.name]) for each in findings.sensitivity],
        "aggressiveness": [(each.normalized, columns[each.name]) for each in findings.aggressiveness],
        "degradation of all pairs": [(findings.degradation, 1 - fmean(matrix.values()))],
        "share of network I/O, all pairs": [(each.share, part) for each in shares if each.target is None],
        "share of network I/O, each pair": [(each.share, part) for each in shares if each.target is not None],
    }
    most = max(truth.capacity(servers) for servers in _placements(_NAMES))
    ends = [each for means in (findings.sensitivity, findings.aggressiveness) for each in means if each.ranks == (1, 1)]
    return PairsOutcome(
        missed={name: [not _has(each, true) for each, true in row] for name, row in intervals.items()},
        wrong=_is_wrong(findings.sensitivity, rows) or _is_wrong(findings.aggressiveness, columns),
        named=len(ends) == 2,
        regret=1 - truth.capacity(found.advice[0].best.servers) / most,
    )


def is_false_alarm(number: int) -> bool:
    """Whether a study without any interference finds some, or states a share of a resource."""
    draw = Random(f"none/{number}")
    topology = _testbed(draw, number, (0.0, 0.0), noise=draw.uniform(0.01, 0.04))
    findings = measured(_spec(_CONTENDERS, repetitions=draw.choice((5, 10))), topology=topology).findings
    return findings.none_p is None or findings.none_p < ALPHA or any(each.share for each in findings.shares)


def placement_of(number: int) -> VerifiedPlacement:
    """Advise a placement of three to five NFs on two servers, after the best ones were measured as they are."""
    draw = Random(f"placement/{number}")
    topology = _testbed(draw, number)
    chosen = tuple(draw.sample(_CONTENDERS, draw.choice((3, 4, 5))))
    spec = _spec(chosen, verify=_VERIFIED)
    found = measured(spec, topology=topology)
    truth = _KnownAnswer(topology, spec)
    (advice,) = found.advice
    ranked = sorted(_placements([each.name for each in chosen]), key=truth.capacity)
    return VerifiedPlacement(
        regret=1 - truth.capacity(advice.best.servers) / truth.capacity(ranked[-1]),
        tied=_unordered(ranked[-1]) in {_unordered(each.servers) for each in advice.ties},
        measurements=len(found.measurements) - len(chosen) * (1 + len(chosen)) * spec.repetitions,
    )


def _unordered(servers: Servers) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(server) for server in servers)


def _has(interval: model.EstimatedValue | None, truth: float) -> bool:
    return interval is not None and interval.low is not None and interval.low <= truth <= interval.high


def _is_wrong(means: Sequence[model.RankedMean], truth: Mapping[str, float]) -> bool:
    order = sorted(truth, key=truth.__getitem__)
    return any(each.ranks is None or not each.ranks[0] <= order.index(each.name) + 1 <= each.ranks[1] for each in means)


class _KnownAnswer:
    """Normalized throughputs of the simulation without noise."""

    def __init__(self, topology: Topology, spec: InterferenceSpec) -> None:
        whole = spec.model_copy(update={"together": max(2, len(spec.contenders))})
        self._server = SharedServer(topology, SimulatedTestbed(topology), whole)
        self._simulation = simulation_of(topology)
        self._pps: dict[tuple[str, ...], float] = {}
        self._frame = spec.frame

    def normalized(self, target: str, against: Sequence[str]) -> float:
        return self._throughput(target, *sorted(against)) / self._throughput(target)

    def capacity(self, servers: Servers) -> float:
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
    """Each once: servers are alike, so that the first name is on the first one."""
    for rest in product(range(SERVERS), repeat=len(names) - 1):
        places = (0, *rest)
        yield tuple(
            tuple(name for name, at in zip(names, places, strict=True) if at == server) for server in range(SERVERS)
        )


def _testbed(draw: Random, seed: int, sensitivities: tuple[float, float] = (0.3, 0.95), **more: float) -> Topology:
    """The simulated testbed with constants of contention drawn from their whole plausible range."""
    ranges = {"sensitivity": sensitivities, "half_pressure": (0.1, 0.8), "pressure": (0.1, 0.9)}
    drawn = {name: {each.kind: draw.uniform(*ends) for each in _CONTENDERS} for name, ends in ranges.items()}
    return simulated_by(seed=seed, **drawn, **more)


def _spec(contenders: tuple[Contender, ...], **more: object) -> InterferenceSpec:
    return spec_of(**{"name": "truth", "contenders": contenders, "repetitions": 10, **more})


if __name__ == "__main__":
    print_table(table)
