"""Sizings in reports: capacity of each deployment size, and their records."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from csit_utils.dataset.measures import OF_WORKLOAD, Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.studies.sizing.page import PAGE
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.service.load import load_sizing
from resources.libraries.python.model.service.spec import Sizing
from resources.libraries.python.studies.sizing.analysis import SIZING_COLUMNS, best_size, headline, sizing_rows
from resources.libraries.python.studies.sizing.planning.cost import SizingCost, cost

EXPLANATIONS = (
    Explanation(
        "indicator",
        "Performance indicator",
        "The load that a service handled, as reported by its load generator.",
        "That of the workload, such as calls/s; mean and standard deviation of the repetitions.",
        "The script of the workload offers a load for a fixed time and prints one number; this is repeated as "
        "specified.",
        "It is not a packet rate. A growing standard deviation is the first sign of overload: a service that sheds "
        "load oscillates before its mean falls.",
    ),
    Explanation(
        "size-capacity",
        "Capacity of a size",
        "The highest offered load that a deployment size carries.",
        "That of the workload, such as calls/s.",
        "Loads are offered from low to high; a load is carried where the mean indicator is at least the threshold's "
        "share of it (90 % unless specified). Between the loads it is estimated from all repetitions, with a 95 % "
        "confidence interval. The size with the highest capacity is best; among those that cannot be told apart, the "
        "one with the fewest vCPUs.",
        "“At least” means that the highest load of the range was carried. The interval covers what differs between "
        "repetitions on one deployment, not what a new deployment would change. A directed search measures few sizes, "
        "so another one may be better.",
    ),
)
CAPACITY = Measure("capacity", OF_WORKLOAD)
"""Highest load that a deployment size carries."""


def _measured(sizing: Sizing) -> Iterator[MeasuredSubject]:
    for size in sizing.sizes:
        step = sizing.workload.increase
        found = size.capacity
        values: tuple[MeasuredValue, ...] = ()
        if found is not None:
            lowest, highest = found, None if size.at_top else found + step
            for at in size.capacities[:1]:
                if at.low is not None and at.high is not None:
                    lowest, highest = min(found, at.low), max(found, at.high)
            values = (MeasuredValue(CAPACITY, found, lowest, highest),)
        yield MeasuredSubject(
            values,
            sizing.deployment.vnf_name,
            Dimensions(1, len(size.size.components)),
            size.name,
            sizing.workload.unit,
            sizing.workload.generator,
        )


def _identity(sizing: Sizing) -> object:
    return sizing.deployment.model_dump_json(), sizing.workload.model_dump_json()


def _preview(path: Path, keys: Mapping[str, str]) -> SizingCost:
    asked = load_sizing(path, keys)
    return cost(asked.deployment, asked.workload)


STUDY = Study(
    order=30,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "sizing",
            "Sizing",
            lambda record: record.sizing,
            lambda sizing: str(sizing.deployment.vnf_name),
            headline,
            _identity,
            lambda sizing: (*sizing.steps, *sizing.notes),
            measures=(CAPACITY,),
            measured=_measured,
            tables=lambda record: () if record.sizing is None else (("sizing", sizing_rows(record.sizing)),),
            queried=QueriedTables(
                {"sizing": SIZING_COLUMNS},
                texts=("size", "bottleneck", "failed"),
                counts=("vcpus", "memory_mb", "capacity_is_at_least", "near_limit"),
            ),
            name_first=lambda sizing: best_size(sizing) is not None,
        ),
    ),
    explanations={"Sizing": EXPLANATIONS},
    preview=_preview,
)
