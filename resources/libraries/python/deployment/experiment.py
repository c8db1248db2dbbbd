"""One test from plan to record: the phases that the keywords name, without Robot."""

from collections.abc import Callable, Sequence

from resources.libraries.python.deployment.deployment import Deployment
from resources.libraries.python.deployment.parts import World
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked, Environment, LatencyAtLoad
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.search.connectivity import connectivity_trial, diagnose
from resources.libraries.python.search.latency import measure_latency
from resources.libraries.python.search.mrr import measure_mrr
from resources.libraries.python.search.throughput import Progress, SearchOutcome, search_throughput
from resources.libraries.python.search.verdict import judge


class Experiment:
    """Holds a deployment while a test runs, and the draft of its result.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        asked: What to measure.
        environment: Fingerprint of the machine.
        on_progress: Called during a search.
    """

    def __init__(
        self,
        topology: Topology,
        world: World,
        asked: Asked,
        environment: Environment,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._world = world
        self._on_progress = on_progress
        self._deployment: Deployment | None = None
        self._outcome: SearchOutcome | None = None
        self._mrr_trials: tuple[TrialResult, ...] = ()
        self._complaints: tuple[str, ...] = ()
        self.draft = Draft(topology=topology, asked=asked, environment=environment)
        self.draft.drivers = dict(world.drivers)
        self.draft.simulation = dict(world.simulation) if world.simulation is not None else None

    def plan(self) -> Plan:
        """Derive the plan.

        Raises:
            PlanError: The cell does not fit.
        """
        self.draft.plan = make_plan(self.draft.topology, self.draft.asked.cell, self._world.layout)
        return self.draft.plan

    def deploy(self) -> float:
        """Bring the plan to life and read back where its data threads run; return the seconds it took."""
        plan = self.draft.plan or self.plan()
        deployment = Deployment(plan, self._world.parts(plan, self.draft.asked))
        deployment.__enter__()
        self._deployment = deployment
        self.draft.deploy_s = deployment.deploy_s
        self.draft.affinity = deployment.affinity()
        self.draft.facts = deployment.facts()
        return deployment.deploy_s or 0.0

    @property
    def deployment(self) -> Deployment:
        """The running deployment."""
        if self._deployment is None:
            raise CsitError("the cell is not deployed")
        return self._deployment

    def measure(self, trial: Trial) -> TrialResult:
        """Run one trial and keep its result."""
        result = self.deployment.measure(trial)
        self.draft.trials.append(result)
        return result

    def verify_traffic(self) -> None:
        """Send at a low rate and see packets of every instance arrive in both directions.

        Raises:
            CsitError: Some do not; the text names the last hop that saw them.
        """
        plan, frame = self.deployment.plan, self.draft.asked.frame
        before = self.deployment.counters()
        result = self.measure(connectivity_trial(plan, frame))
        self._complaints = diagnose(plan, result, before, self.deployment.counters())
        self._judge()
        if self._complaints:
            raise CsitError("no traffic: " + "; ".join(self._complaints))

    def search(self, goals: Sequence[str]) -> tuple[str, ...]:
        """Search the throughput for the goals of these names; return what was found in sentences."""
        asked = self.draft.asked
        profile = asked.profile.model_copy(
            update={"goals": tuple(goal for goal in asked.profile.goals if goal.name in goals)}
        )
        outcome = search_throughput(
            self.measure,
            profile,
            asked.frame,
            self._max_load_pps(),
            self.deployment.parts.clock,
            on_progress=self._on_progress,
        )
        self._outcome = outcome
        self.draft.ndr, self.draft.pdr = outcome.ndr, outcome.pdr
        self._judge()
        return (*(describe(result) for result in outcome.goals), *outcome.evidence)

    def latency(self) -> tuple[str, ...]:
        """Measure latency at 0, 10, 50 and 90 % of PDR; return the worst 99th percentile of each load in words."""
        pdr = self.draft.pdr
        rows, _ = measure_latency(
            self.measure, self.draft.asked.profile, self.draft.asked.frame, pdr.lower_pps if pdr else None
        )
        self.draft.latency = rows
        return tuple(_worst_p99(row) for row in rows)

    def mrr(self) -> tuple[str, ...]:
        """Measure the maximum receive rate; return it in words."""
        asked = self.draft.asked
        self.draft.mrr, self._mrr_trials = measure_mrr(self.measure, asked.profile, asked.frame, self._max_load_pps())
        self._judge()
        return (f"MRR {self.draft.mrr.mean_pps:.0f} pps of {self.draft.mrr.offered_pps:.0f} pps offered",)

    def remove(self) -> str | None:
        """Remove the cell; return what went wrong, None when nothing did."""
        deployment, self._deployment = self._deployment, None
        if deployment is None:
            return None
        try:
            deployment.__exit__(None, None, None)
        except Exception as error:  # a step boundary: the record is written whatever happened here
            return f"the cell could not be removed: {error}"
        finally:
            self.draft.remove_s = deployment.remove_s
        return None

    def _max_load_pps(self) -> float:
        """The highest load that the generator can offer on this deployment."""
        trial = Trial(load_pps=0.0, duration_s=0.3, frame=self.draft.asked.frame, purpose="calibration")
        return self.deployment.parts.generator.maximum_pps(trial)

    def _judge(self) -> None:
        self.draft.verdict = judge(
            self.deployment.plan,
            outcome=self._outcome,
            mrr_trials=self._mrr_trials,
            affinity=self.draft.affinity,
            complaints=self._complaints,
        )


def describe(result: GoalResult) -> str:
    """A goal's result in words."""
    name = result.goal.name
    if result.lower_pps is None:
        tried = f"{result.lowest_tried_pps:.0f} pps" if result.lowest_tried_pps else "every load tried"
        return f"{name} not reached: lower bound below {tried}"
    upper = "none" if result.upper_pps is None else f"{result.upper_pps:.0f} pps"
    return f"{name} {result.lower_pps:.0f} pps (upper bound {upper})"


def _worst_p99(row: LatencyAtLoad) -> str:
    worst = max((flow.p99_ns for flow in row.flows if flow.p99_ns is not None), default=None)
    return f"{row.label} p99 {'unknown' if worst is None else f'{worst / 1000:.1f} us'}"
