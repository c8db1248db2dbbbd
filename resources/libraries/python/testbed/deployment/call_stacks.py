"""A trial in which call stacks of vSwitch and NFs are sampled, and programs account for their own work."""

from collections.abc import Callable
from contextlib import suppress

from resources.libraries.python.errors import CommandFailed, NotReady, Unsupported
from resources.libraries.python.model.measurements.node_costs import heaviest
from resources.libraries.python.model.measurements.stacks import Stacks
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.testbed.deployment.parts import Parts, Testbed

UNSAMPLED = (Unsupported, NotReady, CommandFailed)
"""Errors of sampling and of accounts, which cost a test nothing but these."""


def refuse_unsampled(world: Testbed) -> None:
    """Refuse a testbed with a node that cannot sample call stacks.

    Raises:
        Unsupported: There is one.
    """
    if why := world.unsampled():
        raise Unsupported(f"STACKS: {'; '.join(map(str, why))}")


def sample_stacks(parts: Parts, measure: Callable[[Trial], TrialResult], trial: Trial, label: str) -> Stacks | str:
    """Return the call stacks in a trial, or the reason why they were not sampled.

    `measure`: Runs the trial; its errors are raised.
    `label`: Of its load, such as `PDR`.
    """
    sampler = parts.stacks
    accounting = (parts.switch, parts.functions)
    if sampler is None:
        return "this testbed has nothing to sample"
    try:
        for part in accounting:
            part.begin_accounts()
        sampler.start()
    except UNSAMPLED as error:
        return str(error)
    try:
        result = measure(trial)
    except BaseException:
        with suppress(*UNSAMPLED):  # what broke the trial counts
            sampler.stop()
        raise
    try:
        nodes = sampler.stop()
        accounts = heaviest(row for part in accounting for row in part.accounts())
    except UNSAMPLED as error:
        return str(error)
    return Stacks(
        label=label,
        load_pps=trial.load_pps,
        received=result.received,
        trial_s=trial.duration_s,
        nodes=nodes,
        accounts=accounts,
    )
