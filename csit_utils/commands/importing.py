"""`import`: results into a dataset."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.commands.progress import Progress
from csit_utils.commands.reading import INPUTS

if TYPE_CHECKING:
    from csit_utils.dataset.batch import Outcome


def import_(
    inputs: INPUTS,
    into: Annotated[Path, typer.Option("--into", help="The dataset's folder; made where it is not there.")],
    label: Annotated[
        str | None, typer.Option(help="What you call this run: a release, a night. A run keeps its first label.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as one JSON object on stdout.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="To read files with; as many as there are CPUs by default.")
    ] = None,
) -> None:
    """Add results to a dataset, which all commands read in place of files, and fast at any size.

    Inputs: output.xml, packed or not, result records (.json), result files of FD.io CSIT and NFVbench, ZIP archives,
    and folders of all these. What is in the dataset already is not added again, whatever its name is now. A file that
    cannot be read in full is named, costs nothing else, and makes the status 1.

    Examples: ./csit import results/ --into history --label nightly

    ./csit import /archive/2026-11.zip --into history && ./csit report history -o site
    """
    from csit_utils.dataset.batch import Outcome, import_all  # noqa: PLC0415 - pyarrow costs time of every --help
    from csit_utils.dataset.layout import Layout  # noqa: PLC0415 - as above

    layout = Layout.make(into)
    done: list[Outcome] = []
    with layout.writing(lambda: typer.echo(f"{into}: waiting for another import to end", err=True)):
        for outcome in _shown(import_all(layout, inputs, label, processes or os.cpu_count() or 1)):
            done.append(outcome)
            for text in outcome.problems:
                typer.echo(text, err=True)
    fresh = [outcome for outcome in done if not outcome.known]
    problems = [text for outcome in done for text in outcome.problems]
    added, known = (sum(each.files for each in done if each.known is known) for known in (False, True))
    tests = sum(outcome.tests for outcome in fresh)
    if as_json:
        figures = {"dataset": str(into), "files": added + known, "known": known, "tests": tests, "problems": problems}
        typer.echo(json.dumps(figures))
    else:
        typer.echo(f"{into}: {tests} tests of {added} files added; {known} were there already")
    if problems:
        raise typer.Exit(1)


def _shown(outcomes: "Iterator[Outcome | int]") -> "Iterable[Outcome]":
    """The outcomes; on a terminal with how far it is, and the time that is left."""
    total, done = 0, 0
    with Progress("files") as progress:
        for each in outcomes:
            if isinstance(each, int):
                total = each
                continue
            done += each.files
            progress(done, max(done, total))
            yield each
