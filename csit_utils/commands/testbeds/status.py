"""`status`: the reservation of a testbed."""

import json

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from csit_utils.commands.testbeds.reserve import TOPOLOGY
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.maintenance.machines import Machines
from resources.libraries.python.testbed.maintenance.reservation import ReservationState, reservation_states


def status(
    topology: TOPOLOGY,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Show who holds a testbed, why, since when and until when.

    Exit status 1: a node is unreachable.

    \b
    Examples:
    ./csit status topologies/available/NAME.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    with Machines(load_topology(topology)) as machines:
        rows = reservation_states(machines)
    if form is TableForm.JSON:
        typer.echo(json.dumps({row.machine: _object(row) for row in rows}))
    else:
        for row in rows:
            print_sentence(f"{row.machine}: {_words(row)}")
        if not rows:
            typer.echo("simulated: needs no reservation")
    if any(row.problem for row in rows):
        raise typer.Exit(1)


def _words(row: ReservationState) -> str:
    if row.problem:
        return row.problem
    if row.holder is None:
        return "free"
    if row.holder.left_s <= 0:
        return f"free; {row.holder}"
    return f"{'ours: ' * row.ours}{row.holder}, {row.holder.left_s / 60:.0f} min left"


def _object(row: ReservationState) -> dict[str, object]:
    holder = row.holder
    free = not row.problem and (holder is None or holder.left_s <= 0)
    return {
        "free": free,
        "ours": row.ours,
        "problem": row.problem or None,
        "holder": holder.model_dump(mode="json") if holder else None,
    }
