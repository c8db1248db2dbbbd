"""`doctor`: check a testbed."""

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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all findings.")] = False,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="In a lab, start an agent on each node and let its drivers try what they need."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only problems and warnings.")] = False,
) -> None:
    """Check a testbed without changing it: what is wrong, and how to fix it.

    The exit status is 1 if there is a problem, which makes runs fail or their figures wrong. A warning does not
    stop a run. Nodes of a lab are checked in parallel; one that is unreachable is one line, and the others are
    checked all the same. ./csit prepare sets what can be set at run time.

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
    problems, warnings = counts[Level.PROBLEM], counts[Level.WARNING]
    found = [
        f"{number} {word}{'s' * (number != 1)}"
        for number, word in ((problems, "problem"), (warnings, "warning"))
        if number
    ]
    return f"{topology}: {', '.join(found if problems else ['OK', *found])}"
