"""`release`: end a reservation, and restore settings."""

from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from csit_utils.commands.testbeds.reserve import TOPOLOGY
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.testbed.maintenance import reservation


def release(
    topology: TOPOLOGY,
    token: Annotated[
        str | None,
        typer.Option(help="Token printed by ./csit reserve; default: environment variable CSIT_RESERVATION."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Release even a reservation of another user.")] = False,
) -> None:
    """Release a testbed, and restore the settings of its nodes.

    Restores what ./csit prepare changed. Exit status 1: the reservation has expired or belongs to another user.

    \b
    Examples:
    ./csit release topologies/available/NAME.yaml
    ./csit release topologies/available/NAME.yaml --force   # also of another user
    """  # noqa: D301 - \b keeps the lines of the examples apart
    testbed = load_topology(topology)
    if force:
        if token:
            raise ConfigError("--force ignores the holder; leave out --token")
        for machine, holder in reservation.break_open(testbed, print_sentence).items():
            print_sentence(f"{machine}: taken away from {holder}" if holder else f"{machine}: was free")
        if testbed.world is World.SIM:
            print_sentence(f"{testbed.metadata.name} is simulated: it needs no reservation")
        return
    strange = reservation.release(testbed, token, print_sentence)
    for sentence in strange:
        typer.echo(sentence, err=True)
    if strange:
        raise typer.Exit(1)
    print_sentence(f"{testbed.metadata.name} is free")
