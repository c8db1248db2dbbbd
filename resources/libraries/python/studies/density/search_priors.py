"""Results that a search may start from: earlier ones of the same cell, and predictions by measured cells of its matrix.

A prior is taken only from a result that agrees in all of this:

- world, testbed and drivers; the parameters of a simulated system;
- the cell with all its sizes and kinds, the frame, and the goal itself (loss ratio, evidence, width);
- the machine, unless the world is simulated: CPU model and microcode, number of CPUs online, kernel, command line,
  virtualization, versions of what takes part, settings of scheduling, PCIe links and pause frames of ports.

It need not agree in time, host name, memory, distribution, Python, or revision of this project. The test must have
passed and the goal's bounds be complete. A prior that does not hold costs a few trials, and bounds are proven whatever
it says, so a fact that is missing here costs time at worst.

A cell is predicted by those of its matrix that were measured before it in the same run, see `search.neighbours`. Cells
of a matrix differ in service instances and NFs only: they have the same service type, sizes, kinds, frame and goals.
Cells whose NFs or instances differ from each other, or that have no NF, are neither predicted nor predict.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.goal import GoalResult, PredictedGoal, Prior
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.records import check_results, earlier_records
from resources.libraries.python.search.neighbours import CellRate, Neighbours, Overload
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.matrix import journal_name

_SAME = ("cpu_model", "microcode", "cpus_online", "kernel", "command_line", "virtualization", "versions", "settings")
"""Fields of the environment that two results must share."""


class PriorBook:
    """Results below a folder, read on first use.

    `folder`: of one run or of many; `results/*.json` in it at any depth.

    Raises:
        ConfigError: There is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        check_results(folder)
        self.folder = folder

    def prior(
        self,
        asked: MeasurementRequest,
        *,
        world: World,
        testbed: str,
        drivers: Mapping[str, str],
        simulation: Mapping[str, Any] | None,
        environment: Environment,
    ) -> Prior | None:
        """Bounds of the newest matching result; None where there is none."""
        for result in self._newest_first:
            if (result.world, result.testbed, result.drivers) != (world, testbed, dict(drivers)):
                continue
            if result.simulation != (None if simulation is None else dict(simulation)):
                continue
            if (result.cell, result.asked.frame) != (asked.cell, asked.frame):
                continue
            if world is not World.SIM and any(
                getattr(result.environment, name) != getattr(environment, name) for name in _SAME
            ):
                continue
            loads = _loads(result, asked)
            if loads:
                return Prior(test_id=result.test_id, started_at=result.started_at, lower_pps=loads)
        return None

    def durations_s(self, testbed: str) -> dict[tuple[str, str], float]:
        """Seconds of the newest result of each test on a testbed, by its name in the journal and its search profile."""
        return {
            (journal_name(each.cell, each.asked.frame.name, each.asked.test_type), each.asked.profile.name): (
                datetime.fromisoformat(each.finished_at) - datetime.fromisoformat(each.started_at)
            ).total_seconds()
            for each in reversed(self._newest_first)
            if each.testbed == testbed
        }

    @cached_property
    def _newest_first(self) -> list[DensityRecord]:
        return [each for each in reversed(earlier_records(self.folder, DensityRecord)) if each.passed]


def newest_run(folder: Path) -> Path | None:
    """The newest run with results beside a run's folder; None where there is none."""
    runs = [each for each in folder.parent.glob("*") if each != folder and any(each.glob("results/*.json"))]
    return max(runs, key=lambda run: (run / "results").stat().st_mtime, default=None)


def _loads(result: DensityRecord, asked: MeasurementRequest) -> dict[str, float]:
    """Lower bounds of those goals that are asked for and were found."""
    found = {each.goal: each.lower_pps for each in (result.ndr, result.pdr) if each is not None and each.complete}
    return {goal.name: lower_pps for goal in asked.profile.goals if (lower_pps := found.get(goal)) is not None}


@dataclass(frozen=True, slots=True)
class MatrixPrediction:
    """Prediction of a cell from the measured ones."""

    goals: tuple[PredictedGoal, ...] = ()
    prior: Prior | None = None
    """None where the predictions are too uncertain."""
    overload: Overload | None = None


@dataclass(slots=True)
class _Matrix:
    """Results of the measured cells of one matrix. Their records are not kept: a run has thousands of them."""

    neighbours: dict[str, Neighbours] = field(default_factory=dict)
    """By goal."""
    overload: Overload = field(default_factory=Overload)
    newest: tuple[str, str] = ("", "")
    """Id and start of the last test."""

    def add(self, record: DensityRecord) -> None:
        goals = _found(record)
        lower_pps = {name: pps for name, goal in goals.items() if (pps := goal.lower_pps)}
        for name, pps in lower_pps.items():
            self.neighbours.setdefault(name, Neighbours()).add(CellRate(*record.cell.dimensions, pps))
        rates_pps = record.search.overload_pps if record.search else ()
        self.overload.add(rates_pps, lower_pps, {name: goal.goal.loss_ratio for name, goal in goals.items()})
        self.newest = record.test_id, record.started_at


class MeasuredCells:
    """Cells of a run in the order in which they were measured, carried over ones included."""

    def __init__(self) -> None:
        self._matrices: dict[str, _Matrix] = {}

    def add(self, record: DensityRecord) -> None:
        """Take in the record of a test that has passed; others are ignored."""
        if record.passed and record.search is not None and _of_matrix(record.cell):
            self._matrices.setdefault(_matrix_of(record.asked), _Matrix()).add(record)

    def predict(self, asked: MeasurementRequest) -> MatrixPrediction:
        """Predict the lower bounds of the goals of a test, as far as there are cells of its matrix."""
        matrix = self._matrices.get(_matrix_of(asked))
        if matrix is None or not _of_matrix(asked.cell):
            return MatrixPrediction()
        goals, usable = [], True
        names = [goal.name for goal in asked.profile.goals]
        for name in names:
            guess = matrix.neighbours[name].predict(*asked.cell.dimensions) if name in matrix.neighbours else None
            if guess is None:
                continue
            low_pps, high_pps = guess.interval_pps
            goals.append(PredictedGoal(goal=name, pps=guess.pps, low_pps=low_pps, high_pps=high_pps, cells=guess.cells))
            usable = usable and guess.usable
        prior = None
        if usable and len(goals) == len(names):
            test_id, started_at = matrix.newest
            prior = Prior(
                test_id=test_id,
                started_at=started_at,
                lower_pps={goal.goal: goal.pps for goal in goals},
                cells=min(goal.cells for goal in goals),
            )
        return MatrixPrediction(tuple(goals), prior, matrix.overload)


def _of_matrix(cell: Cell) -> bool:
    alike = len(cell.nf_sizes) == 1 and len(cell.nf_kinds) <= 1
    special = cell.shared_nodes or cell.taps or cell.instance_kinds or cell.limits or cell.programs
    return alike and not special and cell.nf_nodes > 0


def _matrix_of(asked: MeasurementRequest) -> str:
    """Digest of what all cells of a matrix have in common."""
    alike = asked.model_copy(update={"cell": asked.cell.model_copy(update={"nf_chains": 1, "nf_nodes": 1})})
    return digest_of_model(alike)


def _found(record: DensityRecord) -> dict[str, GoalResult]:
    """Complete results by goal. Where there is no upper bound, the generator limits, and not the cell."""
    found = [goal for goal in (record.ndr, record.pdr) if goal is not None and goal.complete and goal.upper_pps]
    return {goal.goal.name: goal for goal in found}
