"""A trial in which call stacks of vSwitch and NFs are sampled, and programs account for their own work."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from resources.libraries.python.errors import CommandFailed, NotReady, Unsupported
from resources.libraries.python.model.measurements.node_costs import NodeCosts, heaviest
from resources.libraries.python.model.measurements.stacks import Stacks
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.testbed.deployment.parts import Parts, Testbed
from resources.libraries.python.testbed.roles.part import ForwardingPart

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


class CostReading:
    """Sets the counters of all programs to zero, and reads them once; between trials, so that it costs no rate.

    A program that does not answer costs a test nothing but its costs by node.
    """

    def __init__(self, parts: Parts) -> None:
        self.failed = ""
        """Why they could not be read; empty where they were, or nothing counts."""
        self._clock = parts.clock
        self._counting: list[ForwardingPart] = []
        begin_s = self._clock()
        try:
            self._counting = [part for part in (parts.switch, parts.functions) if part.begin_accounts()]
        except UNSAMPLED as error:
            self.failed = str(error)
        self._begun_s = self._clock() - begin_s

    @property
    def counts(self) -> bool:
        """Whether any program counts its work."""
        return bool(self._counting)

    def read(self, load: str, results: Sequence[TrialResult]) -> NodeCosts | None:
        """Return what was counted in trials at one load; None where no program counts its work, or it failed.

        `load`: whose load, such as `PDR`.
        """
        if not self._counting:
            return None
        begin_s = self._clock()
        try:
            rows = heaviest(row for part in self._counting for row in part.accounts())
        except UNSAMPLED as error:
            self.failed = str(error)
            return None
        sent, received = (sum(getattr(result, way) for result in results) for way in ("sent", "received"))
        return NodeCosts(
            load=load,
            load_pps=results[0].trial.load_pps,
            received=received,
            loss_ratio=max(0.0, 1 - received / sent) if sent else None,
            read_s=self._begun_s + self._clock() - begin_s,
            nodes=rows,
        )
