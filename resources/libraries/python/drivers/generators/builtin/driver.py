"""The driver of the built-in generator: from a plan and trials to the workers, from their reports to results."""

import hashlib
import logging
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime
from operator import attrgetter
from typing import cast

from pydantic import TypeAdapter

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.builtin.capture_frames import probe_sizes
from resources.libraries.python.drivers.generators.builtin.counters import Counters, settle
from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency, flow_timeline
from resources.libraries.python.drivers.generators.builtin.frames import size_pattern
from resources.libraries.python.drivers.generators.builtin.kernel import link_is_up
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess, first_to_speak
from resources.libraries.python.drivers.generators.builtin.sender import Schedule
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowReport,
    FlowSpec,
    Sending,
    TrialReport,
    TrialSpec,
    WorkerSpec,
)
from resources.libraries.python.drivers.generators.overload import highest_loads
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowCount,
    FlowGaps,
    FlowLosses,
    HighestLoads,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.capture import read_capture
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.placement.sender_threads import is_alone
from resources.libraries.python.planning.traffic import load_protocol, protocol_refusals
from resources.libraries.python.testbed.roles.part import TrafficGenerator

_LOG = logging.getLogger(__name__)
_START_S = 15.0
_PREPARE_S = 15.0
_REPORT_S = 10.0
"""On top of the trial's duration: settling (2 s at most), latency statistics, a loaded machine."""
_COUNTED_S = 1e-6
"""For each packet that is counted one by one, to compute the figures: 0.1 us where nothing else runs."""
_MAXIMUM_S = 0.3
_HEADROOM = 0.9
"""A sender at its limit could not catch up after a stall."""


_MARKS, _MAX_WORKERS, _MARKED_TRIALS = 512, 2, (1 << 22) - 2
"""Marks of a worker in a trial, workers, and trials after which marks repeat: 32 bits."""
_SHORT = 0.001
_LONG_S = 0.0012
"""1 ms, and a little for reading the clock."""
_LAG_S = 0.001
"""Less is what a sender of many flows has anyway."""
trial_report = TypeAdapter(TrialReport).validate_python
"""A trial's report from its line."""


