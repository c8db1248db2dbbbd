"""`doctor`: what a testbed lacks, and how to mend it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.doctor_text import print_findings
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.testbed.maintenance.doctor import examine
from resources.libraries.python.testbed.node.checks.finding import Level


def doctor(
    topology: Annotated[Path, typer.Argument(help="Testbed file.")] = LOCAL_TOPOLOGY,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all findings, for machines.")] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="In a lab, install an agent on each node and let its drivers try.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what is wrong.")] = False,
) -> None:
    """Check a testbed without touching it: what is wrong, and how to mend it.

    Ends with 1 when there is a problem, which makes runs fail or their figures wrong. What could only be better
    is a wish: runs go on without it. Nodes of a lab are asked side by side; one that cannot be reached is one line,
    and the others are looked at all the same. What can be set at run time, ./csit prepare sets.

    \b
    ./csit doctor                                          this machine
    ./csit doctor topologies/available/NAME.yaml           a lab
    ./csit doctor topologies/available/NAME.yaml --thorough   and let drivers try what they need
    ./csit doctor TOPOLOGY --json | jq '.findings[] | select(.level == "problem")'
    """  # noqa: D301 - \b keeps the lines of the examples apart
    findings = examine(load_topology(topology), thorough=thorough, tell=lambda text: typer.echo(text, err=True))
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    if as_json:
        rows = [finding.model_dump(mode="json") for finding in findings]
        typer.echo(json.dumps({"topology": str(topology), **counts, "findings": rows}))
    else:
        shown = [finding for finding in findings if not quiet or finding.level is not Level.OK]
        print_findings(shown)
        typer.echo(_summary(topology, counts))
    if counts[Level.PROBLEM]:
        raise typer.Exit(1)


def _summary(topology: Path, counts: dict[Level, int]) -> str:
    problems, wishes = counts[Level.PROBLEM], counts[Level.WISH]
    if problems:
        return f"{topology}: {problems} problem{'s' * (problems > 1)}, {wishes} wish{'es' * (wishes != 1)}"
    if wishes:
        return f"{topology}: nothing is missing; {wishes} wish{'es' * (wishes != 1)}, runs go on without"
    return f"{topology}: nothing is missing"
