"""The driver of iperf3: a server and a client per service instance, whose reports and ports make results of trials."""

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from resources.libraries.python.dialogue import record_of, short
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.arrival_gaps import arrival_gaps
from resources.libraries.python.drivers.generators.builtin.counters import settle
from resources.libraries.python.drivers.generators.builtin.flow_results import port_count
from resources.libraries.python.drivers.generators.iperf3 import port
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.socket_tables import tcp_ports
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

_PROGRAM = "iperf3"
_MAX_SESSIONS = 128
_ETHERNET_BYTES = 18
"""Header and FCS."""
_HEADER_BYTES = {Protocol.UDP: 20 + 8, Protocol.TCP: 20 + 32}
"""IPv4 and what follows; TCP with its time stamps."""
_OPTIONS_BYTES = 12
"""Size of TCP's time stamps, which the segment size includes."""
_MIN_PAYLOAD_BYTES = {Protocol.UDP: 16, Protocol.TCP: 76}
"""The kernel takes segment sizes from 88 bytes on."""
_MAX_AT_ONCE_BYTES = 128 * 1024
_WRITES_PER_S = 1000
"""Of a TCP session: the 128 KiB that iperf3 writes at once by itself come as a burst that overflows queues."""
_CONNECT_MS = 5000
_MIN_BPS = 1.0


def _protocol(trial: Trial) -> Protocol:
    """Protocol of a trial's packets; UDP where it does not say.

    Raises:
        Unsupported: iperf3 does not send it.
    """
    chosen = trial.protocol or Protocol.UDP
    if chosen not in _HEADER_BYTES:
        raise Unsupported(f"iperf3 sends {', '.join(_HEADER_BYTES)}, not {chosen}")
    return chosen


def _payload_bytes(trial: Trial) -> int:
    """Payload of each packet.

    Raises:
        Unsupported: Frames are of several sizes, or smaller than iperf3 can make them.
    """
    chosen = _protocol(trial)
    if len({part.frame_bytes for part in trial.frame.parts}) > 1:
        raise Unsupported(f"iperf3 sends frames of one size, and {trial.frame.name} is a mix")
    overhead = _ETHERNET_BYTES + _HEADER_BYTES[chosen]
    least = overhead + _MIN_PAYLOAD_BYTES[chosen]
    if (size := trial.frame.largest_bytes) < least:
        name = trial.frame.name
        raise Unsupported(f"iperf3 sends {chosen} in frames of {least} bytes or more, and {name} has {size}")
    return size - overhead


def _ways(trial: Trial) -> int:
    """How many ways data goes: both with UDP; with TCP the way back is that of acknowledgements."""
    return 2 if _protocol(trial) is Protocol.UDP else 1


def _seconds(trial: Trial) -> int:
    """How long a run is: whole seconds."""
    return max(1, math.ceil(trial.duration_s))


def server(flow: Flow) -> list[str]:
    """The argument vector of a server, for one run.

    `flow`: The forward flow of an instance.
    """
    return [_PROGRAM, "-s", "-1", "-J", "-B", flow.destination_ip, "-p", str(port(flow.instance))]


def client(flow: Flow, trial: Trial, instances: int) -> list[str]:
    """The argument vector of a client.

    `flow`: The forward flow of an instance.
    `trial`: What to send; its load is the aggregate of all instances, and of both ways where data goes both.

    Raises:
        Unsupported: iperf3 cannot send that.
    """
    sessions = trial.sessions or trial.frame.flows or 1
    if sessions > _MAX_SESSIONS:
        raise Unsupported(f"iperf3 has at most {_MAX_SESSIONS} sessions for a service instance, not {sessions}")
    if trial.on_off_s is not None:
        raise Unsupported("iperf3 sends no bursts; ditg would, chosen by GENERATOR")
    size = _payload_bytes(trial)
    each_pps = (trial.load_pps or trial.probe_pps * _ways(trial) * instances) / _ways(trial) / instances / sessions
    by_udp = _protocol(trial) is Protocol.UDP
    if by_udp:
        kind = ["-u", "--bidir", "-l", str(size)]
    else:
        at_once = min(_MAX_AT_ONCE_BYTES, size * max(1, round(each_pps / _WRITES_PER_S)))
        kind = ["-M", str(size + _OPTIONS_BYTES), "-l", str(at_once)]
    return [
        _PROGRAM, "-c", flow.destination_ip, "-B", flow.source_ip, "-p", str(port(flow.instance)), "-J",
        "--connect-timeout", str(_CONNECT_MS), "-t", str(_seconds(trial)), "-P", str(sessions),
        "-b", str(round(max(_MIN_BPS, each_pps * size * 8))), *kind,
    ]  # fmt: skip


