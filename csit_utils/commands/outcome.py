"""`outcome`: what became of runs, as an exit status that a pipeline can act on."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.dataset.items import Dataset, Status
from csit_utils.dataset.load import load
from resources.libraries.python.recording.marker import NOTHING_FITS
from resources.libraries.python.recording.run_journal import has_ended

FAILED = 1
UNFINISHED = 3
"""Above the statuses that the command line itself ends with."""


def outcome(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, as given to robot by -d.", metavar="RUN...")],
) -> None:
    """Say what became of runs, also by the exit status, which a pipeline can act on.

    It is 0 where no test failed, 1 where all was measured and tests failed, 2 where no run was begun, and 3 where not
    all was measured: then ./csit robot --resume RUN goes on. Robot's own status counts failed tests and does not tell
    these apart.

    Example: ./csit outcome results/night
    """
    worst = 0
    for folder in folders:
        dataset = load([folder / "output.xml"])
        reason = unfinished(dataset, ended=has_ended(folder))
        statuses = [test.status for test in dataset.recorded] + [test.status for test in dataset.unrecorded]
        failed = statuses.count(Status.FAIL)
        if reason is not None:
            typer.echo(f"{folder}: not all was measured: {reason}; go on with ./csit robot --resume {folder}")
        else:
            typer.echo(f"{folder}: {len(statuses)} tests, {failed} failed")
        worst = max(worst, UNFINISHED if reason is not None else FAILED if failed else 0)
    raise typer.Exit(worst)


def unfinished(dataset: Dataset, *, ended: bool) -> str | None:
    """Why a run is not at its end; None where it is.

    Args:
        dataset: What its output.xml has.
        ended: Whether its journal says that it came to its end.
    """
    if not ended:
        return "its journal has no end, it was cut short"
    if dataset.problems:
        return dataset.problems[0].text
    for test in dataset.unrecorded:
        # A test that was measured has a record also where it failed.
        if test.status is Status.FAIL and test.name != NOTHING_FITS:
            return f"{test.name} has no record: {test.message}"
    return None
