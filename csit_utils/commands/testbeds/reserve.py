"""`reserve`: reserve a testbed; with the arguments that commands on testbeds share."""

import re
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.maintenance import reservation
from resources.libraries.python.testbed.node.reservation import VARIABLE

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 30 * 86400.0

TOPOLOGY = Annotated[Path, typer.Argument(help="Topology file.")]


def reserve(
    topology: TOPOLOGY,
    reason: Annotated[str, typer.Option(help="Reason, shown to others by ./csit status.")],
    lease: Annotated[str, typer.Option(metavar="DURATION", help="Duration of the reservation: 30m, 8h, 1h30m.")] = "8h",
    wait: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to wait for a reserved testbed; 0: fail at once.")
    ] = "0",
) -> None:
    """Reserve all nodes of a testbed.

    A reservation is for several runs or manual work. Prints the environment variable by which runs, doctor and cleanup
    recognize the reservation. Single runs need none: each locks its machines while it lasts.

    \b
    Examples:
    export "$(./csit reserve topologies/available/NAME.yaml --reason tuning)"
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
    print_sentence(f"reserved for {lease}; release it by", command_text("./csit", "release", topology), err=True)
    typer.echo(f"{VARIABLE}={token}")


def seconds(text: str, option: str, *, least_s: float = 0.0) -> float:
    """Return the seconds of a duration such as `90s`, `30m`, `8h` or `1h30m`; a bare number is seconds.

    Raises:
        ConfigError: Not a duration, too short, or longer than 30 days.
    """
    words = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", words):
        total = float(words)
    elif re.fullmatch(r"(\d+(\.\d+)?[smhd])+", words):
        total = sum(float(number) * _SECONDS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", words))
    else:
        raise ConfigError(f"{option}: no duration '{text}'; expected 90s, 30m, 8h or 1h30m")
    if not least_s <= total <= LONGEST_S:
        raise ConfigError(f"{option}: {text} is {total:.0f} s; it must be {least_s:.0f} s to 30 days")
    return total
