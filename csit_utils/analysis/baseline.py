"""The default baseline of a run: the last runs on its testbed before it."""

from collections.abc import Sequence
from datetime import datetime

from csit_utils.analysis.runs import TestbedKey, history
from csit_utils.dataset.rows import TestRow


def runs_before(candidate: Sequence[TestRow], known: Sequence[TestRow], count: int) -> list[TestRow]:
    """Return tests of the last runs on the candidate's testbeds before the candidate.

    Args:
        candidate: Tests to judge; they may be among `known`.
        known: All tests.
        count: Largest number of runs per testbed.

    Returns:
        Oldest run first; empty without earlier runs, or if start times are unknown.
    """
    past = history(known)
    begun: dict[TestbedKey, datetime] = {}
    for run in history(candidate).runs:  # oldest first
        if run.started_at is not None:
            begun.setdefault(run.testbed, run.started_at)
    earlier = [
        [run for run in past.of(testbed) if run.started_at is not None and run.started_at < start][-count:]
        for testbed, start in begun.items()
    ]
    return [row for runs in earlier for run in runs for row in run.rows]
