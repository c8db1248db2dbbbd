"""`doctor`: what a testbed lacks, and how to mend it."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.places import LOCAL_TOPOLOGY
from resources.libraries.python.deployment.worlds import world_of
from resources.libraries.python.model.load import load_topology


def doctor(
    topology: Annotated[Path, typer.Argument(help="Testbed file.")] = LOCAL_TOPOLOGY,
) -> None:
    """Check a testbed without touching it: what is wrong, and how to mend it. Ends with 1 when something is.

    Example: ./csit doctor topologies/local.yaml
    """
    world = world_of(load_topology(topology))
    problems, wishes = world.problems(), world.wishes()
    for problem in problems:
        typer.echo(f"- {problem}")
    for wish in wishes:
        typer.echo(f"- {wish} (the others are measured all the same)")
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{topology}: nothing {'else ' if wishes else ''}is missing")
