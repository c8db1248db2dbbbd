"""The local world: one machine, network namespaces, real packets through the real kernel."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from resources.libraries.python.deployment.parts import Parts
from resources.libraries.python.drivers.function.linux_router import LinuxRouters
from resources.libraries.python.drivers.function.several import Several
from resources.libraries.python.drivers.function.testpmd.driver import Testpmds
from resources.libraries.python.drivers.function.testpmd.driver import missing as testpmd_missing
from resources.libraries.python.drivers.function.vm.driver import VirtualMachines
from resources.libraries.python.drivers.function.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.generator.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generator.builtin.wire import Sending
from resources.libraries.python.drivers.generator.xdp.machine import why_not
from resources.libraries.python.drivers.host import threads
from resources.libraries.python.drivers.host.cpu import discover
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.preflight import Problem, check
from resources.libraries.python.drivers.sampler.host import HostSampler
from resources.libraries.python.drivers.switch.linux_bridge import LinuxBridge
from resources.libraries.python.drivers.switch.ovs import programs
from resources.libraries.python.drivers.switch.ovs.driver import OpenVSwitch
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.cell import NfKind
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.roles.function import NetworkFunctions
from resources.libraries.python.roles.vswitch import VSwitch

_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")
"""Data threads run in real time. By default the kernel stops such threads for 50 ms of every second in which they were
busy for more than 95 %: at 500 kpps that is 25,000 packets lost in a system that has capacity left."""


class LocalWorld:
    """Fulfils `parts.World` on this machine."""

    def __init__(self, topology: Topology) -> None:
        self.layout = discover() if topology.dut.cpus == "discover" else topology.dut.layout
        driver = topology.tg.generator.driver
        if driver == "sim":
            raise ConfigError("nodes.TG.generator.driver: the local world sends real packets, sim does not")
        if driver == "trex":
            raise Unsupported("the local world has no driver for the generator trex")
        self._sending: Sending = driver
        self.drivers: Mapping[str, str] = {
            "generator": topology.tg.generator.driver,
            "vswitch": topology.dut.vswitch,
            "containers": ", ".join(topology.dut.containers),
            **({"vms": topology.dut.vms} if topology.dut.vms else {}),
        }
        self._dut = topology.dut
        self.simulation: Mapping[str, Any] | None = None
        self._machine = MachineLock()
        self._held = ExitStack()

    def problems(self) -> tuple[str, ...]:
        """What this machine lacks, a sentence each with how to mend it."""
        found = list(check())
        if self._dut.vswitch == "ovs":
            found += programs.missing(self._dut.ovs.ports)
        if NfKind.TESTPMD in self._dut.containers:
            found += testpmd_missing()
        if self._sending == "xdp" and not found and (reason := why_not()):
            found.append(Problem(f"XDP live frames do not work here ({reason})", "set the generator's driver to auto"))
        return tuple(map(str, found))

    def wishes(self) -> tuple[str, ...]:
        """What only virtual machines need."""
        return tuple(map(str, vm_missing())) if self._dut.vms is NfKind.QEMU else ()

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
            switch=self._switch(plan, fabric, asked.frame.largest_bytes),
            functions=Several(self._functions(plan, fabric, asked.frame.largest_bytes)),
            generator=_OwnedGenerator(BuiltInGenerator(plan, sending=self._sending), self._machine),
            clock=time.monotonic,
            sampler=HostSampler(
                {thread.cpu for thread in plan.cores.threads}, lambda: self._data_threads(plan, fabric)
            ),
            generator_counters=lambda: fabric.counters([GENERATOR]),
        )

    def _switch(self, plan: Plan, fabric: Fabric, largest_frame_bytes: int) -> VSwitch:
        match self._dut.vswitch:
            case "linux_bridge":
                return LinuxBridge(plan, fabric)
            case "ovs":
                return OpenVSwitch(
                    plan, fabric, self._machine, ports=self._dut.ovs.ports, largest_frame_bytes=largest_frame_bytes
                )
            case other:
                raise Unsupported(f"the local world has no driver for the vSwitch {other}")

    def _functions(self, plan: Plan, fabric: Fabric, largest_frame_bytes: int) -> Iterator[NetworkFunctions]:
        for kind in dict.fromkeys(function.kind for function in plan.functions):
            group = [function for function in plan.functions if function.kind is kind]
            match kind:
                case NfKind.LINUX_ROUTER:
                    yield LinuxRouters(group, fabric)
                case NfKind.QEMU:
                    yield VirtualMachines(group, plan, fabric, self._machine, self._dut.vm)
                case NfKind.TESTPMD:
                    yield Testpmds(group, plan, fabric, self._machine, largest_frame_bytes=largest_frame_bytes)
                case _:
                    raise Unsupported(f"the local world has no driver for NFs of kind {kind}")

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """Claimed things and data threads that are still there."""
        interfaces = [port.interface for link in plan.links for port in (link.a, link.b)] if plan else []
        running = [f"data thread of {name}" for name in threads.running(interfaces)]
        return (*self._machine.leftovers(), *running)

    def clean(self) -> tuple[str, ...]:
        """Kill and remove all that is claimed."""
        return tuple(self._machine.remove_claimed())

    def _data_threads(self, plan: Plan, fabric: Fabric) -> dict[str, int]:
        """Kernel threads that do all the work of their ports.

        Others only receive for a virtual machine or a program in user space, whose own threads do the rest: their time
        alone would make a busy owner look idle. What is known of those is the time of their planned CPUs.
        """
        elsewhere = {function.name for function in plan.functions if function.kind is not NfKind.LINUX_ROUTER}
        if self._dut.vswitch != "linux_bridge":
            elsewhere.add(VSWITCH)
        behind = {port.interface for name in elsewhere for port in plan.ports(name)}
        return {interface: thread for interface, thread in fabric.threads().items() if interface not in behind}

    def close(self) -> None:
        """Release the machine."""
        self._held.close()


class _OwnedGenerator:
    """Keeps the generator's workers on the machine's record, so that the next run ends those that a killed run left."""

    def __init__(self, generator: BuiltInGenerator, machine: MachineLock) -> None:
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
