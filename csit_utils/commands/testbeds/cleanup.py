"""`cleanup`: list and remove leftovers of killed runs."""

from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from csit_utils.commands.testbeds.reserve import TOPOLOGY, seconds
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers, find, remove
from resources.libraries.python.testbed.maintenance.machines import Machines


def cleanup(
    topology: TOPOLOGY,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the leftovers instead of listing them.")] = False,
    wait: Annotated[
        str, typer.Option(metavar="DURATION", help="Time to let a disconnected run clean up by itself.")
    ] = "30s",
    runtimes: Annotated[
        bool,
        typer.Option("--runtimes", help="Also remove the agents' Python runtimes; the next run copies them again."),
    ] = False,
) -> None:
    """List leftovers of killed runs on all nodes, or remove them.

    Leftovers are namespaces, processes, moved or rebound ports, and kernel settings. A run records each one before it
    makes it, and only what is on record is touched. Agent runtimes unused for 30 days are removed too. Refuses while a
    run is alive or another user holds the reservation. Settings changed by ./csit prepare are restored once its
    reservation has ended.

    \b
    Examples:
    ./csit cleanup topologies/available/NAME.yaml              # list
    ./csit cleanup topologies/available/NAME.yaml --yes        # remove
    """  # noqa: D301 - \b keeps the lines of the examples apart
    wait_s = seconds(wait, "--wait")
    testbed = load_topology(topology)
    with Machines(testbed) as machines:
        if not machines.places:
            print_sentence(f"{testbed.metadata.name} is simulated: it has no leftovers")
            return
        found = find(machines, all_runtimes=runtimes)
        if not yes:
            for each in found:
                _print(each)
            return
        for sentence in remove(machines, found, wait_s):
            print_sentence(sentence)
    print_sentence(f"{topology}: clean")


def _print(found: MachineLeftovers) -> None:
    left, name = found.left, found.machine
    if left.in_use:
        print_sentence(f"{name}: in use by a running test, {left.who}")
    for line in left.lines():
        print_sentence(f"{name}: {line}")
    if left.prepared:
        by = f"by {left.prepared.by} since {left.prepared.since}"
        print_sentence(f"{name}: prepared {by}, {left.prepared.settings} settings to restore")
    for each in found.stale:
        print_sentence(f"{name}: {each.title}, {each.mb} MB, unused for {each.unused_days:.0f} days")
    for named in left.unclaimed:
        delete = command_text("ip", "netns", "del", named)
        print_sentence(f"{name}: network namespace {named} is not on record; if it is unused:", delete)
    if found.clean and not left.in_use:
        print_sentence(f"{name}: no leftovers")
