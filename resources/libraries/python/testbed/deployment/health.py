"""The health gate: was the system under test whole until the end of a test, and is nothing of it left afterwards."""

from collections.abc import Iterable

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import (
    ConfigError,
    CsitError,
    NoTraffic,
    PlanError,
    RunStopped,
    Unsupported,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Affinity
from resources.libraries.python.testbed.deployment.deployment import Deployment
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.deployment.watchdog import within

_LOOK_S = 60.0
_CLEAN_S = 180.0
_GONE_S = 30.0
_LINE = 600
_ANSWERS = (ConfigError, PlanError, Unsupported, NoTraffic, RunStopped)
"""Errors that would come again or say something about the cell: they are results."""


def problems(deployment: Deployment) -> tuple[str, ...]:
    """What is wrong with a running cell, a sentence each."""
    try:
        with within("a look at the system under test", _LOOK_S):
            return deployment.problems()
    except (CsitError, OSError) as error:
        return (f"the system under test cannot be looked at: {reason_of(error)}",)


def moved(before: Iterable[Affinity], deployment: Deployment) -> tuple[str, ...]:
    """Data threads that do not run any more where they ran at first; where that was, the verdict judges."""
    then = {row.name: row.actual_cpus for row in before}
    return tuple(
        f"the data thread of {row.owner} {row.name} has moved from CPUs {_cpus(then[row.name])} to "
        f"{_cpus(row.actual_cpus)}"
        for row in deployment.affinity()
        if row.name in then and then[row.name] != row.actual_cpus
    )


def _cpus(row: tuple[int, ...]) -> str:
    return ", ".join(map(str, row)) or "none"


def is_breakage(error: BaseException | None) -> bool:
    """Whether an error of a phase tells of a broken system rather than of a result or of a defect of this program.

    A part that died, a deployment that failed, a generator that does not answer.
    """
    return isinstance(error, OSError) or (isinstance(error, CsitError) and not isinstance(error, _ANSWERS))


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LINE else f"{text[: _LINE // 2]} ... {text[-_LINE // 2 :]}"


def clean_up(world: Testbed, plan: Plan | None) -> tuple[str, ...]:
    """After a cell was removed: find what is left of it, remove that by force, and look again.

    Returns:
        What was left.

    Raises:
        RunStopped: It cannot be removed, so no other cell can be deployed.
    """
    try:
        world.recover()  # has a deadline of its own, longer than a machine needs to boot
        with within("cleaning the machine", _CLEAN_S):
            left = world.leftovers(plan)
            if not left:
                return ()
            world.clean()
            wait_until("a clean machine", lambda: ", ".join(world.leftovers(plan)), _GONE_S, pause_s=0.05)
    except (CsitError, OSError) as error:
        raise RunStopped(f"the machine cannot be cleaned: {error}; look at it, then resume the run") from error
    return left
