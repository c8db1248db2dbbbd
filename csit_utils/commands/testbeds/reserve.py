"""`reserve`, `status` and `release`: the reservation of a testbed; with arguments that commands on testbeds share."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.maintenance.preparation import is_prepared, restore
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.reservation import VARIABLE, Claim, Holder, ReservableNode

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 30 * 86400.0

TOPOLOGY = Annotated[Path, typer.Argument(help="Topology file.")]
REASON = Annotated[str, typer.Option(help="Reason, shown to others by ./csit status.")]
LEASE = Annotated[str, typer.Option(metavar="DURATION", help="Duration of the reservation: 30m, 8h, 1h30m.")]
WAIT = Annotated[
    str, typer.Option(metavar="DURATION", help="How long to wait for a reserved testbed; 0: fail at once.")
]


def reserve(topology: TOPOLOGY, reason: REASON, lease: LEASE = "8h", wait: WAIT = "0") -> None:
    """Reserve all nodes of a testbed.

    A reservation is for several runs or manual work. Prints the environment variable by which runs, doctor and cleanup
    recognize the reservation. Single runs need none: each locks its machines while it lasts.

    \b
    Examples:
    export "$(./csit reserve topologies/available/NAME.yaml --reason tuning)"
    ./csit robot -v TOPOLOGY:topologies/available/NAME.yaml tests/density
    ./csit release topologies/available/NAME.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    testbed, report = load_topology(topology), partial(typer.echo, err=True)
    claim = Claim(testbed.metadata.name, reason, seconds(lease, "--lease", least_s=10.0))
    wait_s = seconds(wait, "--wait")
    with Machines(testbed) as machines:
        if not machines.places:
            report(f"{testbed.metadata.name} is simulated: it needs no reservation")
        for sentence in reservation.acquire_within(machines.reservable, claim, wait_s, report, machines.refuse_in_use):
            report(sentence)
    print_sentence(f"reserved for {lease}; release it by", command_text("./csit", "release", topology), err=True)
    typer.echo(f"{VARIABLE}={claim.token}")


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
        with Machines(testbed) as machines:
            broken = reservation.break_open(machines.reservable)
            failed = _put_back(machines, lambda _: True)
        if failed:
            raise CsitError("; ".join(failed))
        for machine, holder in broken.items():
            print_sentence(f"{machine}: taken away from {holder}" if holder else f"{machine}: was free")
        if testbed.world is World.SIM:
            print_sentence(f"{testbed.metadata.name} is simulated: it needs no reservation")
        return
    ours = token or os.environ.get(VARIABLE)
    with Machines(testbed) as machines:
        if machines.places and not ours:
            raise ConfigError(f"no token: export {VARIABLE}=… as ./csit reserve said, or say --token or --force")
        failed = _put_back(
            machines, lambda place: reservation.holder_of(place.reservable, ours)[1] and is_prepared(place)
        )
        strange = reservation.release(machines.reservable, ours or "")
    if failed:
        raise CsitError("; ".join(failed))
    for sentence in strange:
        typer.echo(sentence, err=True)
    if strange:
        raise typer.Exit(1)
    print_sentence(f"{testbed.metadata.name} is free")


def _put_back(machines: Machines, wanted: Callable[[MaintainedMachine], bool]) -> list[str]:
    """Restore the settings of machines; return a sentence for each where that failed."""
    failed = []
    # The other way round than they were prepared, as two nodes may have one kernel.
    for place in reversed(machines.places.values()):
        try:
            for sentence in restore(place) if wanted(place) else ():
                print_sentence(sentence)
        except InUse:
            raise
        except CsitError as error:
            failed.append(str(error))
    return failed


@dataclass(frozen=True, slots=True)
class ReservationState:
    """Reservation of a machine, and its holder."""

    machine: str
    holder: Holder | None
    """None where it is free."""
    ours: bool
    """Its token is in our environment."""
    problem: str = ""
    """Why it is not known."""


def status(topology: TOPOLOGY, form: TABLE_OR_JSON = TableForm.TABLE) -> None:
    """Show who holds a testbed, why, since when and until when.

    Exit status 1: a node is unreachable.

    \b
    Examples:
    ./csit status topologies/available/NAME.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    with Machines(load_topology(topology)) as machines:
        rows = [_state(*each) for each in machines.reserved.items()]
    if form is TableForm.JSON:
        typer.echo(json.dumps({row.machine: _object(row) for row in rows}))
    else:
        for row in rows:
            print_sentence(f"{row.machine}: {_words(row)}")
        if not rows:
            typer.echo("simulated: needs no reservation")
    if any(row.problem for row in rows):
        raise typer.Exit(1)


def _state(name: str, node: ReservableNode) -> ReservationState:
    try:
        return ReservationState(name, *reservation.holder_of(node, os.environ.get(VARIABLE)))
    except CsitError as error:
        return ReservationState(name, None, ours=False, problem=str(error))


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
