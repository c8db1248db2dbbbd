"""`show` and `outcome`: results in the terminal, and whether runs are complete, as an exit status for a CI pipeline."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.analysis.runs import newest
from csit_utils.commands.results.inputs import INPUTS, MAX_TESTS, from_contents, opened, report_problems
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.items import Status
from csit_utils.report.outcomes import tally
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.marker import NOTHING_FITS
from resources.libraries.python.recording.run_journal import has_ended
from resources.libraries.python.redaction import command_text

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored


def show(
    inputs: INPUTS,
    why: Annotated[
        bool,
        typer.Option("--why", help="Also print the evidence of each verdict, and functions or steps of other studies."),
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Path of a report to print below the table.")] = None,
    form: FORMAT = TableForm.TABLE,
    max_tests: MAX_TESTS = 5_000,
) -> None:
    """Show a table of tests: NDR, PDR, MRR, latency, verdict.

    Other studies follow in a sentence each; --format json has an object for each record, csv has only tests. p99 is the
    worst 99th percentile of latency over all instances and directions at 50 % of PDR or of the soak rate. Output to a
    pipe is tab-separated. A sentence names the cells whose NDR is less than half of what they forward at fixed loads
    (MRR).

    \b
    Examples:
    ./csit show results/output.xml
    ./csit show results/output.xml --format json | jq .ndr_lower_pps
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if form in {TableForm.JSON, TableForm.CSV} and page is not None:
        raise ConfigError(f"--format {form} prints raw values only; leave out --page")
    if page is not None and not page.exists():
        raise ConfigError(f"--page {quoted(str(page))} does not exist; ./csit report writes it")
    from csit_utils.report.characterizations import characterization_lines, characterization_objects  # noqa: PLC0415 - numpy costs time of every --help
    from csit_utils.studies.density.results_table import print_results  # noqa: PLC0415 - as above
    from csit_utils.studies.density.sentences import far_below  # noqa: PLC0415 - as above
    from csit_utils.studies.registry import views  # noqa: PLC0415 - as above

    def printed(found: "Stored") -> "Stored":
        if form is TableForm.JSON:
            print_results(found, form=TableForm.JSON)
            others = characterization_objects(found.characterizations)
            print_table((), [TableLine((), each) for each in others], TableForm.JSON)
            return found
        if form is TableForm.CSV:
            print_results(found, form=form)
            if left_out := len(found.characterizations):
                told = f"{counted(left_out, 'record')} of other studies left out; a report has their CSV files"
                print_sentence(told, err=True)
            return found
        skipped = Counter(row.message for row in found.tests if row.status == "SKIP" and not row.recorded)
        if skipped.total() < len(found.tests):
            skipped.clear()  # their lines are in the table
            print_results(found, why=why, form=form)
            for line in far_below(found.tests):
                print_sentence(line)
        for line in characterization_lines(views(found.characterizations), why=why):
            print_sentence(line)
        for message, count in skipped.items():
            print_sentence(f"{counted(count, 'test')} skipped: {message}")
        return found

    found = from_contents(inputs, printed, partial(newest, max_tests=max_tests))
    if page is not None:
        typer.echo(f"Report: {page}")
    report_problems(found.problems)


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
