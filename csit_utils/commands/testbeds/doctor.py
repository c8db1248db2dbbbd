"""`doctor`: check a testbed."""

import json
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table, styled
from resources.libraries.python.model.findings import CheckFinding, Severity
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.quantities import counted
from resources.libraries.python.testbed.maintenance.doctor import examine


def doctor(
    topology: Annotated[
        Path, typer.Argument(help="Topology file.", show_default="topologies/local.yaml")
    ] = LOCAL_TOPOLOGY,
    form: TABLE_OR_JSON = TableForm.TABLE,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="In a lab, start an agent on each node and let drivers try what they need."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only problems and warnings.")] = False,
) -> None:
    """Check a testbed: what is wrong, and how to fix it. Changes nothing.

    A problem makes runs fail or their figures wrong; a warning does not stop a run. Exit status 1: there is a problem.
    Nodes of a lab are checked in parallel, independently of each other. ./csit prepare applies settings that can be
    changed at run time.

    \b
    Examples:
    ./csit doctor                                          # this machine
    ./csit doctor topologies/available/NAME.yaml           # a lab
    ./csit doctor topologies/available/NAME.yaml --thorough
    ./csit doctor TOPOLOGY --format json | jq '.findings[].what'
    """  # noqa: D301 - \b keeps the lines of the examples apart
    findings = examine(load_topology(topology), thorough=thorough, report=lambda text: typer.echo(text, err=True))
    counts = {level: sum(finding.level is level for finding in findings) for level in Severity}
    if form is TableForm.JSON:
        rows = [finding.model_dump(mode="json") for finding in findings]
        typer.echo(json.dumps({"topology": str(topology), **counts, "findings": rows}))
    else:
        shown = [finding for finding in findings if not quiet or finding.level is not Severity.OK]
        print_findings(shown)
        print_sentence(_summary(topology, counts))
    if counts[Severity.PROBLEM]:
        raise typer.Exit(1)


def _summary(topology: Path, counts: dict[Severity, int]) -> str:
    problems, warnings = counts[Severity.PROBLEM], counts[Severity.WARNING]
    found = [counted(number, word) for number, word in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{topology}: {', '.join(found if problems else ['OK', *found])}"


_STYLES = {Severity.WARNING: "yellow", Severity.PROBLEM: "bold red"}


def print_findings(findings: Iterable[CheckFinding]) -> None:
    """Print findings by node: a table on a terminal, a line each in a pipe."""
    rows = list(findings)
    order = {_node(row): number for number, row in reversed(list(enumerate(rows)))}
    rows.sort(key=lambda row: order[_node(row)])
    if not sys.stdout.isatty():
        for row in rows:
            sys.stdout.write(f"{row.level.value:8}{row}\n")
        return
    for node, group in groupby(rows, key=_node):
        typer.echo(styled(node, "bold"))
        print_table(("", "", ""), [line for row in group for line in _lines(node, row)], TableForm.TABLE, ("",))
        typer.echo()


def _lines(node: str, row: CheckFinding) -> Iterable[TableLine]:
    place = row.place.removeprefix(f"{node}.").removeprefix(node)
    what = f"{place}: {row.what}" if place else row.what
    style = "" if row.level is Severity.OK else _STYLES[row.level]
    yield TableLine((row.level.value, row.check, what), {}, style)
    if row.fix:
        yield TableLine(("", "", f"→ {row.fix}"), {})


def _node(finding: CheckFinding) -> str:
    return ".".join(finding.place.split(".")[:2])
