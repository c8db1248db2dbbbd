"""Earlier results that a search may start from: the newest one of the same cell on the same testbed.

A prior is taken only from a result that agrees in all of this:

- world, testbed and drivers; the parameters of a simulated system;
- the cell with all its sizes and kinds, the frame, and the goal itself (loss ratio, evidence, width);
- the machine, unless the world is simulated: CPU model and microcode, number of CPUs online, kernel, command line,
  virtualization, versions of what takes part, settings of scheduling.

It need not agree in time, host name, memory, distribution, Python, or revision of this project. The test must have
passed and the goal's bounds be complete. A prior that does not hold costs a few trials, and bounds are proven whatever
it says, so a fact that is missing here costs time at worst.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.libraries.python.model.goal import GoalResult, Prior
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import World
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.studies.shared.earlier_records import check_results, earlier_records

_SAME = ("cpu_model", "microcode", "cpus_online", "kernel", "command_line", "virtualization", "versions", "settings")
"""Fields of the environment that two results must share."""


class PriorBook:
    """Results below a folder, read on first use.

    Args:
        folder: Of one run or of many; `results/*.json` in it at any depth.

    Raises:
        ConfigError: There is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        check_results(folder)
        self.folder = folder
        self._results: list[DensityRecord] | None = None

    def prior(
        self,
        asked: Asked,
        *,
        world: World,
        testbed: str,
        drivers: Mapping[str, str],
        simulation: Mapping[str, Any] | None,
        environment: Environment,
    ) -> Prior | None:
        """Bounds of the newest matching result; None where there is none."""
        for result in self._newest_first():
            if (result.world, result.testbed, result.drivers) != (world, testbed, dict(drivers)):
                continue
            if result.simulation != (None if simulation is None else dict(simulation)):
                continue
            if (result.cell, result.asked.frame) != (asked.cell, asked.frame):
                continue
            if world is not World.SIM and not _alike(result.environment, environment):
                continue
            loads = _loads(result, asked)
            if loads:
                return Prior(test_id=result.test_id, started_at=result.started_at, lower_pps=loads)
        return None

    def _newest_first(self) -> list[DensityRecord]:
        if self._results is None:
            self._results = [each for each in reversed(earlier_records(self.folder, DensityRecord)) if each.passed]
        return self._results


def _alike(one: Environment, other: Environment) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _SAME)


def newest_run(folder: Path) -> Path | None:
    """The newest run with results beside a run's folder; None where there is none."""
    runs = [each for each in folder.parent.glob("*") if each != folder and any(each.glob("results/*.json"))]
    return max(runs, key=lambda run: (run / "results").stat().st_mtime, default=None)


def _loads(result: DensityRecord, asked: Asked) -> dict[str, float]:
    """Lower bounds of those goals that are asked for and were found."""
    found = {each.goal: each for each in (result.ndr, result.pdr) if each is not None and _usable(each)}
    wanted = {goal.name: found.get(goal) for goal in asked.profile.goals}
    return {name: each.lower_pps for name, each in wanted.items() if each is not None and each.lower_pps is not None}


def _usable(found: GoalResult) -> bool:
    return found.complete and found.lower_pps is not None
