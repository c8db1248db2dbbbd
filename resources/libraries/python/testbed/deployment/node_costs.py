"""One reading of what the programs of a cell count of their own work, around trials."""

from collections.abc import Sequence

from resources.libraries.python.model.measurements.node_costs import NodeCosts, heaviest
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.testbed.deployment.call_stacks import UNSAMPLED
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.part import ForwardingPart


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
        return NodeCosts(
            load=load,
            load_pps=results[0].trial.load_pps,
            received=sum(result.received for result in results),
            read_s=self._begun_s + self._clock() - begin_s,
            nodes=rows,
        )
