"""Flush packets that a vSwitch keeps of one trial before the next one, in which they would count as received."""

import logging
from collections.abc import Callable

from resources.libraries.python import driver_registry
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.testbed.deployment.generator_limits import keeps_a_log

_FLOW_PPS, _FEW_S = 1000.0, 0.2
_TIMES = 10
_log = logging.getLogger(__name__)


class Clearing:
    """State of a cell between two trials.

    Some vSwitches (`keeps_packets`) leave what a port does not take at once in that port's ring until the next packet
    for that port comes: each brings some of them out. After a trial with losses a few packets are sent until no more
    come back than were sent.

    Args:
        topology: Has the vSwitch. For others nothing is done, nor for generators that keep a log: their trials are
            long, and each has a calm end.
    """

    def __init__(self, topology: Topology) -> None:
        keeps = any(driver_registry.vswitches()[node.vswitch].keeps_packets for node in topology.duts.values())
        self._keeps = keeps and not keeps_a_log(topology.tg.generator.driver)
        self._kept = False

    def overloaded(self) -> None:
        """Take note that more was sent than the cell can forward, by others."""
        self._kept = self._keeps

    def after(self, result: TrialResult) -> None:
        """Take note of a trial."""
        self._kept = self._keeps and result.received != result.sent

    def before(self, run: Callable[[Trial], TrialResult], trial: Trial, flows: int) -> None:
        """Flush packets of an earlier trial, where there may be any.

        Args:
            run: Runs a trial.
            trial: The next one.
            flows: Number of flows.
        """
        if not self._kept:
            return
        few = Trial(
            load_pps=flows * _FLOW_PPS,
            duration_s=_FEW_S,
            frame=trial.frame,
            purpose="clearing",
            protocol=trial.protocol,
            sessions=trial.sessions,
        )
        for _ in range(_TIMES):
            found = run(few)
            if found.received <= found.sent:
                return
            _log.info("%d packets of an earlier trial have come out", found.received - found.sent)
