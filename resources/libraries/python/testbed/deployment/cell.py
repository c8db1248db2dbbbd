"""One cell from plan to removal, for tests of all kinds.

A plan is applied through the roles inside one ExitStack: whatever was started is stopped, in reverse order.

A vSwitch may keep packets of one trial, which the next one would count as received: they are flushed in between.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from types import TracebackType
from typing import NamedTuple, Self

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.ownership.cleanup_steps import raise_all
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import CsitError, NoTraffic, NotReady, PlanError, RunStopped, SystemBroken
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import CpuTime, HostState, InterfaceCounters, Sample
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.result import Affinity, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.address_bounds import MAX_SOURCES
from resources.libraries.python.planning.plan import kinds, make_plan
from resources.libraries.python.planning.traffic import keeps_a_log, not_taken
from resources.libraries.python.search.findings.correlates import Quantity, Repeat
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.testbed.deployment import health
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.deployment.parts import Parts, Testbed
from resources.libraries.python.testbed.roles.part import Part, ReportingPart

_FLOW_PPS, _FEW_S = 1000.0, 0.2
_TIMES = 10
_MIB = 1 << 20


class Deployment:
    """One cell, deployed from `__enter__` to `__exit__`."""

    def __init__(self, plan: Plan, parts: Parts) -> None:
        self.plan = plan
        self.parts = parts
        self.deploy_s: float | None = None
        self.remove_s: float | None = None
        self._stack = ExitStack()
        self._failures: list[Exception] = []
        """Of stopping parts."""

    def __enter__(self) -> Self:
        begin = time.monotonic()
        try:
            with ExitStack() as stack:
                stack.callback(self._stop, self.parts.generator)
                self.parts.generator.prepare()
                for part in self.parts.in_order():
                    # Before start: stopping is safe after a failed start, and a half-started part must be stopped too.
                    stack.callback(self._stop, part)
                    with self._explaining(part):
                        part.start()
                with self._explaining():
                    self._wait_for_cables()
                self._stack = stack.pop_all()
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            if self._failures:  # stopping the other parts failed, too
                raise_all([each for each in self._failures if isinstance(each, RunStopped)])
                raise SystemBroken("; ".join(dict.fromkeys(map(str, (error, *self._failures))))) from error
            raise
        self.deploy_s = time.monotonic() - begin
        return self

    def _wait_for_cables(self) -> None:
        """Wait until all cables of the vSwitches have a link, also those from one DUT to the next.

        Generators wait for their own ends when they start. Those of a vSwitch can have a link only afterwards: a
        generator that drives its ports past the kernel brings them up then.

        Raises:
            NotReady: One has none.
        """
        if any(link.medium is Medium.CABLE for link in self.plan.links):
            wait_until("links of cables", self._without_link, CABLES_WITHIN_S, _LINKS_PAUSE_S)

    def _without_link(self) -> str:
        """Physical ports of the vSwitches that have no link, as `DUT1.port2 (csv1p2)`."""
        down = set(self.parts.switch.without_link())
        ports = (port for port in self.plan.ports() if port.interface in down)
        named: dict[str, str] = {}  # instances that share a cable by VLANs have a port each
        for port in ports:
            name = port.nic.port if port.nic is not None else port.interface
            named.setdefault(f"{self.plan.machines.get(port.owner, port.owner)}.{name}", port.interface)
        return f"no link at {', '.join(f'{port} ({name})' for port, name in named.items())}" if named else ""

    @contextmanager
    def _explaining(self, starting: Part | None = None) -> Iterator[None]:
        """Name the problems of started parts when a wait times out: if one has crashed, that is the reason.

        `starting`: The part whose start waits, which is not asked itself; None when all have been started.

        Raises:
            SystemBroken: The wait has timed out, and there are problems.
            NotReady: It has, and there are none.
        """
        try:
            yield
        except NotReady as error:
            said = self._ports_without_link() if starting is None else ()  # by the error itself
            problems = self._problems_before(starting)
            if found := [text for text in problems if not any(name in text.split() for name in said)]:
                raise SystemBroken("; ".join((*found, str(error)))) from error
            raise

    def _ports_without_link(self) -> tuple[str, ...]:
        with suppress(CsitError):  # a vSwitch that does not answer, which its problems tell
            return self.parts.switch.without_link()
        return ()

    def _problems_before(self, starting: Part | None) -> tuple[str, ...]:
        """Problems of the parts that were started before one, or of all."""
        roles: tuple[ReportingPart, ...] = (self.parts.switch, self.parts.functions, self.parts.generator)
        found: list[str] = []
        for earlier in roles if starting is None or starting in roles else ():
            if earlier is starting:
                break
            try:
                found += earlier.problems()
            except CsitError as error:
                found.append(str(error))
        return tuple(found)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begin = time.monotonic()
        self._stack.close()
        self.remove_s = time.monotonic() - begin
        raise_all(self._failures)

    def _stop(self, part: Part) -> None:
        try:
            part.stop()
        except (CsitError, OSError) as error:
            self._failures.append(error)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters of vSwitch and NFs by interface name, and of the generator's interfaces where there are any."""
        parts = self.parts
        return {**parts.generator.counters(), **parts.switch.counters(), **parts.functions.counters()}

    def sample(self) -> Sample:
        """How CPUs and data threads have spent their time; nothing where the world cannot tell."""
        return self.parts.sampler.read() if self.parts.sampler else Sample()

    def state(self) -> HostState:
        """Everything else that the machine counts; nothing where the world cannot tell."""
        return self.parts.sampler.state() if self.parts.sampler else HostState()

    def facts(self) -> dict[str, dict[str, str]]:
        parts = self.parts
        rows = (("vswitch", parts.switch), ("functions", parts.functions), ("generator", parts.generator))
        return {role: found for role, part in rows if (found := dict(part.facts()))}

    def problems(self) -> tuple[str, ...]:
        """Faults of the parts, a sentence each."""
        found = self._look()
        # A program may have ended after its own part was looked at: then another part has lost its link, and a second
        # look finds the cause.
        return (self._look() or found) if found else ()

    def _look(self) -> tuple[str, ...]:
        parts = self.parts
        return (*parts.switch.problems(), *parts.functions.problems(), *parts.generator.problems())

    def affinity(self) -> tuple[Affinity, ...]:
        """Planned and real placement of the data thread of every receive queue of the system under test."""
        actual = {**self.parts.switch.affinity(), **self.parts.functions.affinity()}
        ports = [port for port in self.plan.ports() if port.interface in actual]
        cpus = {owner: self.plan.cores.cpus(owner) for owner in {port.owner for port in ports}}
        return tuple(
            Affinity(
                owner=port.owner,
                interface=port.interface,
                queue=queue,
                planned_cpu=cpus[port.owner][thread],
                actual_cpus=tuple(sorted(actual.get(name, ()))),
            )
            for port in ports
            for queue, (name, thread) in enumerate(zip(port.queue_names, port.queues, strict=True))
        )


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


