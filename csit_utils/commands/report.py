"""`report`: the pages, and CSV files."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.reading import INPUTS, read, tell_problems
from csit_utils.dataset.contents import InMemory


def report(
    inputs: INPUTS,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A folder for the site; with the ending .html all in that one file.")
    ] = Path("density.html"),
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Also write tests, latency, trials and flows as CSV files there.")
    ] = None,
) -> None:
    """Write pages with matrices, curves, latency, core maps and every trial. They open without a network.

    Example: python -m csit_utils report monday/output.xml tuesday/output.xml -o both.html --csv csv/
    """
    dataset = read(inputs)
    from csit_utils.report.site import single_file, write_site  # noqa: PLC0415 - plotly costs half a second of --help

    contents = InMemory(dataset)
    if output.suffix == ".html":
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(single_file(contents), encoding="utf-8")
        typer.echo(str(output))
    else:
        typer.echo(str(write_site(contents, output)))
    if csv is not None:
        from csit_utils.dataset.frames import write_csv  # noqa: PLC0415 - as above

        for path in write_csv(dataset, csv):
            typer.echo(str(path))
    tell_problems(dataset)
