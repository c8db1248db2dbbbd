"""A sweep from plan to record: the phases of its keywords, without Robot."""

from collections.abc import Callable, Sequence

from resources.libraries.python.errors import ConfigError, CsitError, PlanError, SystemBroken
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.recording.environment import SMT_CONTROL
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    MeasuredPath,
    MeasuredVnf,
    predict,
    sharing,
)
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.profile import profile_of_sweep
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.seconds import vnfs
from resources.libraries.python.studies.sweep.analysis.smt_gains import smt_gains
from resources.libraries.python.studies.sweep.journal import SweepJournal, SweepMemory
from resources.libraries.python.studies.sweep.load_steps import (
    BEYOND,
    LoadEnded,
    LoadStep,
    MeasuredLoad,
    next_load,
    rates_around,
    sweep,
)
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile, SmtGain
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint, SweepRecord, SweepSample, SweepSpec
from resources.libraries.python.studies.sweep.profile_store import ProfileStore
from resources.libraries.python.studies.sweep.request import RelativeBursts, SweepRequest
from resources.libraries.python.studies.sweep.sampling import Sampling
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.generator_limits import keeps_a_log
from resources.libraries.python.testbed.deployment.parts import Testbed


class ServiceSweep:
    """Holds a deployed service while a test runs, and the draft of its record.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        asked: What to measure.
        environment: Fingerprint of the machine.
        on_progress: Called after each load.

    Raises:
        ConfigError: Flows cannot be shared equally by the branches.
    """

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        asked: SweepRequest,
        environment: Environment,
        on_progress: Callable[[LoadEnded], None] = lambda _: None,
    ) -> None:
        asked.check()
        self.asked = asked
        self._on_progress = on_progress
        test = MeasurementRequest(test_type=TestType.MRR, cell=asked.cell, frame=asked.frame, profile=QUICK)
        self._cell = CellUnderTest(topology, world, test)
        by_log = keeps_a_log(topology.tg.generator.driver)
        self._sampling = Sampling(self._cell, asked.frame, asked.protocol, asked.departures, by_log=by_log)
        self._samples: list[SweepSample] = []
        self._points: list[SweepPoint] = []
        self.draft = Draft(SweepRecord, topology, environment, pattern="sweep" if asked.bursts is None else "bursts")
        self.draft.drivers = drivers_of(topology, asked.cell, world.drivers)
        self.draft.simulation = world.simulation
        self._memory = SweepMemory()

    def plan(self) -> Plan:
        """Derive the plan.

        Raises:
            PlanError: The service does not fit, or SMT cannot be switched off.
        """
        if self.asked.smt is not None:
            self._refuse_fixed_smt()
        self.draft.plan = plan = self._cell.plan(self.asked.flows // len(self.asked.cell.instances), self.asked.smt)
        self.draft.smt_off = plan.smt_off
        return plan

    def _refuse_fixed_smt(self) -> None:
        """Refuse DUTs whose kernel cannot switch SMT off; a simulated one can.

        Raises:
            PlanError: There is one.
        """
        topology, environment = self.draft.topology, self.draft.environment
        if topology.world is World.SIM:
            return
        for name in topology.duts:
            state = environment.nodes.get(name, environment).settings.get(SMT_CONTROL)
            if state != "on":
                says = f"{SMT_CONTROL} says {state}" if state else f"there is no {SMT_CONTROL}"
                raise PlanError(f"SMT on and off cannot be compared on {name}: {says} there")

    def digest(self) -> str:
        """Digest of the sweep and its plan: sweeps of the same digest are parts of one."""
        plan = self.draft.plan or self.plan()
        return self.asked.digest(plan)

    @property
    def is_deployed(self) -> bool:
        """Whether the service is deployed."""
        return self._cell.is_deployed

    def problems(self) -> tuple[str, ...]:
        """Problems of the deployed service; empty when it is healthy."""
        return self._cell.problems()

    def moved(self) -> tuple[str, ...]:
        """Data threads that have moved since the deployment."""
        return self._cell.moved()

    def resume(self, journal: SweepJournal) -> None:
        """Keep every load in an open journal, and measure none again that it has."""
        self._memory = SweepMemory(journal)
        self.draft.warnings.extend(filter(None, [self.remark]))

    @property
    def remark(self) -> str | None:
        """Measurements from before the run was resumed; None without any."""
        return self._memory.remark

    def deploy(self) -> float:
        """Deploy the service; return the seconds it took."""
        plan = self.draft.plan or self.plan()
        self.draft.warnings.extend(plan.warnings)
        deployment = self._cell.deploy(plan)
        self.draft.facts = deployment.facts()
        return deployment.deploy_s or 0.0

    def verify_traffic(self) -> None:
        """Send at a low rate and see packets of every branch arrive in both directions.

        Raises:
            NoTraffic: Some do not; the text names the last hop that saw them.
        """
        self._cell.verify_traffic()

    def spec(self) -> SweepSpec:
        """Return the traffic of the sweep; measures the service's throughput if rates depend on it.

        Raises:
            NoTraffic: Next to nothing comes back.
            RunStopped: The journal cannot be written.
        """
        return self._memory.spec(self._found_spec)

    def _found_spec(self) -> SweepSpec:
        asked = self.asked
        rates, bursts = asked.rates, asked.bursts
        if isinstance(bursts, RelativeBursts):
            bursts = bursts.at(self._sampling.capacity_pps(asked.flows))
        elif bursts is None and rates is None:
            # The path without NFs is wanted at loads that a service carries: in overload it only shows its queues.
            beyond = BEYOND if asked.cell.nf_nodes else 1.0
            rates = rates_around(self._sampling.capacity_pps(asked.flows), beyond=beyond)
        return SweepSpec(
            rates=None if bursts else rates,
            bursts=bursts,
            duration_s=asked.duration_s,
            flows=asked.flows,
            protocol=asked.protocol,
            departures=asked.departures,
            frame=asked.frame,
        )

    def sweep(self, spec: SweepSpec) -> Sweep:
        """Run all loads; what was measured is in the draft, also when it ends early.

        Raises:
            SystemBroken: A part died; what was measured until then is kept.
            RunStopped: The journal cannot be written.
        """
        plan = self._cell.deployment.plan
        try:
            for done in sweep(
                lambda load: self._measured(spec, load),
                spec,
                before=self._memory.before,
                stop_loss_ratio=self.asked.stop_loss_ratio,
                whole_bursts=self._sampling.by_log,
                refine=self._further,
            ):
                self._samples.extend(done.samples)
                self._points.extend([done.point] if done.point else [])
                self._on_progress(done)
            if found := self._cell.problems():
                raise SystemBroken("; ".join(found))
        finally:
            found_out = self._kept(spec, plan)
        self._remark(found_out)
        self.draft.facts = self._cell.deployment.facts()
        return found_out

    def profile(self) -> Profile:
        """Describe the service by functions of its input rate.

        Raises:
            CsitError: There was no sweep of constant loads.
        """
        if self.draft.sweep is None or not self.draft.sweep.points:
            raise CsitError("nothing to profile: no sweep of constant loads has been run")
        self.draft.profile = profile = profile_of_sweep(self.draft.sweep)
        return profile

    def predict(self, parts: Sequence[str], profiles: ProfileStore) -> tuple[Prediction, ...]:
        """Compare the chain that was swept with what profiles of its parts alone let expect.

        Where the path without network functions was measured as well, its delay counts once.

        Args:
            parts: Names of services, one for each node of the chain.
            profiles: Measured before.

        Raises:
            ConfigError: One was not measured, or there are too many or too few.
            CsitError: There was no sweep.
        """
        found, plan = self.draft.sweep, self.draft.plan
        if found is None or plan is None or not found.points:
            raise CsitError("nothing to predict: no sweep of constant loads has been run")
        if len(parts) != found.cell.nf_nodes:
            raise ConfigError(f"{len(parts)} parts for {found.cell.nf_nodes} network functions of {found.name}")
        measured = [profiles.profile(name, found.spec.frame.name) for name in parts]
        self.draft.pattern = "chain"
        self.draft.predictions = made = predictions(found, plan, measured, profiles.path(found.spec.frame.name))
        return made

    def compare_smt(self, profiles: ProfileStore) -> tuple[SmtGain, ...]:
        """Compare the service without SMT with the same sweep with it.

        Args:
            profiles: Measured before.

        Raises:
            ConfigError: The same sweep was not measured with SMT, or this one has it.
            CsitError: There is no profile.
        """
        sweep, profile = self.draft.sweep, self.draft.profile
        if sweep is None or profile is None:
            raise CsitError("nothing to compare: the service has no profile")
        if not self.draft.smt_off:
            raise ConfigError(f"{sweep.name} was measured with SMT: compare the sweep that has smt=off")
        self.draft.smt_gains = gains = smt_gains(profiles.with_smt(sweep), profile)
        return gains

    def remove(self) -> str | None:
        """Remove the service and see that nothing is left of it; return what went wrong, None when nothing did.

        Raises:
            RunStopped: Something is left and cannot be removed by force either.
        """
        return self._cell.remove()

    def _further(self, points: Sequence[SweepPoint]) -> float | None:
        """A further load around the break-point; None where its interval is narrow enough, or there is none."""
        if self.asked.width is None or not self.asked.cell.nf_nodes:
            return None
        vcpus = {vnf.name: vnf.vcpus for vnf in vnfs(self._cell.deployment.plan)}
        found, _ = find_break_point(observe(points)[0], vcpus)
        return next_load(found, points, self.asked.width)

    def _measured(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        found = self._sampling.measure(spec, load)
        self._memory.keep(load, found)
        return found

    def _kept(self, spec: SweepSpec, plan: Plan) -> Sweep:
        self.draft.sweep = sweep = Sweep(
            name=self.asked.name,
            cell=self.asked.cell,
            spec=spec,
            vnfs=vnfs(plan),
            samples=tuple(self._samples),
            points=tuple(sorted(self._points, key=lambda each: each.rate_pps)),
        )
        return sweep

    def _remark(self, found: Sweep) -> None:
        flagged = [point for point in found.points if point.flagged]
        if flagged:
            self.draft.warnings.append(
                f"{len(flagged)} of {len(found.points)} loads were not offered as intended, "
                f"the first at {rate(flagged[0].rate_pps)}: {flagged[0].flagged}"
            )
        dark = [vnf.name for vnf in found.vnfs if not any(vnf.name in sample.cpu for sample in found.samples)]
        if dark:
            self.draft.warnings.append(f"no CPU accounting for {', '.join(dark)}")
        self.draft.warnings.extend(self._cell.moved())


def predictions(
    measured: Sweep, plan: Plan, profiles: Sequence[Profile], path: Sweep | None = None
) -> tuple[Prediction, ...]:
    """Predict a chain from its parts alone by both models; by one where no VNFs share CPUs.

    Args:
        measured: The chain.
        plan: As it was deployed.
        profiles: Of its parts, one for each node.
        path: The sweep of the path without VNFs; None where there is none.
    """
    way = None if path is None else MeasuredPath.of(path.name, path.points)
    words = sharing(measured.vnfs)
    parts = [
        MeasuredVnf(profiles[function.node - 1], _share(measured.cell, function.node), words[function.name])
        for function in plan.nfs
    ]
    found = [predict(measured.name, parts, measured.points, "hungriest", way)]
    if any(part.cpus is not None for part in parts):
        found.append(predict(measured.name, parts, measured.points, "shared_cpus", way))
    return tuple(found)


def _share(cell: Cell, node: int) -> float:
    """Return the share of the chain's rate that goes through one NF of a node: branches share the flows equally."""
    return 1.0 / cell.count_of(node)