_READY_S = 10.0
_LONGER_S = 25.0
"""Connecting, which is given up after 5 s, and exchanging figures at the end through a service that may be full."""
_END_S = 2.0
_POLL_S = 0.02


_REVERSE = "_bidir_reverse"
_MIN_INTERVAL_S = 0.5
"""Shorter ones at the end of a report are leftovers."""


@dataclass(frozen=True, slots=True)
class _DirectionReport:
    """One direction of a run, all sessions together."""

    sent: int | None
    """Packets; of UDP only, like the next."""
    received: int | None
    goodput_bps: float
    jitter_ns: float | None
    retransmits: int | None
    """Retransmitted segments; TCP only."""


def report(text: str, warned: str = "") -> dict[str, Any]:
    """A report.

    `warned`: Its standard error, quoted if there is no report.

    Raises:
        ValueError: Not a report, or the report of an error.
    """
    try:
        found = record_of(text)
    except CsitError as error:
        complaint = " ".join(filter(None, (text.strip()[-200:], warned.strip()[-200:])))
        raise ValueError(f"no report: {complaint or 'nothing was written'}") from error
    if "error" in found:
        raise ValueError(short(str(found["error"])))
    return found


def _directions(
    client: Mapping[str, Any], server: Mapping[str, Any], *, by_udp: bool
) -> dict[Direction, _DirectionReport]:
    """Directions in which data went: both by UDP, of which each end knows what it sent and what it received."""
    there, back = client["end"], server["end"]
    if by_udp:
        return {Direction.FORWARD: _udp_way(there, back, ""), Direction.REVERSE: _udp_way(back, there, _REVERSE)}
    forward = _DirectionReport(
        sent=None,
        received=None,
        # At the end of a run by TCP the client gets the server's counts.
        goodput_bps=float(there["sum_received"]["bits_per_second"]),
        jitter_ns=None,
        retransmits=there["sum_sent"].get("retransmits"),
    )
    return {Direction.FORWARD: forward}


def _udp_way(sender: Mapping[str, Any], receiver: Mapping[str, Any], way: str) -> _DirectionReport:
    came = receiver[f"sum_received{way}"]
    return _DirectionReport(
        sent=sender[f"sum_sent{way}"]["packets"],
        # Numbered packets: those that are missing in between are lost, and those at the end never counted.
        received=max(0, came["packets"] - came["lost_packets"]),
        goodput_bps=float(came["bits_per_second"]),
        jitter_ns=came["jitter_ms"] * 1e6,
        retransmits=None,
    )


def _by_second(
    client: Mapping[str, Any], server: Mapping[str, Any], *, by_udp: bool
) -> Iterator[tuple[float, float, float]]:
    """Yield duration in seconds, sent and received of each second: packets of UDP, bytes of payload of TCP.

    Mean of the ways that data went. Both ends begin at the same moment, by their connection.
    """
    for here, there in zip(_whole(client["intervals"]), _whole(server["intervals"]), strict=False):
        pairs = [(here["sum"], there["sum"])]
        if by_udp:
            pairs.append((there[f"sum{_REVERSE}"], here[f"sum{_REVERSE}"]))
        sent, received = (sum(_amount(row, by_udp=by_udp) for row in rows) for rows in zip(*pairs, strict=True))
        yield float(here["sum"]["seconds"]), sent / len(pairs), received / len(pairs)


def _whole(intervals: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in intervals if row["sum"]["seconds"] >= _MIN_INTERVAL_S]


