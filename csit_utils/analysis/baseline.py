"""What a night is held against when nobody names it: the last runs of its testbed before it."""

from collections.abc import Sequence
from datetime import datetime

from csit_utils.analysis.runs import TestbedKey, history
from csit_utils.dataset.rows import TestRow


def runs_before(candidate: Sequence[TestRow], known: Sequence[TestRow], count: int) -> list[TestRow]:
    """Tests of the last runs on the candidate's testbeds that began before the candidate did there.

    Args:
        candidate: Tests that are to be judged; they may be among `known`.
        known: All tests at hand.
        count: Runs of each testbed at most.

    Returns:
        The oldest run first; empty where nothing was measured there before, or no time is told.
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