_LINKS_PAUSE_S = 0.1
_LOOK_S = 60.0
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
        try:
            with within("a look at the system under test", _LOOK_S):
                return self.deployment.problems()
        except (CsitError, OSError) as error:
            return (f"the system under test cannot be looked at: {health.reason_of(error)}",)

    def moved(self) -> tuple[str, ...]:
        """Data threads that do not run any more where they ran at first; where that was, the verdict judges.

        Where a part has ended that had them, that is named instead.
        """
        then = {row.name: row.actual_cpus for row in self.placed}
        try:
            found = tuple(
                f"the data thread of {row.owner} {row.name} has moved from CPUs {_cpus(then[row.name])} to "
                f"{_cpus(row.actual_cpus)}"
                for row in self.deployment.affinity()
                if row.name in then and then[row.name] != row.actual_cpus
            )
        except (CsitError, OSError) as error:
            found = (f"data threads cannot be looked at: {health.reason_of(error)}",)
        return (self.problems() or found) if found else ()

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


def _cpus(row: tuple[int, ...]) -> str:
    return ", ".join(map(str, row)) or "none"


_Reading = tuple[Sample, HostState, Mapping[str, InterfaceCounters]]


def repeat_trial(
    deployment: Deployment, measure: Callable[[Trial], TrialResult], trial: Trial, count: int
) -> list[Repeat]:
    """Run a trial so many times; those that the generator did not send in full are left out."""
    found = []
    before = _read(deployment)
    for _ in range(count):
        result = measure(trial)
        after = _read(deployment)
        if not result.generator_limited and result.offered_duration_s > 0:
            readings = dict(_gained(before, after, result.offered_duration_s))
            found.append(Repeat(deployment.parts.clock(), result.forwarded_pps, readings))
        before = after
    return found


def _read(deployment: Deployment) -> _Reading:
    return deployment.sample(), deployment.state(), deployment.counters()


def _gained(before: _Reading, after: _Reading, seconds: float) -> Iterator[tuple[Quantity, float]]:
    """What was counted between two readings, for each second of a trial, and levels at the second one."""
    (sample, state, counters), (sample_after, state_after, counters_after) = before, after
    times = {
        f"the data thread of {name}": [(time, sample.threads.get(name))] for name, time in sample_after.threads.items()
    }
    for owner, tasks in sample_after.tasks.items():
        known = sample.tasks.get(owner, {})
        times[owner] = [(task.time, known[thread].time if thread in known else None) for thread, task in tasks.items()]
    for name, pairs in times.items():
        row = [(now, then) for now, then in pairs if then is not None]
        yield (
            (f"running time of {name}", "ms/s"),
            sum(now.running_ns - then.running_ns for now, then in row) / seconds / 1e6,
        )
        yield (
            (f"time that {name} waits for its CPU", "ms/s"),
            sum(now.waiting_ns - then.waiting_ns for now, then in row) / seconds / 1e6,
        )
    for cpu in sample_after.cpus.keys() & sample.cpus.keys():
        for kind in fields(CpuTime):
            ns = getattr(sample_after.cpus[cpu], kind.name) - getattr(sample.cpus[cpu], kind.name)
            yield (f"{kind.name.removesuffix('_ns')} time of CPU {cpu}", "ms/s"), ns / seconds / 1e6
    for owner, used in sample_after.memory_bytes.items():
        yield (f"memory of {owner}", "MiB"), used / _MIB
    for interface in counters_after.keys() & counters.keys():
        gained = counters_after[interface] - counters[interface]
        yield (f"drops at the receiving end of {interface}", "pps"), gained.rx_dropped / seconds
        yield (f"drops at the sending end of {interface}", "pps"), gained.tx_dropped / seconds
    for name in state_after.counts.keys() & state.counts.keys():
        yield (name, "per second"), (state_after.counts[name] - state.counts[name]) / seconds
    for named, value in state_after.levels.items():
        what, _, unit = named.rpartition(" in ")
        yield (what, unit), value
