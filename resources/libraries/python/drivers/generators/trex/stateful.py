"""TRex's advanced stateful mode (ASTF): its load profile of TCP connections, and the driver with its servers."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.connection_rates import connections_of, connections_result, highest
from resources.libraries.python.drivers.generators.trex import config
from resources.libraries.python.drivers.generators.trex.client import Client
from resources.libraries.python.drivers.generators.trex.driver import DPDK_MB, LOOPBACK, OPENED_S, READY_S
from resources.libraries.python.drivers.generators.trex.registration import MOST_CONNECTIONS, Trex
from resources.libraries.python.drivers.generators.trex.requirements import interpreter, missing
from resources.libraries.python.drivers.generators.trex.server import Server
from resources.libraries.python.drivers.generators.trex.wire import (
    ConnectionCounts,
    ConnectionLoad,
    ConnectionOrder,
    ConnectionReport,
    OpenedServers,
    OpenStateful,
)
from resources.libraries.python.drivers.host.cpu.memory import require_huge_pages
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, HighestLoads, Protocol, Trial, TrialResult
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.roles.part import TrafficGenerator

_LOG = logging.getLogger(__name__)
_ANSWER_S = 30.0


PORT = 80
REST_S = 1.5
"""Time that connections have to end, where they go on to do so."""
_COUNTED = frozenset({"client: tcps_rexmttimeo_syn", "client: tcps_conndrops"})
"""Errors that are counts of their own here."""
_LATE, _LATE_S = 0.05, 0.1


def most_s(duration_s: float) -> float:
    """Return the most time that opening the connections of a trial may take: after that, the rate was not offered."""
    return duration_s + max(_LATE * duration_s, _LATE_S)


def load_of(flow: Flow, connections: int, rate_cps: float) -> ConnectionLoad:
    """Connections of an instance: from all of its flow's source addresses in turns.

    Args:
        flow: The forward flow of the instance.
        connections: How many.
        rate_cps: Connections per second.
    """
    first = IPv4Address(flow.source_ip)
    return ConnectionLoad(
        clients=(str(first), str(first + flow.sources - 1)),
        server=flow.destination_ip,
        port=PORT,
        connections=connections,
        rate_cps=rate_cps,
    )


def established(counts: ConnectionCounts) -> int:
    """Connections that were opened at the first try, answered, and closed by both ends.

    A client closes when the server has, and counts the end when the server has acknowledged that.

    Where SYNs were repeated, it is not known which of the connections were established all the same: as many count as
    failed.
    """
    ended = min(counts.connected, counts.closed - counts.dropped, counts.accepted)
    return max(0, ended - counts.repeated)


def trial_result(
    trial: Trial,
    rows: Sequence[tuple[Flow, int, ConnectionCounts]],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what the servers count; packets of the result are connections.

    Args:
        trial: As it was asked.
        rows: The forward flow of each instance, connections asked for, and the counts.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of all.
    """
    limits = []
    asked, opened = sum(number for _, number, _ in rows), sum(counts.attempted for _, _, counts in rows)
    if opened < asked:
        limits.append(f"TRex opened {opened:,} of {asked:,} connections in the time for them")
    took_s = max((counts.sending_s for _, _, counts in rows), default=0.0)
    if opened == asked and took_s > most_s(trial.duration_s):
        late_s = took_s - trial.duration_s
        limits.append(f"TRex took {late_s * 1000:.0f} ms longer than {trial.duration_s:g} s to open the connections")
    opened_ones = [(flow, each.attempted, min(each.attempted, established(each))) for flow, _, each in rows]
    remarks = _remarks([counts for _, _, counts in rows])
    return connections_result(trial, opened_ones, started_at, total_duration_s, limits=limits, remarks=remarks)


def _remarks(rows: Sequence[ConnectionCounts]) -> list[str]:
    """How connections failed."""
    found = []
    if dropped := sum(each.dropped for each in rows):
        found.append(f"{dropped:,} connections were reset or given up")
    if repeated := sum(each.repeated for each in rows):
        found.append(f"{repeated:,} SYNs were repeated")
    if unanswered := sum(max(0, each.attempted - each.connected) for each in rows):
        found.append(f"{unanswered:,} SYNs had no answer")
    if open_ones := sum(max(0, each.connected - each.closed) for each in rows):
        found.append(f"{open_ones:,} connections were not closed")
    errors = sorted({name for each in rows for name, count in each.errors.items() if count and name not in _COUNTED})
    return [*found, *(f"{name} {sum(each.errors.get(name, 0) for each in rows)}" for name in errors)]


