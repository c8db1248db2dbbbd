"""The phases of a test with care: what breaks the system under test is tried once more, then given up."""

from collections.abc import Callable, Sequence

from robot.errors import ExecutionFailed

from resources.libraries.python.errors import SystemBroken
from resources.libraries.python.recording.journal_run import MOST_ATTEMPTS, Run
from resources.libraries.python.studies.density.progress import ConsoleProgress
from resources.libraries.python.studies.density.run import Experiment
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of

_MOST_IN_ONE_LINE = 3


def measure_with_care(
    run: Run,
    experiment: Experiment,
    again: Callable[[], Experiment],
    phases: Callable[[], object],
    *,
    check: Callable[[], None],
    progress: ConsoleProgress,
) -> None:
    """Run the phases of a test; where they break the system under test, remove the cell and run them once more.

    Args:
        run: Keeps the journal.
        experiment: The first attempt.
        again: Makes the next attempt the present one.
        phases: Robot keywords; fail as Robot's keywords do.
        check: Called before each attempt; raises where no test can be run.
        progress: Is told of a further attempt.

    Raises:
        SystemBroken: It was broken in every attempt; the cell is to be put in quarantine.
        ExecutionFailed: The phases failed and that is a result, or the run is being ended.
        RunStopped: The machine cannot be used any more.
    """
    asked = experiment.draft.asked
    reasons = run.standing(asked).broken
    while len(reasons) < MOST_ATTEMPTS:
        check()
        run.started(asked)
        experiment.draft.broken = reasons
        found = _attempt(experiment, phases, last=len(reasons) + 1 == MOST_ATTEMPTS)
        if not found:
            return
        removal = experiment.remove()
        reasons = run.broken(asked, found[0], (*found[1:], *([removal] if removal else [])))
        progress.broken(found[0], again=len(reasons) < MOST_ATTEMPTS)
        if len(reasons) < MOST_ATTEMPTS:
            experiment = again()
    experiment.draft.broken, experiment.draft.quarantined = reasons, reasons[-1]
    raise SystemBroken(f"quarantined after {len(reasons)} attempts: {reasons[-1]}")


def _attempt(experiment: Experiment, phases: Callable[[], object], *, last: bool) -> tuple[str, ...]:
    """One attempt; return why and how the system under test was broken, nothing when it was not."""
    try:
        phases()
    except ExecutionFailed as failure:
        if failure.exit or failure.skip or failure.timeout:
            raise
        cause = _cause(failure)
        found = experiment.problems() if experiment.is_deployed else ()
        if cause is not None and is_breakage(cause):
            # A part that died is the reason of what another one met.
            return _reasons([*dict.fromkeys([reason_of(cause), *found])])
        if not found:
            raise
        return _reasons(found)
    found = experiment.problems()
    # Where a data thread is moved again, there is a number with a verdict that says so.
    return _reasons(found or (() if last else experiment.moved()))


def _reasons(found: Sequence[str]) -> tuple[str, ...]:
    """The first few in one line, and then all of them."""
    return ("; ".join(found[:_MOST_IN_ONE_LINE]), *found) if found else ()


def _cause(failure: ExecutionFailed) -> BaseException | None:
    """What a library keyword raised: Robot keeps its text, Python where the text came from."""
    first = failure.get_errors()[0]
    while first is not None and isinstance(first, ExecutionFailed):
        first = first.__cause__ or first.__context__
    return first
