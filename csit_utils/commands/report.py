"""`report`: the page, and CSV files."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.reading import INPUTS, read, tell_problems


def report(
    inputs: INPUTS,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the page.")] = Path("density.html"),
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Also write tests, latency, trials and flows as CSV files there.")
    ] = None,
) -> None:
    """Write one HTML page with matrices, curves, latency, core maps and every trial. It opens without a network.

    Example: python -m csit_utils report monday/output.xml tuesday/output.xml -o both.html --csv csv/
    """
    dataset = read(inputs)
    from csit_utils.report.page import render  # noqa: PLC0415 - plotly and pandas cost half a second of every --help

    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(render(dataset), encoding="utf-8")
    typer.echo(str(output))
    if csv is not None:
        from csit_utils.dataset.frames import write_csv  # noqa: PLC0415 - as above

        for path in write_csv(dataset, csv):
            typer.echo(str(path))
    tell_problems(dataset)
