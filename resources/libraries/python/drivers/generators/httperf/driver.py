"""The driver of httperf: a server behind TG port 2, and for each instance a client behind TG port 1."""

import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.connection_rates import connections_of, connections_result, highest
from resources.libraries.python.drivers.generators.httperf.registration import MOST_CONNECTIONS, PORTS
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.program_paths import path_of
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.listeners import tcp_ports
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.measurements.trial import Direction, HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR

_READY_S, _END_S, _VERSION_S = 10.0, 2.0, 10.0
_LONGER_S = 20.0
"""Connections without an answer, and a machine that is busy."""
_POLL_S = 0.005
_LATE_S = 0.5
"""Later than that a client that waited for no answer was too slow for its schedule."""
_SYSCTLS = {"ipv4/ip_local_port_range": "{} {}".format(*PORTS)}


PROGRAM = "httperf"
SERVER = "nginx"
PORT = 80
TELL_VERSION = ("--version", "--server", "127.0.0.1", "--port", "1")
"""It connects as well, here to a port without a listener."""
TIMEOUT_S = 1.0
"""The first repetition of a lost SYN comes no earlier: a connection that lost one fails."""
_BACKLOG = 4096
_CLIENT_ERRORS = ("fd-unavail", "addrunavail", "ftab-full")
_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_TOTAL = re.compile(r"^Total: connections (\d+) requests \d+ replies (\d+) test-duration ([\d.]+) s$", re.MULTILINE)
_ERROR = re.compile(r"(?<![a-z-])([a-z-]+) (\d+)")
"""Looks behind, so that a long word is not read once from each of its letters."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """Report of a client on a trial."""

    established: int
    """Connections with an answer."""
    refused: int
    """Connections that the client could not open for want of descriptors or ports of its own."""
    failed: int
    """Connections that were opened, or tried, and had no answer."""
    duration_s: float
    """From the first connection to the end of the last one."""


def client_command(flow: Flow, connections: int, rate_cps: float) -> list[str]:
    """The argument vector of a client.

    Args:
        flow: The forward flow of an instance.
        connections: How many.
        rate_cps: Connections per second.
    """
    return [
        PROGRAM, "--server", flow.destination_ip, "--port", str(PORT), "--uri", "/", "--timeout", f"{TIMEOUT_S:g}",
        "--num-conns", str(connections), "--num-calls", "1", "--rate", f"{rate_cps:.6g}",
    ]  # fmt: skip


def read_report(text: str) -> ClientReport:
    """A report.

    Raises:
        ValueError: It is none.
    """
    total = _TOTAL.search(text)
    errors = {
        name: int(count)
        for line in text.splitlines()
        if line.startswith("Errors:")
        for name, count in _ERROR.findall(line.removeprefix("Errors:"))
    }
    if total is None or not {"total", *_CLIENT_ERRORS} <= errors.keys():
        raise ValueError(f"no report: {' '.join(text.split())[-200:] or 'nothing was written'}")
    refused = sum(errors[name] for name in _CLIENT_ERRORS)
    return ClientReport(int(total[2]), refused, errors["total"] - refused, float(total[3]))


def server_configuration(flows: Sequence[Flow]) -> str:
    """Configuration of the one server of all instances: an empty answer, then it closes the connection.

    Args:
        flows: The forward ones.
    """
    paths = "".join(f"{name}_temp_path tmp-{name}; " for name in _PATHS)
    listens = "".join(f"listen {flow.destination_ip}:{PORT} backlog={_BACKLOG}; " for flow in flows)
    return (
        "daemon off; master_process off; pid nginx.pid; worker_rlimit_nofile 65536;\n"
        "events { worker_connections 32768; multi_accept on; }\n"
        f"http {{ access_log off; keepalive_timeout 0; {paths}\n"
        f"server {{ {listens}return 204; }} }}\n"
    )


def trial_result(
    trial: Trial,
    rows: Sequence[tuple[Flow, int, ClientReport]],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what the clients say; packets of the result are connections.

    A client that runs out of descriptors is the limit of a trial, unless others of its connections had no answer: then
    they have occupied these descriptors.

    Args:
        trial: As it was asked.
        rows: The forward flow of each instance, connections asked for, and the report.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of all.
    """
    own = [each.refused if not each.failed else 0 for _, _, each in rows]
    late_s = max((each.duration_s for _, _, each in rows if not each.failed), default=0.0) - trial.duration_s
    notes = []
    if refused := sum(own):
        asked = sum(connections for _, connections, _ in rows)
        notes.append(
            f"{refused:,} of {asked:,} connections were not opened: the client has no more descriptors or ports"
        )
    if late_s > _LATE_S:
        notes.append(f"the client took {late_s:.1f} s longer than its schedule")
    counts = [
        (flow, connections - short, report.established)
        for (flow, connections, report), short in zip(rows, own, strict=True)
    ]
    return connections_result(trial, counts, started_at, total_duration_s, limits=notes)


