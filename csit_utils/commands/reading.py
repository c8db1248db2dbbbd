"""The inputs that commands share."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.dataset.items import Dataset
from csit_utils.dataset.load import load
from resources.libraries.python.errors import ConfigError

INPUTS = Annotated[
    list[Path],
    typer.Argument(help="output.xml files, result records (.json), or directories of them.", metavar="FILE..."),
]


def read(inputs: list[Path]) -> Dataset:
    """Read all inputs.

    Raises:
        ConfigError: Nothing at all could be read from them.
    """
    dataset = load(inputs)
    if not dataset.recorded and not dataset.unrecorded:
        reasons = "; ".join(problem.text for problem in dataset.problems)
        raise ConfigError(reasons or f"{', '.join(map(str, inputs))}: there are no tests in it")
    return dataset


def tell_problems(dataset: Dataset) -> None:
    """Say on stderr which inputs were not read in full, and end with status 1 if there are any."""
    for problem in dataset.problems:
        typer.echo(problem.text, err=True)
    if dataset.problems:
        raise typer.Exit(1)
