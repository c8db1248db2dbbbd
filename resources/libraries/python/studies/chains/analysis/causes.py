"""What chains with the same excess have in common: the second of the questions that a study answers.

The chains with an excess of one feature at one part are *bad*, those that were compared without one are *good*. A
description fits if it holds for bad chains only: the part is in it; at a place of it; behind, before or together with
another VNF; with these resources; on this CPU; the chain is so long. The answer is the smallest set of descriptions
that together hold for all bad chains, by exact search over up to `_MAX` of them: `_WEIGHT` prefers one that says the
part is enough to one that says where or beside whom, and either to naming chains one by one. Chains in between, with a
part of the excess that counts, are neither good nor bad.

Where all of them have the excess under some workloads only, and hardly any of it under the others, these are named.

Descriptions of the same chains cannot be told apart; they are all kept. And a description may fit by chance: of all
choices of as many chains as are bad, `chance` is the share that any of the descriptions considered fits exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, sqrt
from statistics import fmean, median, stdev
from typing import NamedTuple

from resources.libraries.python import special_functions
from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.analysis.features import IDLE_LATENCY, LATENCY, LOSS, THROUGHPUT
from resources.libraries.python.studies.chains.analysis.prediction import (
    CPU_PER_PACKET,
    DELAY,
    INTERVAL,
    LATENCIES,
    Judged,
)
from resources.libraries.python.studies.chains.model import ChainRun, CommonCause, Excess
from resources.libraries.python.studies.chains.model.spec import Chain, Workload

_MAX = 3
"""Descriptions in one answer."""
_WEIGHT, _WEIGHT_OF_PART, _WEIGHT_OF_CHAIN = 2.0, 1.0, 2.5
_BETWEEN = 0.25
"""Share of the smallest excess that counts from which on a chain is not good either."""
_MORE = 0.25
"""Of the usual delay of a cause: chains with more than that beyond it have another cause as well."""
_FEWEST = 2
"""Chains that have something in common."""
FEWEST_COMPARED = 3
"""Chains of which some may have something in common."""

Placed = Mapping[Chain, Mapping[str, tuple[int, ...]]]
_Key = tuple[str, str]
"""Owner and feature of an excess."""
_Where = tuple[Chain, Workload]


class _Description(NamedTuple):
    weight: float
    what: str
    chains: frozenset[Chain]


def causes(judged: Judged, runs: Sequence[ChainRun]) -> tuple[CommonCause, ...]:
    """Return what explains all excesses, the largest first.

    `judged`: The excesses, and all that was compared.
    `runs`: Say on which CPUs VNFs ran.
    """
    placed = {run.chain: run.placed for run in runs}
    found: dict[_Key, list[Excess]] = defaultdict(list)
    for each in unexplained(judged.worse):
        found[each.owner, each.feature].append(each)
    answers = [
        cause.model_copy(update={"only_under": _only_under(cause.chains, excesses, judged.compared[key])})
        for key, excesses in found.items()
        for cause in _explained(key, excesses, _strongest(judged.compared[key]), placed)
    ]
    least = {key: min(each.least for each in excesses) for key, excesses in found.items()}
    return tuple(sorted(answers, key=lambda cause: -cause.excess / least[cause.owner, cause.feature]))


def _strongest(compared: Mapping[_Where, float]) -> dict[Chain, float]:
    found: dict[Chain, float] = {}
    for (chain, _), ratio in compared.items():
        found[chain] = max(ratio, found.get(chain, ratio))
    return found


def _only_under(
    chains: Collection[Chain], excesses: Sequence[Excess], compared: Mapping[_Where, float]
) -> tuple[Workload, ...]:
    """Workloads under which all of some chains have an excess, where they hardly have any of it under others."""
    bad = {(each.chain, each.workload) for each in excesses}
    own = {where: ratio for where, ratio in compared.items() if where[0] in chains}
    under = dict.fromkeys(workload for chain, workload in own if (chain, workload) in bad)
    others = [ratio for (_, workload), ratio in own.items() if workload not in under]
    is_shared = all(where in bad for where in own if where[1] in under)
    return tuple(under) if is_shared and others and max(others) < _BETWEEN else ()


def unexplained(worse: Sequence[Excess]) -> Iterator[Excess]:
    """Leave out what another excess of the same chain explains.

    Throughput is explained by anything at a part, loss from end to end by that of a part, loss of a part by its CPU or
    memory, latency under load by these and by latency without load, which the delay of a part explains.
    """
    of_parts: dict[Chain, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in worse:
        of_parts[each.chain][each.owner].add(each.feature)
    for each in worse:
        owners = of_parts[each.chain]
        parts = {feature for owner, features in owners.items() if owner != CHAIN for feature in features}
        explained_by = {
            THROUGHPUT: parts,
            LOSS: parts & {LOSS} if each.owner == CHAIN else owners[each.owner] - {LOSS, CPU_PER_PACKET, DELAY},
            LATENCY: parts - {LOSS} | owners[CHAIN] & {IDLE_LATENCY},
            IDLE_LATENCY: parts & {DELAY},
        }
        if not explained_by.get(each.feature):
            yield each


def _explained(
    key: _Key, excesses: Sequence[Excess], compared: Mapping[Chain, float], placed: Placed
) -> Iterator[CommonCause]:
    owner, _ = key
    bad = frozenset(each.chain for each in excesses)
    between = frozenset(chain for chain, ratio in compared.items() if chain not in bad and ratio >= _BETWEEN)
    population = frozenset(compared)
    descriptions = tuple(_descriptions(owner, population, placed))
    if len(population) < FEWEST_COMPARED:  # they may both have the same fault, and nothing else in common
        values = [each.excess for each in excesses]
        is_alike = key[1] not in LATENCIES or max(values) - min(values) <= _MORE * min(values)
        descriptions = tuple(each for each in descriptions if each.weight == _WEIGHT_OF_PART and is_alike)
    fitting: dict[frozenset[Chain], list[_Description]] = defaultdict(list)
    for each in sorted(descriptions, key=lambda each: each.weight):
        covered = each.chains & bad
        if len(covered) >= _FEWEST and each.chains <= bad | between:
            fitting[covered].append(each)
    others = len(population - bad - between)
    chosen = _smallest(bad, fitting)
    for covered in chosen:
        first, *same = fitting[covered]
        chance = None
        if len(chosen) == 1 and covered != population:
            chance = _chance(len(covered), descriptions, population - between)
        own = [each for each in excesses if each.chain in covered]
        usual, more = _delays(own) if key[1] in LATENCIES else (own, [])
        alike = tuple(each.what for each in same if each.weight == first.weight)
        what = f"every chain {first.what}".rstrip()
        yield _cause(key, what, others, usual, same=alike, chance=chance)
        if more:
            yield from _explained(key, more, dict.fromkeys(population, 0.0), placed)
    for chain in sorted(bad.difference(*chosen), key=lambda chain: chain.name):
        yield _cause(key, f"only {chain.name}", others, [each for each in excesses if each.chain == chain])


def _delays(excesses: Sequence[Excess]) -> tuple[list[Excess], list[Excess]]:
    """Delays of one cause, and those beyond them of the chains that are delayed more than most: delays add up."""
    usual_s = median(each.excess for each in excesses)
    is_more = [each.excess - usual_s > max(each.least, _MORE * usual_s) for each in excesses]
    if 2 * sum(is_more) >= len(excesses):
        return list(excesses), []
    usual = [
        _shifted(each, usual_s - each.excess) if more else each for each, more in zip(excesses, is_more, strict=True)
    ]
    return usual, [_shifted(each, -usual_s) for each, more in zip(excesses, is_more, strict=True) if more]


def _shifted(each: Excess, by: float) -> Excess:
    return each.model_copy(update={name: getattr(each, name) + by for name in ("excess", "low", "high")})


def _smallest(
    bad: frozenset[Chain], fitting: Mapping[frozenset[Chain], Sequence[_Description]]
) -> tuple[frozenset[Chain], ...]:
    """Sets of chains to describe together; the rest of the bad ones is named one by one."""
    weights = {covered: rows[0].weight for covered, rows in fitting.items()}
    best: tuple[frozenset[Chain], ...] = ()
    least = _WEIGHT_OF_CHAIN * len(bad)
    for number in range(1, _MAX + 1):
        if number * min(weights.values(), default=least) >= least:
            break  # more of them weigh more
        for some in combinations(weights, number):
            held = Counter(chain for covered in some for chain in covered)
            if any(sum(held[chain] == 1 for chain in covered) < _FEWEST for covered in some):
                continue  # what is left for one of them is named as well chain by chain
            weight = sum(weights[covered] for covered in some) + _WEIGHT_OF_CHAIN * (len(bad) - len(held))
            if weight < least:
                best, least = some, weight
    return best


def _chance(count: int, descriptions: Collection[_Description], population: frozenset[Chain]) -> float:
    """Share of the choices of so many chains that a description fits exactly."""
    extents = {each.chains & population for each in descriptions}
    return sum(len(extent) == count for extent in extents) / comb(len(population), min(count, len(population)))


def _cause(
    key: _Key,
    what: str,
    others: int,
    excesses: Sequence[Excess],
    *,
    same: tuple[str, ...] = (),
    chance: float | None = None,
) -> CommonCause:
    """`excesses`: those of its chains only."""
    largest: dict[Chain, Excess] = {}
    for each in sorted(excesses, key=lambda each: each.excess):
        largest[each.chain] = each
    values = [each.excess for each in largest.values()]
    mean, low, high = (
        fmean(values),
        min(each.low for each in largest.values()),
        max(each.high for each in largest.values()),
    )
    if len(values) > _FEWEST:
        student = -float(special_functions.stdtrit(len(values) - 1, (1 - INTERVAL) / 2))
        half = student * stdev(values) / sqrt(len(values))
        low, high = mean - half, mean + half
    return CommonCause(
        owner=key[0],
        feature=key[1],
        what=what,
        chains=tuple(sorted(largest, key=lambda chain: chain.name)),
        others=others,
        excess=mean,
        low=low,
        high=min(high, 1.0) if key[1] == LOSS else high,
        smallest=min(each.excess for each in excesses),
        same=same,
        chance=chance,
    )


def _descriptions(owner: str, population: Collection[Chain], placed: Placed) -> Iterator[_Description]:
    """All that may be said of chains; those that hold for the same ones are all there."""
    extents: dict[tuple[float, str], set[Chain]] = defaultdict(set)
    for chain in population:
        for weight, what in _said_of(owner, chain, placed.get(chain, {})):
            extents[weight, what].add(chain)
    for (weight, what), chains in extents.items():
        yield _Description(weight, what, frozenset(chains))


def _said_of(owner: str, chain: Chain, placed: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[float, str]]:
    """Weight and words of what holds for a chain; the words go on after `every chain`."""
    order = chain.order
    is_of_part = owner in order
    if not is_of_part:
        yield _WEIGHT_OF_PART, ""
    yield _WEIGHT, f"of {len(order)} VNFs"
    for place, name in enumerate(order):
        if is_of_part and name != owner:
            continue
        before, behind = order[:place], order[place + 1 :]
        yield _WEIGHT_OF_PART, f"with {name}"
        yield from ((_WEIGHT, f"in which {name} comes after {other}") for other in before)
        yield from ((_WEIGHT, f"in which {name} comes before {other}") for other in behind)
        yield from ((_WEIGHT, f"in which {name} follows {other} directly") for other in before[-1:])
        yield from ((_WEIGHT, f"in which {other} follows {name} directly") for other in behind[:1])
        yield from ((_WEIGHT, f"with {name} and {other}") for other in (*before, *behind))
        yield _WEIGHT, f"with {name} in position {place + 1}"
        if not behind:
            yield _WEIGHT, f"ending with {name}"
        member = chain.members[place]
        memory = f" and {member.memory_mib} MiB" if member.memory_mib is not None else ""
        yield _WEIGHT, f"with {name} on {member.size}{memory}"
        yield from ((_WEIGHT, f"with {name} on CPU {cpu}") for cpu in placed.get(name, ()))
