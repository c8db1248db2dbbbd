"""Which runs a picture of today is made of, where there are many."""

from collections.abc import Hashable, Iterable, Sequence

from csit_utils.analysis.runs import History, Run
from csit_utils.dataset.rows import TestRow


def latest_runs(history: History) -> tuple[Run, ...]:
    """The newest run of each testbed, and older ones that tried nothing of what newer ones tried.

    So the suites of one night that ran one after the other are one picture, and a night is replaced by the next: what
    the newest run left out shows as not run, and not as the figure of some other night.

    Args:
        history: All runs.

    Returns:
        Oldest first.
    """
    chosen: list[Run] = []
    for testbed in history.testbeds:
        covered: set[Hashable] = set()
        for run in reversed(history.of(testbed)):
            tried = set(map(_kind, run.rows))
            if not covered & tried:
                covered |= tried
                chosen.append(run)
    names = {run.name for run in chosen}
    return tuple(run for run in history.runs if run.name in names)


def _kind(row: TestRow) -> Hashable:
    """What makes two tests the same test in two runs; known of tests without a record too."""
    frame = (row.frame or "").split(" ", 1)[0].upper()
    sizes = (row.nf_size, row.vs_dtc) if row.recorded else row.test_id
    return (row.test_type, row.service_type, row.nf_chains, row.nf_nodes, sizes, frame, row.profile, row.drivers)


def rows_of(runs: Iterable[Run], history: History, rows: Sequence[TestRow]) -> Sequence[TestRow]:
    """Tests of some runs in the order they have, and tests of which no testbed is known.

    Args:
        runs: Those that are wanted.
        history: All runs.
        rows: All tests.
    """
    chosen = {row.anchor for run in runs for row in run.rows}
    placed = {row.anchor for run in history.runs for row in run.rows}
    return [row for row in rows if row.anchor in chosen or row.anchor not in placed]
