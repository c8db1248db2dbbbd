"""One cell from plan to removal, for tests of all kinds.

A vSwitch may keep packets of one trial, which the next one would count as received: they are flushed in between.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import CsitError, NoTraffic, PlanError, RunStopped, SystemBroken
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.result import Affinity, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.address_bounds import MAX_SOURCES
from resources.libraries.python.planning.plan import kinds, make_plan
from resources.libraries.python.planning.traffic import keeps_a_log, not_taken
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.testbed.deployment import health
from resources.libraries.python.testbed.deployment.deployment import Deployment
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.deployment.parts import Testbed

_FLOW_PPS, _FEW_S = 1000.0, 0.2
_TIMES = 10


class VSwitchFlush:
    """State of a cell between two trials.

    Some vSwitches (`keeps_packets`) leave what a port does not take at once in that port's ring until the next packet
    for that port comes: each brings some of them out. After a trial with losses a few packets are sent until no more
    come back than were sent.
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
        """Flush packets of an earlier trial, where there may be any."""
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


_TRIAL_S = 90.0
_DEPLOY_S = 300.0
_EACH_NF_S = 60.0
"""Deadlines of last resort: drivers give up long before. A virtual machine may boot in software emulation."""
_CALIBRATION_S = 0.3
_LOW_RATE_TRIALS = 3
_log = logging.getLogger(__name__)


class Disconnection(NamedTuple):
    """Flows whose packets do not arrive at a low rate."""

    complaints: tuple[str, ...]
    """A sentence for each."""
    some_arrive: bool
    """Whether some packets of every flow arrive."""

    @property
    def text(self) -> str:
        """As an error."""
        what = "packets are lost at a low rate" if self.some_arrive else "no traffic"
        return f"{what}: {'; '.join(self.complaints)}"


