"""A density test from plan to record: the phases of its keywords, without Robot."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import NoTraffic, PlanError, Unsupported
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.measurements.energy import Energy
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.qualification import Qualification
from resources.libraries.python.model.measurements.stacks import described
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import Algorithm, GoalResult, Prior
from resources.libraries.python.model.result import (
    Environment,
    Finding,
    LatencyAtLoad,
    LossesAtLoad,
    MeasurementRequest,
    ReceiveRate,
    VerdictKind,
)
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.quantities import latency, rate, rates
from resources.libraries.python.recording.run_journal import TestKey
from resources.libraries.python.search.back_to_back import bursts_in_words, measure_back_to_back
from resources.libraries.python.search.energy import EnergyReadings, certain_window, measure_energy
from resources.libraries.python.search.findings.correlates import (
    BAND_TRIALS,
    DECAYED_TRIALS,
    bands_in_words,
    rose_in_words,
    telling_load_pps,
)
from resources.libraries.python.search.findings.host_noise import HostNoise
from resources.libraries.python.search.findings.itemize import OVERLOAD, itemize, itemize_goal
from resources.libraries.python.search.findings.locate import by_owner, locate, locating_trial
from resources.libraries.python.search.findings.usage import busy_cpus, stage_costs, usage
from resources.libraries.python.search.findings.verdict import MRR, ORR, has_bands, judge
from resources.libraries.python.search.load_trials import (
    AT_RATE,
    measure_at_rate,
    measure_latency,
    measure_receive_rate,
)
from resources.libraries.python.search.losses import flow_in_words, loss_loads, loss_trial, losses_of, worst_flow
from resources.libraries.python.search.profiles import PDR, SOAK_GOAL
from resources.libraries.python.search.qualification import GeneratorRange
from resources.libraries.python.search.throughput import Progress, SearchOutcome, search_throughput
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.matrix import cell_key, journal_name
from resources.libraries.python.studies.density.search_priors import MatrixPrediction, MeasuredCells, PriorBook
from resources.libraries.python.studies.shared.study import StudyTest
from resources.libraries.python.testbed.deployment.call_stacks import CostReading, sample_stacks
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Deployment, repeat_trial
from resources.libraries.python.testbed.deployment.parts import Testbed

_METERS_MORE_S = 0.5
"""Meters are read for longer than a trial by its preparation."""
_REPEATED_S = 1.0
"""Length of the trials that are repeated to see what changes with the rate."""
_COST_TRIAL_S = 1.0
"""Longest trial in which the work of programs is counted; a trial of the search, where that is shorter."""
NOT_MEASURED = "not measured"
"""Begins the reason in the place of a loss pattern."""


class DensityTest(StudyTest[MeasurementRequest]):
    """A study of one cell, whose phases are keywords of a suite.

    `on_progress`: Called during a search; with None its remaining time is not estimated, which takes longer with each
      trial.
    `priors`: Earlier results that a search may start from.
    `measured`: Cells of this run, which predict one without an earlier result; None for no predictions.
    """

    RECORD = DensityRecord

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        asked: MeasurementRequest,
        environment: Environment,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        priors: PriorBook | None = None,
        measured: MeasuredCells | None = None,
        noise: tuple[CpuNoise, ...] = (),
        qualification: Qualification | None = None,
    ) -> None:
        super().__init__(topology, world, asked, environment)
        self.draft.asked, self.draft.trials = asked, []
        self._priors, self._measured = priors, measured
        self._noise = noise
        self._qualification = qualification
        self._on_progress = on_progress
        self._idle: EnergyReadings | None = None
        self._cell = CellUnderTest(topology, world, asked)
        self._outcome: SearchOutcome | None = None
        self._mrr_trials: tuple[TrialResult, ...] = ()
        self._orr_trials: tuple[TrialResult, ...] = ()
        self._highest: HighestLoads | None = None
        self._latency_trials: tuple[TrialResult, ...] = ()
        self._complaints: tuple[str, ...] = ()
        self._repeated: tuple[Finding, ...] = ()

    @property
    def key(self) -> TestKey:
        """Identity of the test in the journal."""
        asked = self.draft.asked
        name = journal_name(asked.cell, asked.frame.name, asked.test_type)
        return TestKey(name, digest_of_model(asked), cell_key(asked.cell))

    def plan(self) -> Plan:
        """Derive the plan.

        Raises:
            PlanError: The cell does not fit.
        """
        try:
            self.draft.plan = plan = self._cell.plan()
        except PlanError:
            self.draft.unfit = True
            raise
        return plan

    def deploy(self) -> float:
        """Deploy the plan and read back the placement of its data threads; return the seconds it took."""
        self._deployed = self._cell
        deployment = self._cell.deploy(self.draft.plan or self.plan())
        self.draft.deploy_s = deployment.deploy_s
        self.draft.affinity = self._cell.placed
        self.draft.facts = deployment.facts()
        return deployment.deploy_s or 0.0

    @property
    def deployment(self) -> Deployment:
        """The running deployment."""
        return self._cell.deployment

    def measure(self, trial: Trial) -> TrialResult:
        """Run one trial and keep its result.

        Raises:
            SystemBroken: Packets of a flow are all lost, and a part is not well.
        """
        return self._cell.measure(trial, self.draft.trials.append)

    def verify_traffic(self) -> None:
        """Send at a low rate and see packets of every instance arrive in both directions.

        Raises:
            NoTraffic: Some do not; the text names the last hop that saw them.
        """
        lost = self._cell.connectivity(self.measure)
        self._complaints = lost.complaints if lost else ()
        self._judge()
        if lost:
            raise NoTraffic(lost.text)

    def too_noisy(self) -> str | None:
        """Return why the machine is too noisy for the goals of the search; None where it is not, or is not known.

        The sentence is a warning of the record, too.
        """
        goals = [(goal.name, goal.loss_ratio) for goal in self.draft.asked.profile.goals]
        why = self._host_noise().too_noisy(goals, self._highest_loads().search_pps)
        if why:
            self.draft.warnings.append(why)
        return why

    def _host_noise(self) -> HostNoise:
        return HostNoise(self.deployment.plan, self._noise)

    def search(self, goals: Sequence[str]) -> tuple[str, ...]:
        """Search the throughput for the goals of these names; return what was found in sentences.

        The profile `soak` has a goal of its own, which is searched whatever goals are named.
        """
        asked, max_load_pps = self.draft.asked, self._highest_loads().search_pps
        own = asked.profile.algorithm is Algorithm.PLR
        profile = asked.profile.model_copy(
            update={"goals": tuple(goal for goal in asked.profile.goals if own or goal.name in goals)}
        )
        prior, prediction = self._prior(), MatrixPrediction()
        if prior is None and self._measured is not None and profile.algorithm is Algorithm.LADDER:
            prediction = self._measured.predict(asked)
        outcome = search_throughput(
            self.measure,
            profile,
            asked.frame,
            max_load_pps,
            self.deployment.parts.clock,
            prior=prior or prediction.prior,
            from_overload=prediction.overload,
            on_progress=self._on_progress,
        )
        self._outcome = outcome
        self.draft.ndr, self.draft.pdr, self.draft.soak = outcome.ndr, outcome.pdr, outcome.goal(SOAK_GOAL)
        self.draft.search = outcome.record.model_copy(update={"predicted": prediction.goals})
        self._read_costs()
        items = (itemize_goal(found, outcome.trials) for found in outcome.goals)
        trial = locating_trial(profile, asked.frame, outcome.goals, min(max_load_pps, outcome.max_load_pps))
        with self._locating() as overload:
            overload.append(self.measure(trial))
        self.draft.itemized = tuple(item for item in (*items, itemize(OVERLOAD, overload)) if item is not None)
        self._repeated = tuple(self._repeat(outcome))
        self._judge()
        return (*map(describe, outcome.goals), *(each.text for each in (*outcome.findings, *self._repeated)))

    def _repeat(self, outcome: SearchOutcome) -> Iterator[Finding]:
        """Where the system decays or runs in two bands, repeat a trial and find what changes together with its rate."""
        numbers = tuple(result.goal.name for result in outcome.goals)
        if outcome.decays:
            kind, repeats_of, in_words = VerdictKind.DECAYING, DECAYED_TRIALS, rose_in_words
        elif has_bands(outcome):
            kind, repeats_of, in_words = VerdictKind.UNSTABLE, BAND_TRIALS, bands_in_words
        else:
            return
        load_pps = telling_load_pps(outcome)
        trial = Trial(load_pps=load_pps, duration_s=_REPEATED_S, frame=self.draft.asked.frame, purpose="repeated")
        repeats = repeat_trial(self.deployment, self.measure, trial, repeats_of)
        yield Finding(kind=kind, text=in_words(rate(load_pps), repeats), numbers=numbers)

    def _read_costs(self) -> None:
        """Run a trial at the rate that was found, where programs count their work, and read what they counted."""
        goal = self._found()
        if goal is None:
            return
        reading = CostReading(self.deployment.parts)
        results = []
        if reading.counts:
            trial = Trial(
                load_pps=goal.lower_pps or 0.0,
                duration_s=min(_COST_TRIAL_S, goal.goal.final_trial_duration_s),
                frame=self.draft.asked.frame,
                purpose="costs",
            )
            results.append(self.measure(trial))
        self._keep_costs(reading, goal.goal.name, results)

    def _keep_costs(self, reading: CostReading, load: str, results: Sequence[TrialResult]) -> None:
        self.draft.costs = reading.read(load, results)
        if reading.failed:
            self.draft.warnings.append(f"costs by node were not read: {reading.failed}")

    def _found(self) -> GoalResult | None:
        """PDR, else the soak rate or NDR; None where no rate was found."""
        every = (self.draft.pdr, self.draft.soak, self.draft.ndr)
        return next((each for each in every if each is not None and each.lower_pps), None)

    def _prior(self) -> Prior | None:
        if self._priors is None or self.draft.asked.profile.algorithm is not Algorithm.LADDER:
            return None
        return self._priors.prior(
            self.draft.asked,
            world=self.draft.topology.world,
            testbed=self.draft.topology.metadata.name,
            drivers=self.draft.drivers,
            simulation=self.draft.simulation,
            environment=self.draft.environment,
        )

    def latency(self) -> tuple[str, ...]:
        """Measure latency at 0, 10, 50 and 90 % of PDR, or of the soak rate.

        Returns:
            The worst 99th percentile of each load in words.
        """
        full, asked = self.draft.pdr or self.draft.soak, self.draft.asked
        rows, self._latency_trials = measure_latency(
            self.measure,
            asked.profile,
            asked.frame,
            full.lower_pps if full else None,
            full.goal.name if full else PDR,
        )
        self.draft.latency = rows
        self._judge()
        return tuple(_worst_p99(row) for row in rows)

    def at_rate(self, rate_pps: float) -> str:
        """Run trials at a rate of each instance, until each goal is decided there; return what was found in words.

        `rate_pps`: of an instance, both directions together.
        """
        draft, asked = self.draft, self.draft.asked
        draft.at_rate, row, trials = measure_at_rate(
            self.measure,
            asked.profile,
            asked.frame,
            rate_pps * len(asked.cell.instances),
            self.deployment.parts.clock,
        )
        draft.latency, self._latency_trials = (row,), trials[-1:]
        item = itemize(AT_RATE, trials[:-1])
        draft.itemized = (item,) if item is not None else ()
        self._judge()
        return f"{draft.at_rate.text}; {_worst_p99(row)}"

    def losses(self, duration_s: float) -> tuple[str, ...]:
        """Count losses, duplicates and reordering at NDR, PDR and in overload; return them in words.

        Where the generator cannot, the record has the reason in the place of a pattern.
        """
        draft = self.draft
        ndr_pps, pdr_pps = (found.lower_pps if found else None for found in (draft.ndr, draft.pdr))
        lines = []
        for label, load_pps in loss_loads(ndr_pps, pdr_pps, self._highest_loads().search_pps):
            try:
                row = self._losses_at(label, loss_trial(load_pps, duration_s, draft.asked.frame))
            except Unsupported as error:
                draft.loss_patterns = {**draft.loss_patterns, label: f"{NOT_MEASURED}: {error}"}
                lines.append(f"{label} {draft.loss_patterns[label]}")
                continue
            draft.losses += (row,)
            draft.loss_patterns = {**draft.loss_patterns, label: flow_in_words(worst_flow(row))}
            lines += [f"{label} {flow_in_words(flow)}" for flow in row.flows]
            lines += [f"{label}: {remark}" for remark in row.remarks]
        self._judge()
        return tuple(lines)

    def _losses_at(self, label: str, trial: Trial) -> LossesAtLoad:
        """Run a loss trial; its result is kept without what the record has of it elsewhere.

        Raises:
            Unsupported: The generator numbers no packets, or cannot count so many.
        """
        generator = generators()[self.draft.topology.tg.generator.driver]
        if not generator.numbers_packets:
            raise Unsupported(f"{generator.label} numbers no packets, so it cannot count losses one by one")
        before = self.deployment.counters()
        result = self._cell.measure(
            trial, lambda each: self.draft.trials.append(each.model_copy(update={"losses": ()}))
        )
        lost_at = by_owner(locate(self.deployment.plan, [result], before, self.deployment.counters()).hops)
        return losses_of(label, result, lost_at, GENERATOR)

    def back_to_back(self, repetitions: int, report: Callable[[int], None] = lambda _: None) -> str:
        """Search the longest burst of which no frame is lost; return it in words.

        `report`: called with the number of each before it.

        Raises:
            Unsupported: The generator makes no bursts, or they fill no buffer.
        """
        draft = self.draft
        generator = generators()[draft.topology.tg.generator.driver]
        if generator.keeps_log:
            raise Unsupported(f"{generator.label} sends no bursts of a few frames")
        ndr_pps = draft.ndr.lower_pps if draft.ndr else None
        draft.back_to_back = found = measure_back_to_back(
            self._cell.measure,  # there are hundreds: the record has what they found only
            draft.asked.frame,
            flows=len(self.deployment.plan.flows),
            load_pps=self._highest_loads().offered_pps,
            throughput_pps=ndr_pps,
            repetitions=repetitions,
            report=report,
        )
        return bursts_in_words(found)

    def idle_energy(self, trial_s: float) -> None:
        """Measure the power of all nodes before anything is deployed, for as long as a trial."""
        meters = self._world.meters()
        meters.begin(trial_s)
        found = meters.end()
        self._idle = EnergyReadings(found.series, found.unmetered)

    def energy(self, trial_s: float, report: Callable[[float], None] = lambda _: None) -> Energy:
        """Measure the power of all nodes at 0, 10, 50 and 90 % of PDR, or of the soak rate.

        `report`: called with the load before each, in packets per second.
        """
        draft, full = self.draft, self.draft.pdr or self.draft.soak

        def watch(trial: Trial | None) -> EnergyReadings:
            report(trial.load_pps if trial else 0.0)
            return self._watched(trial, trial_s)

        draft.energy = found = measure_energy(
            watch,
            draft.asked.frame,
            full.lower_pps if full else None,
            trial_s,
            draft.asked.profile.latency_probe_pps,
            duts=tuple(draft.topology.duts),
            idle=self._idle,
        )
        draft.warnings += [f"energy of {node}: {why}" for node, why in found.unmetered.items()]
        return found

    def _watched(self, trial: Trial | None, trial_s: float) -> EnergyReadings:
        """Read the meters and the use of data CPUs in the course of a trial, or of as long without one."""
        clock, meters = self.deployment.parts.clock, self._world.meters()
        before, begin_s = self.deployment.sample(), clock()
        meters.begin(trial.duration_s + _METERS_MORE_S if trial else trial_s)
        result = window = None
        try:
            if trial is not None:
                began_s = meters.now()
                result = self.measure(trial)
                window = certain_window(began_s, meters.now(), result.offered_duration_s)
            after, end_s = self.deployment.sample(), clock()
        finally:
            found = meters.end()
        if result is None:
            after, end_s = self.deployment.sample(), clock()
        cores = self.deployment.plan.cores
        owners = {each.owner for each in cores.threads if each.machine is None} - {GENERATOR}
        cpus = {cpu for owner in owners for cpu in cores.cpus(owner)}
        return EnergyReadings(
            found.series, found.unmetered, busy_cpus(cpus, before, after, end_s - begin_s), result, window
        )

    def stacks(self, trial_s: float) -> str:
        """Sample the call stacks of the data CPUs in a trial at PDR, else at the soak rate or NDR; return what was.

        The trial comes after those of the search and is none of them. A failure is a warning of the record.
        """
        draft, found = self.draft, self._found()
        if found is None:
            return self._unsampled("no rate was found")
        trial = Trial(load_pps=found.lower_pps or 0.0, duration_s=trial_s, frame=draft.asked.frame, purpose="stacks")
        sampled = sample_stacks(self.deployment.parts, self.measure, trial, found.goal.name)
        if isinstance(sampled, str):
            return self._unsampled(sampled)
        text = described(sampled)
        draft.stacks, draft.stacks_sampled = sampled, text
        if stages := stage_costs(sampled):
            costs = draft.costs or sampled.costs
            draft.costs = costs.model_copy(update={"nodes": (*costs.nodes, *stages)})
        return text

    def _unsampled(self, why: str) -> str:
        self.draft.warnings.append(f"call stacks were not sampled: {why}")
        return self.draft.warnings[-1]

    def mrr(self) -> tuple[str, ...]:
        """Measure the maximum receive rate, at line rate or the most that the generator sends; return it in words."""
        asked = self.draft.asked
        load_pps = self._highest_loads().offered_pps
        with self._locating() as trials:
            reading = CostReading(self.deployment.parts)
            self.draft.mrr, self._mrr_trials = measure_receive_rate(self.measure, asked.profile, asked.frame, load_pps)
            self._keep_costs(reading, MRR, self._mrr_trials)
            trials.extend(self._mrr_trials)
        self._itemize_rate(MRR, self._mrr_trials)
        return _rate_in_words(MRR, self.draft.mrr)

    def orr(self) -> tuple[str, ...]:
        """Measure the overload receive rate, unless it is at the load of the maximum one; return it in words."""
        asked, highest = self.draft.asked, self._highest_loads()
        if highest.search_pps >= highest.offered_pps:
            return ("ORR equals MRR: the highest load of a search is not reduced",)
        self.draft.orr, self._orr_trials = measure_receive_rate(
            self.measure, asked.profile, asked.frame, highest.search_pps, "orr"
        )
        self._itemize_rate(ORR, self._orr_trials)
        return _rate_in_words(ORR, self.draft.orr)

    def _itemize_rate(self, number: str, trials: Sequence[TrialResult]) -> None:
        found = itemize(number, trials)
        self.draft.itemized += (found,) if found is not None else ()
        self._judge()

    def remove(self) -> str | None:
        """Remove the cell and see that nothing is left of it; return what went wrong, None when nothing did.

        Raises:
            RunStopped: Something is left and cannot be removed by force either.
        """
        try:
            return super().remove()
        finally:
            self.draft.remove_s = self._cell.remove_s

    def _highest_loads(self) -> HighestLoads:
        """Measured once for a deployment."""
        if self._highest is None:
            self._highest = self._cell.highest_loads()
        return self._highest

    @contextmanager
    def _locating(self) -> Iterator[list[TrialResult]]:
        """Keep between which hops the trials lose packets that are run meanwhile, and added to the list."""
        deployment, results = self.deployment, list[TrialResult]()
        counters, sample = deployment.counters(), deployment.sample()
        yield results
        sample_after, counters_after = deployment.sample(), deployment.counters()
        sending_s = sum(result.offered_duration_s for result in results)
        used = usage(deployment.plan, sample, sample_after, sending_s) if sending_s > 0 else None
        self.draft.located = locate(deployment.plan, results, counters, counters_after, used)

    def _judge(self) -> None:
        now = {row.name: row for row in self.deployment.affinity()}
        # A thread that was moved at any time was not where it was planned while it was measured.
        self.draft.affinity = tuple(
            now.get(row.name, row) if row.actual_cpus == (row.planned_cpu,) else row for row in self._cell.placed
        )
        noise = self._host_noise()
        full = self.draft.pdr or self.draft.soak
        self.draft.facts = self.deployment.facts()  # once more: some parts report on the last trial
        self.draft.verdict = judge(
            self.deployment.plan,
            outcome=self._outcome,
            mrr=self.draft.mrr,
            orr=self.draft.orr,
            mrr_trials=self._mrr_trials,
            orr_trials=self._orr_trials,
            latency_trials=self._latency_trials,
            located=self.draft.located,
            affinity=self._cell.placed,
            affinity_after=self.draft.affinity,
            complaints=self._complaints,
            facts=self.draft.facts,
            noise=noise,
            tails=noise.tails(self.draft.latency, full.lower_pps if full else None),
            losses=noise.losses(self.draft.losses, GENERATOR),
            generator=GeneratorRange(self._qualification, self.draft.asked.frame, len(self.deployment.plan.flows)),
            latency=self.draft.latency,
            repeated=self._repeated,
        )


def describe(result: GoalResult) -> str:
    """A goal's result in words."""
    name = result.goal.name
    if result.lower_pps is None:
        tried = rate(result.lowest_tried_pps) if result.lowest_tried_pps else "every load tried"
        return f"{name} not reached: lower bound below {tried}"
    if result.upper_pps is None:
        return f"{name} {rate(result.lower_pps)} (upper bound none)"
    lower, upper = rates(result.lower_pps, result.upper_pps)
    return f"{name} {lower} (upper bound {upper})"


def _rate_in_words(name: str, found: ReceiveRate | None) -> tuple[str, ...]:
    return (f"{name} {' of '.join(rates(found.mean_pps, found.offered_pps))} offered",) if found else ()


def _worst_p99(row: LatencyAtLoad) -> str:
    worst = max((flow.p99_ns for flow in row.flows if flow.p99_ns is not None), default=None)
    return f"{row.label} p99 {latency(worst)}"
