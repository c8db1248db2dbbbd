"""Flows of a configuration on real ports: workers that send, sockets that count, and what both say."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from secrets import randbits
from typing import Any

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.builtin.given_frames import MarkCounter
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.builtin.wire import (
    LatencyReport,
    TrialReport,
    WorkerSpec,
    trial_report,
)
from resources.libraries.python.drivers.generators.otg.server.planned_flows import PlannedFlow, planned_flows
from resources.libraries.python.drivers.generators.otg.server.ports import links_up, port_speeds_bps
from resources.libraries.python.drivers.generators.otg.server.schema import MOST_FLOWS, OtgConfig
from resources.libraries.python.drivers.generators.xdp.support import ThreadCounters
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.errors import ConfigError, CsitError, NotReady

_LOG = logging.getLogger(__name__)
_START_S, _PREPARE_S, _STOP_S = 45.0, 15.0, 15.0
"""For all flows of a configuration together: clients wait 60 s for an answer. Workers start beside each other, which
takes long on few CPUs."""
_PROGRESS_S = 15.0
_CLOSE_S = 3.0
_WINDOW_S = 1.0
_SAMPLES = 32
_COLUMNS = {"bytes_rx": 0, "frames_rx": 1, "bytes_tx": 8, "frames_tx": 9}
"""Of /proc/net/dev."""


@dataclass
class CounterRates:
    """Rates of two counters over about the last second."""

    samples: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def add(self, now_s: float, first: int, second: int) -> None:
        """Take a sample."""
        self.samples.append((now_s, first, second))

    def over(self, now_s: float) -> tuple[float, float]:
        """Return both rates; 0 where there was no sample in the last second."""
        recent = [each for each in self.samples if now_s - each[0] <= _WINDOW_S]
        if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
            return 0.0, 0.0
        (begin_s, *before), (end_s, *after) = recent[0], recent[-1]
        first, second = ((late - early) / (end_s - begin_s) for early, late in zip(before, after, strict=True))
        return first, second


class _Flow:
    """One flow: its worker and its counter.

    Args:
        plan: The flow.
        namespace: Network namespace of the ports.
        cpus: Where the worker runs; none: anywhere.
        worker: That of a flow that has been released; None to start one, which takes 0.2 s of CPU time.
    """

    def __init__(
        self, plan: PlannedFlow, namespace: str, cpus: tuple[int, ...], worker: WorkerProcess | None = None
    ) -> None:
        self.plan = plan
        self._prepared = False
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._before = self.sent = self.received = 0
        self.latency: LatencyReport | None = None
        self.failure = ""
        self.rates = CounterRates()
        try:
            with ExitStack() as released:
                if worker is not None:
                    released.callback(worker.close)
                self._counter = aside(partial(_counter, namespace, plan))
                released.pop_all()
            self._stack.callback(self._counter.close)
            self._worker = worker or WorkerProcess()
            self._stack.callback(self._worker.close)
            spec = WorkerSpec(namespace, cpus, alone=bool(cpus), flows=(plan.spec,), sending="ring")
            self._worker.send(asdict(spec))
        except CsitError:
            self.close()
            raise

    def answer(self, what: str, begun_s: float, within_s: float) -> None:
        """Take the next record of the worker, within a time that all flows of a configuration share.

        Raises:
            NotReady: No record came in time; it has the time since the beginning.
            CsitError: As `WorkerProcess.answer`.
        """
        try:
            self._worker.answer(what, begun_s + within_s - time.monotonic())
        except NotReady as error:
            waited_s = time.monotonic() - begun_s
            raise NotReady(f"{error.what} of flow {self.plan.name}", waited_s, error.last_seen) from error

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def prepare(self) -> None:
        self._prepared = True
        self._worker.send({"prepare": asdict(self.plan.trial)})

    def go(self) -> None:
        """Begin, in a thread that follows the worker."""
        self._before = self._counter.read()
        self.sent = self.received = 0
        self.latency, self.failure, self.rates = None, "", CounterRates()
        self._worker.send({"do": "go"})
        self._prepared = False
        self._thread = threading.Thread(target=self._follow, name=f"flow {self.plan.name}", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            while "sent" in (record := self._worker.answer("generator's progress", _PROGRESS_S)):
                self.count(sum(record["sent"]))
            self._end(trial_report(record))
        except CsitError as error:
            self.failure = str(error)
            _LOG.error("flow %s: %s", self.plan.name, error)

    def _end(self, report: TrialReport) -> None:
        (flow,) = report.flows
        self.latency = flow.latency
        self.count(flow.sent + flow.probes_sent)
        if not report.aborted and flow.sent < report.planned:
            _LOG.warning("flow %s: the generator sent %d of %d packets", self.plan.name, flow.sent, report.planned)

    def count(self, sent: int | None = None) -> None:
        """Take what has been sent so far, and read what has arrived."""
        with self._lock:
            self.sent = self.sent if sent is None else sent
            self.received = self._counter.read() - self._before
            if sent is not None:
                self.rates.add(time.monotonic(), self.sent, self.received)

    def stop(self) -> None:
        """Ask it to stop; `wait_stopped` waits for it."""
        if self.running:
            self._worker.send({"do": "stop"})

    def wait_stopped(self, begun_s: float) -> None:
        if self._thread is not None:
            self._thread.join(max(0.0, begun_s + _STOP_S - time.monotonic()))
            if self._thread.is_alive():
                raise NotReady(f"the end of flow {self.plan.name}", _STOP_S, "it still sends")

    def close(self) -> None:
        """End the worker, after its report where it was told to stop."""
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        self._stack.close()

    def release(self) -> WorkerProcess | None:
        """Let go of the worker, after its report, for another flow; None where it cannot take one and is ended."""
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        if self.running or self.failure or self._prepared or self._worker.ended:
            self.close()
            return None
        self._stack.pop_all()
        self._counter.close()
        return self._worker


def _counter(namespace: str, plan: PlannedFlow) -> MarkCounter:
    if namespace:
        kernel.enter_namespace(namespace)
    return MarkCounter(plan.spec)


class Traffic:
    """Ports, flows and metrics. Its methods are called by one thread that stays: workers end with it."""

    def __init__(self, locations: Sequence[str], namespace: str = "", cpus: tuple[int, ...] = ()) -> None:
        """Take what may be served; nothing is opened yet.

        Args:
            locations: Interfaces that a configuration may use; none: all of the namespace.
            namespace: Network namespace that has them; empty for the present one.
            cpus: Where the workers run, before all other programs there; none: anywhere.
        """
        self._locations, self._namespace, self._cpus = tuple(locations), namespace, cpus
        self._config = OtgConfig()
        self.given: dict[str, Any] = {}
        """The present configuration as it was given."""
        self._flows: dict[str, _Flow] = {}
        self._ports: ThreadCounters | None = None
        self._before: dict[str, dict[str, int]] = {}
        self._rates: dict[str, CounterRates] = {}
        self._mark = randbits(31) << 1

    def configure(self, config: OtgConfig, given: dict[str, Any]) -> list[str]:
        """Stop what is sent, and take another configuration into use.

        Args:
            config: The configuration.
            given: The same as it came.

        Returns:
            Warnings.

        Raises:
            ConfigError: It asks for something that the generator cannot do; the present configuration stays.
            CsitError: A port is not there, may not be opened, or is down although there are flows; or workers do not
                start in time. No configuration is left, or the present one where nothing was opened yet.
        """
        begun_s = time.monotonic()
        speeds_bps = port_speeds_bps(self._namespace, self._locations, config)
        plans = planned_flows(config, speeds_bps, self._mark)
        workers = self._release()
        self._mark = (self._mark + 2 * MOST_FLOWS) & 0xFFFFFFFF
        try:
            for plan in plans:
                worker = workers.pop() if workers else None
                self._flows[plan.name] = _Flow(plan, self._namespace, self._cpus, worker)
            for flow in self._flows.values():
                flow.answer("generator worker", begun_s, _START_S)  # after it has checked its ports
            self._ports = aside(self._open_counters)
            self._config, self.given = config, given
            for port in config.ports:
                self._before[port.name] = self._port(port.location)
                self._rates[port.name] = CounterRates()
        except CsitError:
            self.close()
            raise
        finally:
            _close_all(workers)
        return config.warnings

    def _release(self) -> list[WorkerProcess]:
        """Stop what is sent, forget the configuration, and return workers that can take other flows."""
        flows = list(self._flows.values())
        for flow in flows:
            flow.stop()
        self._flows = {}
        self.close()
        with ThreadPoolExecutor(MOST_FLOWS) as pool:  # as in `_close_all`
            return [worker for worker in pool.map(_Flow.release, flows) if worker is not None]

    def _open_counters(self) -> ThreadCounters:
        if self._namespace:
            kernel.enter_namespace(self._namespace)
        return ThreadCounters(())

    def start(self, names: Sequence[str]) -> None:
        """Send flows, all where none is named.

        Raises:
            ConfigError: There is no such flow, or it is being sent.
            CsitError: A port refuses the frames.
        """
        flows = self._named(names)
        if running := [flow.plan.name for flow in flows if flow.running]:
            raise ConfigError(f"traffic.flow_transmit: already sent: {', '.join(running)}")
        begun_s = time.monotonic()
        for flow in flows:
            flow.prepare()
        for flow in flows:
            flow.answer("generator's frames", begun_s, _PREPARE_S)
        for flow in flows:
            flow.go()

    def stop(self, names: Sequence[str] = ()) -> None:
        """Stop flows, all where none is named, and wait until their last packets have been counted.

        Raises:
            ConfigError: There is no such flow.
            NotReady: One does not stop.
        """
        flows = self._named(names)
        begun_s = time.monotonic()
        for flow in flows:
            flow.stop()
        for flow in flows:
            flow.wait_stopped(begun_s)

    def _named(self, names: Sequence[str]) -> list[_Flow]:
        if unknown := [name for name in names if name not in self._flows]:
            raise ConfigError(f"there is no flow '{unknown[0]}' ({', '.join(self._flows) or 'no configuration'})")
        return [self._flows[name] for name in names] if names else list(self._flows.values())

    def flow_metrics(self, names: Sequence[str]) -> list[dict[str, object]]:
        """Return metrics of flows, all where none is named, as OTG has them."""
        return [_flow_metrics(flow) for flow in self._named(names) if flow.plan.reported]

    def port_metrics(self, names: Sequence[str]) -> list[dict[str, object]]:
        """Return metrics of ports since they were configured, all where none is named, as OTG has them.

        Raises:
            ConfigError: There is no such port.
            CsitError: It is gone.
        """
        known = {port.name: port.location for port in self._config.ports}
        if unknown := [name for name in names if name not in known]:
            raise ConfigError(f"there is no port '{unknown[0]}' ({', '.join(known) or 'no configuration'})")
        running = {flow.plan.tx_port for flow in self._flows.values() if flow.running}
        found: list[dict[str, object]] = []
        is_up = links_up(self._namespace, [known[name] for name in names or known])
        for name in names or known:
            counts = {key: now - self._before[name][key] for key, now in self._port(known[name]).items()}
            rates, now_s = self._rates[name], time.monotonic()
            rates.add(now_s, counts["frames_tx"], counts["frames_rx"])
            tx_pps, rx_pps = rates.over(now_s)
            found.append(
                {
                    "name": name,
                    "location": known[name],
                    "link": "up" if is_up[known[name]] else "down",
                    "transmit": "started" if name in running else "stopped",
                    **counts,
                    "frames_tx_rate": tx_pps,
                    "frames_rx_rate": rx_pps,
                }
            )
        return found

    def _port(self, location: str) -> dict[str, int]:
        rows = self._ports.rows() if self._ports else {}
        if location not in rows:
            raise CsitError(f"port {location} is gone")
        return {key: int(rows[location][column]) for key, column in _COLUMNS.items()}

    def close(self) -> None:
        """Stop what is sent, end the workers, and forget the configuration."""
        with ExitStack() as stack:
            if self._ports is not None:
                stack.callback(self._ports.close)
            stack.callback(_close_all, list(self._flows.values()))
            for flow in self._flows.values():
                flow.stop()
            self._flows, self._ports, self._before = {}, None, {}
            self._config, self.given = OtgConfig(), {}


def _close_all(parts: Sequence[_Flow | WorkerProcess]) -> None:
    """Close them at the same time: each may take some seconds, and a client waits for the answer."""
    with ThreadPoolExecutor(MOST_FLOWS) as pool:
        pending = [pool.submit(each.close) for each in parts]
    for each in pending:
        each.result()


def _flow_metrics(flow: _Flow) -> dict[str, object]:
    running = flow.running
    flow.count()
    plan, sent, received = flow.plan, flow.sent, flow.received
    tx_pps, rx_pps = flow.rates.over(time.monotonic()) if running else (0.0, 0.0)
    found: dict[str, object] = {
        "name": plan.name,
        "port_tx": plan.tx_port,
        "port_rx": plan.rx_port,
        "transmit": "started" if running else "stopped",
        "frames_tx": sent,
        "frames_rx": received,
        "bytes_tx": sent * plan.frame_bytes,
        "bytes_rx": received * plan.frame_bytes,
        "frames_tx_rate": tx_pps,
        "frames_rx_rate": rx_pps,
        "loss": 100.0 * max(0.0, 1 - received / sent) if sent else 0.0,
    }
    if flow.latency is not None:
        figures = flow.latency
        found["latency"] = {
            "minimum_ns": float(figures.min_ns),
            "maximum_ns": float(figures.max_ns),
            "average_ns": float(figures.mean_ns),
        }
    return found