def trial_result(
    trial: Trial,
    reports: Sequence[TrialReport],
    flows: Sequence[tuple[Flow, FlowReport]],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what the workers say.

    `total_duration_s`: Wall time of the whole trial.
    """
    limits = _limits(trial, reports)
    notes = [*limits, *_remarks(trial, reports, flows)]
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=max(report.offered_s for report in reports),
        total_duration_s=total_duration_s,
        flows=tuple(
            FlowCount(instance=flow.instance, direction=flow.direction, sent=report.sent, received=report.received)
            for flow, report in flows
        ),
        latency=tuple(
            flow_latency(
                flow.instance,
                flow.direction,
                sent=report.probes_sent,
                received=report.probes_received,
                values=report.latency,
            )
            for flow, report in flows
            if trial.probe_pps > 0
        ),
        timelines=tuple(
            flow_timeline(flow, report.timeline, trial.timeline_s)
            for flow, report in flows
            if report.timeline is not None and trial.timeline_s is not None
        ),
        losses=tuple(
            FlowLosses(instance=flow.instance, direction=flow.direction, **asdict(report.losses))
            for flow, report in flows
            if report.losses is not None
        ),
        gaps=tuple(
            FlowGaps(instance=flow.instance, direction=flow.direction, **asdict(report.gaps))
            for flow, report in flows
            if report.gaps is not None
        ),
        aborted=any(report.aborted for report in reports),
        generator_limited=bool(limits),
        note="; ".join(notes) or None,
    )


def _limits(trial: Trial, reports: Sequence[TrialReport]) -> list[str]:
    """Why the intended load was not offered; nothing when it was."""
    if not trial.load_pps or any(report.aborted for report in reports):
        return []
    limits = []
    planned = sum(report.planned for report in reports)
    sent = sum(flow.sent for report in reports for flow in report.flows)
    if not planned:
        limits.append(f"no packet of {trial.load_pps:g} pps falls into {trial.duration_s:g} s")
    elif sent < planned * (1 - _SHORT):
        limits.append(f"generator offered {sent:,} of {planned:,} packets, {1 - sent / planned:.2%} short")
    error_s = max((abs(report.offered_s - report.expected_s) for report in reports if report.planned), default=0.0)
    if error_s > _LONG_S:
        limits.append(f"generator's sending time is {error_s * 1000:.1f} ms off")
    return limits


def _remarks(trial: Trial, reports: Sequence[TrialReport], flows: Sequence[tuple[Flow, FlowReport]]) -> list[str]:
    remarks = []
    lag_s = max(report.worst_lag_s for report in reports)
    if lag_s > _LAG_S:
        remarks.append(f"generator fell behind by up to {lag_s * 1000:.1f} ms and caught up")
    refused = sum(report.refused for _, report in flows)
    if refused:
        remarks.append(f"{refused:,} packets met a full queue at the generator's ports")
    for fallback in dict.fromkeys(report.fallback for report in reports if report.fallback):
        remarks.append(f"sent by the TX ring: {fallback}")
    if not all(report.settled for report in reports):
        remarks.append("packets were still arriving when the counters were read")
    surplus = sum(max(0, report.received - report.sent) for _, report in flows)
    if surplus:
        remarks.append(f"{surplus:,} packets more came back than were sent: they were late from an earlier trial")
    unstamped = sum(report.unstamped for _, report in flows)
    if trial.probe_pps > 0 and unstamped:
        remarks.append(f"{unstamped:,} received probes have no usable time stamps")
    return remarks


class BuiltInGenerator(TrafficGenerator):
    """Sends and counts on the ports of a namespace.

    With one planned CPU one worker process handles both directions, with two each direction has its own. A trial in one
    direction has workers of its own, which stay until the next one in both.
    """

    def __init__(
        self,
        plan: Plan,
        namespace: str = "csit-generator",
        sending: Sending = "auto",
        *,
        claims: Claims | None = None,
        capture: bytes | None = None,
        wait: Callable[[], None] = lambda: None,
        counters: Callable[[], Mapping[str, InterfaceCounters]] = dict,
    ) -> None:
        """Take the flows and CPUs of a plan; nothing starts yet.

        `namespace`: Network namespace with the generator's ports; empty for the present one.
        `sending`: How to send, the name of a way in `wire`.
        `claims`: Record of the machine: the next run ends workers that a killed run left. None for no record.
        `capture`: Contents of the capture whose packets are the load of trials that ask for them.
        `wait`: Returns when the generator's ports pass packets.

        Raises:
            ConfigError: The capture cannot be used.
            Unsupported: Two flows come back at one port, whose counter cannot separate them.
        """
        if len({flow.rx_interface for flow in plan.flows}) < len(plan.flows):
            raise Unsupported("the built-in generator needs a port pair of its own for every service instance")
        self._namespace = namespace
        self._sending: Sending = sending
        self._facts: dict[str, str] = {}
        self._plan = plan
        self._only: Direction | None = None
        self._shares = _shares(plan)
        self._alone = is_alone(plan)
        self._driver = driver_registry.generators()[sending]
        self._kinds = tuple(dict.fromkeys(function.kind for function in plan.functions))
        self._capture = capture or b""
        self._probe_sizes = probe_sizes(read_capture(capture, "capture")) if capture else ()
        self._claims = claims
        self._wait = wait
        self._counters = counters
        self._workers: list[WorkerProcess] = []
        self._prepared: list[WorkerProcess] = []
        """Started, and without a specification yet."""
        self._trials = 0
        self._stack = ExitStack()

    @property
    def _flow_count(self) -> int:
        return sum(len(flows) for _, flows in self._shares)

    def pids(self) -> tuple[int, ...]:
        """Process ids of the running workers."""
        return tuple(worker.pid for worker in self._workers)

    def prepare(self) -> None:
        """Start the interpreters of the workers: they import modules while links and NFs are made."""
        if not (self._workers or self._prepared):
            self._prepared.extend(self._worker() for _ in self._shares)

    def start(self) -> None:
        """Start the workers; they check the ports.

        Raises:
            NotReady: a port has no carrier after 3 s.
            CsitError: the namespace or a port is not there.
            CommandFailed: a worker ended.
        """
        if self._workers:
            raise CsitError("the generator has been started already")
        try:
            self._wait()
            for cpus, flows in self._shares:
                worker = self._prepared.pop(0) if self._prepared else self._worker()
                self._workers.append(worker)
                specs = tuple(FlowSpec(**flow.model_dump(include=set(FlowSpec.__slots__))) for flow in flows)
                capture = b64encode(self._capture).decode()
                worker.send(asdict(WorkerSpec(self._namespace, cpus, self._alone, specs, self._sending, capture)))
            answers = [worker.answer("generator worker", _START_S) for worker in self._workers]
        except CsitError:
            self.stop()
            raise
        self._facts = _facts(answers)
        _LOG.info("generator started: %d flows, workers %s, %s", self._flow_count, self.pids(), self._facts)

    def _worker(self) -> WorkerProcess:
        """Start a process that is ended by `stop`."""
        worker = WorkerProcess()
        if self._claims is not None:
            self._claims.claim_process(worker.pid)
            self._stack.callback(self._claims.release_process, worker.pid)
        self._stack.callback(worker.close)
        return worker

    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, wait until no more packets come, read the counters.

        With `abort_loss_ratio` sending stops as soon as that is exceeded for certain, looked at every 0.1 s.

        Raises:
            CommandFailed: a worker ended in mid-trial; its status and its last words are in the text.
            NotReady: a worker does not answer.
            CsitError: the generator is not started, or a port is gone, down or refuses the frames.
        """
        started = time.monotonic()
        started_at = datetime.now(UTC).isoformat()
        self._turn(trial.only)
        reports = self._trial(trial, trial.load_pps, trial.probe_pps, trial.duration_s)
        pairs = [
            (flow, report)
            for (_, flows), trial_report in zip(self._shares, reports, strict=True)
            for flow, report in zip(flows, trial_report.flows, strict=True)
        ]
        return trial_result(trial, reports, pairs, started_at, time.monotonic() - started)

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Maximum load of the generator, and first load of a search.

        Measured by sending unpaced for as long as the trial, 0.3 s at most, and as long by a schedule that asks for as
        much: a schedule visits every flow for a few frames, which costs more per frame, the more so the more flows
        there are. The load of a search is lowered where far less comes back, see `overload.highest_loads`.

        Returns:
            At least 10 % below what the schedule reached.

        Raises:
            CsitError: as `run`.
        """
        self._turn(trial.only)
        duration_s = min(_MAXIMUM_S, trial.duration_s)
        sent, received = attrgetter("sent"), attrgetter("received")
        unpaced_pps = _rate_pps(self._trial(trial, None, 0.0, duration_s), sent)
        reports = self._trial(trial, unpaced_pps, 0.0, duration_s)

        def forwarded_at(load_pps: float, duration_s: float) -> float:
            return _rate_pps(self._trial(trial, load_pps, 0.0, duration_s), received)

        return highest_loads(_HEADROOM * _rate_pps(reports, sent), _rate_pps(reports, received), forwarded_at)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._counters()

    def facts(self) -> Mapping[str, str]:
        return dict(self._facts)

    def problems(self) -> tuple[str, ...]:
        return tuple(f"generator worker {each.pid} has ended" for each in self._workers if each.ended)

    def stop(self) -> None:
        self._workers.clear()
        self._prepared.clear()
        self._stack.close()

    def _turn(self, only: Direction | None) -> None:
        if only is self._only or not self._workers:
            return
        self.stop()
        self._only, self._shares = only, _shares(self._plan, only)
        self.start()

    def _trial(self, trial: Trial, load_pps: float | None, probe_pps: float, duration_s: float) -> list[TrialReport]:
        if not self._workers:
            raise CsitError("the generator has not been started")
        if trial.count_losses and (not load_pps or probe_pps):
            raise Unsupported("losses are counted of a load without latency probes")
        if trial.measure_gaps and (not load_pps or probe_pps or trial.count_losses or trial.timeline_s):
            raise Unsupported("gaps are measured of a load without latency probes, numbers or time stamps")
        pattern = self._pattern(trial)
        if trial.timeline_s is not None and (not trial.load_pps or trial.probe_pps or trial.count_losses):
            raise Unsupported("a timeline is of a load without latency probes")
        most_lost = None
        if trial.abort_loss_ratio is not None and load_pps:
            most_lost = int(trial.abort_loss_ratio * Schedule.of(load_pps, self._flow_count, duration_s).total)
        self._trials += 1
        for index, (worker, (_, flows)) in enumerate(zip(self._workers, self._shares, strict=True)):
            share_pps = None if load_pps is None else load_pps * len(flows) / self._flow_count
            spec = TrialSpec(
                share_pps,
                duration_s,
                pattern,
                probe_pps,
                most_lost,
                0 if trial.timeline_s is None else max(1, round(trial.timeline_s * 1e9)),
                trial.count_losses,
                _mark(self._trials, index) if trial.count_losses else 0,
                gaps=trial.measure_gaps,
                udp=self._by_udp(trial),
                tcp=trial.protocol is Protocol.TCP,
                flows=trial.frame.flows or 0,
                captured=trial.frame.capture is not None,
            )
            worker.send({"prepare": asdict(spec)})
        for worker in self._workers:
            worker.answer("generator's frames", _PREPARE_S)
        for worker in self._workers:
            worker.send({"do": "go"})
        counted = load_pps * duration_s if trial.count_losses and load_pps else 0.0
        return self._reports(duration_s + _REPORT_S + _COUNTED_S * counted)

    def _pattern(self, trial: Trial) -> tuple[int, ...]:
        """Return the cycle of frame sizes; of the probes only, where the load is a capture."""
        capture = trial.frame.capture
        if capture is None:
            return size_pattern([(part.frame_bytes, part.weight) for part in trial.frame.parts])
        if trial.count_losses or trial.timeline_s:
            raise Unsupported(
                "losses and timelines number the packets of a load; those of a capture have no room for it"
            )
        if trial.protocol is not None:
            raise Unsupported(f"packets of a capture have their own protocols, not {trial.protocol}")
        if hashlib.sha256(self._capture).hexdigest() != capture.sha256:
            raise Unsupported(f"the generator was not given the packets of {capture.file}")
        return self._probe_sizes

    def _by_udp(self, trial: Trial) -> bool:
        """Whether the load is datagrams: as asked, in a chosen number of flows, or because an NF takes nothing else."""
        if trial.protocol is Protocol.ICMP:
            raise Unsupported(f"the built-in generator sends no {trial.protocol}")
        if trial.protocol is Protocol.TCP and (trial.count_losses or trial.timeline_s):
            raise Unsupported("losses and timelines number UDP datagrams, not TCP segments")
        if trial.frame.capture is not None:
            return False
        if refusal := next(protocol_refusals(self._driver, self._kinds, trial.protocol), None):
            raise Unsupported(refusal)
        chosen = trial.frame.flows or trial.frame.ip_version == 6
        if trial.protocol is Protocol.IP and chosen:
            raise Unsupported("IPv6 and a chosen number of flows are of UDP datagrams, not of packets without ports")
        if trial.protocol is None:
            return bool(chosen) or load_protocol(self._driver, self._kinds) is Protocol.UDP
        return trial.protocol is Protocol.UDP

    def _reports(self, within_s: float) -> list[TrialReport]:
        """The workers' reports; when one has aborted its trial, the others are aborted too."""
        reports: dict[int, TrialReport] = {}
        deadline = time.monotonic() + within_s
        while waiting := [worker for worker in self._workers if worker.pid not in reports]:
            worker = first_to_speak(waiting, "generator's report", deadline - time.monotonic())
            report = trial_report(worker.answer("generator's report", deadline - time.monotonic()))
            reports[worker.pid] = report
            if report.aborted:
                for other in self._workers:
                    if other.pid not in reports:
                        other.send({"do": "stop"})
        return [reports[worker.pid] for worker in self._workers]


def _mark(trial: int, worker: int) -> int:
    """Return the mark of the first flow's numbered frames: different in four million trials in a row."""
    return ((trial % _MARKED_TRIALS + 1) * _MAX_WORKERS + worker) * _MARKS


def _facts(answers: Sequence[Mapping[str, str | None]]) -> dict[str, str]:
    """How frames are sent, and why not otherwise."""
    facts = {"sending": " and ".join(dict.fromkeys(str(answer["sending"]) for answer in answers))}
    reasons = dict.fromkeys(answer["fallback"] for answer in answers if answer["fallback"])
    if reasons:
        facts["not XDP"] = "; ".join(filter(None, reasons))
    return facts


def _rate_pps(reports: Sequence[TrialReport], count: Callable[[FlowReport], int]) -> float:
    return sum(sum(map(count, report.flows)) / report.offered_s for report in reports if report.offered_s)


def _shares(plan: Plan, only: Direction | None = None) -> list[tuple[tuple[int, ...], Sequence[Flow]]]:
    """Which CPUs and flows each worker has; of one direction only, or of both."""
    cpus = plan.cores.cpus(GENERATOR)
    flows = [flow for flow in plan.flows if only in (None, flow.direction)]
    directions = dict.fromkeys(flow.direction for flow in flows)
    if min(len(cpus), len(directions)) < 2:
        return [(cpus[:1] if only else cpus, flows)]
    return [
        ((cpu,), [flow for flow in flows if flow.direction is direction])
        for cpu, direction in zip(cpus, directions, strict=False)
    ]


def make(node: TgNode, context: DriverContext) -> BuiltInGenerator:
    """Make the driver for a node; its name in the topology is the mode of sending."""
    return BuiltInGenerator(
        context.plan,
        sending=cast(Sending, node.generator.driver),
        claims=context.lock,
        capture=context.capture,
        wait=lambda: context.fabric.wait_for_cables(GENERATOR),
        counters=lambda: context.fabric.counters([GENERATOR]),
    )


_PACKETS = 64
_TABLE = "/proc/thread-self/net/dev"
_CARRIER_S = 3.0
_NEAR, _FAR = (f"csx{os.getpid()}a", 100), (f"csx{os.getpid()}b", 101)
_MACS = "02:fe:00:00:00:01", "02:fe:00:00:00:02"


def why_not_by_xdp() -> str | None:
    """Why XDP live frames do not work here, in words; None when 64 of them came through a cable.

    They are tried in a network namespace that ends with the attempt.
    """
    try:
        return aside(_send_by_xdp)
    except (CsitError, OSError) as error:
        return str(error)


def _send_by_xdp() -> str | None:
    unshare(CLONE_NEWNET)
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with closing(Namespace("the trial namespace", descriptor, Netlink())) as here:
        here.netlink.do([rtnetlink_messages.veth_pair((*_NEAR, _MACS[0]), (*_FAR, _MACS[1]), descriptor, 1500)])
        for name, _ in (_NEAR, _FAR):
            data_threads.receive_by_napi(here.netlink, name)
        here.netlink.do([rtnetlink_messages.set_up(*_NEAR), rtnetlink_messages.set_up(*_FAR)])
        names = (_NEAR[0], _FAR[0])
        wait_until("carrier of a veth pair", lambda: ", ".join(n for n in names if not link_is_up(n)), _CARRIER_S)
        flow = FlowSpec(_NEAR[0], _FAR[0], *_MACS, "10.0.0.1", 2, "20.0.0.1")
        with closing(XdpSender([flow])) as sender, closing(Counters([_FAR[0]], table=_TABLE)) as counters:
            sender.rehearse(_PACKETS)
            (received,) = settle(counters.received, (_PACKETS,)).counts
    return None if received >= _PACKETS else f"of {_PACKETS} XDP frames through a veth pair {received} came"


def missing_for_xdp(_: TgNode) -> Iterator[PreflightProblem]:
    """Return what this machine lacks for XDP live frames."""
    if reason := why_not_by_xdp():
        yield PreflightProblem(f"XDP live frames do not work here ({reason})", "set the generator's driver to auto")
