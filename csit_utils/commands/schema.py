"""`schema`: the JSON Schema of result files."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from resources.libraries.python.recording.schema import characterization_schema, result_schema


class Kind(StrEnum):
    """A kind of result file."""

    RESULT = "result"
    CHARACTERIZATION = "characterization"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Density tests, or characterization tests.")] = Kind.RESULT,
) -> None:
    """Print the JSON Schema of the result files in OUTPUT/results, for programs that read or validate them.

    Example: ./csit schema characterization > characterization.schema.json
    """
    made = characterization_schema() if kind is Kind.CHARACTERIZATION else result_schema()
    typer.echo(json.dumps(made, indent=1))
