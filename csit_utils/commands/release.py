"""`release`: give a testbed back."""

from typing import Annotated

import typer

from csit_utils.commands.reserve import TOPOLOGY
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.maintenance import reservation


def release(
    topology: TOPOLOGY,
    token: Annotated[
        str | None, typer.Option(help="As ./csit reserve printed it; default the variable CSIT_RESERVATION.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Release the testbed regardless of its holder.")] = False,
) -> None:
    """Give a testbed back that was reserved. Ends with 1 where it is not ours (any more).

    Settings that ./csit prepare changed get their values of before.

    \b
    ./csit release topologies/available/NAME.yaml
    ./csit release topologies/available/NAME.yaml --force      regardless of the holder
    """  # noqa: D301 - \b keeps the lines of the examples apart
    testbed = load_topology(topology)
    if force:
        if token:
            raise ConfigError("--force ignores the holder; leave out --token")
        for machine, holder in reservation.break_open(testbed, typer.echo).items():
            typer.echo(f"{machine}: taken away from {holder}" if holder else f"{machine}: was free")
        return
    strange = reservation.release(testbed, token, typer.echo)
    for sentence in strange:
        typer.echo(sentence, err=True)
    if strange:
        raise typer.Exit(1)
    typer.echo(f"{testbed.metadata.name} is free")
