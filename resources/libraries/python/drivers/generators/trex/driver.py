"""The driver of TRex: from a plan and trials to its server, from its reports to results; the highest load by trials."""

import logging
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.arrival_gaps import arrival_gaps
from resources.libraries.python.drivers.generators.overload import SearchedByTrials
from resources.libraries.python.drivers.generators.trex import DPDK_MB, HUGE_FILES, Trex, config, profile
from resources.libraries.python.drivers.generators.trex.client import Client
from resources.libraries.python.drivers.generators.trex.config import PREFIX, arguments, place, table_of
from resources.libraries.python.drivers.generators.trex.requirements import interpreter
from resources.libraries.python.drivers.generators.trex.results import trial_result
from resources.libraries.python.drivers.generators.trex.wire import LINKS_S, OpenedPorts, OpenPorts, Report, RunTrial
from resources.libraries.python.drivers.host.cpu.memory import remove_files, require_huge_pages
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.planning.placement.sender_threads import is_alone

_LOG = logging.getLogger(__name__)
_READY_S = 90.0
"""3 s in software mode, longer with huge pages and many NICs, and the first time on an emulated machine about 50 s."""
_ANSWER_S = 15.0
_OPENED_S = _READY_S + LINKS_S + _ANSWER_S
_STRETCH = 0.5
_STRETCH_S = 0.5
_MAX_STRETCH_S = 30.0
_LOOPBACK = 1
SYSTEM = "system"
_FOLDER = "trex"
_SERVER_END_S = 10.0
_FIRST = -20


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
        system = [thread for thread in self._plan.cores.threads if thread.owner == SYSTEM]
        here = [thread.cpu for thread in system if thread.machine == self._plan.machines.get(GENERATOR)]
        return next(iter([cpu for cpu in here if cpu not in mine] or [self._placement.control]))
