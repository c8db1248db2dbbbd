"""Runs of Robot on this machine, and what they leave in their folders."""

import csv
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csit_utils.dataset.items import Recorded, Status
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.robot_runs import LOCAL, run_robot
from tests.loaded import items
from tests.traffic.machine_state import MachineState, left_since

MRR = "quick,mrr=2,mrr_trial=0.2"
"""Counts what comes back in two short trials. A search would end early or late by what is lost."""
ROUTER = "linux_router"
"""Kind of NF that needs no program: the kernel itself routes."""
_ENDS_S = 600.0


@dataclass(frozen=True)
class FinishedRun:
    """A run of Robot that has ended.

    Attributes:
        output: Its folder.
        status: Its exit status.
        text: What it printed.
        left: What is still on the machine of it; empty where nothing is.
    """

    output: Path
    status: int
    text: str
    left: str

    def cells(self) -> dict[str, DensityRecord]:
        """Records of density tests in output.xml by service type and cell, such as `CSC 1R2C`."""
        found = [item.record for item in self._items() if isinstance(item.record, DensityRecord)]
        return {f"{each.asked.cell.service_type} {each.asked.cell.locator}": each for each in found}

    def characterization(self) -> Any:
        """The record of the only test of another study in output.xml."""
        (found,) = (item.record for item in self._items() if not isinstance(item.record, DensityRecord))
        return found

    def _items(self) -> list[Recorded]:
        """Tests with a record."""
        found = items(self.output / "output.xml")
        return [item for item in found if isinstance(item, Recorded)]

    def table(self, name: str) -> list[dict[str, str]]:
        """Rows of a CSV file of the only test of another study."""
        (file,) = (self.output / "characterization").glob(f"*/{name}.csv")
        with file.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    def assert_all_passed(self) -> None:
        """The run has tests, all of them have passed, and no record is of a simulation."""
        assert self.status == 0, self.text
        items = self._items()
        assert items
        assert {item.status for item in items} == {Status.PASS}
        for item in items:
            record: Record = item.record
            assert (record.passed, record.message, record.world) == (True, "", "local")
            assert not record.simulated
            assert record.simulation is None
            assert list((self.output / "results").glob(f"*{record.test_name.replace(' ', '_')}*.json"))


def finished(output: Path, *options: str, sources: Sequence[Path], before: MachineState | None = None) -> FinishedRun:
    """Run suites on this machine to their end, and wait until nothing of the run is left."""
    before = before or MachineState.now()
    done: subprocess.CompletedProcess[str] = run_robot(
        output, *LOCAL, *options, sources=sources, seconds=_ENDS_S, check=False
    )
    return FinishedRun(output, done.returncode, done.stdout + done.stderr, left_since(before))
