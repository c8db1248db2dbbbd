"""`compare`: selections of tests against the first one, cell by cell."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csit_utils.analysis.comparisons.comparability import environment_differences
from csit_utils.commands.results.inputs import MAX_TESTS
from csit_utils.commands.results.selections import COMPARED, DATA, MAX_COMPARED, SIDE_HELP, DatasetReader
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.rows import LISTS
from csit_utils.report.units import DASH, amount, percent
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.result import Environment
from resources.libraries.python.quantities import counted

if TYPE_CHECKING:
    from csit_utils.analysis.comparisons.comparison import CellSide, Change, Comparison
    from csit_utils.analysis.node_costs import NodeChange


class Sort(StrEnum):
    """Order of lines."""

    CHANGE = "change"
    CELL = "cell"


def compare(
    sides: Annotated[list[str], typer.Argument(metavar="A B", help=SIDE_HELP)],
    data: DATA = None,
    sort: Annotated[Sort, typer.Option(help="By change, largest regression first, or by cell.")] = Sort.CHANGE,
    outcome: Annotated[list[str] | None, typer.Option(help="Only cells with this outcome, such as regression.")] = None,
    insist: Annotated[
        bool, typer.Option("--insist", help="Also compare unlike figures, and note what differs.")
    ] = False,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="Print the cost of packets by node in the place of changes.")
    ] = False,
    form: FORMAT = TableForm.TABLE,
    max_tests: MAX_TESTS = MAX_COMPARED,
) -> None:
    """Compare results with those of A: change and significance.

    Each change has its 95 % confidence interval. With several runs per side, significance follows from the variance
    between runs. With a single run per side, it follows from the spread of changes over the matrix, or, below eight
    cells, from the search bounds: cells whose bounds, each widened by 0.5 %, are apart have changed. At most 5 % of the
    reported changes are expected to be false (Benjamini-Hochberg). Figures with different meanings (loss ratio, IMIX,
    simulated or real) are not compared. Notes name up to three nodes of vSwitch and NFs whose cost of a packet has
    changed, where programs count it, and beside a change up to three facts of the machines that differ. Exit status: 0
    whatever is found, 1 if an input cannot be read in full.

    \b
    Examples:
    ./csit compare monday/output.xml tuesday/output.xml
    ./csit compare testbed=lab-1 testbed=lab-2 --format csv > both.csv
    ./csit compare label=v25.06 label=v25.10 --data history --outcome regression
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if len(sides) < 2:
        raise ConfigError(f"{sides[0]}: nothing to compare with; give at least two selections")
    from csit_utils.analysis.comparisons.comparison import Outcome  # noqa: PLC0415 - scipy costs time of every --help
    from csit_utils.analysis.comparisons.comparison import compare as compared  # noqa: PLC0415 - as above
    from csit_utils.analysis.node_costs import largest, node_changes_of  # noqa: PLC0415 - as above

    unknown = [word for word in outcome or () if word not in tuple(Outcome)]
    if unknown:
        raise ConfigError(f"--outcome '{unknown[0]}': choose from {', '.join(Outcome)}")
    with DatasetReader(data, (*COMPARED, *LISTS), max_tests) as reader:
        baseline, *others = [reader.rows(text) for text in sides]
        lines: list[TableLine] = []
        for text, rows in zip(sides[1:], others, strict=True):
            found = compared(baseline, rows, insist=insist)
            if not found.changes:
                raise ConfigError(f"{sides[0]} and {text} have no cell and metric in common{_nearest(found)}")
            chosen = [each for each in found.changes if not outcome or each.outcome in outcome]
            if sort is Sort.CHANGE:
                chosen.sort(key=lambda each: -each.worsening)
            for each in chosen:
                costs = node_changes_of(each)
                if nodes:
                    lines += [_node_line(each, cost, text, several=len(others) > 1) for cost in costs]
                else:
                    facts = _facts_of(each, reader.environments)
                    named = replace(each, remarks=(*each.remarks, *(cost.text for cost in largest(costs)), *facts))
                    lines.append(_line(named, text, several=len(others) > 1))
            counts = ", ".join(f"{len(found.of(each))} {each}" for each in Outcome if found.of(each))
            alone = f"; {len(found.only_a)} only in A, {len(found.only_b)} only in B"
            print_sentence(f"A {sides[0]}, B {text}: {counts}{alone if found.only_a or found.only_b else ''}", err=True)
        if nodes and not lines:
            raise ConfigError(
                "no cell has costs by node on both sides; docs/how-to/read-costs-of-nodes.md says which do"
            )
        heads = [*(["side"] if len(others) > 1 else []), *(_NODE_HEADS if nodes else _HEADS)]
        print_table(heads, lines, form, left=("side", "cell", "part", "node", "outcome", "notes"))
        if reader.report_problems():
            raise typer.Exit(1)