class HttperfClients:
    """Opens TCP connections from behind TG port 1 to behind TG port 2.

    The load of a trial is connections per second, aggregate of all instances; what its result calls packets are
    connections.
    """

    def __init__(self, _: TgNode, context: DriverContext) -> None:
        plan = context.plan
        self._plan = plan
        self._fabric = context.fabric
        self._machine = context.lock
        self._flows = [flow for flow in plan.flows if flow.direction is Direction.FORWARD]
        cpus = plan.cores.cpus(GENERATOR)
        self._client_cpu, self._server_cpu = cpus[0], cpus[-1]
        self._server: Daemon | None = None
        self._clients: list[Daemon] = []
        self._folder: Path | None = None
        self._version = ""

    def start(self) -> None:
        """Make the ports usable by sockets, and start the server.

        Raises:
            Unsupported: A program is missing.
            CommandFailed: The kernel refused something.
            CsitError: A program cannot be run.
            NotReady: A port has no carrier, or the server does not listen.
        """
        if lacking := "; ".join(map(str, missing())):
            raise Unsupported(lacking)
        self._fabric.wait_for_cables(GENERATOR)
        routing.route_between_ports(self._plan, self._fabric)
        self._fabric.run_inside(GENERATOR, _set_sysctls)
        self._folder = folder = self._machine.folder(PROGRAM)
        self._version = _version()
        file = folder / "nginx.conf"
        file.write_text(server_configuration(self._flows), encoding="ascii")
        argv = [str(path_of(SERVER)), "-p", str(folder), "-c", str(file), "-e", "stderr"]
        self._server = server = Daemon("nginx of the generator", argv, folder / "nginx.log", folder=folder)
        self._fabric.run_inside(GENERATOR, partial(server.start, self._server_cpu, self._machine))
        server.wait_for(
            f"listening on port {PORT}",
            lambda: "" if PORT in self._fabric.run_inside(GENERATOR, tcp_ports) else "no listener",
            _READY_S,
        )

    def run(self, trial: Trial) -> TrialResult:
        """Open connections by the schedule, and wait for the end of each.

        Raises:
            Unsupported: The trial asks for something else, or for more connections than a client has ports.
            CommandFailed: A client failed; its own words are in the text.
            CsitError: A client is stopped, or does not come to its end.
            NotReady: One did not end in time.
        """
        connections = connections_of(trial, len(self._flows), MOST_CONNECTIONS, "httperf")
        each_cps = trial.load_pps / len(self._flows)
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        reports = self._open(connections, each_cps, trial.duration_s)
        rows = [(flow, connections, report) for flow, report in zip(self._flows, reports, strict=True)]
        return trial_result(trial, rows, started_at, time.monotonic() - started)

    def _open(self, connections: int, each_cps: float, duration_s: float) -> list[ClientReport]:
        assert self._folder is not None  # noqa: S101 - started
        try:
            for flow in self._flows:
                name, log = f"{PROGRAM} of instance {flow.instance}", f"client-{flow.instance}.log"
                daemon = Daemon(name, client_command(flow, connections, each_cps), self._folder / log)
                self._clients.append(daemon)
                self._fabric.run_inside(GENERATOR, partial(daemon.start, self._client_cpu, self._machine))
            wait_until("the end of httperf", self._still_running, duration_s + _LONGER_S, pause_s=_POLL_S)
            return [_report(daemon) for daemon in self._clients]
        finally:
            self._end_clients()

    def _still_running(self) -> str:
        left = [daemon.what for daemon in self._clients if not daemon.problem()]
        return f"{', '.join(left)} still run" if left else ""

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Look for the highest rate of which all connections had an answer, step by step.

        Raises:
            CsitError: As `run`.
        """

        def all_answered(rate_cps: float) -> bool:
            connections = max(1, round(rate_cps * trial.duration_s))
            reports = self._open(connections, rate_cps, trial.duration_s)
            return all(each.established >= connections for each in reports)

        return highest(all_answered, MOST_CONNECTIONS / trial.duration_s, len(self._flows))

    def facts(self) -> Mapping[str, str]:
        return {"generator": self._version} if self._version else {}

    def problems(self) -> tuple[str, ...]:
        problem = self._server.problem() if self._server is not None else ""
        return (problem,) if problem else ()

    def stop(self) -> None:
        """End what still runs; what was changed in the namespace ends with it. Safe to call after a failure."""
        self._end_clients()
        server, self._server = self._server, None
        if server is not None:
            server.request_end()
            server.wait_end(_END_S)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _end_clients(self) -> None:
        clients, self._clients = self._clients, []
        for daemon in clients:
            daemon.request_end()
        for daemon in clients:
            daemon.wait_end(_END_S)


def _report(daemon: Daemon) -> ClientReport:
    try:
        return read_report(daemon.output())
    except ValueError as error:
        raise daemon.failure(str(error)) from error


def _set_sysctls() -> None:
    for key, value in _SYSCTLS.items():
        Path("/proc/sys/net", key).write_text(value, encoding="ascii")


def missing() -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    for name in (PROGRAM, SERVER):
        if path_of(name) is None:
            yield PreflightProblem(f"{name} missing for TCP connections", f"install it: apt-get install {name}")


def _version() -> str:
    """`httperf 0.9.0 against nginx 1.22.1`."""
    client = _version_of(PROGRAM, *TELL_VERSION, pattern=r"httperf-(\S+) compiled")
    server = _version_of(SERVER, "-v", pattern=r"nginx/(\S+)")
    return f"httperf {client} against nginx {server}"


def _version_of(program: str, *options: str, pattern: str) -> str:
    """The version in what a program says of itself."""
    done = completed([path_of(program) or program, *options], _VERSION_S)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "of an unknown version"