class CellUnderTest:
    """A cell that is planned, deployed, loaded and removed.

    `world`: Where to deploy, opened by the caller.
    """

    def __init__(self, topology: Topology, world: Testbed, asked: MeasurementRequest) -> None:
        self._topology = topology
        self._world = world
        self._asked = asked
        self._plan: Plan | None = None
        self._deployment: Deployment | None = None
        self._flush = VSwitchFlush(topology)
        self.placed: tuple[Affinity, ...] = ()
        """Where data threads ran when the cell had been deployed."""
        self.deploy_s: float | None = None
        self.remove_s: float | None = None

    def plan(self, sources: int | None = None, smt: bool | None = None) -> Plan:
        """Derive the plan.

        `sources`: Source addresses of each flow; None for as many as there are to be flows, or density tests
          have.

        Raises:
            PlanError: The cell does not fit.
        """
        if sources is None and self._asked.frame.flows is not None:
            sources = min(self._asked.frame.flows, MAX_SOURCES)
        if reason := not_taken(self._topology, kinds(self._topology, self._asked.cell), self._asked.frame):
            raise PlanError(reason)
        more = {} if sources is None else {"sources": sources}
        version = self._asked.frame.ip_version
        self._plan = make_plan(
            self._topology, self._asked.cell, self._world.layout, ip_version=version, smt=smt, **more
        )
        return self._plan

    def deploy(self, plan: Plan) -> Deployment:
        """Bring a plan to life and read back where its data threads run."""
        self._plan = plan
        deployment = Deployment(plan, self._world.parts(plan, self._asked))
        with within("the deployment", _DEPLOY_S + _EACH_NF_S * len(plan.functions)):
            deployment.__enter__()
        self._deployment = deployment
        self.deploy_s = deployment.deploy_s
        self.placed = deployment.affinity()
        return deployment

    @property
    def deployment(self) -> Deployment:
        """The running deployment."""
        if self._deployment is None:
            raise CsitError("the cell is not deployed")
        return self._deployment

    @property
    def is_deployed(self) -> bool:
        """Whether there is a running deployment."""
        return self._deployment is not None

    def measure(self, trial: Trial, keep: Callable[[TrialResult], None] = lambda _: None) -> TrialResult:
        """Run one trial.

        Raises:
            SystemBroken: Packets of a flow are all lost, and a part is not well.
        """
        with within("the trial", trial.duration_s + _TRIAL_S):
            run = self.deployment.parts.generator.run
            self._flush.before(run, trial, len(self.deployment.plan.flows))
            result = run(trial)
            self._flush.after(result)
        keep(result)
        self._world.on_trial(result)
        if any(flow.sent and not flow.received for flow in result.flows) and (found := self.problems()):
            raise SystemBroken("; ".join(found))
        return result

    def connectivity(self, measure: Callable[[Trial], TrialResult]) -> Disconnection | None:
        """Send at a low rate; return the flows that do not arrive, None where all do.

        Where some do not arrive it is done again, a few times: a machine that stands still for a moment loses what
        comes then, all of it where a CPU that every packet crosses stands still; a broken system loses it each time.

        Raises:
            SystemBroken: Packets do not arrive, and a part is not well.
        """
        plan = self.deployment.plan
        for _ in range(_LOW_RATE_TRIALS):
            before = self.deployment.counters()
            result = measure(connectivity_trial(plan, self._asked.frame))
            complaints = diagnose(plan, result, before, self.deployment.counters())
            if not complaints:
                return None
            # A part may die in the middle of this trial, when some of its packets have come through.
            if found := self.problems():
                raise SystemBroken("; ".join(found))
            found_lost = Disconnection(complaints, all(flow.received for flow in result.flows))
            _log.info("%s", found_lost.text)
        return found_lost

    def verify_traffic(self) -> None:
        """Send at a low rate and see packets of every flow arrive.

        Raises:
            NoTraffic: Some do not; the text names the last hop that saw them.
            SystemBroken: Packets do not arrive, and a part is not well.
        """
        if found := self.connectivity(self.measure):
            raise NoTraffic(found.text)

    def highest_loads(self) -> HighestLoads:
        """Maximum load of the generator on this deployment, and first load of a search.

        Trials of it are no longer than the MRR trials that a test consists of.
        """
        asked = self._asked
        longest_s = asked.profile.mrr_duration_s if asked.test_type is TestType.MRR else _CALIBRATION_S
        duration_s = min(_CALIBRATION_S, longest_s)
        trial = Trial(load_pps=0.0, duration_s=duration_s, frame=asked.frame, purpose="calibration")
        with within("the calibration of the generator", _TRIAL_S):
            highest = self.deployment.parts.generator.highest_loads(trial)
        self._flush.overloaded()
        return highest

    def problems(self) -> tuple[str, ...]:
        """Faults of the deployed cell now; empty when there are none."""
        return health.problems(self.deployment)

    def moved(self) -> tuple[str, ...]:
        """Data threads that do not run any more where they ran when the cell had been deployed."""
        return health.moved(self.placed, self.deployment)

    def remove(self) -> str | None:
        """Remove the cell and see that nothing is left of it; return what went wrong, None when nothing did.

        Raises:
            RunStopped: Something is left and cannot be removed by force either, or a signal has ended the removal.
        """
        deployment, self._deployment = self._deployment, None
        failure: str | None = None
        signalled: Exception | None = None
        if deployment is not None:
            try:
                with within("the removal", _DEPLOY_S + _EACH_NF_S * len(deployment.plan.functions)):
                    deployment.__exit__(None, None, None)
            except Exception as error:  # a step boundary: what is left is removed by force
                failure = f"the cell could not be removed: {health.reason_of(error)}"
                signalled = error if getattr(error, "exit", False) else None  # Robot's, of a signal that ends the run
            finally:
                self.remove_s = deployment.remove_s
        left = health.clean_up(self._world, self._plan)
        if signalled is not None:
            raise RunStopped(str(signalled)) from signalled
        if left:
            found = f"after its removal there was still {_few(left)}, removed by force"
            failure = "; ".join(filter(None, [failure, found]))
        return failure


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
