"""Instances of the components of a service on this machine: network, limits, install scripts."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers, GroupLimits
from resources.libraries.python.drivers.host.links.namespaces import name_of, path_of
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.network import ServiceNetwork, addresses
from resources.libraries.python.drivers.services.scripts import of_all
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.planning.placement.instance_cpus import InstancePlacement
from resources.libraries.python.testbed.roles.service import InstanceUse, SizedService

INSTALLED_WITHIN_S = 120.0
_REMOVED_WITHIN_S = 30.0
_GRACE_S = 3.0
"""For processes to end by themselves when the service is removed."""


class ServiceInstance:
    """A control group and a folder, inside a namespace that is there already.

    `name`: `<component>-<number>`.
    `machine`: its lock, held.
    """

    def __init__(self, name: str, controllers: Controllers, machine: MachineLock, limits: GroupLimits) -> None:
        self.name = name
        self.group = ControlGroup(controllers, name_of(name))
        self._machine = machine
        self._limits = limits
        self._claimed = False
        self._folder: Path | None = None
        self._busy = False
        """Whether it had processes when its script had ended."""

    def make(self) -> None:
        """Make group and folder.

        Raises:
            Unsupported: The machine cannot limit it.
            CsitError: There is such a group.
        """
        self._machine.claim_groups(self.group.folders)
        self._claimed = True
        self._folder = self._machine.folder(f"instances/{self.name}")
        self.group.make(self._limits)

    def run(self, what: str, script: Path, variables: Mapping[str, str], within_s: float) -> str:
        """Run a script in it; what it wrote on standard output.

        `what`: For messages: `install script of edge-1`.
        `script`: Absolute path.
        `variables`: Of its environment; the instance's folder is added.

        Raises:
            CommandFailed: It failed.
            NotReady: It did not end in time.
        """
        assert self._folder is not None  # noqa: S101 - made first
        self._machine.supervise(path_of(name_of(self.name)), *self.group.folders)
        output = scripts.run(
            what,
            script,
            namespace=name_of(self.name),
            doors=self.group.doors,
            variables={**variables, "CSIT_FOLDER": str(self._folder)},
            folder=self._folder,
            within_s=within_s,
        )
        self._busy = bool(self.group.processes())
        return output

    def problems(self) -> tuple[str, ...]:
        ended = self._busy and not self.group.processes()  # before the look for what may have ended them
        found = []
        if killed := self.group.killed_for_memory():
            limit = f"{self._limits.memory_bytes >> 20} MB" if self._limits.memory_bytes is not None else "memory"
            found.append(f"{self.name} used up its {limit}: the kernel killed {killed} of its processes")
        if ended:
            found.append(f"all processes of {self.name} have ended")
        return tuple(found)

    def remove(self) -> None:
        """Remove group and folder; its processes must have ended. Safe to call after a failure."""
        if not self._claimed:
            return
        self.group.remove()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        self._machine.release("groups", self.group.folders)
        self._claimed = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of its group; none before it is made, when a group of that name is not ours."""
        return self.group.folders if self._claimed else ()


class Instances(SizedService):
    """A service without its load generator.

    `machine`: the machine's lock, held.
    `cable`: by which the load comes; None where it comes from this machine.
    """

    def __init__(
        self,
        asked: Specifications,
        size: Size,
        placement: InstancePlacement,
        machine: MachineLock,
        controllers: Controllers,
        *,
        cable: Port | None = None,
    ) -> None:
        self._asked = asked
        self._size = size
        self._placement = placement
        self._controllers = controllers
        where = addresses(asked.deployment, size)
        self._addresses = {name: str(address) for name, address in where.items()}
        self._network = ServiceNetwork(where, machine, cable)
        self.rows = {
            name: ServiceInstance(
                name,
                controllers,
                machine,
                GroupLimits(flavor.vcpus, flavor.memory_mb << 20, placement.cpus.get(name)),
            )
            for name, flavor in placement.flavors.items()
        }
        self._made: list[ServiceInstance] = []
        self._found: dict[str, str] = {}
        """Output of the install scripts."""
        self._installed: list[ServiceInstance] = []

    def start(self) -> None:
        """Make network and instances, then run the install scripts, in the order of the components."""
        self._network.start()
        for instance in self.rows.values():
            self._made.append(instance)
            instance.make()
        for name, instance in self.rows.items():
            script = self._asked.install[name.rpartition("-")[0]]
            self._installed.append(instance)
            output = instance.run(f"install script of {name}", script, self._variables(name), INSTALLED_WITHIN_S)
            self._found |= scripts.facts(output)

    def use(self) -> Mapping[str, InstanceUse]:
        octets = self._network.octets()
        return {
            name: InstanceUse(instance.group.cpu_s(), instance.group.memory_bytes(), octets.get(name))
            for name, instance in self.rows.items()
        }

    def facts(self) -> Mapping[str, str]:
        """Facts from the install scripts, limits of the instances, and where they run."""
        pinned = {name: ",".join(map(str, sorted(cpus))) for name, cpus in self._placement.cpus.items()}
        return {
            **self._found,
            "instances": f"network namespaces with control groups, version {self._controllers.version}",
            "pinning": " ".join(f"{name}={cpus}" for name, cpus in pinned.items()) if pinned else "off",
            **({"oversubscribed": self._placement.short} if self._placement.short else {}),
        }

    def problems(self) -> tuple[str, ...]:
        """Instances that have lost processes."""
        return tuple(problem for instance in self.rows.values() for problem in instance.problems())

    def stop(self) -> None:
        """Run the remove scripts, end all processes, remove all groups, folders and namespaces.

        Raises:
            CsitError: A remove script failed, or something could not be removed; all else was.
        """
        made, installed = self._made[::-1], self._installed[::-1]
        self._made, self._installed = [], []
        script, folders = self._asked.remove, [folder for instance in made for folder in instance.folders]
        take_all(
            (
                *(partial(self._clean, instance, script) for instance in installed if script is not None),
                partial(self._end, folders),
                *(instance.remove for instance in made),
                self._network.stop,
            )
        )

    @staticmethod
    def _end(folders: list[Path]) -> None:
        end(folders, _GRACE_S)

    def _clean(self, instance: ServiceInstance, script: Path) -> None:
        instance.run(f"remove script of {instance.name}", script, self._variables(instance.name), _REMOVED_WITHIN_S)

    def _variables(self, name: str) -> dict[str, str]:
        component, _, number = name.rpartition("-")
        flavor = self._placement.flavors[name]
        return {
            "CSIT_COMPONENT": component,
            "CSIT_INSTANCE": number,
            "CSIT_ADDRESS": self._addresses[name],
            "CSIT_FLAVOR": self._size.components[component].flavor,
            "CSIT_FLAVOR_VCPUS": f"{flavor.vcpus:g}",
            "CSIT_MEMORY_MB": str(flavor.memory_mb),
            **self._asked.options,
            **of_all(self._addresses),
        }
