"""`acknowledge`: the steps of a history whose cause is known."""

from collections.abc import Collection, Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from csit_utils.commands.results.inputs import MAX_TESTS
from csit_utils.commands.results.selections import COMPARED, MAX_COMPARED, DatasetReader, refuse_missing
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.ledger import AcknowledgedStep, ledger_path, read_ledger, write_ledger
from csit_utils.report.units import percent
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.cell import readable_cells

if TYPE_CHECKING:
    from csit_utils.analysis.trends.steps import Step
    from csit_utils.analysis.trends.trend import Trend

_HEADS = ("since", "cell", "change", "cause", "link")
_LISTED = 5
"""Cells, or steps, that an error lists."""


def acknowledge(
    history: Annotated[
        Path, typer.Argument(help="Dataset or folder of results; FOLDER.acknowledged.yaml is beside it.")
    ],
    cell: Annotated[
        str | None,
        typer.Argument(
            help="Words in the names of cells, such as 'CSC 2x1', or a whole name; default: list all steps."
        ),
    ] = None,
    metric: Annotated[str | None, typer.Argument(help="Such as NDR.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Date of the step, such as 2026-11-03, or near it.")
    ] = None,
    cause: Annotated[str | None, typer.Option(metavar="TEXT", help="Cause of the step, in one line.")] = None,
    link: Annotated[str | None, typer.Option(metavar="URL", help="Link to the change or ticket.")] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Withdraw the steps of these cells, with --since those of that date.")
    ] = False,
    form: TABLE_OR_JSON = TableForm.TABLE,
    max_tests: MAX_TESTS = MAX_COMPARED,
) -> None:
    """Acknowledge steps of a history whose cause is known.

    The new level is the baseline: commands that read HISTORY (trend, gate, night, report) no longer call such a step a
    regression, and show its cause.
    CELL selects all cells whose names contain its words; of each, the step within three runs of the date is
    acknowledged.

    \b
    Examples:
    ./csit acknowledge history 'CSC 2x1' NDR --since 2026-11-03 --cause upgrade
    ./csit acknowledge history                           # list them
    ./csit acknowledge history 'CSC 2x1' NDR --withdraw
    """  # noqa: D301 - \b keeps the lines of the examples apart
    refuse_missing([history], option="")
    day = None if since is None else _day(since)
    known = read_ledger(history).steps
    if (cell, metric, day, cause, link, withdraw) == (None, None, None, None, None, False):
        _print(known, form)
        return
    if cell is None or metric is None:
        raise ConfigError("name a cell and a metric, such as 'CSC 2x1' NDR")
    if withdraw:
        gone = _withdrawn(known, history, cell, metric, day)
        write_ledger(history, set(known) - set(gone))
        _print(gone, form)
        print_sentence(f"withdrawn: {len(gone)} of {len(known)} acknowledged steps", err=True)
        return
    if day is None or cause is None:
        raise ConfigError("say --since DATE and --cause TEXT, or --withdraw")
    from csit_utils.analysis.trends.trend import ALPHA, trends  # noqa: PLC0415 - numpy costs time of every --help

    with DatasetReader([history], COMPARED, max_tests) as reader:
        found = _chosen(trends(reader.whole(), ALPHA, reader.acknowledged()), cell, metric)
        near = _near(found, day)
        replaced = {each.acknowledged[each.steps.index(step)] for each, step in near}
        made = [_acknowledgement(each, step, cause, link) for each, step in near]
        write_ledger(history, [*(step for step in known if step not in replaced), *made])
        _print(made, form)
        others = f"; cells without a step near {day}: {len(found) - len(near)}" if len(near) < len(found) else ""
        print_sentence(f"{ledger_path(history)}: steps acknowledged: {len(made)}{others}", err=True)
        if reader.report_problems():
            raise typer.Exit(1)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--since '{quoted(text)}': expected a date, such as 2026-11-03") from error


def _of_cell(names: Collection[str], cell: str) -> set[str]:
    """Return the names that a text means: itself, or those with all of its words."""
    text = readable_cells(cell)
    return {text} if text in names else {name for name in names if {*text.lower().split()} <= {*name.lower().split()}}


def _chosen(found: Sequence["Trend"], cell: str, metric: str) -> list["Trend"]:
    metrics = sorted({str(each.cell.metric) for each in found})
    of_metric = [each for each in found if each.cell.metric.lower() == metric.lower()]
    if not of_metric:
        raise ConfigError(f"no metric '{quoted(metric)}'; choose from {', '.join(metrics)}")
    names = list(dict.fromkeys(each.cell.cell_name for each in of_metric))
    if not (chosen := _of_cell(names, cell)):
        nearest = ", ".join(get_close_matches(cell, names, n=_LISTED, cutoff=0.0))
        raise ConfigError(f"no cell '{quoted(cell)}' with {metric}; the nearest are {nearest}")
    return [each for each in of_metric if each.cell.cell_name in chosen]


def _near(found: Sequence["Trend"], day: date) -> list[tuple["Trend", "Step"]]:
    from csit_utils.analysis.trends.trend import MAX_SHIFT, step_near  # noqa: PLC0415 - as above

    near = [
        (each, step)
        for each in found
        if (step := step_near(each.steps, [figure.at for figure in each.figures], day)) is not None
    ]
    if near:
        return near
    others = f"; and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    steps = "; ".join(map(_steps, found[:_LISTED]))
    raise ConfigError(f"no step within {MAX_SHIFT} figures of {day}: {steps}{others}")


def _steps(found: "Trend") -> str:
    steps = [f"{found.figures[step.index].at:%Y-%m-%d} ({percent(step.change, signed=True)})" for step in found.steps]
    if len(steps) > _LISTED:
        steps = ["...", *steps[-_LISTED:]]
    return f"{found.cell.name} has {', '.join(steps) or f'no step ({found.state})'}"


def _acknowledgement(found: "Trend", step: "Step", cause: str, link: str | None) -> AcknowledgedStep:
    try:
        return AcknowledgedStep(
            cell=found.cell.cell_name,
            metric=found.cell.metric,
            since=found.figures[step.index].at,
            before=float(f"{step.before:.6g}"),
            after=float(f"{step.after:.6g}"),
            cause=cause,
            link=link,
        )
    except ValidationError as error:
        raise ConfigError(error_text(error)) from error


def _withdrawn(
    known: Sequence[AcknowledgedStep], history: Path, cell: str, metric: str, day: date | None
) -> list[AcknowledgedStep]:
    names = _of_cell({step.cell for step in known}, cell)
    own = [step for step in known if step.cell in names and step.metric.lower() == metric.lower()]
    gone = [step for step in own if day is None or step.since.date() == day]
    if not gone:
        days = f"; there are those of {', '.join(step.day for step in own[-_LISTED:])}" if own else ""
        when = f" of {day}" if day else ""
        raise ConfigError(f"{ledger_path(history)}: no step{when} of '{quoted(cell)}' {quoted(metric)}{days}")
    return gone


def _print(steps: Sequence[AcknowledgedStep], form: TableForm) -> None:
    lines = [
        TableLine(
            (
                step.day,
                step.name,
                percent(step.after / step.before - 1, signed=True) if step.before else "",
                step.cause,
                step.link or "",
            ),
            step.model_dump(mode="json"),
        )
        for step in steps
    ]
    print_table(_HEADS, lines, form, _HEADS)
