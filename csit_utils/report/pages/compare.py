"""Comparison of runs, releases or testbeds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice, product
from math import inf, log
from urllib.parse import quote

import numpy as np

from csit_utils.analysis.cells import CellFigure, CellMetric, figures
from csit_utils.analysis.comparisons.comparability import likeness, resolution_pps
from csit_utils.analysis.comparisons.comparison import CONFIDENCE, FALSE_CALLS, Comparison, Outcome, compare, interval
from csit_utils.analysis.grouping import Series, asks_for
from csit_utils.analysis.node_costs import largest, node_changes_of, signed
from csit_utils.analysis.runs import ComparisonSide, History, SideKind
from csit_utils.dataset.measures import PPS, Measure
from csit_utils.dataset.rows import MEASURES, UNBOUNDED, TestRow
from csit_utils.report.cell_maps import shades
from csit_utils.report.environments import environment_views, payload
from csit_utils.report.figures import Json
from csit_utils.report.links import CellNames
from csit_utils.report.record_blocks import Column, RecordTables, Row, Table
from csit_utils.report.report_context import ReportContents
from csit_utils.report.stack_sides import cells_with_stacks, difference_graphs
from csit_utils.report.study import Page
from csit_utils.report.units import MINUS, digits3, unit
from csit_utils.studies.registry import measures
from resources.libraries.python import special_functions
from resources.libraries.python.model.result import Environment

_MAX_PAIRS = 12
_MAX_NODES = 100


@dataclass(frozen=True)
class Pair:
    """A suggested comparison."""

    a: ComparisonSide
    b: ComparisonSide
    found: Comparison

    @property
    def href(self) -> str:
        """Link to its table."""
        return f"#compare={quote(self.a.name)}&with={quote(self.b.name)}"

    @property
    def simulated(self) -> bool:
        """Whether any result is simulated."""
        return any(run.simulated for run in (*self.a.runs, *self.b.runs))

    def count(self, outcome: Outcome) -> int:
        """Return the number of cells with an outcome."""
        return len(self.found.of(outcome))


def comparable(shown: ReportContents) -> Mapping[str, ComparisonSide]:
    """Return all sides that readers choose from, by name."""
    of_steps = (side for pair in shown.suggested_pairs for side in pair if side.kind is SideKind.BEFORE)
    return {side.name: side for side in (*shown.whole_history.sides, *of_steps)}


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    sides = comparable(shown)
    asked = [(sides[shown.compared[0]], sides[shown.compared[1]])] if shown.compared else []
    compared = (Pair(a, b, compare(_rows(a), _rows(b))) for a, b in (*asked, *shown.suggested_pairs))
    # Runs of different studies have no cell in common.
    common = (pair for number, pair in enumerate(compared) if pair.found.changes or number < len(asked))
    pairs = list(islice(common, _MAX_PAIRS))
    if not pairs:
        return None
    graphs = (
        (f"{pair.a.name} to {pair.b.name}: {cell.name}", cell)
        for pair in pairs
        for cell in cells_with_stacks(_rows(pair.a), _rows(pair.b), shown.contents.record)
    )
    return {
        "stacks": difference_graphs(graphs),
        "pairs": pairs,
        "nodes": _NODES.draw(RecordTables("compare", any(pair.simulated for pair in pairs), pairs)),
        "outcomes": [each for each in Outcome if any(pair.count(each) for pair in pairs)],
        "confidence": CONFIDENCE,
        "false_calls": FALSE_CALLS,
        "data": data(shown.whole_history, sides.values(), shown.contents.environments),
    }


def _node_rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    changed = (
        {
            "sides": f"{pair.a.name} to {pair.b.name}" if len(pairs) > 1 else "",
            "cell": change.name,
            **asdict(node),
            "difference": node.difference,
            "note": node.note.partition(":")[0],
        }
        for pair in pairs
        for change in pair.found.changes
        for node in largest(node_changes_of(change))
    )
    return islice(changed, _MAX_NODES)


_NODES = Table(
    "nodes",
    _node_rows,
    (
        Column("sides", "A to B", text=True),
        Column("cell", text=True),
        Column("part", text=True),
        Column("node", text=True),
        Column("cost_a", "A", digits3),
        Column("cost_b", "B", digits3),
        Column("difference", write=lambda value: signed(value).replace("-", MINUS)),
        Column("error", "±", digits3),
        Column("unit", "per packet", text=True),
        Column("packets_per_call_a", "packets per call, A", digits3),
        Column("packets_per_call_b", "packets per call, B", digits3),
        Column("note", text=True),
    ),
    classes="loose",
)
"""Nodes whose cost differs, at most three of a cell; all of them: `compare --nodes`."""


def _rows(side: ComparisonSide) -> list[TestRow]:
    return [row for run in side.runs for row in run.rows]


PAGE = Page("compare", "Compare", _build, group="History")


_RunFigure = tuple[int, CellFigure]
"""Number of a run in the history, and a figure of it."""


def data(history: History, sides: Iterable[ComparisonSide], environments: Mapping[str, Environment]) -> Json:
    """Return the data of the script.

    `sides`: all that readers choose from.
    `environments`: environments by digest.
    """
    known = _known(history)
    metrics = (*MEASURES, *measures())
    names = CellNames(known)
    kinds = list(dict.fromkeys(_kind(cell.series) for cell in known))
    goals = list(dict.fromkeys(cell.series.goals for cell in known))
    testbeds = list(dict.fromkeys(cell.series.system.testbed for cell in known))
    examples = {_kind(cell.series): cell.series for cell in known}
    views = environment_views(environments, history.runs, {})
    places = {view.digest: place for place, view in enumerate(views)}
    return {
        # Name, numbers of its environments, whether it is simulated.
        "runs": [
            [run.name, [places[digest] for digest in run.environments if digest in places], run.simulated]
            for run in history.runs
        ],
        "sides": [[side.kind, side.name, [history.runs.index(run) for run in side.runs]] for side in sides],
        "metrics": metrics,
        "less_is_better": [number for number, metric in enumerate(metrics) if metric.less_is_better],
        "of_matrix": len(MEASURES),
        "unbounded": [number for number, metric in enumerate(metrics) if metric in UNBOUNDED],
        "cells": [
            {
                "m": metrics.index(cell.metric),
                "b": testbeds.index(cell.series.system.testbed),
                **_cell(cell, found, names, kinds, goals),
            }
            for cell, found in known.items()
        ],
        "unlike": list(_unlike([examples[kind] for kind in kinds], {cell.metric for cell in known})),
        "environments": payload(views).variants if views else None,
        "shades": shades()["diverging"],
        "student": student_table(),
    }


_STEPS = 10
"""Entries of a row of the table for each unit of `w`."""
_REACH = 9
"""The largest `w`, beyond which the probability is below 1e-18."""
_FREEDOMS = 32
"""Rows of the table of probabilities, evenly spaced in the reciprocal of the degrees of freedom."""
_QUANTILES = 64


@cache
def student_table() -> Json:
    """Return a table of Student's t that the script interpolates.

    Rows are of 1/n from 0 to 1, since differences of runs have n >= 1 degrees of freedom. In a row are logarithms of
    two-sided probabilities over w = sqrt(n log(1 + t²/n)), of which they are nearly a parabola.
    """
    reaches = np.arange(_REACH * _STEPS + 1) / _STEPS
    rows = [special_functions.log_ndtr(-reaches) + log(2)]
    for part in range(1, _FREEDOMS + 1):
        freedom = _FREEDOMS / part
        rows.append(
            np.log(special_functions.stdtr(freedom, -np.sqrt(freedom * np.expm1(reaches**2 / freedom)))) + log(2)
        )
    freedoms = [_QUANTILES / part for part in range(1, _QUANTILES + 1)]
    tail = (1 + CONFIDENCE) / 2
    quantiles = [special_functions.ndtri(tail), *(special_functions.stdtrit(freedom, tail) for freedom in freedoms)]
    return {
        "steps": _STEPS,
        "reach": _REACH,
        "log_chance": [[_digits(value) for value in row] for row in rows],
        "log_quantile": [_digits(log(value)) for value in quantiles],
    }


def _known(history: History) -> dict[CellMetric, list[_RunFigure]]:
    """Figures by cell, in the order of cells and of time."""
    found: dict[CellMetric, list[_RunFigure]] = {}
    for number, run in enumerate(history.runs):
        for cell, own in figures(run.rows).items():
            found.setdefault(cell, []).extend((number, each) for each in own)
    return {cell: found[cell] for cell in sorted(found)}


def _kind(series: Series) -> tuple[object, ...]:
    """All that decides what a figure means."""
    return series.system.simulated, series.system.origin, series.frame, series.goals


def _unlike(examples: Sequence[Series], metrics: set[Measure]) -> Iterator[list[object]]:
    """Pairs of kinds with a metric whose meanings differ, or with notes."""
    for (one, a), (other, b) in product(enumerate(examples), repeat=2):
        for metric in sorted(metrics):
            found = likeness(a, b, metric)
            if found.differences or found.remarks:
                yield [one, other, metric, found.differences, found.remarks]


def _cell(
    cell: CellMetric, found: Sequence[_RunFigure], names: CellNames, kinds: Sequence[object], goals: Sequence[str]
) -> Json:
    """Figures of a cell, without what all of them share.

    `v` values, `u` upper bounds (None: unbounded), `d` lower bounds, `h` half of the width between bounds, `e` errors
    of means, `q` rounding errors, `y` whether found by a test with another goal, `o` remark on a PDR below its NDR, `x`
    unit, if not packets per second, `l` address of its trend, if it has one.
    """
    series = cell.series
    runs, each = [run for run, _ in found], [figure for _, figure in found]
    ends = [interval(one, cell.metric) for one in each]
    ups = [None if high_pps == inf else high_pps for _, high_pps in ends]
    halves = [None if one.width_pps is None else one.width_pps / 2 for one in each]
    usual = [None if up is None else (up - one.value_pps) / 2 for one, up in zip(each, ups, strict=True)]
    made: Json = {
        "t": series.service_type,
        "s": cell.dimensions.instances,
        "n": cell.dimensions.nfs,
        "c": names.short(cell),
        "p": f"{series.nf_size}|{series.vs_dtc}|{series.frame.split(' ')[0].upper()}",
        "g": goals.index(series.goals),
        "k": kinds.index(_kind(series)),
        "r": runs,
        "v": [_digits(one.value_pps) for one in each],
        "u": [None if up is None else _digits(up) for up in ups],
    }
    if (of := unit(cell.metric, series)) != PPS:
        made["x"] = of
    if len(set(runs)) > 1:
        made["l"] = names.address(cell)
    optional: Json = {
        "e": [_digits(one.error_pps) for one in each],
        "q": [_digits(resolution_pps(one.row, cell.metric)) for one in each],
        "y": [int(not asks_for(one.row, cell.metric)) for one in each],
        "o": [one.out_of_order(cell.metric) for one in each],
    }
    made |= {key: values for key, values in optional.items() if any(values)}
    if any(low_pps != one.value_pps for one, (low_pps, _) in zip(each, ends, strict=True)):
        made["d"] = [_digits(low_pps) for low_pps, _ in ends]
    if halves != usual:
        made["h"] = [None if half is None else _digits(half) for half in halves]
    return made


def _digits(value: float) -> float:
    """Round to seven digits: more would double the page without a visible difference."""
    return float(f"{value:.7g}")
