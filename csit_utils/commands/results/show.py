"""`show`: results in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, from_contents, report_problems
from csit_utils.commands.tables import print_sentence
from csit_utils.dataset.contents import Contents


def show(
    inputs: INPUTS,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Also print the evidence of each verdict, and functions or steps of other studies.",
        ),
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Path of a report to print below the table.")] = None,
) -> None:
    """Show a table of tests: NDR, PDR, MRR, latency, verdict.

    Sweeps, chains, bursts and sizings follow in a sentence each. p99 is the worst 99th percentile of latency over all
    instances and directions at 50 % of PDR or of the soak rate. Output to a pipe is tab-separated.

    \b
    Examples:
    ./csit show results/output.xml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    from csit_utils.report.characterizations import (  # noqa: PLC0415 - numpy costs time of every --help
        characterization_lines,
        views,
    )
    from csit_utils.studies.density.results_table import print_results  # noqa: PLC0415 - as above

    def printed(found: Contents) -> Contents:
        if found.tests:
            print_results(found, why=why)
        for line in characterization_lines(views(found.characterizations), why=why):
            print_sentence(line)
        return found

    found = from_contents(inputs, printed)
    if page is not None:
        typer.echo(f"Report: {page}")
    report_problems(found)
