"""The local world: one machine, network namespaces, real packets through the real kernel."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.studies.sizing.model.load import Specifications
from resources.libraries.python.testbed.deployment.parts import Host, Parts
from resources.libraries.python.testbed.worlds.machine import TestbedMachine
from resources.libraries.python.testbed.worlds.real_time import RealTime


class LocalTestbed:
    """Fulfils `parts.Testbed` on this machine, which has all of the testbed."""

    def __init__(self, topology: Topology) -> None:
        driver = topology.tg.generator.driver
        if driver_registry.generators()[driver].factory is None:
            raise ConfigError(f"nodes.TG.generator.driver: the local world sends real packets, {driver} does not")
        self._machine = TestbedMachine(topology)
        self.layout = self._machine.layout
        self.drivers: Mapping[str, str] = {
            "generator": driver,
            "vswitch": topology.dut.vswitch,
            "containers": ", ".join(topology.dut.containers),
            **({"vms": topology.dut.vms} if topology.dut.vms else {}),
        }
        self.simulation: Mapping[str, Any] | None = None

    def problems(self) -> tuple[str, ...]:
        """What this machine lacks, a sentence each with how to mend it."""
        return self._machine.problems()

    def warnings(self) -> tuple[str, ...]:
        """What only virtual machines need, and NFs that are there on request."""
        return self._machine.warnings()

    def open(self) -> tuple[str, ...]:
        """Check the machine, take its lock, remove what a killed run left behind."""
        return self._machine.open()

    def environment(self) -> Environment:
        """This machine."""
        return fingerprint()

    def parts(self, plan: Plan, asked: Asked) -> Parts:
        share = self._machine.share(plan, asked)
        if share.switch is None or share.functions is None or share.generator is None:
            raise PlanError(f"{plan.suite_id} has no vSwitch, NFs or generator on this machine")
        return Parts(
            cables=share.cables,
            switch=share.switch,
            functions=share.functions,
            generator=share.generator,
            clock=time.monotonic,
            sampler=share.sampler,
            generator_counters=share.generator_counters,
            features=share.features,
            tracer=share.tracer,
            costs=share.costs,
        )

    def host(self, asked: Specifications, folder: Path) -> Host:
        """Instances in network namespaces and control groups of this machine."""
        del folder  # scripts are absolute paths
        return Host(self._machine.orchestrator(asked), RealTime())

    def recover(self) -> None:
        """This machine is never lost."""

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """Claimed things and data threads that are still there."""
        return self._machine.leftovers(plan)

    def clean(self) -> tuple[str, ...]:
        """Kill and remove all that is claimed."""
        return self._machine.clean()

    def close(self) -> None:
        self._machine.close()
