"""`stateful`: cells, trials and estimated time of a study of stateful density."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.paths import specification_file
from resources.libraries.python.studies.stateful.model import StatefulSpec
from resources.libraries.python.studies.stateful.planning import cost

_CELLS = ("cell", "instances", "NFs per instance")


def stateful(
    specification: Annotated[
        Path,
        typer.Argument(
            help="Specification of a study of stateful density, YAML: a path, or below tests/characterization/specs.",
            metavar="SPEC",
        ),
    ],
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Preview a stateful density study: cells, trials, time.

    Deploys and measures nothing; tests/characterization/stateful.robot does.

    \b
    Cells and time:
      ./csit stateful stateful/nat.yaml
    As JSON, one object per line:
      ./csit stateful stateful/nat.yaml --format json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    spec = load_yaml(specification_file(specification), StatefulSpec)
    price = cost(spec)
    rows = [
        TableLine(
            (f"{cell.nf_chains}x{cell.nf_nodes}", str(cell.nf_chains), str(cell.nf_nodes)),
            {"object": "cell", "instances": cell.nf_chains, "nodes": cell.nf_nodes},
        )
        for cell in spec.cells
    ]
    print_table(_CELLS, rows, form, _CELLS)
    if form is TableForm.JSON:
        print_table((), [TableLine((), {"object": "summary", "study": spec.name, **price.counts()})], form)
        return
    print_sentence(
        f"{spec.name}: {price.steps} cells of {spec.kind}, about {price.runs} trials: about {seconds(price.seconds)}."
    )
