"""The inputs that commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from csit_utils.dataset.contents import Contents, InMemory, Joined
from csit_utils.dataset.items import Dataset, Problem
from csit_utils.dataset.layout import Layout, is_dataset
from csit_utils.dataset.load import load
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_LINE, quoted

_MOST_REASONS = 2

INPUTS = Annotated[
    list[Path],
    typer.Argument(
        help="output.xml files, result records (.json), results of CSIT and NFVbench, packed or not, folders of them, "
        "or a dataset made by `import`.",
        metavar="FILE...",
    ),
]


class _WithProblems(Protocol):
    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read."""


def contents_of(inputs: list[Path], *, characterizations: bool = False) -> Contents:
    """What is in all inputs; of datasets no more is read than is asked for.

    Args:
        inputs: Files, folders, datasets.
        characterizations: Whether those are enough, without any test of density.

    Raises:
        ConfigError: Nothing at all could be read from them, or a dataset is of newer software.
    """
    files = [path for path in inputs if not is_dataset(path)]
    found: list[Contents] = [*map(_stored, (path for path in inputs if is_dataset(path)))]
    if files:
        found.append(InMemory(load(files)))
    joined = found[0] if len(found) == 1 else Joined(*found)
    if not joined.tests and not (characterizations and joined.characterizations):
        if joined.characterizations and not joined.problems:
            raise ConfigError(
                f"{', '.join(map(str, inputs))}: there are characterizations in it, and no tests of density"
            )
        _refuse(inputs, joined.problems)
    return joined


def _stored(path: Path) -> Contents:
    from csit_utils.dataset.stored import Stored  # noqa: PLC0415 - pyarrow costs time, and files do not need it

    return Stored(Layout(path))


def read(inputs: list[Path]) -> Dataset:
    """Read all inputs whole, every record of a dataset too.

    Raises:
        ConfigError: As of `contents_of`.
    """
    dataset = load([path for path in inputs if not is_dataset(path)])
    for path in inputs:
        if is_dataset(path):
            from csit_utils.dataset.stored import Stored  # noqa: PLC0415 - as above

            for item in Stored(Layout(path)).items():
                dataset.add(item)
    if not any((dataset.recorded, dataset.unrecorded, dataset.foreign, dataset.characterizations)):
        _refuse(inputs, dataset.problems)
    return dataset


def _refuse(inputs: list[Path], problems: Sequence[Problem]) -> None:
    reasons = "; ".join(quoted(problem.text) for problem in problems[:_MOST_REASONS])
    if len(problems) > _MOST_REASONS:
        reasons += f"; and {len(problems) - _MOST_REASONS} more"
    raise ConfigError(reasons or f"{', '.join(map(str, inputs))}: there are no tests in it")


def tell_problems(found: _WithProblems) -> None:
    """Say on stderr which inputs were not read in full, and end with status 1 if there are any."""
    for problem in found.problems:
        typer.echo(quoted(problem.text, LONGEST_LINE), err=True)
    if found.problems:
        raise typer.Exit(1)
