"""`cleanup`: find and remove what killed runs have left."""

from typing import Annotated

import typer

from csit_utils.commands.durations import seconds
from csit_utils.commands.reserve import TOPOLOGY
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers, find, remove
from resources.libraries.python.testbed.maintenance.machines import Machines


def cleanup(
    topology: TOPOLOGY,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without, it is only listed.")] = False,
    wait: Annotated[str, typer.Option(help="How long a run that was cut off may take to clean up by itself.")] = "30s",
    runtimes: Annotated[
        bool, typer.Option("--runtimes", help="Also remove what agents run on (the next run brings it again).")
    ] = False,
) -> None:
    """List what runs that were killed have left on all nodes; with --yes, remove it.

    Namespaces, processes, ports that were moved or have another driver, kernel settings: by what such a run wrote down
    before it made them, so nothing of anybody else's is touched. Runtimes of agents go when unused for 30 days. Refuses
    while a run is alive, or while another user has the reservation. Settings that ./csit prepare changed are put back
    when the reservation of that time has ended.

    \b
    ./csit cleanup topologies/available/NAME.yaml              list
    ./csit cleanup topologies/available/NAME.yaml --yes        remove
    """  # noqa: D301 - \b keeps the lines of the examples apart
    wait_s = seconds(wait, "--wait")
    with Machines(load_topology(topology)) as machines:
        found = find(machines, all_runtimes=runtimes)
        if not yes:
            for each in found:
                _print(each)
            return
        for sentence in remove(machines, found, wait_s):
            typer.echo(sentence)
    typer.echo(f"{topology}: clean")


def _print(found: MachineLeftovers) -> None:
    left, name = found.left, found.machine
    if left.in_use:
        who = f"pid {left.owner.pid} of {left.owner.user}: {left.owner.command}" if left.owner else "an unknown process"
        typer.echo(f"{name}: in use by a run that is alive, {who}")
    for line in left.lines():
        typer.echo(f"{name}: {line}")
    if left.prepared:
        by = f"by {left.prepared.by} since {left.prepared.since}"
        typer.echo(f"{name}: prepared {by}, {left.prepared.settings} settings to be put back")
    for each in found.stale:
        typer.echo(f"{name}: {each.title}, {each.mb} MB, unused for {each.unused_days:.0f} days")
    for named in left.unclaimed:
        typer.echo(f"{name}: network namespace {named} is not on record; if it is not in use: ip netns del {named}")
    if found.clean and not left.in_use:
        typer.echo(f"{name}: nothing is left")
