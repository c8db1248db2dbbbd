"""`outcome`: whether runs are complete, as an exit status for a CI pipeline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.commands.results.inputs import opened
from csit_utils.commands.tables import print_sentence
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.items import Status
from csit_utils.report.outcomes import tally
from resources.libraries.python.recording.marker import NOTHING_FITS
from resources.libraries.python.recording.run_journal import has_ended
from resources.libraries.python.redaction import command_text

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

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
        found = opened([output_of(folder)]).contents(may_be_empty=True)
        reason = unfinished(found, ended=has_ended(folder))
        if reason is not None:
            resume = command_text("./csit", "robot", "--resume", folder)
            print_sentence(f"{folder}: incomplete: {reason}; resume with", resume)
            worst = UNFINISHED
        else:
            tests = tally(found.tests, found.characterizations)
            print_sentence(f"{folder}: {tests}")
            worst = max(worst, FAILED if tests.failed else 0)
    raise typer.Exit(worst)


def unfinished(found: "Stored", *, ended: bool) -> str | None:
    """Return why a run is incomplete; None if it is complete.

    `ended`: whether its journal has an end.
    """
    if not ended:
        return "interrupted, the journal has no end"
    if found.problems:
        return found.problems[0].text
    for row in found.tests:
        # A measured test has a record even if it failed.
        if not row.recorded and row.status == Status.FAIL and row.test_name != NOTHING_FITS:
            return f"{row.test_name} has no record: {row.message}"
    return None
