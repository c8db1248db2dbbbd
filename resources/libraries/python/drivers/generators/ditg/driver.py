"""The driver of D-ITG: a plan and trials in, results out."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from threading import Event, Thread

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.arrival_gaps import arrival_gaps
from resources.libraries.python.drivers.generators.builtin.arrivals import latency_report
from resources.libraries.python.drivers.generators.builtin.counters import settle
from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency, port_count
from resources.libraries.python.drivers.generators.ditg import programs
from resources.libraries.python.drivers.generators.ditg.programs import (
    CLOSING_S,
    MAX_LONGER_S,
    SENDER,
    DitgPrograms,
    Packets,
    SenderRun,
    mean_one_way_ns,
    of_flows,
    one_way_ns,
    packets,
)
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowCount,
    FlowLatency,
    HighestLoads,
    Interval,
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

_FIRST_LOOK_S = 0.01
_SECOND_S = 1.0
Counters = Mapping[str, InterfaceCounters]
_LOG = logging.getLogger(__name__)
_SIZES = "sizes"
_MIN_S = 0.5
"""The shortest run of a sender."""
_MAXIMUM_S = 1.0
_MAXIMUM_PPS, _MORE_THAN_IT_CAN_PPS = 100_000.0, 400_000.0
"""Loads that are asked for to learn what it can send: the first one, doubled as long as it is sent, and the last one.
Where far more arrives than the receiver takes, the sender waits for 16 s at its end and the log lacks packets: so it
was on a small machine that was asked for the last one at once."""
_HEADROOM = 0.9
_MAX_FLOWS = 64
"""Maximum number of flows of a plan: a trial ends as many seconds after its last packet."""
_INEXACT, _SHORT = 0.01, 0.05
"""Less than what was asked, relative: what is said, and what is the generator's limit. Alone on a CPU it kept rates of
500 to 16,000 packets per second within 3 %."""
_UNLOGGED = 0.001
_SAR_OFF = 0.02
_MIN_INTERVAL_S = 0.5
"""The last reading may come just after the one before; what is shorter is counted with it."""


@dataclass(frozen=True, slots=True)
class PortReading:
    """Counters of all ports at one time."""

    clock_s: float
    """Seconds of the day, local time: as D-ITG's logs have it."""
    counters: Counters


class Watch:
    """Reads in a thread of its own, from the making of this object to `stop`.

    `moving`: Whether the first packet has left.
    """

    def __init__(self, read: Callable[[], Counters], moving: Callable[[Counters], bool]) -> None:
        self._read = read
        self._moving = moving
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="counters of the generator", daemon=True)
        self._readings: list[PortReading] = []
        self._error: CsitError | None = None
        self._thread.start()

    def stop(self) -> list[PortReading]:
        """Readings from the first packet on, each a second after the one before; none where no packet was sent.

        Raises:
            CsitError: Counters could not be read.
        """
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._readings

    def _watch(self) -> None:
        try:
            while not self._moving(self._read()):
                if self._ended.wait(_FIRST_LOOK_S):
                    return
            due = time.monotonic()
            while True:
                self._readings.append(PortReading(seconds_of_day(), self._read()))
                due += _SECOND_S
                if self._ended.wait(max(0.0, due - time.monotonic())):
                    return
        except CsitError as error:
            self._error = error


def seconds_of_day() -> float:
    """Now, in local time."""
    now = time.time()
    local = time.localtime(now)
    return local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec + now % 1