class TrexConnections(TrafficGenerator):
    """Opens TCP connections from behind TG port 1 to behind TG port 2.

    The load of a trial is connections per second, aggregate of all instances; what its result calls packets are
    connections. Counters of ASTF are of all ports of a server, so each instance has a server of its own.
    """

    def __init__(self, node: TgNode, context: DriverContext) -> None:
        """Prepare.

        Raises:
            Unsupported: Instances share ports, or the CPUs of the plan do not do for TRex.
        """
        plan, settings = context.plan, node.settings(Trex)
        self._plan = plan
        self._fabric = context.fabric
        self._settings = settings
        self._machine = context.lock
        self._flows = [flow for flow in plan.flows if flow.direction is Direction.FORWARD]
        table = config.table_of(plan, settings)
        pairs = [(table.number[flow.tx_interface], table.number[flow.rx_interface]) for flow in self._flows]
        if len(set(pairs)) < len(pairs):
            raise Unsupported(
                f"TRex opens TCP connections of one instance by a pair of ports; {len(pairs)} instances share "
                f"{len(set(pairs))} pair{'s'[: len(set(pairs)) != 1]} here"
            )
        self._dpdk = table.dpdk
        self._tables = [
            replace(table, ports=tuple(table.ports[number] for number in pair), number={}) for pair in pairs
        ]
        self._placement = config.place(plan, len(pairs), dpdk=table.dpdk, queues=table.queues)
        self._servers = [Server(Path(settings.directory), context.lock, number) for number in range(len(pairs))]
        self._client: Client | None = None
        self._opened: OpenedServers | None = None

    def start(self) -> None:
        """Start the servers and the client; take the ports.

        Raises:
            NotReady: A server does not answer in time; its last words are in the text.
            Unsupported: TRex is missing, or there is no Python for its library.
            CsitError: Something cannot be started, or has ended.
        """
        if lacking := "; ".join(map(str, missing(self._settings))):
            raise Unsupported(lacking)
        python = interpreter(self._settings.python)
        assert python is not None  # noqa: S101 - else it is missing
        self._fabric.change(GENERATOR, [rtnetlink_messages.set_up("lo", LOOPBACK)])
        inside = partial(self._fabric.run_inside, GENERATOR)
        memory_mb = self._settings.memory_mb
        if self._dpdk:
            require_huge_pages("TRex on DPDK", (memory_mb or DPDK_MB) * len(self._servers), self._numa_node())
        nics = [port.nic for port in self._plan.ports(GENERATOR) if port.nic is not None]
        for number, (server, table) in enumerate(zip(self._servers, self._tables, strict=True)):
            placement = replace(self._placement, sending=(self._placement.sending[number],))
            server.start(
                inside,
                placement.control,
                config.yaml_of(
                    table,
                    placement,
                    self._numa_node(),
                    largest_frame_bytes=1518,
                    memory_mb=memory_mb,
                    number=number,
                ),
                mellanox=any(nic.attachment is Attachment.BIFURCATED for nic in nics),
                huge_pages=self._dpdk,
                stateful=True,
            )
        client = self._client = Client(python, self._servers[0].folder / "client.log", self._machine, self._problem)
        inside(lambda: client.start(self._placement.control))
        order = OpenStateful(
            directory=self._settings.directory,
            servers=tuple(config.tcp_ports_of(number) for number in range(len(self._servers))),
            within_s=READY_S,
        )
        opened = self._opened = client.ask(order, OpenedServers, "the servers' answer", OPENED_S)
        self._fabric.wait_for_cables(GENERATOR)
        _LOG.info("TRex %s started for TCP: %d servers, %s", opened.version, len(self._servers), self._placement)

    def run(self, trial: Trial) -> TrialResult:
        """Open connections at the rate, and wait for the end of each.

        Raises:
            Unsupported: The trial asks for something else, or for more connections than a client has ports.
            NotReady: There is no answer.
            CsitError: A server or the client has ended, or TRex refuses.
        """
        connections = connections_of(trial, len(self._flows), MOST_CONNECTIONS, "TRex")
        each_cps = trial.load_pps / len(self._flows)
        if self._client is None:
            raise CsitError("TRex is not started")
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        order = ConnectionOrder(
            loads=tuple(load_of(flow, connections, each_cps) for flow in self._flows),
            most_s=most_s(trial.duration_s),
            rest_s=REST_S,
        )
        report = self._client.ask(order, ConnectionReport, "a trial's report", order.most_s + REST_S + _ANSWER_S)
        return trial_result(
            trial,
            [(flow, connections, counts) for flow, counts in zip(self._flows, report.counts, strict=True)],
            started_at,
            time.monotonic() - started,
        )

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Look for the highest rate of which all connections had an answer, step by step.

        Raises:
            CsitError: As `run`.
        """
        count = len(self._flows)

        def all_answered(rate_cps: float) -> bool:
            result = self.run(trial.model_copy(update={"load_pps": rate_cps * count, "protocol": Protocol.TCP}))
            return not result.generator_limited and result.received == result.sent

        return highest(all_answered, MOST_CONNECTIONS / trial.duration_s, count)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([GENERATOR])

    def facts(self) -> Mapping[str, str]:
        if self._opened is None:
            return {}
        return {
            "generator": f"TRex {self._opened.version} (ASTF)",
            "ports": "DPDK" if self._dpdk else f"AF_PACKET (software mode, {', '.join(self._opened.drivers)})",
            "cores": str(self._placement),
            "client": f"TRex's own library on Python {self._opened.python}",
        }

    def problems(self) -> tuple[str, ...]:
        """Ended processes of servers and client."""
        if self._client is None:
            return ("TRex is not started",)
        return tuple(filter(None, (self._problem(), self._client.problem())))

    def stop(self) -> None:
        """End client and servers. Safe to call at any time and more than once."""
        client, self._client, self._opened = self._client, None, None
        if client is not None:
            client.stop()
        for server in self._servers:
            server.request_end()
        for server in self._servers:
            server.stop()

    def _problem(self) -> str:
        return next(filter(None, (server.problem() for server in self._servers)), "")

    def _numa_node(self) -> int:
        nics = [port.nic for port in self._plan.ports(GENERATOR) if port.nic is not None]
        return next((nic.numa_node for nic in nics if nic.numa_node is not None), self._plan.cores.numa_node)
