"""What chain studies find of planted faults: the chains, the cause, and false alarms where nothing is planted.

Each study is simulated from its specification to its findings: 2 to 24 chains of 2 to 5 network functions in random
roles, all orders or those that policies allow, at one to three random volumes between 5 and 120 Mbit/s, with 1 to 5 %
noise. The slowest functions saturate at about 96 Mbit/s, so that some studies have saturated volumes. A fault of random
size is planted in one chain, in a random share of the chains with a function, in all of them, where it comes before or
after another one, or at a place; in some studies there are two causes.

A chain is *found* if it is a suspect by the rule `worse than predicted`. A *false alarm* is a suspect without a fault,
by any rule. A cause is *right* if the findings name the function, or no part, and exactly the chains of each planted
cause in one description; faults of a random share may be named chain by chain as well.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any, NamedTuple

from scipy.stats import binomtest

from csit_utils.bench.studies.known_truth import BoundedQuantity
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.planning.chain_cell import owners
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

NOT_FOUND, WRONG_CAUSE, FALSE_ALARMS = 0.05, 0.10, 0.01
"""Promised bounds, shares of studies."""
_CONFIDENCE = 0.95
_TOPOLOGY = PROJECT / "topologies" / "sim.yaml"
_KINDS = {
    "gateway": "linux_gateway",
    "router": "linux_router",
    "firewall": "linux_firewall",
    "nat": "linux_nat",
    "ips": "suricata",
    "monitor": "tcpdump",
}
_PASSIVE = "monitor"
_GRAPHS: Sequence[tuple[int, tuple[int, ...], int]] = (
    (2, (2,), 0), (3, (2,), 0), (3, (3,), 0), (3, (2, 3), 0), (4, (2,), 0), (4, (2,), 5), (4, (4,), 0), (5, (2,), 0),
)  # fmt: skip
"""Network functions, lengths of chains, pairs that a policy puts in order: 2, 6, 6, 12, 12, 7, 24, 20 chains."""
_FROM_BPS, _TO_BPS = 5e6, 120e6
_SAMPLES = 10
_FAULTS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "loss": {"loss_ratio": (0.002, 0.1)},
    "delay": {"delay_s": (20e-6, 1e-3)},
    "stolen CPU": {"stolen_ratio": (0.3, 0.9)},
    "short queue": {"queue_loss_ratio": (0.05, 0.2)},
}
"""Ranges of amounts, drawn evenly on a logarithmic scale."""
PLACES = ("one chain", "share", "function", "order", "position", "two causes")
"""Where a fault is planted."""


class PlannedFault(NamedTuple):
    """A study to simulate."""

    place: str | None
    """Of the fault; None for a study without one."""
    seed: int


class _Planted(NamedTuple):
    vnf: str
    chains: frozenset[Chain]


class PlantedOutcome(NamedTuple):
    """Findings of a study against its truth."""

    asked: PlannedFault
    fault: str
    found: bool
    """Whether all faulty chains are suspects, and no other is."""
    missed: int
    false: int
    """Suspects without a fault."""
    cause: bool


def table(studies: int) -> list[BoundedQuantity]:
    """Return shares of studies that miss a fault, name a wrong cause, or raise a false alarm.

    Args:
        studies: Studies of each place of the fault; four times as many have none.
    """
    asked = [PlannedFault(None, seed) for seed in range(4 * studies)]
    asked += [PlannedFault(place, seed) for place in PLACES for seed in range(studies)]
    with ProcessPoolExecutor() as executor:
        outcomes = list(executor.map(study_outcome, asked, chunksize=4))
    healthy = [each for each in outcomes if each.asked.place is None]
    faulty = [each for each in outcomes if each.asked.place is not None]
    return [
        _share("chain studies with a false alarm", [each.false > 0 for each in healthy], FALSE_ALARMS),
        _share("chain studies with a fault missed", [each.missed > 0 for each in faulty], NOT_FOUND),
        _share("chain studies with a wrong cause", [not each.cause for each in faulty], WRONG_CAUSE),
        *(line for key in ("place", "fault") for line in _by(key, faulty)),
    ]


def _by(key: str, faulty: Sequence[PlantedOutcome]) -> Iterator[BoundedQuantity]:
    rows: dict[str, list[PlantedOutcome]] = defaultdict(list)
    for each in faulty:
        rows[each.fault if key == "fault" else str(each.asked.place)].append(each)
    for name, some in rows.items():
        yield _share(f"{name}: fault missed", [each.missed > 0 for each in some], 1.0)
        yield _share(f"{name}: wrong cause", [not each.cause for each in some], 1.0)


def _share(what: str, rows: Sequence[bool], bound: float) -> BoundedQuantity:
    interval = binomtest(sum(rows), len(rows)).proportion_ci(_CONFIDENCE, method="wilson")
    note = f"{sum(rows)} of {len(rows)}, 95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    return BoundedQuantity(what, sum(rows) / len(rows), bound, "of studies", note)


def study_outcome(asked: PlannedFault) -> PlantedOutcome:
    """Simulate a study and compare its findings with what was planted."""
    rng = Random(f"{asked.place}/{asked.seed}")  # noqa: S311 (reproducible, not secret)
    spec = _spec(rng)
    chains = [chain for chain in generate(spec) if len(chain.members) > 1]
    fault = rng.choice(list(_FAULTS)) if asked.place else ""
    planted = list(_places(asked.place, chains, fault, rng)) if asked.place else []
    simulation: dict[str, Any] = {"seed": asked.seed, "noise": rng.uniform(0.01, 0.05)}
    simulation["impaired"] = [
        _impairment(chain, each.vnf, spec, amounts)
        for each in planted
        for amounts in [{name: _amount(span, rng) for name, span in _FAULTS[fault].items()}]
        for chain in each.chains
    ]
    study = _measured(spec, simulation)
    suspects = {suspect.chain for suspect in study.suspects if suspect.worse}
    faulty = frozenset[Chain]().union(*(each.chains for each in planted))
    return PlantedOutcome(
        asked,
        fault,
        suspects == faulty,
        len(faulty - suspects),
        len({suspect.chain for suspect in study.suspects} - faulty),
        all(_is_named(each, study, one_by_one=asked.place == "share") for each in planted),
    )


def _measured(spec: ChainStudySpec, simulation: Mapping[str, Any]) -> ChainStudy:
    topology = load_topology(_TOPOLOGY)
    topology = topology.model_copy(update={"simulation": {**(topology.simulation or {}), **simulation}})
    world = SimulatedTestbed(topology)
    return ChainStudyTest(topology, world, spec, world.environment()).run()


def _spec(rng: Random) -> ChainStudySpec:
    count, lengths, ordered = rng.choice(_GRAPHS)
    names = rng.sample(list(_KINDS), count)
    pairs = [(one, two) for index, one in enumerate(names) for two in names[index + 1 :]]
    volumes = sorted(rng.uniform(_FROM_BPS, _TO_BPS) for _ in range(rng.choice((1, 2, 3))))
    return ChainStudySpec(
        name="benchmark",
        vnfs=tuple(
            VnfSpec(name=name, kind=NfKind(_KINDS[name]), mode=Mode.PASSIVE if name == _PASSIVE else Mode.INLINE)
            for name in names
        ),
        policies=tuple(f"{one} > {two}" for one, two in rng.sample(pairs, ordered)),
        lengths=lengths,
        workloads=tuple(Workload(volume_bps=each, frame=frame("64B")) for each in volumes),
        duration_s=_SAMPLES,
    )


def _places(place: str, chains: Sequence[Chain], fault: str, rng: Random) -> Iterator[_Planted]:
    """Where a fault is planted: in chains of two VNFs at least, never in a passive one that it cannot affect."""
    able = {name for chain in chains for name in chain.order} - ({_PASSIVE} if fault != "stolen CPU" else set())
    if place == "two causes":
        first = next(_places(rng.choice(("function", "order")), chains, fault, rng))
        yield first
        if others := [(chain, name) for chain in chains for name in chain.order if name in able - {first.vnf}]:
            chain, name = rng.choice(others)
            yield _Planted(name, frozenset({chain}))
        return
    vnf = rng.choice(sorted(able))
    with_it = [chain for chain in chains if vnf in chain.order]
    match place:
        case "one chain":
            some = [rng.choice(with_it)]
        case "share":
            some = rng.sample(with_it, max(1, round(rng.uniform(0.1, 1.0) * len(with_it))))
        case "function":
            some = with_it
        case "order":
            chain = rng.choice(with_it)
            other = rng.choice([name for name in chain.order if name != vnf])
            is_behind = chain.order.index(other) < chain.order.index(vnf)
            some = [
                each
                for each in with_it
                if other in each.order and (each.order.index(other) < each.order.index(vnf)) is is_behind
            ]
        case _:
            place_of_it = rng.choice(with_it).order.index(vnf)
            some = [each for each in with_it if each.order.index(vnf) == place_of_it]
    yield _Planted(vnf, frozenset(some))


def _amount(span: tuple[float, float], rng: Random) -> float:
    low, high = span
    return float(low * (high / low) ** rng.random())


def _impairment(chain: Chain, vnf: str, spec: ChainStudySpec, amounts: Mapping[str, float]) -> dict[str, Any]:
    names = {name: planned for planned, name in owners(chain, spec).items()}
    return {"chain": [_KINDS[name] for name in chain.order], "nf": names[vnf], **amounts}


def _is_named(planted: _Planted, study: ChainStudy, *, one_by_one: bool) -> bool:
    """Whether the findings name the part and exactly the chains of a planted cause."""
    causes = [cause for cause in study.causes if cause.owner in {planted.vnf, CHAIN}]
    if any(frozenset(cause.chains) == planted.chains for cause in causes):
        return True
    named = frozenset(chain for cause in causes for chain in cause.chains)
    return one_by_one and named == planted.chains
