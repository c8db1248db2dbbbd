"""A doctor's findings for a person: a table on a terminal, a line each in a pipe."""

import sys
from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.table import Table

from resources.libraries.python.testbed.node.checks.finding import Finding, Level

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings, those of a node together."""
    rows = list(findings)
    order = {_node(row): number for number, row in reversed(list(enumerate(rows)))}
    rows.sort(key=lambda row: order[_node(row)])
    if not sys.stdout.isatty():
        for row in rows:
            sys.stdout.write(f"{row.level.value:8}{row}\n")
        return
    console = Console(markup=False, highlight=False)
    for node, group in groupby(rows, key=_node):
        table = Table(box=None, pad_edge=False, show_header=False, title=node, title_justify="left", title_style="bold")
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, style="bold")
        table.add_column(overflow="fold")
        for row in group:
            place = row.place.removeprefix(f"{node}.").removeprefix(node)
            what = f"{place}: {row.what}" if place else row.what
            table.add_row(row.level.value, row.check, what, style=None if row.level is Level.OK else _STYLES[row.level])
            if row.fix:
                table.add_row("", "", f"→ {row.fix}")
        console.print(table)
        console.print()


def _node(finding: Finding) -> str:
    return ".".join(finding.place.split(".")[:2])
