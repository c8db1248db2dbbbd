"""One run of iperf3: a server and a client for each service instance, in the generator's namespace, to their end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.iperf3 import command, reports
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.listeners import tcp_ports
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import Trial
from resources.libraries.python.planning.names import GENERATOR

_READY_S = 10.0
_LONGER_S = 25.0
"""Connecting, which is given up after 5 s, and exchanging figures at the end through a service that may be full."""
_END_S = 2.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Reports:
    """What both ends of a service instance have to say."""

    flow: Flow
    """The forward one."""
    client: dict[str, Any]
    server: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _End:
    """An iperf3 client or server. The log has its standard error: warnings there would corrupt the JSON report."""

    daemon: Daemon
    place: Path
    """File of the report."""

    def report(self) -> dict[str, Any]:
        """Read the report.

        Raises:
            CommandFailed: It is no JSON, or contains an error; the text quotes iperf3.
        """
        try:
            return reports.report(self.place.read_text(encoding="utf-8", errors="replace"), self.daemon.said())
        except ValueError as error:
            raise CommandFailed((self.daemon.what,), None, str(error)) from error


class Runs:
    """Runs in one place."""

    def __init__(self, fabric: Fabric, machine: MachineLock, cpu: int) -> None:
        """Prepare.

        Args:
            fabric: Has the generator's namespace; started.
            machine: The machine's lock, held.
            cpu: Where all programs run.
        """
        self._fabric = fabric
        self._machine = machine
        self._cpu = cpu
        self._running: list[Daemon] = []

    def run(self, flows: Sequence[Flow], trial: Trial, folder: Path) -> tuple[Reports, ...]:
        """Run a client for each flow, all at once.

        Args:
            flows: The forward ones.
            trial: What to send.
            folder: Where reports are kept meanwhile.

        Raises:
            Unsupported: iperf3 cannot send that.
            CommandFailed: An end failed; its own words are in the text.
            NotReady: One did not begin or end in time.
        """
        argvs = [command.client(flow, trial, len(flows)) for flow in flows]
        try:
            servers = [self._start("server", flow, command.server(flow), folder) for flow in flows]
            self._wait_listening(flows, servers)
            clients = [self._start("client", flow, argv, folder) for flow, argv in zip(flows, argvs, strict=True)]
            within_s = command.seconds(trial) + _LONGER_S
            wait_until("the end of iperf3", lambda: _still_running(clients), within_s, pause_s=_POLL_S)
            said = [client.report() for client in clients]
            wait_until("the end of iperf3's servers", lambda: _still_running(servers), _END_S, pause_s=_POLL_S)
            heard = [server.report() for server in servers]
        finally:
            self.stop()
        return tuple(Reports(*row) for row in zip(flows, said, heard, strict=True))

    def stop(self) -> None:
        """End what still runs. Safe to call at any time and more than once."""
        running, self._running = self._running, []
        for daemon in running:
            daemon.tell_to_end()
        for daemon in running:
            daemon.wait_end(_END_S)

    def _start(self, end: str, flow: Flow, argv: Sequence[str], folder: Path) -> _End:
        report, log = (folder / f"{end}-{flow.instance}.{kind}" for kind in ("json", "log"))
        daemon = Daemon(f"iperf3 {end} of instance {flow.instance}", argv, log, prints_to=report)
        self._running.append(daemon)
        self._fabric.run_inside(GENERATOR, partial(daemon.start, self._cpu, self._machine))
        return _End(daemon, report)

    def _wait_listening(self, flows: Sequence[Flow], servers: Sequence[_End]) -> None:
        for flow, server in zip(flows, servers, strict=True):
            port = command.port(flow.instance)
            server.daemon.wait_for(
                f"listening on port {port}",
                lambda port=port: "" if port in self._fabric.run_inside(GENERATOR, tcp_ports) else "no listener",  # type: ignore[misc]
                _READY_S,
            )  # fmt: skip


def _still_running(ends: Sequence[_End]) -> str:
    left = [end.daemon.what for end in ends if not end.daemon.problem()]
    return f"{', '.join(left)} still run" if left else ""
