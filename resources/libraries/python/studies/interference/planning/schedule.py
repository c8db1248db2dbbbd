"""The order in which network functions are measured, alone and co-located."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from random import Random

from resources.libraries.python.studies.interference.model.record import InterferenceSpec


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement to be made: a target, and what runs beside it."""

    number: int
    """Its place in the order, from 0."""
    target: str
    against: tuple[str, ...]
    """Empty where the target is alone."""
    repetition: int
    point: int
    """Index of frame size and load in `InterferenceSpec.points`."""
    guaranteed: bool
    """With an equal share of the network I/O guaranteed to each; never of a target alone, the baseline of both."""


def schedule(spec: InterferenceSpec) -> tuple[Turn, ...]:
    """All measurements of a study.

    A repetition has each of them once, in an order of its own: what drifts in the course of hours, such as the
    temperature of a machine, then falls on all alike, and none is always measured behind the same other one.
    The order depends on the seed of the study and on nothing else.
    """
    return tuple(_turns(spec))


def gatherings(spec: InterferenceSpec) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each target with each group: alone, beside every other and its like, and up to `together` at once."""
    names = [contender.name for contender in spec.contenders]
    groups = [group for size in range(spec.together) for group in combinations_with_replacement(names, size)]
    return tuple((target, group) for target in names for group in groups)


def _turns(spec: InterferenceSpec) -> Iterator[Turn]:
    number = 0
    for repetition in range(spec.repetitions):
        row = [
            (one, point, guaranteed)
            for point in range(len(spec.points()))
            for guaranteed in _rounds(spec)
            for one in gatherings(spec)
            if one[1] or not guaranteed
        ]
        Random(f"{spec.seed}/{repetition}").shuffle(row)  # noqa: S311 (reproducible, not secret)
        for (target, against), point, guaranteed in row:
            yield Turn(number, target, against, repetition, point, guaranteed)
            number += 1


def _rounds(spec: InterferenceSpec) -> tuple[bool, ...]:
    return (False, True) if spec.guarantee else (False,)
