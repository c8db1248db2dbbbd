"""`show`: the answers in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.reading import INPUTS, contents_of, tell_problems


def show(
    inputs: INPUTS,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Print the evidence of each verdict below its test; of a characterization functions and steps.",
        ),
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Path of a page to name below the table.")] = None,
) -> None:
    """Show cell, frame, NDR, PDR, latency and verdict of every test; soak rate and MRR where there are any.

    Sweeps, chains, bursts and sizings follow, each in a sentence: where it saturates, what it carries.

    p99 is the worst 99th percentile of all instances and directions at 50 % of PDR, or of the soak rate. A pipe gets
    tab-separated lines.

    Example: ./csit show results/output.xml
    """
    found = contents_of(inputs, characterizations=True)
    from csit_utils.report.characterizations import (  # noqa: PLC0415 - numpy costs time of every --help
        print_characterizations,
        views,
    )
    from csit_utils.studies.density.results_table import print_results  # noqa: PLC0415 - as above

    if found.tests:
        print_results(found, why=why)
    print_characterizations(views(found.characterizations), why=why)
    if page is not None:
        typer.echo(f"Report: {page}")
    tell_problems(found)
