"""`schema`: the JSON Schema of result files."""

import json
from typing import Annotated

import typer

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.records import RECORDS, records_schema


def schema(
    study: Annotated[str | None, typer.Argument(help=f"One of {', '.join(RECORDS)}; default: all.")] = None,
) -> None:
    """Print the JSON Schema of result files.

    Result files are OUTPUT/results/*.json.

    \b
    Examples:
    ./csit schema density > density.schema.json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if study is not None and study not in RECORDS:
        raise ConfigError(f"no study '{study}'; choose from {', '.join(RECORDS)}")
    typer.echo(json.dumps(records_schema(study), indent=1))
