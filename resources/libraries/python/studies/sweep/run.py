"""A sweep from plan to record: the phases of its keywords, without Robot."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from resources.libraries.python.errors import ConfigError, CsitError, PlanError, SystemBroken
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.variables import FIREWALL, NAT, PROFILES, ROUTER, Lookup
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.traffic import keeps_a_log
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.environment import SMT_CONTROL
from resources.libraries.python.recording.records import check_results, earlier_records
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.density.planning.selection import parse_kinds
from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    MeasuredPath,
    MeasuredVnf,
    predict,
    sharing,
)
from resources.libraries.python.studies.sweep.analysis.flavors import smt_gains
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.profile import profile_of_sweep
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.seconds import vnfs
from resources.libraries.python.studies.sweep.analysis.sentences import comparisons, headline, profile_in_words, title
from resources.libraries.python.studies.sweep.analysis.tables import tables_of
from resources.libraries.python.studies.sweep.load_steps import (
    BEYOND,
    LoadStep,
    MeasuredLoad,
    Sampling,
    duration_s,
    is_lossy,
    loads,
    next_load,
    point,
    rates_around,
    steps_of,
)
from resources.libraries.python.studies.sweep.model import (
    Prediction,
    Profile,
    SmtGain,
    Sweep,
    SweepPoint,
    SweepRecord,
    SweepSpec,
)
from resources.libraries.python.studies.sweep.planning import (
    RelativeBursts,
    SweepRequest,
    asked_sweep,
    cost,
    expected_cost,
)
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import reason_of


class ProfileStore:
    """Records with a profile; the newest of a name and frame counts.

    `world`: records of other worlds are ignored: a simulated profile says nothing about a real chain.
    `folder`: with results of earlier runs at any depth; None for none.

    Raises:
        ConfigError: There is no such folder.
    """

    def __init__(self, world: World, testbed: str, folder: Path | None = None) -> None:
        if folder is not None:
            check_results(folder)
        self._world = world
        self._testbed = testbed
        self._folder = folder

    def put(self, record: SweepRecord) -> None:
        """Add a record, if it has a profile."""
        self._records.append(record)

    def profile(self, name: str, frame: str) -> Profile:
        """The newest profile of a service: of the machine as it is, with SMT if it has any.

        Raises:
            ConfigError: There is none.
        """
        known = {(sweep.name, sweep.spec.frame.name): profile for sweep, profile, _ in self._profiled()}
        if (name, frame) not in known:
            there = ", ".join(sorted(known_name for known_name, known_frame in known if known_frame == frame)) or "none"
            raise ConfigError(
                f"no profile of '{name}' with {frame} frames on testbed {self._testbed} (available: {there}); "
                "measure it alone first, or set PROFILES to a folder with its results"
            )
        return known[name, frame]

    def with_smt(self, sweep: Sweep) -> Profile:
        """The newest profile of the same service and traffic that was measured with SMT.

        Raises:
            ConfigError: There is none.
        """
        asked, found = _same(sweep), None
        for known, profile, plan in self._profiled():
            if plan is not None and plan.cores.smt and _same(known) == asked:
                found = profile
        if found is None:
            raise ConfigError(
                f"{sweep.name} has not been measured with SMT and {sweep.spec.frame.name} frames on testbed "
                f"{self._testbed}; measure it with smt=on first, or set PROFILES to a folder with its results"
            )
        return found

    def path(self, frame: str) -> Sweep | None:
        """The newest sweep of the path without network functions; None where there is none."""
        paths = [each for each, _, _ in self._profiled() if each.spec.frame.name == frame and not each.cell.nf_nodes]
        return paths[-1] if paths else None

    def _profiled(self) -> Iterator[tuple[Sweep, Profile, Plan | None]]:
        for each in self._records:
            if each.sweep is not None and each.profile is not None and not each.smt_off:
                yield each.sweep, each.profile, each.plan

    @cached_property
    def _records(self) -> list[SweepRecord]:
        """Of this testbed, the newest last."""
        found = [] if self._folder is None else earlier_records(self._folder, SweepRecord)
        return [each for each in found if (each.world, each.testbed) == (self._world, self._testbed)]


def _same(sweep: Sweep) -> str:
    """Service and traffic of a sweep, without its loads."""
    traffic = sweep.spec.model_copy(update={"rates": None, "duration_s": 1})
    return f"{sweep.cell.model_dump_json()} {traffic.model_dump_json()}"


_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class ServiceSweep(StepStudy[SweepRequest, LoadStep, MeasuredLoad, Sweep]):
    """Measures a service, which stays deployed, at one load after the other.

    Where a load breaks the service, it is deployed anew and the load repeated.

    Raises:
        ConfigError: Flows cannot be shared equally by the branches.
    """

    RECORD = SweepRecord
    ROW = MeasuredLoad
    LOAD = SweepSpec
    MEASURED = "loads were measured"
    FATAL = (CsitError, OSError)
    tables = staticmethod(tables_of)
    title = staticmethod(title)
    headline = staticmethod(headline)
    sentences = staticmethod(comparisons)  # functions are in the log

    @classmethod
    def asked(cls, name: str, keys: Mapping[str, str], choices: Lookup, topology: Topology) -> SweepRequest:
        """Return the sweep of a service of this name, as keys and variables say; there is no file."""
        return asked_sweep(choices, topology, name, keys)

    @classmethod
    def refuse(cls, choices: Lookup, topology: Topology) -> None:
        """Refuse wrong variables; each test may have values of its own."""
        for each in (FIREWALL, NAT, ROUTER):
            parse_kinds(each.text(choices))
        _profiles(choices, topology)
        asked_sweep(choices, topology, "path", {})

    @classmethod
    def content(cls, record: SweepRecord) -> SweepRecord | None:
        return record if record.sweep is not None else None

    def set_up(self) -> None:
        asked, driver = self.spec, self._topology.tg.generator.driver
        asked.check()
        self._cell = self.under_test(asked.cell, asked.frame)
        by_log = keeps_a_log(driver)
        self._sampling = Sampling(self._cell, asked.frame, asked.protocol, asked.departures, by_log=by_log)
        self.draft.pattern = "sweep" if asked.bursts is None else "bursts"
        self.cost = expected_cost(asked.name, asked.duration_s, asked.rates, bursts=asked.bursts is not None)

    def plan(self) -> Plan:
        """Derive the plan.

        Raises:
            PlanError: The service does not fit, SMT cannot be switched off, or the same was measured in this run.
        """
        if self.spec.smt is not None:
            self._refuse_fixed_smt()
        self.draft.plan = plan = self._cell.plan(self.spec.flows // len(self.spec.cell.instances), self.spec.smt)
        self.draft.smt_off = plan.smt_off
        if self.spec.once and (same := self._earlier.get(self.digest())):
            raise PlanError(f"{self.spec.name} has been measured by {same.test_id}")
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
        return digest_of(
            self.spec.model_dump_json(exclude={"smt", "once", "parts", "compare_smt"}),
            digest_of_model(self.draft.plan or self.plan()),
        )

    def resume(self, journal: StepJournal[Any]) -> None:
        super().resume(journal)
        if self.remark:
            self.draft.warnings.append(f"{self.remark}; the others after a new deployment")

    def preview(self) -> Sequence[str]:
        return ()

    def prepare(self) -> None:
        super().prepare()
        self.cost = cost(self.spec.name, duration_s(self.load), len(loads(self.load)))

    def load_in_words(self) -> Iterator[str]:
        row, spec = loads(self.load), self.load
        first, last = min(load.rate_pps for load in row), max(load.rate_pps for load in row)
        flows = f"{spec.flows} flow{'s' if spec.flows > 1 else ''} each way"
        yield f"{len(row)} loads from {rate(first)} to {rate(last)} per flow, {flows}, {human_time(self.cost.seconds)}"

    def _up(self) -> None:
        """Deploy the service, unless it is, and see packets of every branch arrive in both directions.

        Raises:
            CsitError: A part does not start, or packets do not arrive.
        """
        if self.is_deployed:
            return
        plan = self.draft.plan or self.plan()
        self.draft.warnings += [text for text in plan.warnings if text not in self.draft.warnings]
        self.bring_up(self._cell, plan)
        self.draft.facts = self.facts()
        self._cell.verify_traffic()

    def find_load(self) -> SweepSpec:
        """Find the traffic of the sweep; measures the service's throughput if rates depend on it.

        Raises:
            NoTraffic: Next to nothing comes back.
        """
        return self.careful("search of the load", self._found)

    def _found(self) -> SweepSpec:
        self._up()
        asked = self.spec
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

    def steps(self) -> Iterator[Sequence[LoadStep]]:
        return steps_of(self.load, self._further, whole_bursts=self._sampling.by_log)

    def key(self, load: LoadStep) -> str:
        return f"{load.rate_pps} pps from second {load.begin_s}"

    def label(self, load: LoadStep) -> str:  # noqa: ARG002 - as for others
        return "load"

    def in_words(self, row: MeasuredLoad) -> str:
        if self.load.bursts is not None:
            return "sampled"
        found = point(row, self.load)
        return rate(found.rate_pps) + ("" if found.loss_ratio is None else f", loss {100 * found.loss_ratio:.2f} %")

    def leaves_out(self) -> bool:
        most = self.spec.stop_loss_ratio
        return most is not None and is_lossy(self._points(self.rows), most)

    def cell_of(self, load: LoadStep) -> CellUnderTest:  # noqa: ARG002 - one for all
        return self._cell

    def plan_of(self, load: LoadStep) -> Plan:  # noqa: ARG002 - one for all
        return self.draft.plan or self.plan()

    def careful(self, name: str, measure: Callable[[], _Result]) -> _Result:
        """Deploy and measure by a function; the service stays deployed unless that breaks it."""
        try:
            return measure()
        except (CsitError, OSError) as error:
            if not self.breaks(error):
                raise
            self.draft.warnings.append(f"{name}: measured once more: {reason_of(error)}")
        if removal := self.remove():
            self.draft.warnings.append(f"{name}: {removal}")
        return measure()

    def measure(self, load: LoadStep) -> MeasuredLoad:
        self._up()
        found = self._sampling.measure(self.load, load)
        if problems := self.problems():
            raise SystemBroken("; ".join(problems))
        return found

    def analyse(self, rows: Sequence[MeasuredLoad]) -> Sweep:
        return Sweep(
            name=self.spec.name,
            cell=self.spec.cell,
            spec=self.load,
            vnfs=vnfs(self.draft.plan or self.plan()),
            samples=tuple(sample for row in rows for sample in row.samples),
            points=tuple(sorted(self._points(rows), key=lambda each: each.rate_pps)),
        )

    def run(self) -> Sweep:
        found = super().run()
        self._warn(found)
        if found.points:
            for line in profile_in_words(self.profile()):
                _log.info("%s", line)
        if self.spec.parts or self.spec.compare_smt:
            profiles = _profiles(self._choices, self._topology)
            for record in self._earlier.values():
                profiles.put(record)
            if self.spec.parts:
                self.predict(self.spec.parts, profiles)
            if self.spec.compare_smt:
                self.compare_smt(profiles)
        return found

    def _points(self, rows: Sequence[MeasuredLoad]) -> list[SweepPoint]:
        return [] if self.load.bursts is not None else [point(row, self.load) for row in rows]

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

        `parts`: names of services, one for each node of the chain.

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

    def _further(self) -> float | None:
        """A further load around the break-point; None where its interval is narrow enough, or there is none."""
        points = self._points(self.rows)
        if not points or self.spec.width is None or not self.spec.cell.nf_nodes:
            return None
        vcpus = {vnf.name: vnf.vcpus for vnf in vnfs(self.draft.plan or self.plan())}
        found, _ = find_break_point(observe(points)[0], vcpus)
        return next_load(found, points, self.spec.width)

    def _warn(self, found: Sweep) -> None:
        flagged = [point for point in found.points if point.flagged]
        if flagged:
            self.draft.warnings.append(
                f"{len(flagged)} of {len(found.points)} loads were not offered as intended, "
                f"the first at {rate(flagged[0].rate_pps)}: {flagged[0].flagged}"
            )
        dark = [vnf.name for vnf in found.vnfs if not any(vnf.name in sample.cpu for sample in found.samples)]
        if dark:
            self.draft.warnings.append(f"no CPU accounting for {', '.join(dark)}")
        self.draft.warnings.extend(self.moved())


def _profiles(lookup: Lookup, topology: Topology) -> ProfileStore:
    """Profiles of this testbed, earlier ones below the folder `PROFILES`.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = PROFILES.text(lookup)
    return ProfileStore(topology.world, topology.metadata.name, Path(folder) if folder else None)


def predictions(
    measured: Sweep, plan: Plan, profiles: Sequence[Profile], path: Sweep | None = None
) -> tuple[Prediction, ...]:
    """Predict a chain from its parts alone by both models; by one where no VNFs share CPUs.

    `profiles`: of its parts, one for each node.
    `path`: the sweep of the path without VNFs; None where there is none.
    """
    way = None if path is None else MeasuredPath.of(path.name, path.points)
    words = sharing(measured.vnfs)
    parts = [
        # Branches share the flows of the chain equally.
        MeasuredVnf(profiles[each.node - 1], 1.0 / measured.cell.count_of(each.node), words[each.name])
        for each in plan.nfs
    ]
    found = [predict(measured.name, parts, measured.points, "hungriest", way)]
    if any(part.cpus is not None for part in parts):
        found.append(predict(measured.name, parts, measured.points, "shared_cpus", way))
    return tuple(found)
