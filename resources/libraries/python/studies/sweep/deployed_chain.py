"""The parts of a deployed chain: which VNF of the plan is which, what goes through it, with whom it shares CPUs."""

from collections.abc import Sequence

from resources.libraries.python.model.cell import Cell
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredVnf, predict, sharing
from resources.libraries.python.studies.sweep.analysis.path_baseline import MeasuredPath
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile
from resources.libraries.python.studies.sweep.model.record import Sweep


def predictions(
    measured: Sweep, plan: Plan, profiles: Sequence[Profile], path: Sweep | None = None
) -> tuple[Prediction, ...]:
    """Predict a chain from its parts alone by both models; by one where no VNFs share CPUs.

    Args:
        measured: The chain.
        plan: As it was deployed.
        profiles: Of its parts, one for each node.
        path: The sweep of the path without VNFs; None where there is none.
    """
    way = None if path is None else MeasuredPath.of(path.name, path.points)
    words = sharing(measured.vnfs)
    parts = [
        MeasuredVnf(profiles[function.node - 1], _share(measured.cell, function.node), words[function.name])
        for function in plan.nfs
    ]
    found = [predict(measured.name, parts, measured.points, "hungriest", way)]
    if any(part.cpus is not None for part in parts):
        found.append(predict(measured.name, parts, measured.points, "shared_cpus", way))
    return tuple(found)


def _share(cell: Cell, node: int) -> float:
    """Of the chain's rate that goes through one NF of a node: branches share the flows equally."""
    return 1.0 / cell.count_of(node)
