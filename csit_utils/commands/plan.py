"""`plan`: the whole matrix before anything runs."""

import json
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from csit_utils.commands.places import LOCAL_TOPOLOGY
from resources.libraries.python.deployment.worlds import layout_of
from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.selection import DRAFT_GRID, parse_selection
from resources.libraries.python.planning.estimate import estimate_s
from resources.libraries.python.planning.matrix import Candidate, candidates
from resources.libraries.python.search.profiles import profile


def plan(
    topology: Annotated[Path, typer.Argument(help="Topology file, such as topologies/sim.yaml.")] = LOCAL_TOPOLOGY,
    types: Annotated[str, typer.Option(help="Service types.")] = "VSC,CSC,CSP",
    cells: Annotated[str, typer.Option(help="Rows x columns, such as 1x1,2x1 or {1,2}x{1-10}.")] = DRAFT_GRID,
    nf_sizes: Annotated[str, typer.Option(help="Data cores of an NF; 1c+0.5c for a service of two.")] = "0.5c,1c,2c",
    vswitch: Annotated[str, typer.Option(help="Data cores of the vSwitch.")] = "1",
    search: Annotated[str, typer.Option(help="Search profile for the time estimate: csit or quick.")] = "csit",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per cell and line.")] = False,
) -> None:
    """Show which cells fit on a testbed, on which cores, why the others do not, and how long the tests take.

    The numbers in the table are physical cores that the cell takes, system core included; 'over' marks cells that the
    topology allows to run on shared cores, '-' cells that cannot run.

    Example: python -m csit_utils plan topologies/sim.yaml --types CSC --json | jq 'select(.fits)'
    """
    testbed = load_topology(topology)
    selection = parse_selection(service_types=types, cells=cells, nf_sizes=nf_sizes, vswitch=vswitch)
    rows = list(candidates(testbed, layout_of(testbed), selection))
    if as_json:
        for row in rows:
            typer.echo(json.dumps(_as_object(row)))
        return
    console = Console()
    for (kind, size, vs_dtc), group in groupby(rows, key=_group):
        console.print(_table(f"{kind}  NF-{size}  vSwitch-{vs_dtc}c", list(group)))
    _summary(console, rows, search)


def _group(row: Candidate) -> tuple[str, str, int]:
    return row.cell.service_type.value, row.cell.size_name, row.cell.vs_dtc


def _as_object(row: Candidate) -> dict[str, Any]:
    cell = row.cell
    sizes = [size.cores for size in cell.nf_sizes]
    return {
        "service_type": cell.service_type.value,
        "nf_chains": cell.nf_chains,
        "nf_nodes": cell.nf_nodes,
        "nf_dtc": sizes[0] if len(sizes) == 1 else sizes,
        "vs_dtc": cell.vs_dtc,
        "fits": row.fits,
        "oversubscribed": row.oversubscribed,
        "reason": row.reason,
        "cores": [thread.model_dump(mode="json") for thread in row.cores.threads] if row.cores else None,
        "cores_needed": row.cores.cores_needed if row.cores else None,
    }


def _table(title: str, rows: list[Candidate]) -> Table:
    columns = sorted({row.cell.nf_nodes for row in rows})
    table = Table(title=title, title_justify="left")
    table.add_column("services \\ NFs", justify="right")
    for column in columns:
        table.add_column(str(column), justify="right")
    by_point = {(row.cell.nf_chains, row.cell.nf_nodes): row for row in rows}
    for chains in sorted({row.cell.nf_chains for row in rows}):
        table.add_row(str(chains), *(_mark(by_point.get((chains, column))) for column in columns))
    return table


def _mark(row: Candidate | None) -> str:
    if row is None or row.cores is None:
        return "-"
    return f"{row.cores.cores_needed}{' over' if row.oversubscribed else ''}"


def _summary(console: Console, rows: list[Candidate], search: str) -> None:
    runs = [row for row in rows if row.runs]
    fits = sum(row.fits for row in rows)
    console.print(
        f"{len(rows)} cells: {fits} fit, {len(runs) - fits} run oversubscribed, {len(rows) - len(runs)} do not."
    )
    for reason, times in _reasons(rows):
        console.print(f"  {reason}" + (f" (and {times - 1} cells like it)" if times > 1 else ""))
    goals = profile(search)
    for test_type in TestType:
        seconds = estimate_s(goals, test_type, trial_overhead_s=0.05, deploy_s=1.0) * len(runs)
        console.print(f"  {test_type.value}: {len(runs)} tests per frame size, about {seconds / 3600:.1f} h ({search})")


def _reasons(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The first example of each kind of reason, and how many there are: reasons that differ only in numbers are one."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if row.reason is not None:
            example = f"{row.cell.service_type} {row.cell.locator} NF-{row.cell.size_name}: {row.reason}"
            kinds.setdefault(re.sub(r"\d+", "n", row.reason), []).append(example)
    return [(examples[0], len(examples)) for examples in kinds.values()]
