"""`outcome`: whether runs are complete, as an exit status for a CI pipeline."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.items import Dataset, Status
from csit_utils.dataset.load import load
from resources.libraries.python.recording.marker import NOTHING_FITS
from resources.libraries.python.recording.run_journal import has_ended
from resources.libraries.python.redaction import command_text

FAILED = 1
UNFINISHED = 3
"""Above the exit statuses of the command line itself."""


def outcome(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, as given to robot -d.", metavar="RUN")],
) -> None:
    """Report whether runs are complete, also by the exit status.

    Exit status: 0 no test failed, 1 complete with failed tests, 2 no run, 3 incomplete: resume it with ./csit robot
    --resume RUN. Robot's own exit status, the number of failed tests, does not distinguish these.

    \b
    Examples:
    ./csit outcome results/night
    """  # noqa: D301 - \b keeps the lines of the examples apart
    worst = 0
    for folder in folders:
        dataset = load([output_of(folder)])
        reason = unfinished(dataset, ended=has_ended(folder))
        statuses = [test.status for test in dataset.recorded] + [test.status for test in dataset.unrecorded]
        failed = statuses.count(Status.FAIL)
        if reason is not None:
            resume = command_text("./csit", "robot", "--resume", folder)
            print_sentence(f"{folder}: incomplete: {reason}; resume with", resume)
        else:
            skipped = f", {count} skipped" if (count := statuses.count(Status.SKIP)) else ""
            print_sentence(f"{folder}: {len(statuses)} test{'s' * (len(statuses) != 1)}, {failed} failed{skipped}")
        worst = max(worst, UNFINISHED if reason is not None else FAILED if failed else 0)
    raise typer.Exit(worst)


def unfinished(dataset: Dataset, *, ended: bool) -> str | None:
    """Return why a run is incomplete; None if it is complete.

    Args:
        dataset: The contents of its output.
        ended: Whether its journal has an end.
    """
    if not ended:
        return "interrupted, the journal has no end"
    if dataset.problems:
        return dataset.problems[0].text
    for test in dataset.unrecorded:
        # A measured test has a record even if it failed.
        if test.status is Status.FAIL and test.name != NOTHING_FITS:
            return f"{test.name} has no record: {test.message}"
    return None