_HEADS = ("cell", "A", "stdev", "runs", "B", "stdev", "runs", "change", "95 % interval", "outcome", "notes")
_NODE_HEADS = ("cell", "part", "node", "A", "B", "difference", "error", "packets per call A", "B")


_MAX_FACTS = 3


def _facts_of(change: "Change", environments: Mapping[str, Environment]) -> list[str]:
    """Facts of the machines that differ beside a figure that does, by what they are known to change."""
    if change.outcome not in ("regression", "progression"):
        return []
    sides = (max(side.figures, key=lambda each: each.row.started_at or "").row for side in (change.a, change.b))
    a, b = (environments.get(row.environment or "") for row in sides)
    found = [each for each in environment_differences(a, b) if each.effect] if a and b else []
    rest = [counted(len(found) - _MAX_FACTS, "more difference")] if len(found) > _MAX_FACTS else []
    return [f"{each.path}: {each.a or '-'}, B {each.b or '-'}" for each in found[:_MAX_FACTS]] + rest


def _node_line(change: "Change", cost: "NodeChange", called: str, *, several: bool) -> TableLine:
    calls = (DASH if each is None else f"{each:.3g}" for each in (cost.packets_per_call_a, cost.packets_per_call_b))
    costs = (f"{each:.4g} {cost.unit}" if each else DASH for each in (cost.cost_a, cost.cost_b))
    texts = (change.name, cost.part, cost.node, *costs, f"{cost.difference:+.3g}", f"±{cost.error:.2g}", *calls)
    style = "" if not cost.has_changed else "red" if cost.difference > 0 else "green"
    of_cell = as_object(change, called)
    raw = {name: of_cell[name] for name in ("b", *_OF_CELL)} | {**asdict(cost), "changed": cost.has_changed}
    return TableLine((called, *texts) if several else texts, raw, style)


_OF_CELL = ("service_type", *Dimensions(1, 1).columns, "nf_size", "vs_dtc", "frame", "metric", "simulated")


def _nearest(found: "Comparison") -> str:
    """Return cells of both sides that differ by their sizes only, for an error; empty without any."""
    from csit_utils.analysis.cells import place_text  # noqa: PLC0415 - costs time of every --help

    for one, other in product(found.only_a, found.only_b):
        alike = ((each.dimensions, each.series.service_type, each.series.frame, each.metric) for each in (one, other))
        if len(set(alike)) == 1:
            a, b = (place_text(each.series, each.dimensions) for each in (one, other))
            return f": sizes of '{a}' and '{b}' differ or are unknown"
    return ""


def _line(change: "Change", called: str, *, several: bool) -> TableLine:
    texts = [
        change.name,
        *(
            text
            for side in (change.a, change.b)
            for text in (amount(change.metric, side.series, side.mean_pps), _spread(side), str(side.runs))
        ),
        percent(change.change, signed=True),
        f"{percent(change.low, signed=True)} to {percent(change.high, signed=True)}",
        change.outcome,
        "; ".join(change.remarks),
    ]
    style = {"regression": "red", "progression": "green"}.get(change.outcome, "")
    return TableLine(tuple([called, *texts] if several else texts), as_object(change, called), style)


def _spread(side: "CellSide") -> str:
    return DASH if side.stdev_pps is None or not side.mean_pps else percent(side.stdev_pps / side.mean_pps)


def as_object(change: "Change", called: str) -> Mapping[str, Any]:
    """Return a change as a JSON object."""
    series = change.a.series
    sides = {
        f"{name}_{key}": value
        for name, side in (("a", change.a), ("b", change.b))
        for key, value in (
            ("testbed", side.series.system.testbed),
            ("mean_pps", side.mean_pps),
            ("stdev_pps", side.stdev_pps),
            ("runs", side.runs),
            ("low_pps", side.low_pps),
            ("high_pps", side.high_pps if math.isfinite(side.high_pps) else None),
        )
    }
    return {
        "b": called,
        "service_type": series.service_type,
        **change.dimensions.columns,
        "nf_size": series.nf_size,
        "vs_dtc": series.vs_dtc,
        "frame": series.frame,
        "metric": change.metric,
        "simulated": series.system.simulated,
        **sides,
        "change": change.change,
        "change_low": change.low,
        "change_high": change.high,
        "method": change.method.value,
        "probability": change.probability,
        "adjusted_probability": change.adjusted,
        "outcome": change.outcome.value,
        "remarks": list(change.remarks),
    }
