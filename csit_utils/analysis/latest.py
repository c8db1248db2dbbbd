"""Selection of the runs that represent the present state."""

from collections.abc import Hashable, Iterable, Sequence

from csit_utils.analysis.runs import History, Run
from csit_utils.dataset.rows import TestRow


def latest_runs(history: History) -> tuple[Run, ...]:
    """Return the newest run of each testbed, and older runs without a test of a newer one.

    So suites that ran one after the other in a night are combined, and each night replaces the previous one: a test
    missing in the newest run is shown as not run, not with a figure of an earlier night.

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
    """Identity of a test across runs, also without a record."""
    frame = (row.frame or "").split(" ", 1)[0].upper()
    sizes = (row.nf_size, row.vs_dtc) if row.recorded else row.test_id
    return (row.test_type, row.service_type, row.dimensions, sizes, frame, row.profile, row.drivers)


def rows_of(runs: Iterable[Run], history: History, rows: Sequence[TestRow]) -> Sequence[TestRow]:
    """Return the tests of some runs in their order, and tests of an unknown testbed.

    Args:
        runs: The selected runs.
        history: All runs.
        rows: All tests.
    """
    chosen = {row.anchor for run in runs for row in run.rows}
    placed = {row.anchor for run in history.runs for row in run.rows}
    return [row for row in rows if row.anchor in chosen or row.anchor not in placed]
