"""The driver of iperf3: from a plan and trials to its runs, from reports and counters of the ports to results."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.arrival_gaps import arrival_gaps
from resources.libraries.python.drivers.generators.builtin.counters import settle
from resources.libraries.python.drivers.generators.builtin.flow_results import port_count
from resources.libraries.python.drivers.generators.iperf3 import run
from resources.libraries.python.drivers.generators.iperf3.run import DirectionReport, Reports, Runs
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowCount,
    HighestLoads,
    Interval,
    SessionFigures,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.traffic import as_taken
from resources.libraries.python.quantities import rates
from resources.libraries.python.testbed.roles.part import TrafficGenerator

_MORE_THAN_IT_CAN_PPS = 2_000_000.0
_HEADROOM = 0.9
_VERSION_S = 10.0


_SHORT = 0.05
"""Of what was asked: less is the generator's fault."""

Counters = Mapping[str, InterfaceCounters]


@contextmanager
def _reports_of_known_form() -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CommandFailed((run.PROGRAM,), None, f"its report has another form: {error!r}") from error


@_reports_of_known_form()
def trial_result(
    trial: Trial,
    flows: Sequence[Flow],
    found: Sequence[Reports],
    *,
    before: Counters,
    after: Counters,
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what is known of a trial.

    Of UDP, packets are those of iperf3's own numbering. TCP has none: there they are those of the ports, which saw
    acknowledgements and the few packets by which both ends agree as well.

    `found`: Of each service instance.
    `before`: Counters of the generator's ports before the run.

    Raises:
        CommandFailed: A report lacks a figure, or has something else in its place.
    """
    by_udp = run.protocol(trial) is Protocol.UDP
    of = {each.flow.instance: run.directions(each.client, each.server, by_udp=by_udp) for each in found}
    counts = tuple(_count(flow, of[flow.instance].get(flow.direction), before, after) for flow in flows)
    sent_s = max(float(each.client["end"]["sum_sent"]["seconds"]) for each in found)
    offered_pps = sum(count.sent for count in counts if count.direction in of[count.instance]) / sent_s
    short = by_udp and bool(trial.load_pps) and offered_pps < trial.load_pps * (1 - _SHORT)
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=sent_s,
        total_duration_s=total_duration_s,
        flows=counts,
        generator_limited=short,
        note=f"iperf3 offered {' of '.join(rates(offered_pps, trial.load_pps))}" if short else None,
        intervals=tuple(_intervals(trial, found, by_udp=by_udp)),
        sessions=tuple(
            SessionFigures(
                instance=instance,
                direction=direction,
                sessions=trial.sessions or trial.frame.flows or 1,
                goodput_bps=way.goodput_bps,
                jitter_ns=way.jitter_ns,
                retransmits=way.retransmits,
            )
            for instance, ways in of.items()
            for direction, way in ways.items()
        ),
    )


def _count(flow: Flow, way: DirectionReport | None, before: Counters, after: Counters) -> FlowCount:
    if way is not None and way.sent is not None and way.received is not None:
        return FlowCount(instance=flow.instance, direction=flow.direction, sent=way.sent, received=way.received)
    return port_count(flow, before, after)


def _intervals(trial: Trial, found: Sequence[Reports], *, by_udp: bool) -> Iterator[Interval]:
    """All instances together; TCP's bytes as the packets of the trial's size that they fill."""
    rows = zip(*(run.by_second(each.client, each.server, by_udp=by_udp) for each in found), strict=False)
    each_bytes = 1 if by_udp else run.payload_bytes(trial)
    for row in rows:
        duration_s, sent, received = map(sum, zip(*row, strict=True))
        yield Interval(
            duration_s=duration_s / len(row), sent=sent / each_bytes, received=received / each_bytes, delay_ns=None
        )


class Iperf3Generator(TrafficGenerator):
    """Sends TCP or UDP between sockets behind TG port 1 and TG port 2.

    UDP goes both ways, with the load of a trial shared evenly; of TCP the load is that of the way forward, and the way
    back has the acknowledgements. Figures are those of the receivers. A trial never stops early, and lasts whole
    seconds.
    """

    def __init__(self, _: TgNode, context: DriverContext) -> None:
        """Prepare.

        Raises:
            Unsupported: Service instances share ports, whose counters cannot separate them.
        """
        plan = context.plan
        if len({flow.rx_interface for flow in plan.flows}) < len(plan.flows):
            raise Unsupported("iperf3 needs a port pair of its own for every service instance")
        self._plan = plan
        self._fabric = context.fabric
        self._machine = context.lock
        self._forward = [flow for flow in plan.flows if flow.direction is Direction.FORWARD]
        self._runs = Runs(context.fabric, context.lock, plan.cores.cpus(GENERATOR)[0])
        self._folder: Path | None = None
        self._version = ""

    def start(self) -> None:
        """Make the ports usable by sockets.

        Raises:
            CommandFailed: The kernel refused something.
            CsitError: iperf3 cannot be run.
            NotReady: A port has no carrier.
        """
        self._fabric.wait_for_cables(GENERATOR)
        routing.route_between_ports(self._plan, self._fabric)
        self._folder = self._machine.folder("iperf3")
        self._version = " ".join(completed([run.PROGRAM, "--version"], _VERSION_S).stdout.split()[:2])

    def run(self, trial: Trial) -> TrialResult:
        """Send to the end, wait until no more packets come, put reports and counters together.

        Raises:
            Unsupported: iperf3 cannot send that.
            CommandFailed: An end of iperf3 failed; its own words are in the text.
            NotReady: One did not end in time.
        """
        if self._folder is None:
            raise CsitError("iperf3 is not started")
        trial = as_taken(trial, "iperf3", (function.kind for function in self._plan.functions))
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        with arrival_gaps(self._plan, self._fabric, trial) as gaps:
            before = self.counters()
            reports = self._runs.run(self._forward, trial, self._folder)
            settle(lambda: (sum(row.rx_packets for row in self.counters().values()),), None)
            result = trial_result(
                trial,
                self._plan.flows,
                reports,
                before=before,
                after=self.counters(),
                started_at=started_at,
                total_duration_s=time.monotonic() - started,
            )
            return result.model_copy(update={"gaps": gaps()})

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Sent rate when far more was requested for 1 s than iperf3 can send, less a tenth (aggregate pps)."""
        glut = trial.model_copy(update={"load_pps": _MORE_THAN_IT_CAN_PPS, "duration_s": 1.0})
        most_pps = _HEADROOM * self.run(glut).offered_pps
        return HighestLoads(offered_pps=most_pps, search_pps=most_pps)

    def facts(self) -> Mapping[str, str]:
        return {"generator": self._version} if self._version else {}

    def problems(self) -> tuple[str, ...]:
        """None: its programs last as long as a trial, which reports their errors."""
        return ()

    def stop(self) -> None:
        """End what still runs; what was changed in the namespace ends with it. Safe to call after a failure."""
        self._runs.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([GENERATOR])
