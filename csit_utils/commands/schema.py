"""`schema`: the JSON Schema of result files."""

import json
from typing import Annotated

import typer

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.records import RECORDS, records_schema


def schema(
    study: Annotated[str | None, typer.Argument(help=f"One study only: {', '.join(RECORDS)}.")] = None,
) -> None:
    """Print the JSON Schema of the result files in OUTPUT/results, for programs that read or validate them.

    Example: ./csit schema density > density.schema.json
    """
    if study is not None and study not in RECORDS:
        raise ConfigError(f"there is no study '{study}'; there are {', '.join(RECORDS)}")
    typer.echo(json.dumps(records_schema(study), indent=1))
