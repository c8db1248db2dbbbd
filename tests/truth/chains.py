"""What chain studies find of planted faults: the chains, the cause, and false alarms where nothing is planted.

Each study is simulated from its specification to its findings: 2 to 24 chains of 2 to 5 network functions in random
roles, all orders or those that policies allow, at one to three random volumes between 5 and 120 Mbit/s, with 1 to 5 %
noise; functions saturate at about 96 Mbit/s and more. A fault of random size is planted in one chain, in a share of the
chains with a function, in all of them, where it comes before or after another one, or at a place; or two causes are.

A fault is *missed* if a faulty chain is no suspect by the rule `worse than predicted`. A *false alarm* is a suspect
without a fault, by any rule. A cause is *right* if the findings name the function, or no part, and exactly the chains
of each planted cause in one description; faults of a random share may be named chain by chain as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.chains.model import ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.planning import generate
from resources.libraries.python.studies.chains.run import ChainStudyTest, owners
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import simulated_by
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share

_KINDS = {
    "gateway": "linux_gateway", "router": "linux_router", "firewall": "linux_firewall", "nat": "linux_nat",
    "ips": "suricata", "monitor": "tcpdump",
}  # fmt: skip
_PASSIVE = "monitor"
_GRAPHS: Sequence[tuple[int, tuple[int, ...], int]] = (
    (2, (2,), 0), (3, (2,), 0), (3, (3,), 0), (3, (2, 3), 0), (4, (2,), 0), (4, (2,), 5), (4, (4,), 0), (5, (2,), 0),
)  # fmt: skip
"""Network functions, lengths of chains, pairs that a policy puts in order: 2, 6, 6, 12, 12, 7, 24, 20 chains."""
_FAULTS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "loss": {"loss_ratio": (0.002, 0.1)},
    "delay": {"delay_s": (20e-6, 1e-3)},
    "stolen CPU": {"stolen_ratio": (0.3, 0.9)},
    "short queue": {"queue_loss_ratio": (0.05, 0.2)},
}
"""Ranges of amounts, drawn evenly on a logarithmic scale."""
_PLACES = ("one chain", "share", "function", "order", "position", "two causes")

_Cause = tuple[str, frozenset[Chain]]
"""The function, and the chains in which it is faulty."""


class PlantedOutcome(NamedTuple):
    """Findings of a study against its truth."""

    kinds: tuple[str, ...]
    """Place and kind of its fault."""
    missed: bool
    false: bool
    wrong_cause: bool


def table(studies: int) -> list[BoundedQuantity]:
    """Return shares of studies of each place of the fault, and of four times as many without one."""
    asked = [(place, seed) for place in _PLACES for seed in range(studies)]
    faulty = each_of(study_outcome, asked)
    healthy = each_of(study_outcome, [("", seed) for seed in range(4 * studies)])
    return [
        share("studies without a fault: false alarm", [each.false for each in healthy], 1),
        share("fault missed", [each.missed for each in faulty], 5),
        share("wrong cause", [each.wrong_cause for each in faulty], 10),
        *(
            share(
                f"{kind}: missed or wrong cause",
                [each.missed or each.wrong_cause for each in faulty if kind in each.kinds],
                10,
            )
            for kind in (*_PLACES, *_FAULTS)
        ),
    ]


def study_outcome(asked: tuple[str, int]) -> PlantedOutcome:
    place, seed = asked
    rng = Random(f"{place or None}/{seed}")
    spec = _spec(rng)
    chains = [chain for chain in generate(spec) if len(chain.members) > 1]
    fault = rng.choice(list(_FAULTS)) if place else ""
    planted = list(_causes(place, chains, fault, rng)) if place else []
    simulation: dict[str, Any] = {"seed": seed, "noise": rng.uniform(0.01, 0.05), "impaired": []}
    for vnf, some in planted:
        amounts = {name: low * (high / low) ** rng.random() for name, (low, high) in _FAULTS[fault].items()}
        for chain in some:
            names = {name: owner for owner, name in owners(chain, spec).items()}
            kinds = [_KINDS[name] for name in chain.order]
            simulation["impaired"].append({"chain": kinds, "nf": names[vnf], **amounts})
    topology = simulated_by(**simulation)
    world = SimulatedTestbed(topology)
    study = ChainStudyTest(topology, world, spec, world.environment()).run()
    faulty = frozenset[Chain]().union(*(some for _, some in planted))
    return PlantedOutcome(
        (place, fault),
        missed=bool(faulty - {suspect.chain for suspect in study.suspects if suspect.worse}),
        false=bool({suspect.chain for suspect in study.suspects} - faulty),
        wrong_cause=not all(_is_named(cause, study, one_by_one=place == "share") for cause in planted),
    )


def _spec(rng: Random) -> ChainStudySpec:
    count, lengths, ordered = rng.choice(_GRAPHS)
    names = rng.sample(list(_KINDS), count)
    pairs = [(one, two) for index, one in enumerate(names) for two in names[index + 1 :]]
    volumes = sorted(rng.uniform(5e6, 120e6) for _ in range(rng.choice((1, 2, 3))))
    modes = {_PASSIVE: Mode.PASSIVE}
    return ChainStudySpec(
        name="truth",
        vnfs=tuple(VnfSpec(name=name, kind=NfKind(_KINDS[name]), mode=modes.get(name, Mode.INLINE)) for name in names),
        policies=tuple(f"{one} > {two}" for one, two in rng.sample(pairs, ordered)),
        lengths=lengths,
        workloads=tuple(Workload(volume_bps=each, frame=frame("64B")) for each in volumes),
        duration_s=10,
    )


def _causes(place: str, chains: Sequence[Chain], fault: str, rng: Random) -> Iterator[_Cause]:
    """Yield where faults are planted: never in a passive function that they cannot affect."""
    able = {name for chain in chains for name in chain.order} - ({_PASSIVE} if fault != "stolen CPU" else set())
    if place == "two causes":
        first = next(_causes(rng.choice(("function", "order")), chains, fault, rng))
        yield first
        if others := [(chain, name) for chain in chains for name in chain.order if name in able - {first[0]}]:
            chain, name = rng.choice(others)
            yield name, frozenset({chain})
        return
    vnf = rng.choice(sorted(able))
    some = [chain for chain in chains if vnf in chain.order]
    chain = rng.choice(some)
    at = chain.order.index(vnf)
    match place:
        case "one chain":
            some = [chain]
        case "share":
            some = rng.sample(some, max(1, round(rng.uniform(0.1, 1.0) * len(some))))
        case "order":
            other = rng.choice([name for name in chain.order if name != vnf])
            behind = chain.order.index(other) < at
            some = [each for each in some if other in each.order]
            some = [each for each in some if (each.order.index(other) < each.order.index(vnf)) is behind]
        case "position":
            some = [each for each in some if each.order.index(vnf) == at]
    yield vnf, frozenset(some)


def _is_named(planted: _Cause, study: ChainStudy, *, one_by_one: bool) -> bool:
    vnf, chains = planted
    causes = [frozenset(cause.chains) for cause in study.causes if cause.owner in {vnf, CHAIN}]
    return chains in causes or (one_by_one and frozenset[Chain]().union(*causes) == chains)


if __name__ == "__main__":
    print_table(table, 70)
