"""The driver of TRex: its requirements, its client, and from a plan and trials to its server and its reports."""

import importlib.util
import logging
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from resources.libraries.python.dialogue import JsonLines, line_of
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.arrival_gaps import arrival_gaps
from resources.libraries.python.drivers.generators.overload import SearchedByTrials
from resources.libraries.python.drivers.generators.trex import (
    DPDK_MB,
    HUGE_FILES,
    Trex,
    client_process,
    config,
    profile,
)
from resources.libraries.python.drivers.generators.trex.config import PREFIX, PROGRAM, arguments, place, table_of
from resources.libraries.python.drivers.generators.trex.results import trial_result
from resources.libraries.python.drivers.generators.trex.wire import (
    LINKS_S,
    OpenedPorts,
    OpenPorts,
    Record,
    Report,
    RunTrial,
    read,
)
from resources.libraries.python.drivers.host.cpu.memory import remove_files, require_huge_pages
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import end_group, end_of
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import InstalledProgram
from resources.libraries.python.model.findings import CheckFinding, PreflightProblem, Severity, ok, problem, warning
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.planning.placement.sender_threads import counting_limit, is_alone

_LOG = logging.getLogger(__name__)
_READY_S = 90.0
"""3 s in software mode, longer with huge pages and many NICs, and the first time on an emulated machine about 50 s."""
_ANSWER_S = 15.0
_OPENED_S = _READY_S + LINKS_S + _ANSWER_S
_STRETCH = 0.5
_STRETCH_S = 0.5
_MAX_STRETCH_S = 30.0
_LOOPBACK = 1
_SYSTEM = "system"
_FOLDER = "trex"
_SERVER_END_S = 10.0
_FIRST = -20
_TAIL_BYTES = 1500
_END_S = 2.0
"""How long a client may take that was asked to end."""
_LOOK_S = 0.2
_PIECE = 1 << 20


def most_s(duration_s: float) -> float:
    """Return how long sending may take: half as long again and 0.5 s, and no more than 30 s longer.

    Then it is clear that the load cannot be offered. The deadline of a trial, of which sending is a part, is 90 s.
    """
    return duration_s + min(_STRETCH * duration_s + _STRETCH_S, _MAX_STRETCH_S)


def remove_left(prefixes: Iterable[str]) -> list[str]:
    """Remove files that programs with these prefixes have left in hugetlbfs; return a sentence for each.

    Raises:
        CsitError: Some cannot be removed; the others were.
    """
    return take_all(partial(remove_files, prefix) for prefix in prefixes)


