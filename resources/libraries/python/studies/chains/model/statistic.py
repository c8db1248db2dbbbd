"""Means of features over the seconds of a run, and how a record says them: chain and workload once for all of a run."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationError

from resources.libraries.python.model.base import Frozen, first_error
from resources.libraries.python.studies.chains.model.spec import Chain, Workload


class Summary(Frozen):
    """Mean and standard deviation of a feature, extraordinary seconds filtered out by the interquartile range."""

    owner: str
    """A VNF of the chain, CHAIN, HOST or VSWITCH of `behaviour`."""
    feature: str
    mean: float
    stdev: float
    samples: int
    """Seconds that are left after the filter."""
    filtered: int


class Statistic(Summary):
    """The same, with what it was measured of."""

    chain: Chain
    workload: Workload


class OfRun(Frozen):
    """All features of one chain under one workload. In a record; everywhere else there are statistics."""

    chain: Chain
    workload: Workload
    features: tuple[Summary, ...]


class _Head(Frozen):
    """Common part of the features of a run."""

    chain: Chain
    workload: Workload
    features: tuple[dict[str, Any], ...]


def _grouped(statistics: Iterable[Statistic]) -> tuple[OfRun, ...]:
    """In their order: a run whose features are not in one row is said more than once."""
    return tuple(
        OfRun(chain=chain, workload=workload, features=tuple(features))
        for (chain, workload), features in groupby(statistics, lambda each: (each.chain, each.workload))
    )


def _flat(value: object) -> object:
    """Of each group its statistics."""
    return list(_each(value)) if isinstance(value, list | tuple) else value


def _each(parts: Iterable[Any]) -> Iterator[Any]:
    for number, part in enumerate(parts):
        if isinstance(part, Statistic):
            yield part
            continue
        try:
            head = _Head.model_validate(part)  # once: checking it in each statistic takes most of the time
        except ValidationError as error:
            where, reason = first_error(error)
            raise ValueError(f"{number}.{where}: {reason}") from error
        yield from ({**row, "chain": head.chain, "workload": head.workload} for row in head.features)


Statistics = Annotated[
    tuple[Statistic, ...],
    BeforeValidator(_flat, json_schema_input_type=tuple[OfRun, ...]),
    PlainSerializer(_grouped, return_type=tuple[OfRun, ...]),
]
"""Statistics, which a record groups by run."""
