"""`trend`: regressions and progressions over many runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csit_utils.bisection.spec import write_steps
from csit_utils.commands.results.inputs import INPUTS, MAX_TESTS
from csit_utils.commands.results.selections import COMPARED, MAX_COMPARED, DatasetReader, refuse_missing
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import amount, percent
from resources.libraries.python.errors import ConfigError

if TYPE_CHECKING:
    from csit_utils.analysis.cells import CellMetric
    from csit_utils.analysis.trends.trend import Trend
    from csit_utils.dataset.rows import TestRow
    from resources.libraries.python.model.result import Environment

_HEADS = ("cell", "state", "change", "since", "changed then", "notes", "runs", "trend")
_LEFT = ("cell", "state", "since", "changed then", "notes", "trend")


def trend(
    inputs: INPUTS,
    every: Annotated[bool, typer.Option("--all", help="Also list cells without a change.")] = False,
    false_alarms: Annotated[
        float,
        typer.Option(metavar="PROBABILITY", help="Probability of any false step over all cells, between 0 and 1."),
    ] = 0.01,
    steps: Annotated[
        Path | None, typer.Option(help="Also write the regressions with their versions, for ./csit bisect --step.")
    ] = None,
    new_with: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Only regressions that this run confirms, and that are not found without it: a file, a folder, "
            "or KEY=VALUE of FILE.",
        ),
    ] = None,
    form: FORMAT = TableForm.TABLE,
    max_tests: MAX_TESTS = MAX_COMPARED,
) -> None:
    """Find regressions and progressions over the runs of cells.

    A step is reported after three nights or, if it is small against the noise, more; until then it is *suspected*. A
    cell that alternates between two levels is in *two bands*, and its low nights are not reported as regressions.
    Failed tests are gaps. A cell needs at least ten figures. The last column draws the history, scaled from the lowest
    to the highest figure. Steps whose cause is known (./csit acknowledge) are no regressions.

    \b
    Examples:
    ./csit trend results
    ./csit trend results --format json | jq 'select(.state == "regression")'
    ./csit trend history --steps steps.json
    ./csit bisect nightly.yaml --step steps.json      # the largest of these steps
    ./csit trend history --new-with results/output.xml --steps steps.json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    refuse_missing(inputs, option="")
    if not 0 < false_alarms < 1:
        raise ConfigError(f"--false-alarms {false_alarms:g}: expected a probability between 0 and 1")
    from csit_utils.analysis.trends.trend import FEWEST, TrendState, newly_called, trends  # noqa: PLC0415 - scipy costs time of every --help

    with DatasetReader(inputs, COMPARED, max_tests) as reader:
        rows, known = reader.whole(), reader.acknowledged()
        found = trends(rows, false_alarms, known)
        lost = sum(map(len, known.values())) - sum(bool(step) for each in found for step in each.acknowledged)
        if new_with is not None:
            found = newly_called(found, reader.rows(new_with), rows, false_alarms, known)
        plain = (TrendState.STEADY, TrendState.TOO_FEW)
        shown = [each for each in found if every or each.state not in plain or each.suspected is not None]
        if steps is not None:
            write_steps(steps, [_called(each) for each in found if each.state is TrendState.REGRESSION])
        print_table(_HEADS, [_line(each, reader.environments) for each in shown], form, _LEFT)
        counts = {state: sum(each.state is state for each in found) for state in TrendState}
        suspected = sum(each.suspected is not None for each in found)
        listed = [f"{count} {state}" for state, count in counts.items() if count]
        few = f" (fewer than {FEWEST} figures)" if counts[TrendState.TOO_FEW] else ""
        texts = (f"{', '.join(listed)}{few}" if listed else "", f"{suspected} suspected")
        print_sentence(f"{len(found)} cells and metrics: {', '.join(filter(None, texts))}", err=True)
        if lost:
            print_sentence(f"acknowledged steps that these results do not have: {lost}", err=True)
        if reader.report_problems():
            raise typer.Exit(1)


def _called(found: "Trend") -> tuple["CellMetric", float, "TestRow", "TestRow"]:
    last = found.unexplained or found.steps[-1]
    return found.cell, last.change, found.figures[last.index - 1].row, found.figures[last.index].row