_API = Path("trex", "stl", "api.py")
_ASK = (
    "import sys, importlib.util as u;"
    "sys.exit(0 if sys.version_info[:2] >= (3, 6) and (u.find_spec('cgi') or sys.version_info[:2] < (3, 13)) else 1)"
)
"""The library's copy of scapy needs the module `cgi`, which Python 3.13 has no more; the package legacy-cgi is that."""
_NAMES = ("python3", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8", "python3.6")
_WITHIN_S = 10.0


def interpreter(asked: str) -> str | None:
    """A Python that can run TRex's library; None where there is none.

    `asked`: `auto` for this process's own, or else the first of the system's that can; or a path, which is tried.
    """
    candidates = chain([sys.executable], filter(None, map(shutil.which, _NAMES))) if asked == "auto" else [asked]
    return next(filter(_can, candidates), None)


def _can(path: str) -> bool:
    if path == sys.executable:
        return sys.version_info < (3, 13) or importlib.util.find_spec("cgi") is not None
    try:
        subprocess.run([path, "-I", "-c", _ASK], check=True, timeout=_WITHIN_S, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def missing(settings: Trex) -> Iterator[PreflightProblem]:
    """Yield missing requirements, each with a fix."""
    directory = Path(settings.directory)
    fix = "unpack a release from https://trex-tgn.cisco.com/trex/release there, or say where it is by trex.directory"
    for path in (directory / PROGRAM, directory.joinpath(*client_process.LIBRARY, _API)):
        if not path.is_file():
            yield PreflightProblem(f"TRex is not at trex.directory {directory} (no {path})", fix)
            return
    # A doctor runs no program that a topology names; the start of TRex tries it.
    if (interpreter if settings.python == "auto" else shutil.which)(settings.python) is None:
        yield PreflightProblem(
            f"no Python for TRex's client library (trex.python: {settings.python})",
            "install a Python from 3.6 to 3.12, or the package legacy-cgi for a later one, and name it by trex.python",
        )


def missing_on(node: TgNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's generator that this machine lacks."""
    return missing(node.settings(Trex))


_READ_REQUEST_BYTES = 4096
"""That TRex's start script sets for mlx5 NICs, for the rate of small frames."""
_FIXED_BYTES = 128
"""Where a hypervisor shows this one the script leaves it: it cannot be set there."""


class _PortFacts(Frozen):
    """A port that TRex takes by DPDK."""

    driver: str | None
    read_request_bytes: int | None
    """The most that it asks for by one PCIe read request."""


class _Facts(InstalledProgram):
    """An installation of TRex, as `trex_facts` reports it, and its ports by PCI address."""

    directory: str
    client: bool
    """It has its own client library."""
    ports: dict[str, _PortFacts]
    neighbours: dict[str, str | None]
    """Drivers of other ports of the same cards."""


def check(place: str, node: TgNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield findings about an installation on a node; warnings where another generator is the node's own."""
    trex = _Facts.model_validate(answer)
    found = _installed(place, trex)
    if found.level is Severity.PROBLEM and node.generator.driver != "trex":
        found = found.model_copy(update={"level": Severity.WARNING})
    yield found
    if limit := counting_limit(node):
        fix = (
            "NICs of driver i40e (X710, XL710, XXV710) count themselves; ./csit qualify measures the bound over a "
            "cable between two ports of the TG"
        )
        yield warning(place, "TRex", limit, fix)
    yield from _cards(place, trex)
    yield from _read_requests(place, trex)


def _cards(place: str, trex: _Facts) -> Iterator[CheckFinding]:
    """Find ports of the kernel on cards of TRex's ports: its start script, which runs do without, refuses them."""
    for address, driver in trex.neighbours.items():
        if driver == "i40e":
            card = address.rpartition(".")[0]
            ours = ", ".join(each for each in trex.ports if each.rpartition(".")[0] == card)
            text = (
                f"{address}, a port of the same card as {ours}, is under the kernel's i40e, which disturbs the card's "
                "counters, by which TRex counts flows (trex-528)"
            )
            fix = f"use a card without ports of the kernel, or echo {address} > /sys/bus/pci/drivers/i40e/unbind"
            yield problem(place, "TRex", text, fix)


def _read_requests(place: str, trex: _Facts) -> Iterator[CheckFinding]:
    for address, port in trex.ports.items():
        size = port.read_request_bytes
        if port.driver == "mlx5_core" and size is not None and _FIXED_BYTES < size < _READ_REQUEST_BYTES:
            text = (
                f"{address} asks for {size} bytes at most by a PCIe read request (MaxReadReq), which slows small frames"
            )
            fix = f"setpci -s {address} CAP_EXP+8.w=5000:7000, for {_READ_REQUEST_BYTES}; a reboot undoes it"
            yield warning(place, "TRex", text, fix)


def _installed(place: str, trex: _Facts) -> CheckFinding:
    if not trex.there:
        text = f"{trex.directory} has no TRex that can be run"
        fix = "unpack a release there (https://trex-tgn.cisco.com/trex/release), or say trex.directory"
        return problem(f"{place}.trex.directory", "TRex", text, fix)
    if not trex.client:
        text = f"{trex.directory} has a TRex without its client library (automation/trex_control_plane/interactive)"
        return problem(f"{place}.trex.directory", "TRex", text, "unpack the whole release")
    return ok(place, "TRex", f"{trex.version or 'of an unknown version'} in {trex.directory}, with its client library")


class Client:
    """One running client. What the library prints goes to a log, of which errors show the end."""

    def __init__(self, python: str, log: Path, machine: MachineLock | None, why: Callable[[], str]) -> None:
        """Prepare.

        `machine`: owns the process; None: no owner.
        `why`: says what is wrong with the server, empty where nothing is: then that is why there is no answer.
        """
        # Isolated: neither the environment nor this folder decides what it imports.
        self._argv = (python, "-I", "-u", client_process.__file__)
        self._log = log
        self._machine = machine
        self._why = why
        self._lines = JsonLines()
        self._said: list[dict[str, Any]] = []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, cpu: int | None = None) -> None:
        """Start it on a CPU, in the network namespace of the calling thread, which must end afterwards.

        Raises:
            CsitError: It cannot be started.
        """
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    # An interrupt of the terminal goes to the run, which then stops the client.
                    process_group=0,
                )
        except OSError as error:
            raise CsitError(f"TRex's client cannot be started: {self._argv[0]}: {error.strerror}") from error
        if self._machine is not None:
            self._machine.claim_process(self._process.pid)

    def ask(self, order: Frozen, record: type[Record], what: str, within_s: float) -> Record:
        """Give an order and wait for its answer.

        Raises:
            CsitError: The client or the server has ended, says what is wrong, or answers something else.
            NotReady: There is no answer in time.
        """
        process = self._running
        if reason := self._why():
            raise CsitError(f"TRex: {reason}")
        assert process.stdin is not None  # noqa: S101 - asked for above
        try:
            process.stdin.write(line_of(order.model_dump(mode="json")))
        except BrokenPipeError as error:
            raise self._ended() from error
        answer = self._answer(what, within_s)
        if "error" in answer:
            raise CsitError(f"TRex: {self._why() or answer['error']}")
        return read(record, answer)

    def _answer(self, what: str, within_s: float) -> dict[str, Any]:
        process = self._running
        assert process.stdout is not None  # noqa: S101 - asked for above
        deadline = time.monotonic() + within_s
        while not self._said:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotReady(f"TRex: {what}", within_s, f"nothing from client {process.pid}; its log: {self._tail()}")
            if not select.select([process.stdout], [], [], min(left_s, _LOOK_S))[0]:
                # The library would go on asking a server that is gone for many seconds.
                if reason := self._why():
                    raise CsitError(f"TRex: {reason}")
                continue
            piece = os.read(process.stdout.fileno(), _PIECE)
            if not piece:
                raise self._ended()
            self._said += self._lines.feed(piece)
        return self._said.pop(0)

    def problem(self, *, closed: bool = False) -> str:
        """Why it does not run; empty while it does.

        `closed`: Whether it has closed its input or output; `stop` ends a client that goes on running.
        """
        if self._process is None:
            return "TRex's client is not started"
        how = end_of(self._process, closed=closed)
        return f"TRex's client {how}; it said last: {self._tail()}" if how else ""

    def _ended(self) -> CsitError:
        problem = self.problem(closed=True)
        return CsitError(self._why() or problem)

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise CsitError("TRex's client is not started")
        return self._process

    def _tail(self) -> str:
        lines = tail_of(self._log, _TAIL_BYTES).splitlines()
        return " | ".join(line.strip() for line in lines[-4:] if line.strip()) or "nothing"

    def stop(self) -> None:
        """End it: by itself with its input, after 2 s by force. Safe to call at any time and more than once."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if not end_group(process, _END_S):
            _LOG.warning("TRex's client %d did not end within %.0f s and was killed", process.pid, _END_S)
        if self._machine is not None:
            self._machine.release_process(process.pid)


class TrexGenerator(SearchedByTrials):
    """Sends and counts by TRex."""

    def __init__(self, node: TgNode, context: DriverContext) -> None:
        """Prepare.

        Raises:
            Unsupported: The ports or CPUs of the plan do not do for TRex.
        """
        plan, settings = context.plan, node.settings(Trex)
        self._plan = plan
        self._nics = [port.nic for port in plan.ports(GENERATOR) if port.nic is not None]
        self._fabric = context.fabric
        self._machine = context.lock
        self._settings = settings
        self._largest_frame_bytes = context.largest_frame_bytes
        table = self._table = table_of(plan, settings)
        self._placement = place(plan, len(table.ports) // 2, dpdk=table.dpdk, queues=table.queues)
        self._server: Daemon | None = None
        self._made = ExitStack()
        ends = [(link.a, link.b) for link in plan.links] + [(link.b, link.a) for link in plan.links]
        self._far_ends = [
            far.interface
            for near, far in ends
            if near.owner == GENERATOR
            and far.owner == VSWITCH
            and near.nic is None
            and VSWITCH in context.fabric.owners
        ]
        self._turned_away_before = 0
        self._client: Client | None = None
        self._opened: OpenedPorts | None = None

    def start(self) -> None:
        """Start server and client; take the ports.

        Raises:
            NotReady: The server does not answer in time; its last words are in the text.
            Unsupported: It cannot count that many flows, or there is no Python for its library.
            CsitError: It cannot be started, or has ended.
        """
        if self._client is not None:
            raise CsitError("TRex has been started already")
        python = interpreter(self._settings.python)
        if python is None:
            raise Unsupported(f"no Python for TRex's client library (trex.python: {self._settings.python})")
        # Both sides talk by TCP, inside the generator's namespace.
        self._fabric.change(GENERATOR, [rtnetlink_messages.set_up("lo", _LOOPBACK)])
        if self._table.dpdk:
            require_huge_pages("TRex on DPDK", self._settings.memory_mb or DPDK_MB, self._numa_node())
        folder, server = self._start_server()
        client = self._client = Client(python, folder / "client.log", self._machine, server.problem)
        self._fabric.run_inside(GENERATOR, lambda: client.start(self._clients_cpu()))
        order = OpenPorts(directory=self._settings.directory, ports=len(self._table.ports), within_s=_READY_S)
        opened = self._opened = client.ask(order, OpenedPorts, "the server's answer", _OPENED_S)
        if len(self._plan.flows) > opened.counters:
            drivers = ", ".join(opened.drivers)
            raise Unsupported(f"the plan has {len(self._plan.flows)} flows, TRex on {drivers} counts {opened.counters}")
        self._fabric.wait_for_cables(GENERATOR)
        _LOG.info("TRex %s started: %d ports, %s", opened.version, len(self._table.ports), self._placement)

    def _start_server(self) -> tuple[Path, Daemon]:
        """Start the program, which answers some seconds later; return its private folder as well."""
        folder, directory = self._machine.folder(_FOLDER), Path(self._settings.directory)
        self._made.callback(shutil.rmtree, folder, ignore_errors=True)
        if self._table.dpdk:
            self._machine.claim(HUGE_FILES, PREFIX)
            self._made.callback(self._remove_huge_files)
        file = folder / "trex_cfg.yaml"
        configuration = config.yaml_of(
            self._table,
            self._placement,
            self._numa_node(),
            largest_frame_bytes=self._largest_frame_bytes,
            memory_mb=self._settings.memory_mb,
        )
        file.write_text(configuration, encoding="ascii")
        server = self._server = Daemon(
            "TRex",
            arguments(directory, file, mellanox=any(nic.attachment is Attachment.BIFURCATED for nic in self._nics)),
            folder / "server.log",
            # DPDK keeps its files here; the libraries that came with the server are found by a relative path.
            {"RUNTIME_DIRECTORY": str(folder), "LD_LIBRARY_PATH": str(directory)},
            folder=directory,
        )
        self._made.callback(server.wait_end, _SERVER_END_S)
        # SIGTERM is to it what SIGINT is: it stops its threads, gives ports back, and ends within 2 to 3 s.
        self._made.callback(server.request_end)

        def begin() -> None:
            if is_alone(self._plan):  # then it goes first on the generator's CPUs
                os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
            server.start(self._placement.control, self._machine)

        self._fabric.run_inside(GENERATOR, begin)
        return folder, server

    def _remove_huge_files(self) -> None:
        remove_files(PREFIX)
        self._machine.release(HUGE_FILES, [PREFIX])

    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, wait until no more packets come, read the counters.

        With `abort_loss_ratio` sending stops as soon as that is exceeded for certain, looked at every 0.1 s.

        Raises:
            Unsupported: More streams of probes than a server has.
            NotReady: There is no answer.
            CsitError: Server or client have ended, or TRex refuses.
        """
        if self._client is None or self._opened is None:
            raise CsitError("TRex is not started")
        if (trial.frame.flows or 0) > (most := min(flow.sources for flow in self._plan.flows)):
            raise Unsupported(f"{trial.frame.flows:,} flows: TRex is given as many as source addresses here, {most:,}")
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        most_lost = None
        if trial.abort_loss_ratio is not None and trial.load_pps:
            most_lost = int(trial.abort_loss_ratio * trial.load_pps * trial.duration_s)
        order = RunTrial(
            streams=tuple(profile.streams(self._plan.flows, self._table.number, trial, traffic_profile())),
            duration_s=trial.duration_s,
            most_s=most_s(trial.duration_s),
            most_lost=most_lost,
        )
        with arrival_gaps(self._plan, self._fabric, trial) as gaps:
            report = self._client.ask(order, Report, "a trial's report", order.most_s + _ANSWER_S)
            lossy = any(count.received < count.sent for count in report.groups)
            result = trial_result(
                trial,
                report,
                self._plan.flows,
                started_at,
                time.monotonic() - started,
                turned_away=self._turned_away() if lossy else 0,
            )
            return result.model_copy(update={"gaps": gaps()})

    def _turned_away(self) -> int:
        """Packets that a full queue of the generator's ports did not let in since this was asked last.

        The kernel counts them at the other end of the cable, where that is on this machine. They came back: the
        generator did not take them in time.
        """
        if not self._far_ends:
            return 0
        counters = self._fabric.counters([VSWITCH])
        now = sum(counters[name].tx_dropped for name in self._far_ends if name in counters)
        before, self._turned_away_before = self._turned_away_before, now
        return max(0, now - before)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([GENERATOR])

    def facts(self) -> Mapping[str, str]:
        if self._opened is None:
            return {}
        return {
            "generator": f"TRex {self._opened.version}",
            "ports": "DPDK" if self._table.dpdk else f"AF_PACKET (software mode, {', '.join(self._opened.drivers)})",
            "cores": str(self._placement),
            "client": f"TRex's own library on Python {self._opened.python}",
            "latency": (
                "whole microseconds; the receiving thread sleeps up to 1 ms, so latencies say more about it than about "
                "the system under test"
                if self._placement.shared
                else "whole microseconds, by the generator's own clock"
            ),
        }

    def problems(self) -> tuple[str, ...]:
        if self._client is None or self._server is None:
            return ("TRex is not started",)
        return tuple(filter(None, (self._server.problem(), self._client.problem())))

    def stop(self) -> None:
        client, self._client, self._opened = self._client, None, None
        with self._made:
            if client is not None:
                client.stop()
        self._server = None

    def _numa_node(self) -> int:
        return next((nic.numa_node for nic in self._nics if nic.numa_node is not None), self._plan.cores.numa_node)

    def _clients_cpu(self) -> int:
        """CPU of the client: that of the system's own threads, where reading counters disturbs no data thread."""
        placement = self._placement
        mine = {placement.control, placement.receiving, *(cpu for row in placement.sending for cpu in row)}
        system = [thread for thread in self._plan.cores.threads if thread.owner == _SYSTEM]
        here = [thread.cpu for thread in system if thread.machine == self._plan.machines.get(GENERATOR)]
        return next(iter([cpu for cpu in here if cpu not in mine] or [self._placement.control]))
