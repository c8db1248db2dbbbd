"""The local world: one machine, network namespaces, real packets through the real kernel."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from resources.libraries.python.deployment.parts import Parts
from resources.libraries.python.drivers.function.linux_router import LinuxRouters
from resources.libraries.python.drivers.function.several import Several
from resources.libraries.python.drivers.generator.ring.driver import RingGenerator
from resources.libraries.python.drivers.host.cpu import discover
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.preflight import check
from resources.libraries.python.drivers.switch.linux_bridge import LinuxBridge
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import NfKind
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.roles.function import NetworkFunctions

_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")
"""Data threads run in real time. By default the kernel stops such threads for 50 ms of every second in which they were
busy for more than 95 %: at 500 kpps that is 25,000 packets lost in a system that has capacity left."""


class LocalWorld:
    """Fulfils `parts.World` on this machine."""

    def __init__(self, topology: Topology) -> None:
        self.layout = discover() if topology.dut.cpus == "discover" else topology.dut.layout
        self.drivers: Mapping[str, str] = {
            "generator": topology.tg.generator.driver,
            "vswitch": topology.dut.vswitch,
            "containers": ", ".join(topology.dut.containers),
        }
        self.simulation: Mapping[str, Any] | None = None
        self._machine = MachineLock()
        self._held = ExitStack()

    def problems(self) -> tuple[str, ...]:
        """What this machine lacks, a sentence each with how to mend it."""
        return tuple(str(problem) for problem in check())

    def open(self) -> tuple[str, ...]:
        """Check the machine, take its lock, remove what a killed run left behind."""
        problems = self.problems()
        if problems:
            raise Unsupported("; ".join(problems))
        self._held.enter_context(self._machine)
        removed = tuple(self._machine.remove_leftovers())
        self._machine.set_for_run(*_NO_REALTIME_LIMIT)
        return removed

    def parts(self, plan: Plan, asked: Asked) -> Parts:
        """Drivers for a cell."""
        fabric = Fabric(plan, self._machine, asked.frame.largest_bytes)
        return Parts(
            cables=(fabric,),
            switch=LinuxBridge(plan, fabric),
            functions=Several(self._functions(plan, fabric)),
            generator=_OwnedGenerator(RingGenerator(plan), self._machine),
            clock=time.monotonic,
        )

    def _functions(self, plan: Plan, fabric: Fabric) -> Iterator[NetworkFunctions]:
        for kind in dict.fromkeys(function.kind for function in plan.functions):
            group = [function for function in plan.functions if function.kind is kind]
            match kind:
                case NfKind.LINUX_ROUTER:
                    yield LinuxRouters(group, fabric)
                case _:
                    raise Unsupported(f"the local world has no driver for NFs of kind {kind}")

    def close(self) -> None:
        """Release the machine."""
        self._held.close()


class _OwnedGenerator:
    """Keeps the generator's workers on the machine's record, so that the next run ends those that a killed run left."""

    def __init__(self, generator: RingGenerator, machine: MachineLock) -> None:
        self._generator = generator
        self._machine = machine
        self._pids: tuple[int, ...] = ()

    def start(self) -> None:
        self._generator.start()
        self._pids = self._generator.pids()
        for pid in self._pids:
            self._machine.claim_process(pid)

    def run(self, trial: Trial) -> TrialResult:
        return self._generator.run(trial)

    def maximum_pps(self, trial: Trial) -> float:
        return self._generator.maximum_pps(trial)

    def facts(self) -> Mapping[str, str]:
        return self._generator.facts()

    def problems(self) -> tuple[str, ...]:
        return self._generator.problems()

    def stop(self) -> None:
        self._generator.stop()
        for pid in self._pids:
            self._machine.release_process(pid)
        self._pids = ()
