"""`regoal`: what the trials of a search say about other definitions of NDR and PDR."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, opened, report_problems, without
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_table
from csit_utils.dataset.items import ImportedTest, ImportedTrial, Item, Recorded
from csit_utils.dataset.rows import frame_text
from csit_utils.report.units import DASH
from csit_utils.studies.density.analysis.density import cell_name
from csit_utils.studies.density.analysis.other_goals import GOALS, OtherGoal, goal_of, other_goals
from csit_utils.studies.density.answer_text import OtherGoalView
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.studies.density.model import DensityRecord

_HEADS = ("cell", "frame", "goal", "throughput", "evidence")
_LEFT = ("cell", "frame", "goal", "evidence")


def regoal(
    inputs: INPUTS,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Goal to look at: {', '.join(asked.goal.name for asked in GOALS)}, or settings such as "
            "loss=1e-4,trial=10,sum=60,exceed=0.5,width=0.01. Default: all that have a name.",
            show_default=False,
        ),
    ] = None,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Judge stored trials by other definitions of NDR and PDR.

    Tools define NDR and PDR differently, so that their figures cannot be compared. Nothing is measured: bounds follow
    from the trials in the records, and in NFVbench's results of a search. Where these do not decide, the table has the
    number, duration and load of the trials that are missing. docs/how-to/judge-by-other-definitions.md describes it.

    \b
    Examples:
    ./csit regoal results/output.xml --goal rfc2544
    Trials to run next:
      ./csit regoal results --format json | jq -c '[.test, .needed_pps]'
    """  # noqa: D301 - \b keeps the lines of the examples apart
    goals = tuple(map(goal_of, goal)) if goal else GOALS
    found = opened(inputs).contents()
    lines = [line for test in _tests(found.items()) for line in _lines(test, goals)]
    if not lines:
        raise without(inputs, found.problems, "contains no test with trials of a search")
    print_table(_HEADS, lines, form, _LEFT)
    report_problems(found.problems)


@dataclass(frozen=True)
class _Test:
    """Trials of a test."""

    test_id: str
    cell: str
    frame: str
    simulated: bool
    trials: Sequence[TrialResult | ImportedTrial]


def _tests(items: Iterable[Item]) -> Iterator[_Test]:
    for item in items:
        match item:
            case Recorded(record=DensityRecord() as record):
                frame = frame_text(record.asked.frame)
                yield _Test(record.test_id, record.cell.name, frame, record.simulated, record.trials)
            case ImportedTest(row=row):
                cell = cell_name(row)
                if row.vs_dtc is not None:  # cells of one folder and of the next may differ in it alone
                    cell += f" vSwitch-{row.vs_dtc}c"
                yield _Test(row.test_id, cell, row.frame or DASH, bool(row.simulated), item.trials)


def _lines(test: _Test, goals: Sequence[OtherGoal]) -> Iterator[TableLine]:
    for answer in other_goals(test.trials, goals):
        wanted, lower, upper, needed = answer.asked.goal, answer.lower, answer.upper, answer.needed
        raw = {
            "test": test.test_id,
            "simulated": test.simulated,
            "goal": wanted.name,
            "loss_ratio": wanted.loss_ratio,
            "exceed_ratio": wanted.exceed_ratio,
            "trial_s": wanted.final_trial_duration_s,
            "sum_s": wanted.duration_sum_s,
            "lower_pps": lower and lower.load_pps,
            "lower_by_shorter": lower and lower.by_shorter,
            "upper_pps": upper and upper.load_pps,
            "upper_by_shorter": upper and upper.by_shorter,
            "complete": answer.complete,
            "needed_trials": needed and needed.trials,
            "needed_pps": needed and needed.load_pps,
            "needed_s": needed and needed.duration_s,
        }
        cell = f"{test.cell}{' (simulated)' * test.simulated}"
        shown = OtherGoalView(answer)
        texts = (cell, test.frame, shown.name, shown.bounds, shown.evidence)
        yield TableLine(texts, raw, "" if answer.complete else "dim")
