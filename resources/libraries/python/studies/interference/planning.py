"""Planning of a study of interference: order of the measurements, plans for fewer instances, and the study's cost."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from random import Random

from resources.libraries.python.model.bounds import MAX_ROUNDS
from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.planning.names import GENERATOR, is_vswitch
from resources.libraries.python.studies.interference.model import Group, InterferenceSpec, Resource

AROUND_S = 1.6
"""Assumed around the traffic of a measurement: deploying, a look at the processes, removing. Measured on local.yaml."""
ALONE_S = 3.0
"""Assumed for finding what a network function carries alone, deploying it and removing it included."""


def cost(spec: InterferenceSpec, around_s: float = AROUND_S) -> StudyCost:
    """Count without making any measurement; `schedule` has them one by one.

    Combinations are targets with each set of co-located network functions, alone included. Deployments are one for each
    measurement, and one for each network function and frame size to find the load; more where one has a stand-in, or
    where the capacity of the network has to be found.

    `around_s`: seconds around the traffic of a measurement.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    names = len(spec.contenders)
    # Multisets of up to together - 1 of n: neighbours have no order, and two may be of a kind.
    sets = names * comb(names + spec.together - 1, names)
    # A network function alone shares nothing: it is measured without a guarantee only.
    rounds = sets + (sets - names) * len(spec.guarantee)
    measurements = rounds * spec.repetitions * len(spec.points()) + most_verifications(spec)
    searches = names * len(spec.frames or (spec.frame,))
    seconds = searches * ALONE_S + measurements * (spec.duration_s + around_s)
    return StudyCost(
        name=spec.name,
        steps=measurements,
        runs=measurements,
        unit="measurements",
        seconds=seconds,
        counted={"combinations": sets, "measurements": measurements, "deployments": searches + measurements},
    )


def most_verifications(spec: InterferenceSpec) -> int:
    """Measurements that placements need at most to be measured as they are.

    All together and each placement is a set for each network function and its baseline, and further repetitions have
    the sets of two placements with the baselines.
    """
    names = len(spec.contenders)
    return (2 * (1 + spec.verify) + 3 * MAX_ROUNDS) * names * spec.repetitions if spec.verify else 0


@dataclass(frozen=True, slots=True)
class PlannedMeasurement:
    """One measurement to be made: a target, and what runs beside it."""

    number: int
    """Its place in the order, from 0."""
    target: str
    against: tuple[str, ...]
    """Empty where the target is alone."""
    repetition: int
    point: int
    """Index of frame size and load in `InterferenceSpec.points`."""
    guarantee: Resource | None = None
    """Of which an equal share is guaranteed to each; never of a target alone, the baseline of all."""


def schedule(spec: InterferenceSpec) -> tuple[PlannedMeasurement, ...]:
    """All measurements of a study.

    A repetition has each of them once, in an order of its own: what drifts in the course of hours, such as the
    temperature of a machine, then falls on all alike, and none is always measured behind the same other one.
    The order depends on the seed of the study and on nothing else.
    """
    turns: list[PlannedMeasurement] = []
    for repetition in range(spec.repetitions):
        row = [
            (one, point, guarantee)
            for point in range(len(spec.points()))
            for guarantee in (None, *spec.guarantee)
            for one in gatherings(spec)
            if one[1] or guarantee is None
        ]
        _random(spec, repetition).shuffle(row)
        turns += [
            PlannedMeasurement(number, target, against, repetition, point, guarantee)
            for number, ((target, against), point, guarantee) in enumerate(row, len(turns))
        ]
    return tuple(turns)


def gatherings(spec: InterferenceSpec) -> tuple[Group, ...]:
    """Each target with each group: alone, beside every other and its like, and up to `together` at once."""
    names = [contender.name for contender in spec.contenders]
    groups = [group for size in range(spec.together) for group in combinations_with_replacement(names, size)]
    return tuple((target, group) for target in names for group in groups)


def more_turns(
    spec: InterferenceSpec, groups: Sequence[Group], first: int, repetition: int
) -> tuple[PlannedMeasurement, ...]:
    """As many repetitions of some groups as of all others, at the reference point, without a guarantee.

    The baselines of their targets are among them: a machine may have drifted since the first ones.

    `first`: place of the first measurement in the order of all.
    `repetition`: number of the first repetition.
    """
    place = {each.name: index for index, each in enumerate(spec.contenders)}
    ordered = [(target, tuple(sorted(against, key=place.__getitem__))) for target, against in groups]
    row: list[Group] = [*dict.fromkeys(ordered), *((name, ()) for name in dict.fromkeys(name for name, _ in groups))]
    turns: list[PlannedMeasurement] = []
    for number in range(repetition, repetition + spec.repetitions):
        shuffled = list(row)
        _random(spec, number).shuffle(shuffled)
        turns += [
            PlannedMeasurement(first + len(turns) + index, target, against, number, 0)
            for index, (target, against) in enumerate(shuffled)
        ]
    return tuple(turns)


def _random(spec: InterferenceSpec, repetition: int) -> Random:
    return Random(f"{spec.seed}/{repetition}")  # noqa: S311 (reproducible, not secret)


def cpu_share(plan: Plan) -> float:
    """CPUs that each network function has if those which share a CPU have equal parts of it; the least of all."""
    users = Counter(cpu for each in plan.functions for cpu in plan.cores.cpus(each.name))
    return min(sum(1 / users[cpu] for cpu in plan.cores.cpus(each.name)) for each in plan.functions)


def first_instances(plan: Plan, count: int) -> Plan:
    """The same plan with its first service instances only.

    So one instance is measured alone where it is when it has neighbours, on the same CPUs.

    `plan`: its instances share nothing but cables and the vSwitch.
    `count`: instances that stay, 1 at least.

    Raises:
        ValueError: There are fewer, or instances share NFs.
    """
    if count not in plan.cell.instances:
        raise ValueError(f"{count} of {len(plan.cell.instances)} service instances")
    if shared := [function.name for function in plan.functions if not function.instance]:
        raise ValueError(f"service instances share {', '.join(shared)}")
    stay = range(count + 1)
    """0 is what all share: cables, and segments of these."""
    functions = tuple(function for function in plan.functions if function.instance in stay)
    links = tuple(link for link in plan.links if link.instance in stay)
    ports = {port.interface for link in links for port in (link.a, link.b)}
    owners = {port.owner for link in links for port in (link.a, link.b)}
    there = {function.name for function in functions} | owners | {GENERATOR, "system"}
    threads = tuple(each for each in plan.cores.threads if each.owner in there or is_vswitch(each.owner))
    return plan.model_copy(
        update={
            "cell": plan.cell.first_instances(count),
            "cores": plan.cores.model_copy(update={"threads": threads}),
            "links": links,
            "segments": tuple(_with(ports, segment) for segment in plan.segments if segment.instance in stay),
            "functions": functions,
            "taps": tuple(tap for tap in plan.taps if tap.instance in stay),
            "flows": tuple(flow for flow in plan.flows if flow.instance in stay),
            "paths": tuple(path for path in plan.paths if path.instance in stay),
        }
    )


def _with(ports: Collection[str], segment: Segment) -> Segment:
    """A segment without the ports of those that have gone."""
    members, copies = (tuple(name for name in row if name in ports) for row in (segment.members, segment.copies))
    return segment.model_copy(update={"members": members, "copies": copies})
