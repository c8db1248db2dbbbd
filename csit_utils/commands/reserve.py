"""`reserve`: a testbed for oneself for a time."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.durations import seconds
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.maintenance import reservation

TOPOLOGY = Annotated[Path, typer.Argument(help="Testbed file.")]


def reserve(
    topology: TOPOLOGY,
    reason: Annotated[str, typer.Option(help="Why, for others who want it: ./csit status shows it.")],
    lease: Annotated[str, typer.Option(help="For how long: 30m, 8h, 1h30m. It ends by itself then.")] = "8h",
    wait: Annotated[str, typer.Option(help="How long to wait for others; 0 ends at once with who has it.")] = "0",
) -> None:
    """Reserve all nodes of a testbed, or none. Prints a variable that runs, doctor and cleanup find it by.

    A run reserves its testbed by itself, as long as it lives; this is for several runs, and for work by hand.

    \b
    export "$(./csit reserve topologies/available/NAME.yaml --reason 'tuning VPP' --lease 2h)"
    ./csit robot -v TOPOLOGY:topologies/available/NAME.yaml tests/density
    ./csit release topologies/available/NAME.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    token = reservation.reserve(
        load_topology(topology),
        reason,
        seconds(lease, "--lease", least_s=10.0),
        seconds(wait, "--wait"),
        lambda text: typer.echo(text, err=True),
    )
    typer.echo(f"reserved for {lease}; give it back with ./csit release {topology}", err=True)
    typer.echo(f"{reservation.TOKEN_VARIABLE}={token}")
