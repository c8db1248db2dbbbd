"""Runs shown on a page, in a sentence per testbed."""

from collections.abc import Sequence

from csit_utils.analysis.runs import History, Run, TestbedKey
from csit_utils.dataset.rows import TestRow
from csit_utils.report.report_context import ReportContents
from resources.libraries.python.quantities import counted

_LISTED = 5
"""Runs that are named."""


def runs_shown(shown: ReportContents) -> Sequence[str]:
    """Return a sentence for each testbed with several runs, and one on runs that the report leaves out."""
    chosen = {run.name for run in shown.runs}
    found = [shown.contents.left_out] if shown.contents.left_out else []
    for testbed in shown.history.testbeds:
        every = shown.history.of(testbed)
        own = [run for run in every if run.name in chosen]
        if len(every) > 1:
            found.append(_sentence(testbed, own, every, mean=shown.mean))
    return found


def newest_first(rows: Sequence[TestRow], history: History) -> list[TestRow]:
    """Return the tests of the newest run first; those without a run last."""
    places = {row.anchor: number for number, run in enumerate(history.runs) for row in run.rows}
    return sorted(rows, key=lambda row: -places.get(row.anchor, -1))


def _listed(names: Sequence[str]) -> str:
    """Names of runs without repetition; of more than five only the first four and the last."""
    different = list(dict.fromkeys(names))
    shown = different if len(different) <= _LISTED else [*different[: _LISTED - 1], "…", different[-1]]
    return ", ".join(shown)


def _sentence(testbed: TestbedKey, own: Sequence[Run], every: Sequence[Run], *, mean: bool) -> str:
    if mean:
        return f"{testbed.name}: cells are means over {len(every)} runs, {every[0].name} to {every[-1].name}."
    names = _listed([run.name for run in own])
    if len(own) == len(every):
        return f"{testbed.name}: {len(own)} runs of different tests, combined ({names})."
    # Names of runs begin with that of their testbed.
    return f"Shown: {names}; {counted(len(every) - len(own), 'earlier run')} on the trend page."
