"""A deployed NF under overload on this machine, its packets counted in blocks."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.placement.cores import cpu_without_data
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.roles.part import TrafficGenerator
from resources.libraries.python.testbed.worlds import makers

_FRAME = frame("64B")
_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")


@dataclass(frozen=True)
class ServiceUnderLoad:
    """A deployed service of one NF."""

    plan: Plan
    lock: MachineLock
    fabric: Fabric
    generator: TrafficGenerator
    threads: dict[str, tuple[int, ...]]
    """Pids of data threads by name of the NF."""
    aside: int | None
    """CPU of sampler and tracer; None if the machine has none to spare."""

    def send(self, load_pps: float, duration_s: float) -> TrialResult:
        """Run a trial."""
        return self.generator.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=_FRAME))

    def received(self) -> int:
        """Return the packets that the generator has received so far, in both directions."""
        return sum(row.rx_packets for row in self.fabric.counters([GENERATOR]).values())


@contextmanager
def service() -> Iterator[ServiceUnderLoad]:
    """Deploy a CSC 1R1C, and remove it at the end.

    Raises:
        Unsupported: This machine does not meet the requirements of local runs.
        CsitError: Another run uses the machine.
    """
    topology = load_topology(LOCAL_TOPOLOGY)
    if problems := [*check(), *makers.missing(topology.tg)]:
        raise Unsupported("; ".join(map(str, problems)))
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, **Dimensions(1, 1).columns), discover())
    with ExitStack() as held:
        lock = held.enter_context(MachineLock())
        lock.remove_leftovers()
        lock.set_for_run(*_NO_REALTIME_LIMIT)
        fabric = Fabric(plan, lock, _FRAME.largest_bytes)
        context = DriverContext(plan, fabric, lock, _FRAME.largest_bytes)
        generator = makers.generator(topology.tg, context)
        routers = LinuxRouters(topology.dut, context, plan.functions)
        for part in (fabric, LinuxBridge(plan, fabric), routers, generator):
            held.callback(part.stop)
            part.start()
        rows = fabric.threads()
        threads = {
            function.name: tuple(thread for port in plan.ports(function.name) for thread in rows[port.interface])
            for function in plan.functions
        }
        yield ServiceUnderLoad(plan, lock, fabric, generator, threads, cpu_without_data(plan.cores.threads))


LEAST_PPS, _MOST_PPS, _STEP = 400e3, 4e6, 1.4
"""Range and factor of the search for a load above the capacity of the NF."""
_TRY_S = 0.5
_OVERLOADED, _MOST_FORWARDED = 0.7, 0.9
"""Largest share of packets forwarded at a suitable load, and in each flow. Above it, the NF is not, or hardly, the
bottleneck."""
_BEGIN_S, _SETTLE_S = 0.2, 0.04
"""Time until queues are full; time to settle after each switch, between a tracer window and the sampling interval."""
_STARTED_WITHIN_S = 20.0
_PRIORITY = 3
"""Above generator and data threads, so that packets are counted at the end of a block, not when a CPU is free."""


class NotOverloadedError(CsitError):
    """The NF forwarded nearly all packets, so the cost of watching would not show."""


@contextmanager
def prompt(cpu: int | None) -> Iterator[None]:
    """Run the calling thread with real-time priority, on the given CPU if there is one."""
    policy, parameters, cpus = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
    stay_on(cpu)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        os.sched_setaffinity(0, cpus)


def overload_pps(here: ServiceUnderLoad, load_pps: float = LEAST_PPS) -> float:
    """Find a load of which the NF forwards only a part, so that the cost of watching shows at the receiver.

    Args:
        here: The service.
        load_pps: The smallest load to try.

    Returns:
        In pps, of both directions.

    Raises:
        NotOverloadedError: The NF forwards the highest load of the generator.
    """
    share = 1.0
    while load_pps <= _MOST_PPS:
        sent, received = _packets(here.send(load_pps, _TRY_S))
        share = received / sent
        if share <= _OVERLOADED:
            return load_pps
        load_pps *= _STEP
    raise NotOverloadedError(f"{share:.0%} of packets received at the highest load: the NF is not the bottleneck")


def _packets(result: TrialResult) -> tuple[int, int]:
    return sum(flow.sent for flow in result.flows), sum(flow.received for flow in result.flows)


class BlockFlow:
    """A trial in the background. Use it as a context manager."""

    def __init__(self, here: ServiceUnderLoad, load_pps: float, lasts_s: float) -> None:
        """Nothing is sent before the context is entered.

        Args:
            here: The service.
            load_pps: Offered load of both directions.
            lasts_s: Duration of the trial.
        """
        self._here = here
        self._load_pps = load_pps
        self._lasts_s = lasts_s
        self._end_s = 0.0
        self._held = ExitStack()
        self._trial: Future[TrialResult] | None = None

    def __enter__(self) -> Self:
        """Start sending, and wait until packets are received."""
        pool = self._held.enter_context(ThreadPoolExecutor(1, "flow"))
        before = self._here.received()
        self._trial = pool.submit(self._here.send, self._load_pps, self._lasts_s)
        wait_until(
            "packets of a flow", lambda: "none received" if self._here.received() == before else "", _STARTED_WITHIN_S
        )
        self._end_s = time.monotonic() + self._lasts_s
        time.sleep(_BEGIN_S)
        return self

    def left_s(self) -> float:
        """Return the time until the flow ends, in seconds."""
        return self._end_s - time.monotonic()

    def block(self, block_s: float) -> tuple[float, float]:
        """Wait for the system to settle, then count packets for `block_s` seconds.

        Returns:
            Packets received per second, and the elapsed time with settling in seconds.

        Raises:
            CsitError: The flow ended before the block did.
        """
        begin_s = time.monotonic()
        time.sleep(_SETTLE_S)
        before, from_s = self._count()
        time.sleep(max(0.0, from_s + block_s - time.monotonic()))
        after, until_s = self._count()
        assert self._trial is not None  # noqa: S101 - entered
        if self._trial.done():
            self._trial.result()  # raises the error of the trial
            raise CsitError(f"the flow of {self._lasts_s:g} s ended within a block")
        return (after - before) / (until_s - from_s), until_s - begin_s

    def _count(self) -> tuple[int, float]:
        return self._here.received(), time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the end of the trial.

        Raises:
            NotOverloadedError: The NF was not the bottleneck.
        """
        self._held.close()
        if error is None and self._trial is not None:
            sent, received = _packets(self._trial.result())
            if received > _MOST_FORWARDED * sent:
                raise NotOverloadedError(f"{received} of {sent} packets received: the NF is not the bottleneck")