def _amount(row: Mapping[str, Any], *, by_udp: bool) -> float:
    return float(row["packets"] - row.get("lost_packets", 0) if by_udp else row["bytes"])


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of both ends of a service instance."""

    flow: Flow
    """The forward one."""
    client: dict[str, Any]
    server: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _FlowEnd:
    """An iperf3 client or server. The log has its standard error: warnings there would corrupt the JSON report."""

    daemon: Daemon
    place: Path

    def check_signals(self) -> None:
        """See that no signal has ended or stopped it: the other end would only report a connection that was closed.

        Raises:
            CommandFailed: One has ended it.
            CsitError: It is stopped, or does not come to its end.
        """
        if self.daemon.problem() and ((status := self.daemon.status) is None or status < 0):
            raise self.daemon.failure(self.daemon.output())

    def report(self) -> dict[str, Any]:
        """Read the report.

        Raises:
            CommandFailed: It is no JSON, or contains an error; the text quotes iperf3.
            CsitError: The same of an end that is stopped or does not come to its end.
        """
        try:
            return report(self.place.read_text(encoding="utf-8", errors="replace"), self.daemon.output())
        except ValueError as error:
            raise self.daemon.failure(str(error)) from error


class Runs:
    """Runs in one place."""

    def __init__(self, fabric: Fabric, machine: MachineLock, cpu: int) -> None:
        """Prepare.

        `fabric`: Has the generator's namespace; started.
        """
        self._fabric = fabric
        self._machine = machine
        self._cpu = cpu
        self._running: list[Daemon] = []

    def run(self, flows: Sequence[Flow], trial: Trial, folder: Path) -> tuple[Reports, ...]:
        """Run a client for each flow, all at once.

        Raises:
            Unsupported: iperf3 cannot send that.
            CommandFailed: An end failed; its own words are in the text.
            CsitError: An end is stopped, or does not come to its end.
            NotReady: One did not begin or end in time.
        """
        argvs = [client(flow, trial, len(flows)) for flow in flows]
        try:
            servers = [self._start("server", flow, server(flow), folder) for flow in flows]
            self._wait_listening(flows, servers)
            clients = [self._start("client", flow, argv, folder) for flow, argv in zip(flows, argvs, strict=True)]
            within_s = _seconds(trial) + _LONGER_S
            wait_until("the end of iperf3", lambda: _still_running(clients), within_s, pause_s=_POLL_S)
            for end in (*servers, *clients):
                end.check_signals()
            reports = [client.report() for client in clients]
            wait_until("the end of iperf3's servers", lambda: _still_running(servers), _END_S, pause_s=_POLL_S)
            heard = [server.report() for server in servers]
        finally:
            self.stop()
        return tuple(Reports(*row) for row in zip(flows, reports, heard, strict=True))

    def stop(self) -> None:
        """End what still runs. Safe to call at any time and more than once."""
        running, self._running = self._running, []
        for daemon in running:
            daemon.request_end()
        for daemon in running:
            daemon.wait_end(_END_S)

    def _start(self, end: str, flow: Flow, argv: Sequence[str], folder: Path) -> _FlowEnd:
        report, log = (folder / f"{end}-{flow.instance}.{kind}" for kind in ("json", "log"))
        daemon = Daemon(f"iperf3 {end} of instance {flow.instance}", argv, log, prints_to=report)
        self._running.append(daemon)
        self._fabric.run_inside(GENERATOR, partial(daemon.start, self._cpu, self._machine))
        return _FlowEnd(daemon, report)

    def _wait_listening(self, flows: Sequence[Flow], servers: Sequence[_FlowEnd]) -> None:
        for flow, server in zip(flows, servers, strict=True):
            listening = port(flow.instance)
            server.daemon.wait_for(
                f"listening on port {listening}",
                lambda port=listening: "" if port in self._fabric.run_inside(GENERATOR, tcp_ports) else "no listener",  # type: ignore[misc]
                _READY_S,
            )  # fmt: skip


def _still_running(ends: Sequence[_FlowEnd]) -> str:
    left = [end.daemon.what for end in ends if not end.daemon.problem()]
    return f"{', '.join(left)} still run" if left else ""


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
        raise CommandFailed((_PROGRAM,), None, f"its report has another form: {error!r}") from error


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
    by_udp = _protocol(trial) is Protocol.UDP
    of = {each.flow.instance: _directions(each.client, each.server, by_udp=by_udp) for each in found}
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


def _count(flow: Flow, way: _DirectionReport | None, before: Counters, after: Counters) -> FlowCount:
    if way is not None and way.sent is not None and way.received is not None:
        return FlowCount(instance=flow.instance, direction=flow.direction, sent=way.sent, received=way.received)
    return port_count(flow, before, after)


def _intervals(trial: Trial, found: Sequence[Reports], *, by_udp: bool) -> Iterator[Interval]:
    """All instances together; TCP's bytes as the packets of the trial's size that they fill."""
    rows = zip(*(_by_second(each.client, each.server, by_udp=by_udp) for each in found), strict=False)
    each_bytes = 1 if by_udp else _payload_bytes(trial)
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
        self._version = " ".join(completed([_PROGRAM, "--version"], _VERSION_S).stdout.split()[:2])

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
