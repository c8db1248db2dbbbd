"""`prepare`: apply settings for repeatable measurements on all nodes of a testbed."""

import functools
from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from csit_utils.commands.testbeds.reserve import LEASE, REASON, TOPOLOGY, WAIT, seconds
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import no_such_kind
from resources.libraries.python.redaction import command_text
from resources.libraries.python.studies.density.planning.selection import parse_selection
from resources.libraries.python.testbed.maintenance import preparation
from resources.libraries.python.testbed.maintenance.machines import Machines
from resources.libraries.python.testbed.maintenance.preparation import PreparationResult, Proposal
from resources.libraries.python.testbed.node.reservation import VARIABLE

_AFTER = "then: sudo update-grub && sudo reboot (in /etc/default/grub, on Debian and Ubuntu)"


def prepare(
    topology: TOPOLOGY,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only list the changes.")] = False,
    cells: Annotated[
        str,
        typer.Option(
            help="Largest cells to measure, such as 4x2, which decide the number of huge pages; default: as in the "
            "topology, or 1x1."
        ),
    ] = "",
    reason: REASON = "prepared",
    lease: LEASE = "8h",
    wait: WAIT = "0",
) -> None:
    """Tune all nodes of a testbed until ./csit release.

    Sets huge pages, governor, boost, interrupt affinity, irqbalance and kernel parameters, and prints each change as
    old -> new with its reason. Old values are saved on the node first, so that release restores them even after a
    crash. Settings that need a reboot are printed as a line for GRUB.

    Reserves the testbed and prints the variable of the reservation, as ./csit reserve does; if that variable is set, it
    uses the existing reservation. Exit status 1: fewer huge pages than requested.

    \b
    Examples:
    ./csit prepare topologies/available/NAME.yaml --dry-run
    export "$(./csit prepare topologies/available/NAME.yaml --lease 2h)"
    ./csit robot -v TOPOLOGY:topologies/available/NAME.yaml tests/density
    ./csit release topologies/available/NAME.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    lease_s, wait_s = seconds(lease, "--lease", least_s=10.0), seconds(wait, "--wait")
    testbed = load_topology(topology)
    chosen = _cells(testbed, cells)
    with Machines(testbed) as machines:
        if not machines.places:
            typer.echo(f"{testbed.metadata.name} is simulated: nothing to prepare", err=True)
            return
        typer.echo(f"reading settings of {', '.join(machines.places)}", err=True)
        proposals = preparation.propose(machines, chosen)
        if dry_run:
            for each in proposals:
                _print_proposal(each)
            return
        report = functools.partial(typer.echo, err=True)
        token, done = preparation.apply(machines, proposals, reason, lease_s, wait_s=wait_s, report=report)
    for prepared in done:
        _print_done(prepared)
    if token:
        restore = command_text("./csit", "release", topology)
        print_sentence(f"reserved for {lease}; restore all settings by", restore, err=True)
        typer.echo(f"{VARIABLE}={token}")
    if any(prepared.short for prepared in done):
        raise typer.Exit(1)


def _cells(testbed: Topology, text: str) -> list[Cell]:
    """Return the selected cells that a testbed supports; empty without a selection."""
    if not text:
        return []
    return [cell for cell in parse_selection(cells=text, nf_sizes="1c").cells() if not no_such_kind(testbed, cell)]


def _print_proposal(proposal: Proposal) -> None:
    name, wanted = proposal.machine, proposal.wanted
    for change in proposal.changes:
        print_sentence(f"{name}: {change}")
    if wanted.stop_irqbalance:
        print_sentence(f"{name}: irqbalance: running -> stopped")
    for sentence in wanted.unavailable:
        print_sentence(f"{name}: {sentence}")
    if not proposal.changes and not wanted.stop_irqbalance:
        print_sentence(f"{name}: all settings are correct")
    if proposal.busy:
        print_sentence(f"{name}: cannot be changed now: {proposal.busy}")
    if wanted.boot:
        print_sentence(f"{name}: needs a reboot:", wanted.boot)
        print_sentence(f"{name}: {_AFTER}")


def _print_done(done: PreparationResult) -> None:
    name, wanted = done.proposal.machine, done.proposal.wanted
    for line in (*done.lines, *wanted.unavailable):
        typer.echo(f"{name}: {line}", err=True)
    for line in done.short:
        advice = "memory is fragmented or in use: run prepare right after a reboot, or reserve them in the boot loader"
        typer.echo(f"{name}: {line}; {advice}", err=True)
    if not done.lines:
        typer.echo(f"{name}: all settings are correct", err=True)
    if wanted.boot:
        print_sentence(f"{name}: needs a reboot:", wanted.boot, err=True)
        print_sentence(f"{name}: {_AFTER}", err=True)