def _line(found: "Trend", environments: Mapping[str, "Environment"]) -> TableLine:
    from csit_utils.report.trend_events import causes  # noqa: PLC0415 - as above

    last = found.unexplained or (found.steps[-1] if found.steps else None)
    before, first = (found.figures[last.index + side].row for side in (-1, 0)) if last else (None, None)
    change = last.change if last else found.drift.change if found.drift else None
    texts = (
        found.cell.name,
        found.state,
        "" if change is None else percent(change, signed=True),
        (first.started_at or "")[:10] if first else "",
        "; ".join(causes(before, first, environments)) if before and first else "",
        "; ".join(_notes(found)),
        str(len(found.figures)),
        history([(each.at, each.value_pps) for each in found.figures], found.gaps),
    )
    style = {"regression": "red", "progression": "green", "two bands": "yellow", "drift": "yellow"}
    return TableLine(texts, as_object(found), style.get(found.state, ""))


def _notes(found: "Trend") -> Sequence[str]:
    bands, cell = found.bands, found.cell
    return [
        *([f"suspected {percent(found.suspected, signed=True)}"] if found.suspected is not None else []),
        *(
            [
                f"{amount(cell.metric, cell.series, bands.lower)} in {percent(bands.lower_share)} of runs, else "
                f"{amount(cell.metric, cell.series, bands.upper)}"
            ]
            if bands is not None
            else []
        ),
        *(each for each in found.relations if each),
        *(
            f"acknowledged since {known.day}: {known.cause}{f' {known.link}' if known.link else ''}"
            for known in found.acknowledged
            if known
        ),
        *([f"steps: {len(found.steps)}"] if len(found.steps) > 1 else []),
        *([f"outliers: {len(found.outliers)}"] if found.outliers else []),
        *([f"runs without a figure: {len(found.gaps)}"] if found.gaps else []),
    ]


def as_object(found: "Trend") -> Mapping[str, Any]:
    """Return a trend as a JSON object."""
    cell, bands, drift = found.cell, found.bands, found.drift
    return {
        "cell": cell.name,
        "testbed": cell.series.system.testbed,
        "simulated": cell.series.system.simulated,
        "service_type": cell.series.service_type,
        **cell.dimensions.columns,
        "nf_size": cell.series.nf_size,
        "vs_dtc": cell.series.vs_dtc,
        "frame": cell.series.frame,
        "profile": cell.series.profile,
        "metric": cell.metric,
        "state": found.state.value,
        "runs": len(found.figures),
        "gaps": len(found.gaps),
        "noise_pps": found.scale,
        "level_pps": found.levels[-1],
        "steps": [
            {
                "since": found.figures[step.index].row.started_at,
                "run": found.figures[step.index].row.run,
                "version": found.figures[step.index].row.version,
                "before_pps": step.before,
                "after_pps": step.after,
                "change": step.change,
                "probability": step.probability,
                "relation": relation,
                "acknowledged": None if known is None else known.model_dump(mode="json", include=_KNOWN),
            }
            for step, known, relation in zip(found.steps, found.acknowledged, found.relations, strict=True)
        ],
        "suspected": found.suspected,
        "bands": None
        if bands is None
        else {"lower_pps": bands.lower, "upper_pps": bands.upper, "lower_share": bands.lower_share},
        "drift": None if drift is None else {"change": drift.change, "slope_pps_per_day": drift.slope_per_day},
        "outliers": [found.figures[index].row.started_at for index in found.outliers],
    }


_KNOWN = {"since", "cause", "link"}
_BLOCKS = "▁▂▃▄▅▆▇█"
GAP = "·"
"""A run without a figure."""
MIN_RANGE = 0.05
"""Least range of heights relative to the largest figure, so that small noise looks flat."""


def history(points: Sequence[tuple[datetime, float]], gaps: Sequence[datetime] = ()) -> str:
    """Return one character per run in the order of time; heights scale from the lowest to the highest figure."""
    if not points:
        return ""
    values = [value for _, value in points]
    top = max(values)
    low = min(*values, top - MIN_RANGE * abs(top))
    every = sorted([*((at, _block(value, low, top)) for at, value in points), *((at, GAP) for at in gaps)])
    return "".join(character for _, character in every)


def _block(value: float, low: float, top: float) -> str:
    share = (value - low) / (top - low) if top > low else 1.0
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]