def trial_result(
    trial: Trial,
    flows: Sequence[Flow],
    readings: Sequence[PortReading],
    *,
    run: SenderRun,
    instances: Sequence[int],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what a run left.

    `readings`: Counters: before the run, each second of it, and after it.
    `run`: Logs, and what the activity reporter saw.
    `instances`: The service instance of each of D-ITG's flows.
    """
    returned = packets("") if trial.protocol is Protocol.ICMP else run.returned
    flows_of = {one: [flow for flow, each in enumerate(instances, 1) if each == one] for one in instances}
    back = {instance: of_flows(returned, numbers) for instance, numbers in flows_of.items()}
    counts = tuple(port_count(flow, readings[0].counters, readings[-1].counters) for flow in flows)
    sent = sum(count.sent for count in counts)
    duration_s = trial.duration_s * (sum(trial.on_off_s[:1]) / sum(trial.on_off_s) if trial.on_off_s else 1.0)
    # TCP offers what the other end takes.
    wanted = trial.load_pps * duration_s if trial.protocol is not Protocol.TCP else 0.0
    notes = []
    if sent < wanted * (1 - _INEXACT):
        notes.append(f"D-ITG offered {' of '.join(rates(sent / duration_s, trial.load_pps))}")
    if trial.protocol is Protocol.TCP:
        notes.append("counts include TCP's acknowledgements")
    elif trial.protocol is Protocol.ICMP:
        notes.append("D-ITG measures no delay of ICMP")
    else:
        notes += _unlogged(flows, counts, run.arrived)
    notes += _sar_differs(flows, readings, run.sender_pps)
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=trial.duration_s,
        total_duration_s=total_duration_s,
        flows=counts,
        latency=tuple(_latency(count, back[count.instance]) for count in counts if len(back[count.instance])),
        generator_limited=sent < wanted * (1 - _SHORT),
        note="; ".join(notes) or None,
        intervals=_intervals(trial, flows, readings[1:], returned),
        interface_sent=sent,
    )


def _latency(count: FlowCount, returned: Packets) -> FlowLatency:
    values = latency_report(one_way_ns(returned))
    return flow_latency(count.instance, count.direction, sent=count.sent, received=len(returned), values=values)


def _unlogged(flows: Sequence[Flow], counts: Sequence[FlowCount], arrived: Packets) -> list[str]:
    """Packets that arrived and are not in the receiver's log."""
    forward = [count for flow, count in zip(flows, counts, strict=True) if flow.direction == "forward"]
    received, logged = sum(count.received for count in forward), len(arrived)
    if logged >= received * (1 - _UNLOGGED):
        return []
    return [f"the log has {logged} of the {received} packets that arrived: delays are of those"]


def _sar_differs(flows: Sequence[Flow], readings: Sequence[PortReading], sender_pps: Sequence[float]) -> list[str]:
    """Two sources for one figure: the packets that left the sender, by counters and by the activity reporter."""
    forward = [flow for flow in flows if flow.direction == "forward"]
    counted, _ = _moved(forward, readings[0], readings[-1])
    reported = sum(sender_pps)
    if not sender_pps or not counted or abs(reported - counted) <= _SAR_OFF * counted:
        return []
    return [f"sar reports {reported:.0f} packets sent, the interface counted {counted}"]


def _intervals(
    trial: Trial, flows: Sequence[Flow], readings: Sequence[PortReading], returned: Packets
) -> tuple[Interval, ...]:
    """Second by second, from the first packet on, as long as the trial was to send."""
    within = [each for each in readings if _since(readings, each) <= trial.duration_s + _MIN_INTERVAL_S]
    if len(within) < 2:
        return ()
    delays = mean_one_way_ns(returned, [each.clock_s for each in within])
    found = []
    for (begin, end), delay_ns in zip(pairwise(within), delays, strict=True):
        if (lasted_s := _since((begin,), end)) >= _MIN_INTERVAL_S:
            sent, received = _moved(flows, begin, end)
            found.append(Interval(duration_s=lasted_s, sent=sent / 2, received=received / 2, delay_ns=delay_ns))
    return tuple(found)


def _since(readings: Sequence[PortReading], later: PortReading) -> float:
    return (later.clock_s - readings[0].clock_s) % 86400.0


def _moved(flows: Sequence[Flow], begin: PortReading, end: PortReading) -> tuple[int, int]:
    """Packets of all flows that left and that came between two readings."""
    counts = [port_count(flow, begin.counters, end.counters) for flow in flows]
    return sum(count.sent for count in counts), sum(count.received for count in counts)


def most_runs(flows: int) -> int:
    """Return how many runs of 1 s with so many flows fit in the deadline of `highest_loads`, which is that of a trial.

    One of 64 flows always does, where they are closed in 80 s.
    """
    return max(1, int(MAX_LONGER_S / (_MAXIMUM_S + CLOSING_S * flows)))


class DitgGenerator(TrafficGenerator):
    """Sends by D-ITG between sockets at both ends, and back.

    The receiver sends every packet back, so both directions carry the same; half of a round trip is one way. Counts are
    of the network interfaces; delays are of all packets in D-ITG's logs. A trial never stops early.
    """

    def __init__(self, _: TgNode, context: DriverContext) -> None:
        """Prepare; `Flow.sources` is how many flows an instance has.

        Raises:
            Unsupported: Service instances share ports, whose counters cannot separate them; or there are
                too many flows.
        """
        plan = context.plan
        if len({flow.rx_interface for flow in plan.flows}) < len(plan.flows):
            raise Unsupported("D-ITG needs a port pair of its own for every service instance")
        self._flows = sum(flow.sources for flow in plan.flows if flow.direction is Direction.FORWARD)
        if self._flows > _MAX_FLOWS:
            raise Unsupported(
                "D-ITG closes its flows one after the other, each in a second: "
                f"at most {_MAX_FLOWS} in all, and the plan has {self._flows}"
            )
        self._plan = plan
        self._fabric = context.fabric
        self._programs = DitgPrograms(context.fabric, context.lock, plan.cores.cpus(GENERATOR)[0])
        self._senders = [flow.tx_interface for flow in plan.flows if flow.direction is Direction.FORWARD]
        self._version = ""

    def start(self) -> None:
        """Make the ports usable by sockets, start the receiver.

        Raises:
            CommandFailed: The kernel refused something.
            CsitError: A program cannot be started, or ends.
            NotReady: One does not listen in time, or a port has no carrier.
        """
        self._fabric.wait_for_cables(GENERATOR)
        routing.route_between_ports(self._plan, self._fabric)
        self._programs.start()
        self._version = _version()
        _LOG.info("D-ITG started: %s", self._version)

    def run(self, trial: Trial) -> TrialResult:
        """Send, wait until the senders have ended and no more packets come, read counters and logs.

        Raises:
            Unsupported: Frames are smaller than D-ITG can make them.
            CommandFailed: A sender failed.
            NotReady: One did not end in time.
        """
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        trial = as_taken(trial, "ditg", (function.kind for function in self._plan.functions))
        longer = trial if trial.duration_s >= _MIN_S else trial.model_copy(update={"duration_s": _MIN_S})
        script = programs.script(self._plan, longer, _SIZES)
        sizes = programs.payloads(trial.frame, trial.protocol or Protocol.UDP)
        (self._programs.folder / _SIZES).write_text("".join(f"{size}\n" for size in sizes), encoding="ascii")
        with arrival_gaps(self._plan, self._fabric, trial) as stamped:
            before = PortReading(seconds_of_day(), self.counters())
            watch = Watch(self.counters, lambda now: self._sent(now) > self._sent(before.counters))
            try:
                done = self._programs.run(script, longer.duration_s, self._senders)
                settle(lambda: (sum(row.rx_packets for row in self.counters().values()),), None)
            finally:
                readings = watch.stop()
            gaps = stamped()
        after = PortReading(seconds_of_day(), self.counters())
        result = trial_result(
            longer,
            self._plan.flows,
            [before, *readings, after],
            run=done,
            instances=script.instances,
            started_at=started_at,
            total_duration_s=time.monotonic() - started,
        )
        return result.model_copy(update={"trial": trial, "gaps": gaps})

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Rate at the ports when more was requested for 1 s than D-ITG can send, less a tenth (aggregate pps).

        With more than 17 flows there is no time for all loads, and it may be able to send more than is returned.
        """
        load_pps = _MAXIMUM_PPS
        for left in reversed(range(most_runs(self._flows))):
            result = self.run(trial.model_copy(update={"load_pps": load_pps, "duration_s": _MAXIMUM_S}))
            if result.generator_limited or load_pps >= _MORE_THAN_IT_CAN_PPS or not left:
                break
            load_pps *= 2
        most_pps = _HEADROOM * result.offered_pps
        return HighestLoads(offered_pps=most_pps, search_pps=most_pps)

    def facts(self) -> Mapping[str, str]:
        if not self._version:
            return {}
        return {"generator": self._version, "delay": "half of the round trip of every logged packet"}

    def problems(self) -> tuple[str, ...]:
        return self._programs.problems()

    def stop(self) -> None:
        """End all programs; what was changed in the namespace ends with it. Safe to call after a failure."""
        self._programs.stop()

    def counters(self) -> Counters:
        return self._fabric.counters([GENERATOR])

    def _sent(self, counters: Counters) -> int:
        return sum(counters[name].tx_packets for name in self._senders)


def _version() -> str:
    """The first line that the sender says of itself."""
    lines = [line for line in completed([SENDER, "-h"], 10, check=False).stdout.splitlines() if "version" in line]
    if not lines:
        raise CsitError(f"{SENDER} -h prints no version")
    return f"D-ITG {lines[0].partition('version ')[2].strip()}"
