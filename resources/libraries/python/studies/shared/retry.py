"""Retry and quarantine: what breaks the system under test is tried once more, then given up.

A result is never tried again, also not `no traffic`. Tests whose phases are Robot keywords are repeated as a whole;
studies that deploy one step after the other repeat the step (`step_study.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from robot.errors import ExecutionFailed

from resources.libraries.python.errors import SystemBroken, chain
from resources.libraries.python.recording.run_journal import MAX_ATTEMPTS, RunJournal, TestKey
from resources.libraries.python.studies.shared.study import StudyTest
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of

_MAX_IN_ONE_LINE = 3


AnyStudy = StudyTest[Any]
_Test = TypeVar("_Test", bound=AnyStudy)


def measure_with_care(
    run: RunJournal,
    key: TestKey,
    test: _Test,
    again: Callable[[], _Test],
    phases: Callable[[], object],
    *,
    check: Callable[[], None],
    on_broken: Callable[[str, bool], None],
) -> None:
    """Run the phases of a test; where they break the system under test, remove the deployment and run them once more.

    `again`: makes the next attempt the present one.
    `phases`: robot keywords; fail as Robot's keywords do.
    `check`: called before each attempt; raises where no test can run.
    `on_broken`: called after a broken attempt with the reason, and whether there is another attempt.

    Raises:
        SystemBroken: Every attempt broke it; the cell goes into quarantine.
        ExecutionFailed: The phases failed and that is a result, or the run is being ended.
        RunStopped: The machine cannot be used any more.
    """
    reasons = run.history(key).broken
    while len(reasons) < MAX_ATTEMPTS:
        check()
        run.started(key)
        test.draft.broken = reasons
        found = _attempt(test, phases, last=len(reasons) + 1 == MAX_ATTEMPTS)
        if not found:
            return
        removal = test.remove()
        reasons = run.broken(key, found[0], (*found[1:], *([removal] if removal else [])))
        is_last = len(reasons) >= MAX_ATTEMPTS
        on_broken(found[0], not is_last)
        if not is_last:
            test = again()
    test.draft.broken, test.draft.quarantined = reasons, reasons[-1]
    raise SystemBroken(f"quarantined after {len(reasons)} attempts: {reasons[-1]}")


def _attempt(test: AnyStudy, phases: Callable[[], object], *, last: bool) -> tuple[str, ...]:
    """One attempt; return why and how the system under test was broken, nothing when it was not."""
    try:
        phases()
    except ExecutionFailed as failure:
        if failure.exit or failure.skip or failure.timeout:
            raise
        cause = _cause(failure)
        found = test.problems() if test.is_deployed else ()
        if cause is not None and is_breakage(cause):
            # A part that died is the reason of the error in another one.
            return _reasons([*dict.fromkeys([reason_of(cause), *found])])
        if not found:
            raise
        return _reasons(found)
    found = test.problems() if test.is_deployed else ()
    # If a data thread moves again, the verdict of the number is affinity-lost.
    return _reasons(found or (() if last or not test.is_deployed else test.moved()))


def _reasons(found: Sequence[str]) -> tuple[str, ...]:
    """The first few in one line, followed by all of them."""
    return ("; ".join(found[:_MAX_IN_ONE_LINE]), *found) if found else ()


def _cause(failure: ExecutionFailed) -> BaseException | None:
    """The error of a library keyword: Robot keeps its text, Python the chain of exceptions."""
    first: BaseException | None = failure.get_errors()[0]
    behind = () if first is None else chain(first, lambda each: each.__cause__ or each.__context__)
    return next((each for each in behind if not isinstance(each, ExecutionFailed)), None)
