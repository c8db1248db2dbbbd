"""False suspects of chain studies, and the rank of a planted fault among the suspects.

Each study is simulated from its specification to its suspects: five network functions, one of them passive, in the 58
chains of one to three functions that three policies permit, at four random volumes between 5 and 120 Mbit/s, with ten
samples of each. The slowest function saturates at about 96 Mbit/s, so that many studies have lossless, nearly saturated
and saturated volumes. A fault is planted in a random function of a random chain.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any, NamedTuple

from csit_utils.bench.studies.known_truth import BoundedQuantity
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.chains.model.record import RULES
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Fault, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.planning.chain_cell import owners
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

FALSE_SUSPECTS = 0.01
"""Promised bound: share of fault-free chains that any rule flags."""
NOT_FIRST = 0.05
"""Promised bound: share of studies in which the planted fault is not the first suspect."""
FAULTS: Mapping[str, Mapping[str, float]] = {
    "CPU": {"cpu": 0.05},
    "memory": {"memory_mib": 160},
    "loss": {"loss_ratio": 0.01},
    "latency": {"delay_s": 10e-6},
    "queue": {"queue_loss_ratio": 0.05},
    "neighbour": {"stolen_ratio": 0.4},
}
"""Faults by kind: a quota of 0.05 CPUs; memory for half of the working set; 1 % packet loss; 10 us more per packet; a
queue that drops up to 5 % of packets; a co-located load that takes 40 % of the CPU time."""

_TOPOLOGY = PROJECT / "topologies" / "sim.yaml"
_VNFS = (
    VnfSpec(name="gateway", kind=NfKind("linux_gateway")),
    VnfSpec(name="firewall", kind=NfKind("linux_firewall")),
    VnfSpec(name="nat", kind=NfKind("linux_nat")),
    VnfSpec(name="ips", kind=NfKind("suricata")),
    VnfSpec(name="monitor", kind=NfKind("tcpdump"), mode=Mode.PASSIVE),
)
_POLICIES = ("gateway > firewall", "firewall > nat", "monitor > nat")
_VOLUMES = 4
_FROM_BPS, _TO_BPS = 5e6, 120e6
_SAMPLES = 10
_NOT_PLANTED_IN = {
    "memory": {"gateway", "firewall", "nat", "monitor"},
    **{kind: {"monitor"} for kind in ("loss", "latency", "queue")},
}
"""NFs that a kind of fault cannot affect: a working set within the smallest limit; a passive NF, off the path."""


class _AskedChains(NamedTuple):
    kind: str | None
    """Kind of the planted fault; None without one."""
    seed: int
    volumes: int


class SuspectRanking(NamedTuple):
    """Suspects of a study, compared with its planted fault."""

    asked: _AskedChains
    chains: int
    """Without a fault, of two or more network functions."""
    rank: int | None
    """Rank of the faulty chain among the suspects, from 1; None if it is not a suspect."""
    false: tuple[tuple[str, ...], ...]
    """For each suspect without a fault, the rules that flagged it."""


def table(studies: int) -> list[BoundedQuantity]:
    """Return false suspects and ranks of planted faults.

    Args:
        studies: Studies with a fault of each kind; twice as many have none, at four volumes and at one.
    """
    asked = [_AskedChains(None, seed, volumes) for volumes in (_VOLUMES, 1) for seed in range(2 * studies)]
    asked += [_AskedChains(kind, seed, _VOLUMES) for kind in FAULTS for seed in range(studies)]
    with ProcessPoolExecutor() as executor:
        found = list(executor.map(_study, asked, chunksize=4))
    return [*_false(found), *(_planted(kind, found) for kind in FAULTS)]


def _false(found: list[SuspectRanking]) -> Iterator[BoundedQuantity]:
    for volumes in (_VOLUMES, 1):
        healthy = [each for each in found if (each.asked.kind, each.asked.volumes) == (None, volumes)]
        chains = sum(each.chains for each in healthy)
        by_rule = Counter(rule for each in healthy for rules in each.false for rule in rules)
        suspects = sum(len(each.false) for each in healthy)
        rules = ", ".join(f"{by_rule[rule]} by {rule}" for rule in RULES)
        note = f"{len(healthy)} studies with {chains} chains; {rules}"
        what = f"false suspects, {volumes} volume{'s' * (volumes != 1)}"
        yield BoundedQuantity(what, suspects / chains, FALSE_SUSPECTS, "of chains", note)


def _planted(kind: str, found: list[SuspectRanking]) -> BoundedQuantity:
    ranks = Counter(each.rank for each in found if each.asked.kind == kind)
    total = ranks.total()
    others = "; ".join(
        f"{count} {'not a suspect' if rank is None else f'as number {rank}'}"
        for rank, count in sorted(ranks.items(), key=lambda item: item[0] or 0)
        if rank != 1
    )
    note = f"{total} studies{f': {others}' if others else ''}"
    return BoundedQuantity(f"planted fault not first, {kind}", 1 - ranks[1] / total, NOT_FIRST, "of studies", note)


def _study(asked: _AskedChains) -> SuspectRanking:
    kind, seed, number = asked
    rng = Random(f"{kind}/{seed}")  # noqa: S311 (reproducible, not secret)
    volumes = sorted(rng.uniform(_FROM_BPS, _TO_BPS) for _ in range(number))
    spec = ChainStudySpec(
        name="benchmark",
        vnfs=_VNFS,
        policies=_POLICIES,
        lengths=(2, 3),
        workloads=tuple(Workload(volume_bps=each, frame=frame("64B")) for each in volumes),
        duration_s=_SAMPLES,
    )
    simulation: dict[str, Any] = {"seed": seed}
    chains = [chain for chain in generate(spec) if len(chain.members) > 1]
    faulty = None
    if kind is not None:
        faulty, vnf = rng.choice(
            [(chain, name) for chain in chains for name in chain.order if name not in _NOT_PLANTED_IN.get(kind, ())]
        )
        if kind in {"CPU", "memory"}:
            fault = Fault(chain=faulty.order, vnf=vnf, limits=Limits.model_validate(FAULTS[kind]))
            spec = spec.model_copy(update={"faults": (fault,)})
        else:
            simulation["impaired"] = [_impairment(faulty, vnf, spec, FAULTS[kind])]
    topology = load_topology(_TOPOLOGY)
    topology = topology.model_copy(update={"simulation": {**(topology.simulation or {}), **simulation}})
    world = SimulatedTestbed(topology)
    study = ChainStudyTest(topology, world, spec, world.environment()).run()
    ranked = [suspect.chain for suspect in study.suspects]
    return SuspectRanking(
        asked=asked,
        chains=len(chains) - (faulty is not None),
        rank=ranked.index(faulty) + 1 if faulty in ranked else None,
        false=tuple(suspect.rules for suspect in study.suspects if suspect.chain != faulty),
    )


def _impairment(chain: Chain, vnf: str, spec: ChainStudySpec, amounts: Mapping[str, float]) -> dict[str, Any]:
    names = {name: planned for planned, name in owners(chain, spec).items()}
    return {"chain": [spec.vnf(name).kind for name in chain.order], "nf": names[vnf], **amounts}
